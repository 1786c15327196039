//! Tests of the modules that contain code, and of stacks through code outside of all modules.

use std::ffi::c_void;

use crate::unwinder::{Recorder, Stack};
use heapray::capture::arch::{map_pages, page_size, registers_here, unmap_pages};
use heapray::capture::modules;
use heapray::collector::snapshot::{ModuleId, RawNode};
use heapray_c_fixtures::Callback;

type CallBack = unsafe extern "C" fn(Callback, *mut c_void);

struct Scene {
    recorder: Recorder,
    stack: Stack,
}

#[test]
fn the_program_and_its_libraries_are_distinguished() {
    modules::refresh();
    let history = modules::history();
    let main =
        modules::module_of(the_program_and_its_libraries_are_distinguished as *const () as u64);
    let libc = modules::module_of(libc::malloc as *const () as u64);
    assert!(history[usize::from(main.0)].is_main);
    assert_eq!(
        history[usize::from(main.0)].path,
        std::env::current_exe().unwrap()
    );
    assert!(
        history[usize::from(libc.0)]
            .path
            .to_str()
            .unwrap()
            .contains("libc.so")
    );
    assert_eq!(modules::module_of(0x10), ModuleId::NONE);
    assert!(modules::table_size().rows > 10_000);
}

#[test]
fn code_outside_of_all_modules_is_unwound_by_its_frame_pointer_or_ends_the_stack() {
    // stp x29, x30, [sp, -16]!; mov x29, sp; mov x2, x0; mov x0, x1; blr x2; ldp x29, x30, [sp], 16; ret
    #[cfg(target_arch = "aarch64")]
    const WITH: &[u8] = &[
        0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0xe2, 0x03, 0x00, 0xaa, 0xe0, 0x03, 0x01,
        0xaa, 0x40, 0x00, 0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6,
    ];
    // the same, with mov x29, xzr
    #[cfg(target_arch = "aarch64")]
    const WITHOUT: &[u8] = &[
        0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x1f, 0xaa, 0xe2, 0x03, 0x00, 0xaa, 0xe0, 0x03, 0x01,
        0xaa, 0x40, 0x00, 0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6,
    ];
    // push rbp; mov rbp, rsp; sub rsp, 32; mov rax, rdi; mov rdi, rsi; call rax; leave; ret
    #[cfg(target_arch = "x86_64")]
    const WITH: &[u8] = &[
        0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff,
        0xd0, 0xc9, 0xc3,
    ];
    // push rbp; xor ebp, ebp; mov rax, rdi; mov rdi, rsi; call rax; pop rbp; ret
    #[cfg(target_arch = "x86_64")]
    const WITHOUT: &[u8] = &[
        0x55, 0x31, 0xed, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3,
    ];
    #[cfg(target_arch = "aarch64")]
    unsafe extern "C" {
        /// libgcc's function. It makes instructions that were written as data executable.
        fn __clear_cache(start: *mut u8, end: *mut u8);
    }
    unsafe extern "C" fn capture(scene: *mut c_void) {
        // SAFETY: the scene of the test, and this function's own registers.
        unsafe {
            let scene = &mut *scene.cast::<Scene>();
            scene.stack = scene.recorder.capture(registers_here());
        }
    }
    let mut scene = Scene {
        recorder: Recorder::new(),
        stack: Stack::default(),
    };
    let page = map_pages(page_size()).unwrap();
    for (code, mark) in [
        (WITH, None),
        (WITHOUT, Some(RawNode::INCOMPLETE)),
        (WITH, None),
    ] {
        // SAFETY: the test's own page, filled with a function of this type.
        unsafe {
            let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
            assert_eq!(libc::mprotect(page.as_ptr().cast(), page_size(), all), 0);
            page.as_ptr().copy_from(code.as_ptr(), code.len());
            #[cfg(target_arch = "aarch64")]
            __clear_cache(page.as_ptr(), page.as_ptr().add(code.len()));
            let function = std::mem::transmute::<*mut u8, CallBack>(page.as_ptr());
            for _ in 0..3 {
                function(capture, (&raw mut scene).cast());
                assert_eq!(scene.stack.mark, mark);
                assert_eq!(scene.stack.addresses.len() > 5, mark.is_none());
            }
        }
    }
    assert_eq!(scene.recorder.unwinder.counts().incomplete, 3);
    // SAFETY: no code on the page is running any more.
    unsafe { unmap_pages(page, page_size()) };
}
