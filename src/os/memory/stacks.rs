//! Resident memory of thread stacks.
//!
//! A thread's stack is the mapping of its stack pointer. The kernel reports the stack pointers of waiting threads
//! (`/proc/self/task/…/syscall`). `/proc/self/pagemap` says which of a stack's pages are resident: reading it takes
//! microseconds, while `smaps` walks all memory of the process.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

/// Largest number of threads that are read, for a process that starts too many.
const MOST_THREADS: usize = 10_000;

/// Number of rounds for threads that were running. At most as many threads run at a time as there are processors; a thread
/// that runs in each round is left out.
const ROUNDS: usize = 4;
const BETWEEN_ROUNDS: Duration = Duration::from_micros(200);

/// Number of pages whose entries are read at once.
const PAGES: usize = 512;

/// Returns the resident bytes of the stacks that were found, and the number of these stacks.
pub(super) fn resident() -> Option<(u64, u32)> {
    let pagemap = File::open("/proc/self/pagemap").ok()?;
    let pointers = stack_pointers();
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let stacks = mappings_of(&maps, pointers);
    let bytes = stacks
        .iter()
        .map(|stack| resident_of(&pagemap, stack))
        .sum();
    Some((bytes, u32::try_from(stacks.len()).unwrap_or(u32::MAX)))
}

/// Returns an address on the stack of each thread whose stack pointer the kernel reports.
fn stack_pointers() -> Vec<u64> {
    let here = 0u8;
    let mut pointers = vec![(&raw const here).addr() as u64];
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let mut running: Vec<_> = tasks
        .flatten()
        .take(MOST_THREADS)
        .map(|task| task.path().join("syscall"))
        .collect();
    for round in 0..ROUNDS {
        if round > 0 {
            std::thread::sleep(BETWEEN_ROUNDS);
        }
        running.retain(|file| match std::fs::read_to_string(file) {
            Ok(syscall) => match pointer(&syscall) {
                Some(pointer) => {
                    pointers.push(pointer);
                    false
                }
                None => true,
            },
            // The thread has ended.
            Err(_) => false,
        });
        if running.is_empty() {
            break;
        }
    }
    pointers
}

/// Returns the last number but one of `/proc/…/syscall`: `<number> <arguments> <stack pointer> <program counter>`. Returns
/// `None` for a thread that is `running`.
fn pointer(syscall: &str) -> Option<u64> {
    let word = syscall.split_ascii_whitespace().rev().nth(1)?;
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

/// Returns those mappings of `maps` that contain one of `pointers`.
fn mappings_of(maps: &str, mut pointers: Vec<u64>) -> Vec<Range<u64>> {
    pointers.sort_unstable();
    let mapping = |line: &str| {
        let (start, rest) = line.split_once('-')?;
        let (end, _) = rest.split_once(' ')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(number(start)?..number(end)?)
    };
    maps.lines()
        .filter_map(mapping)
        .filter(|range| {
            let first = pointers.partition_point(|&pointer| pointer < range.start);
            pointers.get(first).is_some_and(|at| range.contains(at))
        })
        .collect()
}

/// Returns the bytes of `range` that are in memory: bit 63 of a page's entry (`Documentation/admin-guide/mm/pagemap.rst`).
fn resident_of(pagemap: &File, range: &Range<u64>) -> u64 {
    let page = crate::os::process::page_size();
    let mut resident = 0;
    let mut entries = vec![0u8; PAGES * 8];
    let mut at = range.start;
    while at < range.end {
        let pages = ((range.end - at) / page).min(PAGES as u64) as usize;
        let entries = &mut entries[..pages.max(1) * 8];
        if pagemap.read_exact_at(entries, at / page * 8).is_err() {
            break;
        }
        let present = entries.chunks_exact(8).filter(|entry| entry[7] & 0x80 != 0);
        resident += present.count() as u64 * page;
        at += entries.len() as u64 / 8 * page;
    }
    resident
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn stack_pointers_are_read_from_waiting_threads_only() {
        assert_eq!(
            pointer("202 0x7 0x80 0x0 0x0 0x0 0x0 0x7ffd1230 0x7f0001\n"),
            Some(0x7ffd_1230)
        );
        assert_eq!(pointer("-1 0x7ffd1230 0x7f0001\n"), Some(0x7ffd_1230));
        assert_eq!(pointer("running\n"), None);
        assert_eq!(pointer(""), None);
    }

    #[test]
    fn a_mapping_with_several_pointers_is_one_stack() {
        let maps = "1000-3000 rw-p 0 00:00 0 [heap]\n5000-9000 rw-p 0 00:00 0\nff000-100000 rw-p 0 00:00 0 [stack]\n";
        let stacks = mappings_of(maps, vec![0xff010, 0x5001, 0x8000, 0x4000]);
        assert_eq!(stacks, [0x5000..0x9000, 0xff000..0x10_0000]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_deep_stack_is_resident_and_an_untouched_one_is_not() {
        #[inline(never)]
        fn deep(frames: u32) -> u64 {
            let room = std::hint::black_box([frames as u8; 4096]);
            let below = if frames > 0 { deep(frames - 1) } else { 0 };
            below + u64::from(std::hint::black_box(&room)[17])
        }
        let (bytes_before, threads_before) = resident().unwrap();
        let (ready, is_ready) = channel();
        let (done, is_done) = channel::<()>();
        let thread = std::thread::Builder::new()
            .stack_size(64 << 20)
            .spawn(move || {
                deep(4000);
                ready.send(()).unwrap();
                let _ = is_done.recv();
            })
            .unwrap();
        is_ready.recv().unwrap();
        // The thread may not wait yet.
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        let (mut bytes, mut threads) = resident().unwrap();
        while bytes < bytes_before + (12 << 20) && std::time::Instant::now() < deadline {
            (bytes, threads) = resident().unwrap();
        }
        // Other tests' threads come and go; 16 of 64 MiB were touched.
        assert!(threads >= threads_before.min(2));
        assert!(
            (12 << 20..60 << 20).contains(&bytes.saturating_sub(bytes_before)),
            "{bytes_before} -> {bytes}"
        );
        drop(done);
        thread.join().unwrap();
    }
}
