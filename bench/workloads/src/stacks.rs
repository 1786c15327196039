//! Call stacks of a given depth and shape, made of functions that the compiler can neither inline nor merge.

use std::hint::black_box;

/// Number of binary choices on the way to a leaf of [`branch`].
pub const BITS: u32 = 10;
/// Number of different call stacks that [`branch`] and [`scatter`] make.
pub const STACKS: u64 = 1 << BITS;

type Step = fn(u64, usize, &mut dyn FnMut()) -> usize;

macro_rules! steps {
    ($($name:ident $weight:literal;)*) => {
        static STEPS: [Step; 8] = [$($name),*];
        $(
            #[inline(never)]
            fn $name(path: u64, depth: usize, leaf: &mut dyn FnMut()) -> usize {
                // A local of another size in each function, so that their frames differ, as in real code.
                let kept = black_box([depth; $weight]);
                if depth <= 1 {
                    leaf();
                } else {
                    black_box(STEPS[path as usize & 7](path.rotate_right(3), depth - 1, leaf));
                }
                black_box(kept)[0]
            }
        )*
    };
}

steps! {
    parse 1;
    convert 5;
    lookup 2;
    render 9;
    collect 3;
    dispatch 4;
    poll 7;
    resume 6;
}

/// Calls `leaf` below `depth` frames, which are always the same.
pub fn trunk(depth: usize, leaf: &mut dyn FnMut()) {
    if depth == 0 {
        leaf();
    } else {
        black_box(parse(0o7_1642_5370_1642_5370, depth, leaf));
    }
}

/// Calls `leaf` below `depth` frames that `number` chooses from the root on: two stacks share hardly any.
pub fn scatter(number: u64, depth: usize, leaf: &mut dyn FnMut()) {
    // Fibonacci hashing: near numbers go different ways from the first call on.
    let path = (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    black_box(STEPS[path as usize & 7](path.rotate_right(3), depth, leaf));
}

/// Calls `leaf` below [`BITS`] frames that `number` chooses: each number gives another call stack, and near numbers share
/// most frames.
pub fn branch(number: u64, leaf: &mut dyn FnMut()) {
    along(number as u32, BITS, leaf);
}

/// Calls `leaf` at the end of a path of calls that the lowest `bits` of `path` choose, highest first.
#[inline(always)]
pub fn along(path: u32, bits: u32, leaf: &mut dyn FnMut()) {
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
    // Differs from `left`; otherwise the compiler would merge the two functions.
    black_box(path);
}

/// Makes a `malloc` and a `free` of `size` bytes.
#[inline(always)]
pub fn pair(size: usize) {
    drop(block(size));
}

/// Returns a block of `size` bytes, not written to.
#[inline(always)]
pub fn block(size: usize) -> Vec<u8> {
    black_box(Vec::with_capacity(black_box(size)))
}
