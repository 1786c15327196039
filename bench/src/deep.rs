//! Call stacks of a wanted depth and shape, of functions that the compiler can neither inline nor merge.

use std::hint::black_box;

macro_rules! steps {
    ($($name:ident $next:ident $weight:literal;)*) => {
        $(
            #[inline(never)]
            fn $name(depth: usize, leaf: &mut dyn FnMut()) -> usize {
                // A local of another size in each function, so that their frames differ as those of real code do.
                let kept = black_box([depth; $weight]);
                if depth <= 1 {
                    leaf();
                } else {
                    $next(depth - 1, leaf);
                }
                black_box(kept)[0]
            }
        )*
    };
}

steps! {
    parse convert 1;
    convert lookup 5;
    lookup render 2;
    render collect 9;
    collect dispatch 3;
    dispatch poll 4;
    poll resume 7;
    resume parse 6;
}

/// Calls `leaf` below `depth` frames of different functions.
pub(crate) fn at_depth(depth: usize, leaf: &mut dyn FnMut()) {
    black_box(parse(depth, leaf));
}

/// Calls `leaf` at the end of a path of calls that `path` chooses bit by bit: each number is another call stack.
pub(crate) fn along(path: u32, bits: u32, leaf: &mut dyn FnMut()) {
    black_box(if path & 1 == 0 { left(path >> 1, bits, leaf) } else { right(path >> 1, bits, leaf) });
}

#[inline(never)]
fn left(path: u32, bits: u32, leaf: &mut dyn FnMut()) -> u32 {
    if bits <= 1 { leaf() } else { along(path, bits - 1, leaf) }
    black_box(path ^ 0x55)
}

#[inline(never)]
fn right(path: u32, bits: u32, leaf: &mut dyn FnMut()) -> u32 {
    if bits <= 1 { leaf() } else { along(path, bits - 1, leaf) }
    black_box(path ^ 0xaa)
}

/// A `malloc` and a `free` of `size` bytes.
#[inline(always)]
pub(crate) fn pair(size: usize) {
    drop(block(size));
}

/// A block of `size` bytes, not written to.
#[inline(always)]
pub(crate) fn block(size: usize) -> Vec<u8> {
    black_box(Vec::with_capacity(black_box(size)))
}
