//! System calls about an open socket.

/// Returns the bytes written to the socket of this descriptor that its other end has not received, or `None` where the
/// system does not report them.
#[must_use]
pub(crate) fn unsent(socket: i32) -> Option<u32> {
    #[cfg(target_os = "linux")]
    {
        let mut bytes: libc::c_int = 0;
        // SAFETY: TIOCOUTQ (of a socket: SIOCOUTQ, the same number) writes one int to the live place it is given; a
        // descriptor is a number, and the kernel refuses one that is not a socket's.
        let result = unsafe { libc::ioctl(socket, libc::TIOCOUTQ, &raw mut bytes) };
        (result == 0).then(|| u32::try_from(bytes).ok())?
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = socket;
        None
    }
}
