//! The real functions, found once, before the first session.

use core::ffi::{CStr, c_char, c_void};
use core::marker::PhantomData;
use core::mem::transmute_copy;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Address of a real function of type `F`. The address comes first, because entries jump through it.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Real<F> {
    address: AtomicUsize,
    name: &'static CStr,
    _type: PhantomData<F>,
}

impl<F: Copy> Real<F> {
    const fn new(name: &'static CStr) -> Real<F> {
        Real {
            address: AtomicUsize::new(0),
            name,
            _type: PhantomData,
        }
    }

    /// Finds the function. `whose` is `RTLD_DEFAULT` or `RTLD_NEXT`.
    fn find(&self, whose: *mut c_void) {
        // SAFETY: the name is a C string. Not called in a hook: `dlsym` may lock and allocate.
        let address = unsafe { libc::dlsym(whose, self.name.as_ptr()) };
        self.address.store(address as usize, Ordering::Release);
    }

    /// Forgets the function, which is not hooked then.
    pub(super) fn forget(&self) {
        self.address.store(0, Ordering::Release);
    }

    /// Returns the address, or 0 if the process has no such function or it is not hooked.
    #[inline(always)]
    pub(super) fn address(&self) -> usize {
        self.address.load(Ordering::Relaxed)
    }

    /// Returns the function.
    ///
    /// # Safety
    /// A hook for the function was reached. Then its address is known, since entries are patched only in that case.
    #[inline(always)]
    pub(super) unsafe fn get(&self) -> F {
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        // SAFETY: `F` is a function pointer type of this size (asserted), and the address is that of the C function
        // whose declaration it is; the caller vouches that it is not 0.
        unsafe { transmute_copy(&self.address()) }
    }
}

macro_rules! real {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        $(
            #[allow(non_upper_case_globals)]
            pub(super) static $name: Real<unsafe extern "C" fn($($argument),*) $(-> $result)?> =
                Real::new(match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("a literal with one NUL at its end"),
                });
        )*

        /// Finds all real functions. Called before the first session, never in a hook.
        pub fn prepare() {
            $($name.find(libc::RTLD_DEFAULT);)*
            // A stand-in leads to the slot that will point to our entry, which would then call itself forever.
            super::got::find_stand_ins();
            $(if super::got::is_stand_in($name.address()) {
                $name.find(libc::RTLD_NEXT);
            })*
            super::lookup::stay();
            // Remove the error message of the searches that failed, so that the program does not see it.
            // SAFETY: forgets the calling thread's last error, if there is one.
            unsafe { libc::dlerror() };
        }
    };
}

real! {
    malloc: fn(usize) -> *mut c_void;
    calloc: fn(usize, usize) -> *mut c_void;
    realloc: fn(*mut c_void, usize) -> *mut c_void;
    reallocarray: fn(*mut c_void, usize, usize) -> *mut c_void;
    free: fn(*mut c_void);
    free_sized: fn(*mut c_void, usize);
    free_aligned_sized: fn(*mut c_void, usize, usize);
    posix_memalign: fn(*mut *mut c_void, usize, usize) -> i32;
    aligned_alloc: fn(usize, usize) -> *mut c_void;
    memalign: fn(usize, usize) -> *mut c_void;
    valloc: fn(usize) -> *mut c_void;
    pvalloc: fn(usize) -> *mut c_void;
    _Znwm: fn(usize) -> *mut c_void;
    _Znam: fn(usize) -> *mut c_void;
    _ZnwmRKSt9nothrow_t: fn(usize, *const c_void) -> *mut c_void;
    _ZnamRKSt9nothrow_t: fn(usize, *const c_void) -> *mut c_void;
    _ZnwmSt11align_val_t: fn(usize, usize) -> *mut c_void;
    _ZnamSt11align_val_t: fn(usize, usize) -> *mut c_void;
    _ZnwmSt11align_val_tRKSt9nothrow_t: fn(usize, usize, *const c_void) -> *mut c_void;
    _ZnamSt11align_val_tRKSt9nothrow_t: fn(usize, usize, *const c_void) -> *mut c_void;
    _ZdlPv: fn(*mut c_void);
    _ZdaPv: fn(*mut c_void);
    _ZdlPvm: fn(*mut c_void, usize);
    _ZdaPvm: fn(*mut c_void, usize);
    _ZdlPvRKSt9nothrow_t: fn(*mut c_void, *const c_void);
    _ZdaPvRKSt9nothrow_t: fn(*mut c_void, *const c_void);
    _ZdlPvSt11align_val_t: fn(*mut c_void, usize);
    _ZdaPvSt11align_val_t: fn(*mut c_void, usize);
    _ZdlPvmSt11align_val_t: fn(*mut c_void, usize, usize);
    _ZdaPvmSt11align_val_t: fn(*mut c_void, usize, usize);
    _ZdlPvSt11align_val_tRKSt9nothrow_t: fn(*mut c_void, usize, *const c_void);
    _ZdaPvSt11align_val_tRKSt9nothrow_t: fn(*mut c_void, usize, *const c_void);
    mmap: fn(*mut c_void, usize, i32, i32, i32, i64) -> *mut c_void;
    mmap64: fn(*mut c_void, usize, i32, i32, i32, i64) -> *mut c_void;
    munmap: fn(*mut c_void, usize) -> i32;
    mremap: fn(*mut c_void, usize, usize, i32, *mut c_void) -> *mut c_void;
    dlsym: fn(*mut c_void, *const c_char) -> *mut c_void;
    dlvsym: fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;
}

/// Forgets every `delete`, so that none is hooked.
pub(super) fn forget_deletes() {
    _ZdlPv.forget();
    _ZdaPv.forget();
    _ZdlPvm.forget();
    _ZdaPvm.forget();
    _ZdlPvRKSt9nothrow_t.forget();
    _ZdaPvRKSt9nothrow_t.forget();
    _ZdlPvSt11align_val_t.forget();
    _ZdaPvSt11align_val_t.forget();
    _ZdlPvmSt11align_val_t.forget();
    _ZdaPvmSt11align_val_t.forget();
    _ZdlPvSt11align_val_tRKSt9nothrow_t.forget();
    _ZdaPvSt11align_val_tRKSt9nothrow_t.forget();
}
