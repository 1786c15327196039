//! Tests a program that is linked to a fixed address (`-no-pie`) and takes the allocator's addresses: then its own PLT
//! entries are the addresses of `malloc` and `free` in the whole process.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(clippy::unwrap_used, missing_docs)] // tests may panic; the C function's type needs no documentation

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

#[repr(C)]
struct Functions {
    allocate: unsafe extern "C" fn(usize) -> *mut c_void,
    align: unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int,
    release: unsafe extern "C" fn(*mut c_void),
}

#[link(name = "fixed", kind = "static")]
unsafe extern "C" {
    fn functions_at_fixed_addresses() -> Functions;
    fn allocate_directly(size: usize) -> *mut c_void;
}

const SIZE: usize = 100_000;

#[test]
fn every_way_to_call_is_recorded_once() {
    let dir = std::env::temp_dir().join(format!("heapray-fixed-{}", std::process::id()));
    let profiler = heapray::builder().enabled(true).dir(&dir).init();
    let status = || profiler.status();
    assert_eq!(status().hooks, "got");
    let before = status();
    // SAFETY: the C library's own functions, called as they are declared. Each block is freed once.
    unsafe {
        let functions = functions_at_fixed_addresses();
        let mut blocks = vec![null_mut(); 300];
        for block in blocks.chunks_mut(3) {
            block[0] = (functions.allocate)(SIZE);
            block[1] = allocate_directly(SIZE);
            // This is the function's first call, so its slot is not bound yet.
            assert_eq!((functions.align)(&raw mut block[2], 64, SIZE), 0);
        }
        let bytes = status().live.bytes - before.live.bytes;
        let expected = (blocks.len() * SIZE) as u64;
        assert!(
            (expected..expected + 100_000).contains(&bytes),
            "{bytes} live bytes of {expected}"
        );
        for &block in &blocks {
            (functions.release)(block);
        }
        let left = status().live.bytes.saturating_sub(before.live.bytes);
        assert!(left < 100_000, "{left} bytes are still live");
    }
    heapray::shutdown().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}
