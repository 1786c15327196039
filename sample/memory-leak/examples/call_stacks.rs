//! A program with 65,536 call stacks that all hold memory, to see what profile stores make of so many:
//!
//! ```console
//! $ MEMRAY_PROFILER=true PORT=7000 cargo run --release -p memory-leak --example call_stacks
//! ```

use std::error::Error;
use std::hint::black_box;
use std::net::Ipv4Addr;
use std::thread;

/// Calls in a row, each from one of two lines.
const DEPTH: u32 = 16;
const STACKS: usize = 1 << DEPTH;
const BLOCK_BYTES: usize = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let port: u16 = std::env::var("PORT")?.parse()?;
    heapray::init();
    heapray::serve((Ipv4Addr::LOCALHOST, port))?;
    let mut kept = Vec::with_capacity(STACKS);
    descend(DEPTH, &mut kept);
    assert_eq!(kept.len(), STACKS);
    loop {
        thread::park();
    }
}

/// Keeps a block for each path down.
#[inline(never)]
fn descend(depth: u32, kept: &mut Vec<Vec<u8>>) -> usize {
    if depth == 0 {
        kept.push(black_box(vec![1; BLOCK_BYTES]));
        return kept.len();
    }
    let left = descend(depth - 1, kept);
    let right = descend(depth - 1, kept);
    // What follows a call keeps it from becoming a jump.
    black_box(left.max(right))
}
