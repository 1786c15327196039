//! Tests of libraries that are loaded and unloaded between captures. The test has a process of its own, because the first
//! look at the modules takes note of changes for the whole process.

use std::ffi::{CString, c_void};

use crate::support::process::{in_own_process, test_name};
use crate::unwinder::{Recorder, Stack};
use heapray::capture::modules::{self, Changed};
use heapray_c_fixtures::{Callback, PLUGINS};

type CallBack = unsafe extern "C" fn(Callback, *mut c_void);

struct Library(*mut c_void);

impl Library {
    fn open(path: &str) -> Library {
        let path = CString::new(path).unwrap();
        // SAFETY: a library without constructors.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null());
        Library(handle)
    }

    fn call_back(&self) -> CallBack {
        // SAFETY: the function has this type in both libraries.
        unsafe {
            let symbol = libc::dlsym(self.0, c"call_back".as_ptr());
            assert!(!symbol.is_null());
            std::mem::transmute::<*mut c_void, CallBack>(symbol)
        }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: no code of the library is running.
        unsafe { libc::dlclose(self.0) };
    }
}

struct Scene {
    recorder: Recorder,
    stack: Stack,
}

unsafe extern "C" fn check(scene: *mut c_void) {
    // SAFETY: the scene of the test.
    let scene = unsafe { &mut *scene.cast::<Scene>() };
    scene.recorder.check();
    scene.stack = scene.recorder.check();
}

#[test]
fn stacks_stay_right_while_libraries_are_loaded_and_unloaded() {
    in_own_process(test_name!(), open_and_close_libraries);
}

fn open_and_close_libraries() {
    let mut scene = Scene {
        recorder: Recorder::new(),
        stack: Stack::default(),
    };
    let nothing = Changed::default();
    assert_eq!(modules::refresh(), nothing);
    let own = (&raw mut scene).cast::<c_void>();

    let mut addresses = Vec::new();
    for round in 0..40 {
        let path = PLUGINS[round % 2];
        let library = Library::open(path);
        assert_eq!(
            modules::refresh(),
            Changed {
                added: 1,
                removed: 0
            }
        );
        assert_eq!(modules::refresh(), nothing);
        let function = library.call_back();
        // SAFETY: `check` takes the scene.
        unsafe { function(check, own) };
        assert_eq!(scene.stack.mark, None);

        let module = modules::module_of(function as *const () as u64);
        let history = modules::history();
        assert!(
            history[usize::from(module.0)].path.ends_with(path),
            "{:?}",
            history[usize::from(module.0)]
        );
        assert!(!history[usize::from(module.0)].build_id.is_empty());
        addresses.push((function as *const () as u64, modules::epoch(), module));

        drop(library);
        let epoch = modules::epoch();
        assert_eq!(
            modules::refresh(),
            Changed {
                added: 0,
                removed: 1
            }
        );
        assert_eq!(modules::epoch(), epoch + 1);
        // SAFETY: as above.
        unsafe { check(own) };
    }
    // The same library at the same address is the same module.
    let history = modules::history();
    let plugins = history
        .iter()
        .filter(|module| PLUGINS.iter().any(|path| module.path.ends_with(path)));
    assert!(plugins.count() <= 4, "{history:#?}");
    for (address, epoch, module) in addresses {
        assert_eq!(
            modules::module_of_at(address, epoch),
            module,
            "the module that was at the address at the time"
        );
    }
}
