//! Answers a program that asks the loader for a hooked function by its name (`dlsym`, `dlvsym`). If the loader's answer is
//! the function that our entry calls, the program gets our entry. Then calls are recorded and have the same effect.
//!
//! Any other answer is passed on. So an interposer that asks for the function behind its own (`RTLD_NEXT`) gets that
//! function, because our entry calls the interposer's.
//!
//! The real `dlsym` looks at the address of its caller. We call it for the caller only where that makes no difference;
//! otherwise the caller's own call goes through. A program may keep an entry as long as it lives: without an open session
//! the entry passes calls on, and the library that heapray is part of is never unloaded.

use core::ffi::{CStr, c_char, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, Ordering};

use super::{Family, Hooked, got, loader, real};
use crate::capture::control;
use crate::capture::thread::{self, Busy};

/// Answers a `dlsym` before it runs, or returns null if the caller's own call must run.
///
/// # Safety
/// `handle` and `name` are what `dlsym` is called with, from the code at `caller`.
pub(super) unsafe extern "C" fn dlsym(
    handle: *mut c_void,
    name: *const c_char,
    caller: usize,
) -> *mut c_void {
    // SAFETY: the caller's own question, asked of the function that it calls.
    unsafe {
        answer(name, handle, caller, |handle| {
            real::dlsym.get()(handle, name)
        })
    }
}

/// Does what [`dlsym`] does, for `dlvsym`.
///
/// # Safety
/// The same as for `dlsym`.
pub(super) unsafe extern "C" fn dlvsym(
    handle: *mut c_void,
    name: *const c_char,
    version: *const c_char,
    caller: usize,
) -> *mut c_void {
    // SAFETY: the caller's own question, asked of the function that it calls.
    unsafe {
        answer(name, handle, caller, |handle| {
            real::dlvsym.get()(handle, name, version)
        })
    }
}

/// # Safety
/// `name` is null or a C string.
unsafe fn answer(
    name: *const c_char,
    handle: *mut c_void,
    caller: usize,
    ask: impl Fn(*mut c_void) -> *mut c_void,
) -> *mut c_void {
    if control::session() == 0 || thread::with_local(|local| local.is_busy()) {
        return null_mut();
    }
    loader::refresh_if_new();
    if name.is_null() {
        return null_mut();
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    let hooked = super::all().into_iter().find(|hooked| {
        hooked.name.as_bytes() == name && hooked.real != 0 && hooked.family != Family::Loader
    });
    let Some(hooked) = hooked.filter(|_| STAYS.load(Ordering::Acquire)) else {
        return null_mut();
    };
    let _busy = Busy::enter();
    match same_question(&hooked, handle, caller) {
        Some(handle) if ask(handle) as usize == hooked.real => hooked.entry as *mut c_void,
        _ => null_mut(),
    }
}

/// Returns a handle with which our call gets the same answer as the caller's, if there is one.
fn same_question(hooked: &Hooked, handle: *mut c_void, caller: usize) -> Option<*mut c_void> {
    let of_caller = object_of(caller);
    let is_ours = of_caller.is_some() && of_caller == object_of(dlsym as *const () as usize);
    let is_main = || of_caller.is_some() && of_caller == main_object();
    if handle == libc::RTLD_NEXT {
        if is_ours {
            return Some(handle);
        }
        // The program is the first object of all. After it come all functions that it does not define itself.
        return (is_main() && object_of(hooked.real) != of_caller).then_some(libc::RTLD_DEFAULT);
    }
    // An object that was opened with RTLD_DEEPBIND searches its own libraries first. That makes no difference for functions
    // that libc defines, or where the loader has given the same answer before.
    let makes_no_difference = handle != libc::RTLD_DEFAULT
        || is_ours
        || is_main()
        || object_of(hooked.real) == object_of(libc::gnu_get_libc_version as *const () as usize)
        || got::has_patched_slots(caller);
    makes_no_difference.then_some(handle)
}

/// Returns the start of the object that holds an address.
fn object_of(address: usize) -> Option<usize> {
    about(address).map(|info| info.dli_fbase as usize)
}

fn about(address: usize) -> Option<libc::Dl_info> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked for, and the place is one for the answer, which is valid where there is one. Not in
    // an allocator's hook.
    unsafe {
        let found = libc::dladdr(address as *const c_void, info.as_mut_ptr());
        (found != 0).then(|| info.assume_init())
    }
}

fn main_object() -> Option<usize> {
    // SAFETY: no precondition. The kernel tells where it has put the program's headers.
    object_of(unsafe { libc::getauxval(libc::AT_PHDR) } as usize)
}

/// Set once heapray's code stays loaded until the process ends.
static STAYS: AtomicBool = AtomicBool::new(false);

/// Keeps heapray's library loaded, even if the program closes it. Called before the first session, not in a hook.
pub(super) fn stay() {
    let Some(own) = about(dlsym as *const () as usize) else {
        return;
    };
    let stays = Some(own.dli_fbase as usize) == main_object() || {
        let how = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        // SAFETY: the loader's own string, which lives as long as the library.
        !own.dli_fname.is_null() && !unsafe { libc::dlopen(own.dli_fname, how) }.is_null()
    };
    STAYS.store(stays, Ordering::Release);
}

/// Returns the file name of the object that holds an address, without its directory.
pub(super) fn file_of(address: usize) -> Option<&'static [u8]> {
    let path = about(address)?.dli_fname;
    if path.is_null() {
        return None;
    }
    // SAFETY: the loader's own string; those who ask do so for functions of libraries that stay.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    path.rsplit(|&byte| byte == b'/').next()
}
