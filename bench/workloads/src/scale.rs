//! One quantity from small to large: live blocks, or call sites.

use crate::measure::{Result, Stretch, resident, second_thread};
use crate::options::Options;
use crate::profiler::Profiler;
use crate::stacks;

/// Live block of the smallest size that glibc's allocator has room for in 32 bytes.
type Block = Box<[u64; 3]>;

/// Allocates `count` blocks that stay live, from about a thousand call stacks, then frees all. Prints the memory while they
/// live.
pub(crate) fn blocks(options: &Options, profiler: &mut dyn Profiler) -> Result<()> {
    let count = options.number("count", 1_000_000)?;
    second_thread();
    let before = resident(std::process::id())?.now;
    let stretch = Stretch::begin();
    let mut blocks: Vec<Block> = Vec::with_capacity(count as usize);
    for stack in 0..stacks::STACKS {
        let until = (count * (stack + 1) / stacks::STACKS) as usize;
        stacks::branch(stack, &mut || {
            while blocks.len() < until {
                blocks.push(Box::new([stack; 3]));
            }
        });
    }
    profiler.settle();
    let live = resident(std::process::id())?.now;
    drop(blocks);
    stretch.end(profiler);
    println!("count={count}\nrss_live={}", live.saturating_sub(before));
    Ok(())
}

/// Makes a `malloc` and a `free` from each of `count` call stacks.
pub(crate) fn sites(options: &Options, profiler: &mut dyn Profiler) -> Result<()> {
    let count = options.number("count", 1_000_000)? as u32;
    let bits = count.next_power_of_two().ilog2();
    second_thread();
    let before = resident(std::process::id())?.now;
    let stretch = Stretch::begin();
    for path in 0..count {
        stacks::along(path, bits, &mut || stacks::pair(64));
    }
    stretch.end(profiler);
    let live = resident(std::process::id())?.now;
    println!("count={count}\nrss_live={}", live.saturating_sub(before));
    Ok(())
}
