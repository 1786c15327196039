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

/// Calls `leaf` at the end of a path of calls that the lowest `bits` of `path` choose, highest first: each number is
/// another call stack, and near ones share most of their frames.
pub(crate) fn along(path: u32, bits: u32, leaf: &mut dyn FnMut()) {
    if bits == 0 {
        leaf();
    } else if path >> (bits - 1) & 1 == 0 {
        left(path, bits - 1, leaf);
    } else {
        right(path, bits - 1, leaf);
    }
}

#[inline(never)]
fn left(path: u32, bits: u32, leaf: &mut dyn FnMut()) {
    along(path, bits, leaf);
    black_box(());
}

#[inline(never)]
fn right(path: u32, bits: u32, leaf: &mut dyn FnMut()) {
    along(path, bits, leaf);
    // Differs from `left`, or the two would be one function.
    black_box(path);
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
