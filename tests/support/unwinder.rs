//! Helpers for the unwinder's tests: captured stacks as lists of addresses, and libgcc's stacks to compare them with.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)] // each test file uses some of it, in tests only

use std::ffi::c_void;

use heapray::capture::arch::{Registers, registers_here};
use heapray::capture::call_tree::CallTree;
use heapray::capture::modules;
use heapray::capture::unwind::ThreadUnwinder;
use heapray::collector::snapshot::RawNode;
use heapray_c_fixtures::{CAPTURE, RETURN};

/// A thread's unwinder and its call tree.
pub struct Recorder {
    pub unwinder: ThreadUnwinder,
    pub tree: CallTree,
}

/// A captured stack: the addresses from the leaf on, and the root's marker, if it has one.
#[derive(Debug, PartialEq, Eq, Clone, Default)]
pub struct Stack {
    pub addresses: Vec<u64>,
    pub mark: Option<u64>,
}

impl Recorder {
    pub fn new() -> Recorder {
        modules::refresh();
        Recorder {
            unwinder: ThreadUnwinder::new().unwrap(),
            tree: CallTree::new().unwrap(),
        }
    }

    /// Unmaps the memory.
    pub fn release(self) {
        self.unwinder.release();
        // SAFETY: nothing else reads the tree.
        unsafe { self.tree.release() };
    }

    /// # Safety
    /// As [`ThreadUnwinder::capture`].
    pub unsafe fn capture(&mut self, registers: Registers) -> Stack {
        // SAFETY: the caller guarantees it.
        let node = unsafe { self.unwinder.capture(registers, &mut self.tree) };
        self.stack(node)
    }

    pub fn stack(&self, mut node: u32) -> Stack {
        let mut stack = Stack::default();
        while node != 0 {
            let (parent, address) = self.tree.nodes().node(node);
            assert!(parent < node);
            if address <= RawNode::FOREIGN {
                assert_eq!(parent, 0, "marks are roots");
                stack.mark = Some(address);
            } else {
                stack.addresses.push(address);
            }
            node = parent;
        }
        stack
    }

    /// Captures the stack here and compares it with glibc's `backtrace`. The caller is the innermost frame that both have.
    #[inline(never)]
    pub fn check(&mut self) -> Stack {
        // SAFETY: this function's own registers.
        let stack = unsafe { self.capture(registers_here()) };
        let mut expected = libgcc();
        // The expected stack begins with two more frames, `libgcc` and this function. The captured one begins with this
        // function.
        expected.remove(0);
        let ours = &stack.addresses[1..];
        if ours != &expected[1..] {
            let at = ours
                .iter()
                .zip(&expected[1..])
                .take_while(|(a, b)| a == b)
                .count();
            panic!(
                "stacks differ at frame {at}: {}",
                differences(ours, &expected[1..])
            );
        }
        stack
    }
}

fn differences(ours: &[u64], theirs: &[u64]) -> String {
    let line = |index: usize| {
        let show = |list: &[u64]| {
            list.get(index)
                .map_or("-".into(), |&address| symbol(address))
        };
        format!("\n  {index:3}  {:70} {}", show(ours), show(theirs))
    };
    (0..ours.len().max(theirs.len()).min(100))
        .map(line)
        .collect()
}

/// Returns the module of `address` and the offset in it.
pub fn symbol(address: u64) -> String {
    // SAFETY: `dladdr` only fills the structure.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr((address - 1) as *const c_void, &mut info) == 0 {
            return format!("{address:#x}");
        }
        let module = std::ffi::CStr::from_ptr(info.dli_fname)
            .to_string_lossy()
            .into_owned();
        let base = info.dli_fbase as u64;
        format!(
            "{}+{:#x}",
            module.rsplit('/').next().unwrap_or(""),
            address - base
        )
    }
}

/// Returns the addresses of glibc's `backtrace`, which uses libgcc, from this function outward.
#[inline(never)]
pub fn libgcc() -> Vec<u64> {
    let mut addresses = vec![std::ptr::null_mut::<c_void>(); 20_000];
    // SAFETY: `backtrace` writes at most as many addresses as fit.
    let count = unsafe { libc::backtrace(addresses.as_mut_ptr(), addresses.len() as i32) };
    addresses.truncate(count as usize);
    addresses
        .into_iter()
        .map(|address| address as u64)
        .collect()
}

/// A small random number generator: splitmix64.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Makes a random program of calls and returns that comes back to the same frames again and again, at most `deepest` deep.
pub fn random_program(numbers: &mut Numbers, captures: usize, deepest: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut depth = 0;
    let mut made = 0;
    while made < captures {
        match numbers.below(10) {
            0..4 if depth < deepest => {
                bytes.push(numbers.below(200) as u8);
                depth += 1;
            }
            4..7 if depth > 0 => {
                bytes.push(RETURN);
                depth -= 1;
            }
            _ => {
                let repeats = 1 + numbers.below(4) as usize;
                bytes.extend(std::iter::repeat_n(CAPTURE, repeats));
                made += repeats;
            }
        }
    }
    bytes
}
