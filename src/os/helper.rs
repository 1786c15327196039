//! A helper process: this program, started once more for one job. It does the job before `main` begins, and ends.
//!
//! Symbols and reports take tens of megabytes, and an allocator rarely gives them back. In a helper they are gone when it
//! ends. A damaged debug file, or the system's OOM killer, then ends the helper and not the service.
//!
//! ```text
//! service ── starts /proc/self/exe ──▶ loader ──▶ constructor (`crate::helper`) ── does the job ──▶ _exit
//!    ▲                                                │                             `main` is never reached
//!    └── a socket, as its standard input ─────────────┘  files to read: standard output and standard error
//! ```
//!
//! The constructor also runs when the service itself starts, and notes that the program has it ([`is_constructed`]). A
//! program that does not have it never starts a helper: its `main` would run, and be a second service.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The variable that tells a process that it is a helper.
const VARIABLE: &str = "HEAPRAY_HELPER";
/// The first byte that a helper sends.
const HELLO: u8 = b'h';
/// The longest time until a helper says hello: until then it only loads the program.
const START: Duration = Duration::from_secs(10);
/// The longest silence of a helper. The symbols of the largest programs take a minute.
const PATIENCE: Duration = Duration::from_secs(600);
/// The time between two checks of whether the job is still wanted.
const LOOK: Duration = Duration::from_millis(100);
/// The time in which a helper that has closed its socket ends.
const END: Duration = Duration::from_secs(1);

/// What a helper is to do: the first byte that it hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Job {
    /// Look up the names of addresses.
    Names = b'n',
    /// Make outputs.
    Outputs = b'o',
}

/// Whether a helper can be started. One of the constants below.
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
/// The constructor has not run.
const UNKNOWN: u8 = 0;
const READY: u8 = 1;
/// The user does not want one, or one could not be started.
const OFF: u8 = 2;

/// The process numbers of the helpers that live now.
static ALIVE: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Returns the process numbers of this process's helpers.
pub(crate) fn alive() -> Vec<u32> {
    lock().clone()
}

fn lock() -> MutexGuard<'static, Vec<u32>> {
    ALIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that this program has the constructor. `constructor` is its address.
pub(crate) fn is_constructed(constructor: usize) {
    if is_in_program(constructor) {
        STATE.store(READY, Ordering::Relaxed);
    }
}

/// Sets that no helper is started from now on.
pub(crate) fn switch_off() {
    STATE.store(OFF, Ordering::Relaxed);
}

/// Returns whether a helper can probably be started.
pub(crate) fn is_ready() -> bool {
    STATE.load(Ordering::Relaxed) == READY
}

/// A helper process, and the service's side of the conversation with it. It is killed when this is dropped.
pub(crate) struct Helper {
    child: Child,
    input: BufReader<Socket>,
}

impl std::fmt::Debug for Helper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Helper").field(&self.child.id()).finish()
    }
}

impl Helper {
    /// Starts a helper for `job` that reads up to two `files`. The conversation fails once `is_wanted` returns `false`.
    ///
    /// # Errors
    ///
    /// No helper can be started in this process, or the system refuses to. The caller then does the job itself.
    pub(crate) fn start(
        job: Job,
        files: [Option<&File>; 2],
        is_wanted: impl Fn() -> bool + Send + 'static,
    ) -> io::Result<Helper> {
        if !is_ready() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let (own, other) = UnixStream::pair()?;
        own.set_read_timeout(Some(LOOK))?;
        own.set_write_timeout(Some(LOOK))?;
        let [first, second] = files.map(read_only);
        let mut alive = lock();
        let child = Command::new("/proc/self/exe")
            .arg0("heapray-helper")
            .env(VARIABLE, "1")
            .stdin(OwnedFd::from(other))
            .stdout(first?)
            .stderr(second?)
            .spawn()?;
        alive.push(child.id());
        drop(alive);
        let mut helper = Helper {
            child,
            input: BufReader::new(Socket {
                stream: own,
                is_wanted: Box::new(is_wanted),
                patience: START,
            }),
        };
        let mut hello = [0];
        let said = helper.input.read_exact(&mut hello);
        if said.is_ok() && hello[0] == HELLO {
            let socket = helper.input.get_mut();
            socket.patience = PATIENCE;
            socket.write_all(&[job as u8])?;
            return Ok(helper);
        }
        if helper.is_wanted() && helper.killed_by().is_none() {
            // The program does not become a helper, and would not the next time.
            switch_off();
            tracing::info!(
                "outputs are made in this process, because a helper process does not start"
            );
        }
        Err(said.err().unwrap_or(io::ErrorKind::InvalidData.into()))
    }

    /// Returns whether the job is still wanted.
    pub(crate) fn is_wanted(&self) -> bool {
        (self.input.get_ref().is_wanted)()
    }

    #[cfg(test)]
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Says `value` to the helper.
    pub(crate) fn say(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut says = self.says();
        write(&mut says, value)?;
        says.flush()
    }

    /// Returns the side on which the helper listens.
    pub(crate) fn says(&mut self) -> impl Write {
        BufWriter::with_capacity(PIECE, self.input.get_mut())
    }

    /// Returns the side on which the helper answers.
    pub(crate) fn hears(&mut self) -> &mut impl Read {
        &mut self.input
    }

    /// Returns the signal that has ended the helper, if it has ended by one, after a conversation that failed.
    pub(crate) fn killed_by(mut self) -> Option<i32> {
        let began = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return status.signal(),
                Ok(None) if began.elapsed() < END => std::thread::sleep(END / 100),
                // It lives, or the service has waited for it.
                _ => return None,
            }
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // If the service has waited for it, its number may be another process's by now: that one must not be killed.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            // Fails if the service waits for all its children.
            let _ = self.child.wait();
        }
        let pid = self.child.id();
        lock().retain(|&other| other != pid);
    }
}

/// Returns the probable reason why `signal` has ended a helper, to be put behind that; empty if unknown.
pub(crate) fn reason_of(signal: i32) -> &'static str {
    match signal {
        libc::SIGKILL => ": the system had too little memory, or somebody killed it",
        libc::SIGABRT => ": it had too little memory",
        libc::SIGSEGV | libc::SIGBUS => ": a file with debug information is damaged",
        _ => "",
    }
}

/// A socket that gives up.
pub(crate) struct Socket {
    stream: UnixStream,
    is_wanted: Box<dyn Fn() -> bool + Send>,
    patience: Duration,
}

impl Socket {
    /// Calls `turn` until it does not time out.
    fn patiently(
        &mut self,
        mut turn: impl FnMut(&mut UnixStream) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let began = Instant::now();
        loop {
            match turn(&mut self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
            if !(self.is_wanted)() {
                // Not `Interrupted`: that would be tried again.
                return Err(io::Error::other("nobody waits for it any more"));
            }
            if began.elapsed() > self.patience {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.patiently(|stream| stream.read(buffer))
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.patiently(|stream| send(stream, bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes to a socket. If its other end is closed, that is an error and no `SIGPIPE`, which would end the service.
fn send(stream: &UnixStream, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the descriptor is open as long as `stream` lives, and `bytes` are live for the call, which only reads them.
    let sent = unsafe {
        libc::send(
            stream.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            NO_SIGNAL,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

#[cfg(target_os = "linux")]
const NO_SIGNAL: libc::c_int = libc::MSG_NOSIGNAL;
#[cfg(not(target_os = "linux"))]
const NO_SIGNAL: libc::c_int = 0;

/// Opens `file` once more, for reading only: some libraries write to standard output or standard error when they are loaded.
fn read_only(file: Option<&File>) -> io::Result<Stdio> {
    match file {
        Some(file) => {
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            Ok(File::open(path)?.into())
        }
        None => Ok(Stdio::null()),
    }
}

/// The helper's side of the conversation.
#[derive(Debug)]
pub(crate) struct Service {
    /// What to do.
    pub(crate) job: Job,
    /// What the service says.
    pub(crate) says: BufReader<UnixStream>,
    /// What the service hears, once it is flushed.
    pub(crate) hears: BufWriter<UnixStream>,
    /// The files to read, if the job has any.
    pub(crate) files: [File; 2],
}

impl Service {
    /// Answers `value`, after everything that was written before.
    pub(crate) fn answer(&mut self, value: &impl Serialize) -> io::Result<()> {
        write(&mut self.hears, value)?;
        self.hears.flush()
    }
}

/// Returns whether this process was started as a helper.
pub(crate) fn is_helper() -> bool {
    // A program with the rights of another user must not do what its environment says.
    if std::env::var_os(VARIABLE).is_none() || is_privileged() {
        return false;
    }
    let socket = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    let about = socket.and_then(|socket| socket.metadata());
    about.is_ok_and(|about| about.file_type().is_socket())
}

/// Says hello to the service, and returns the conversation with it.
///
/// # Errors
///
/// The service has ended.
pub(crate) fn begin() -> io::Result<Service> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let files = [
        io::stdout().as_fd().try_clone_to_owned()?.into(),
        io::stderr().as_fd().try_clone_to_owned()?.into(),
    ];
    let mut hears = BufWriter::with_capacity(PIECE, socket.try_clone()?);
    let mut says = BufReader::with_capacity(PIECE, socket);
    be_a_helper();
    hears.write_all(&[HELLO])?;
    hears.flush()?;
    let mut job = [0];
    says.read_exact(&mut job)?;
    let job = [Job::Names, Job::Outputs]
        .into_iter()
        .find(|&known| known as u8 == job[0])
        .ok_or(io::ErrorKind::InvalidData)?;
    Ok(Service {
        job,
        says,
        hears,
        files,
    })
}

/// Gives this process a name, and makes it end with the service, and before the service if memory is short.
fn be_a_helper() {
    #[cfg(target_os = "linux")]
    // SAFETY: a name that ends with a NUL and lives for ever, and a signal.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"heapray-helper".as_ptr());
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
    // Where it is refused, the system chooses among the two by their size.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

fn is_privileged() -> bool {
    #[cfg(target_os = "linux")]
    // SAFETY: no precondition.
    return unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    #[cfg(not(target_os = "linux"))]
    return true;
}

/// Returns whether `address` is in the program itself, not in a library.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn is_in_program(address: usize) -> bool {
    // SAFETY: no precondition. The kernel gives every process the address and the number of the program's headers.
    let (headers, count) = unsafe {
        (
            libc::getauxval(libc::AT_PHDR) as usize,
            libc::getauxval(libc::AT_PHNUM) as usize,
        )
    };
    if headers == 0 {
        return false;
    }
    // SAFETY: the kernel's array of the program's headers, which is mapped and constant as long as the process lives.
    let headers = unsafe {
        std::slice::from_raw_parts(
            std::ptr::with_exposed_provenance::<libc::Elf64_Phdr>(headers),
            count,
        )
    };
    let own = headers.iter().find(|header| header.p_type == libc::PT_PHDR);
    // A program without this header is loaded where it says.
    let bias = own.map_or(0, |own| {
        (headers.as_ptr().addr() as u64).wrapping_sub(own.p_vaddr)
    });
    headers.iter().any(|header| {
        let start = bias.wrapping_add(header.p_vaddr);
        header.p_type == libc::PT_LOAD && (address as u64).wrapping_sub(start) < header.p_memsz
    })
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn is_in_program(_: usize) -> bool {
    false
}

/// Writes `value` so that [`read`] reads it.
pub(crate) fn write(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    // Most values are short; `out` has a buffer of its own.
    let mut pieces = BufWriter::with_capacity(4096, Pieces(&mut *out));
    serde_json::to_writer(&mut pieces, value)?;
    pieces.flush()?;
    drop(pieces);
    end_pieces(out)
}

/// Reads a value that [`write()`] wrote, and no byte more.
pub(crate) fn read<T: DeserializeOwned>(input: &mut impl Read) -> io::Result<T> {
    Ok(serde_json::from_slice(&read_bytes(input)?)?)
}

/// Reads all [`Pieces`] up to their end.
pub(crate) fn read_bytes(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(length) = next_piece(input)? {
        let start = bytes.len();
        bytes.resize(start + length, 0);
        input.read_exact(&mut bytes[start..])?;
    }
    Ok(bytes)
}

/// The most bytes of a piece.
pub(crate) const PIECE: usize = 64 << 10;

/// Writes bytes of a number that is not known before: each piece with its length before it. [`end_pieces`] ends them.
pub(crate) struct Pieces<W>(pub(crate) W);

impl<W: Write> Write for Pieces<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(PIECE)];
        if !bytes.is_empty() {
            self.0.write_all(&(bytes.len() as u32).to_le_bytes())?;
            self.0.write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes the end of pieces.
pub(crate) fn end_pieces(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&0_u32.to_le_bytes())
}

/// Reads pieces up to their end. Returns the error of `take`, or one of kind [`InvalidData`](io::ErrorKind::InvalidData).
pub(crate) fn read_pieces(
    input: &mut impl Read,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    while let Some(length) = next_piece(input)? {
        input.read_exact(&mut piece[..length])?;
        take(&piece[..length])?;
    }
    Ok(())
}

/// Reads the length of the next piece; `None` at the end.
fn next_piece(input: &mut impl Read) -> io::Result<Option<usize>> {
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    match u32::from_le_bytes(length) as usize {
        0 => Ok(None),
        length if length <= PIECE => Ok(Some(length)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_told_from_a_library() {
        assert!(is_in_program(
            the_program_is_told_from_a_library as *const () as usize
        ));
        assert!(!is_in_program(libc::malloc as *const () as usize));
        assert!(!is_in_program(0));
    }

    #[test]
    fn a_value_is_read_to_its_last_byte_and_no_further() {
        let long = ("x".repeat(3 * PIECE), vec![u64::MAX; 20_000], None::<u8>);
        let mut written = Vec::new();
        write(&mut written, &long).unwrap();
        write(&mut written, &7_u8).unwrap();
        let mut input = written.as_slice();
        assert_eq!(
            read::<(String, Vec<u64>, Option<u8>)>(&mut input).unwrap(),
            long
        );
        assert_eq!(read::<u8>(&mut input).unwrap(), 7);
        assert!(input.is_empty());
        assert!(read::<u8>(&mut &written[..100]).is_err());
        assert!(read::<u8>(&mut [0xff; 8].as_slice()).is_err());
    }

    #[test]
    fn the_other_end_of_a_closed_socket_gets_an_error_and_lives() {
        let (own, other) = UnixStream::pair().unwrap();
        drop(other);
        let error = send(&own, b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
