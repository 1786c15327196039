//! Debug files from debuginfod servers, by build id.
//!
//! The variables and the cache are those of elfutils' client
//! (<https://sourceware.org/elfutils/Debuginfod.html>, debuginfod-find(1)): what one of the two has downloaded, the other finds.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use heapray::symbolize::ElfFile;
use heapray_report::page::SourceServer;
use heapray_report::units::size;
use ureq::Agent;

use crate::context::Context;
use crate::failure::Failure;
use crate::http::agent;

/// Longest wait for an answer, in seconds, unless DEBUGINFOD_TIMEOUT says otherwise: elfutils' own.
const TIMEOUT: u64 = 90;
/// Largest file, in bytes, unless DEBUGINFOD_MAXSIZE says otherwise.
const LARGEST: u64 = 4 << 30;
/// How long elfutils remembers that no server has a file.
const NOT_THERE: Duration = Duration::from_secs(600);

/// Servers, and the cache.
#[derive(Debug)]
pub(crate) struct Debuginfod {
    servers: Vec<String>,
    cache: Option<PathBuf>,
    agent: Agent,
    largest: u64,
}

impl Debuginfod {
    /// Returns the client of `server`, or of the servers that the environment names. `None` if nobody is to be asked.
    ///
    /// # Errors
    /// The servers are asked for with an empty `server`, but none are named.
    pub(crate) fn new(server: Option<&str>, offline: bool) -> Result<Option<Debuginfod>, Failure> {
        if offline {
            return Ok(None);
        }
        let servers = match server {
            Some(url) if !url.is_empty() => vec![url.to_owned()],
            Some(_) => {
                let mut servers = of_environment();
                if servers.is_empty() {
                    servers = of_system();
                }
                if servers.is_empty() {
                    return Err(Failure::Usage(
                        "no debuginfod server is named: set DEBUGINFOD_URLS, or give one as in \
                         --debuginfod=https://debuginfod.elfutils.org"
                            .into(),
                    ));
                }
                servers
            }
            None => of_environment(),
        };
        if servers.is_empty() {
            return Ok(None);
        }
        let number = |name: &str| env::var(name).ok()?.parse::<u64>().ok().filter(|&n| n > 0);
        let timeout = Duration::from_secs(number("DEBUGINFOD_TIMEOUT").unwrap_or(TIMEOUT));
        Ok(Some(Debuginfod {
            servers,
            cache: cache(),
            agent: agent(timeout).build().new_agent(),
            largest: number("DEBUGINFOD_MAXSIZE").unwrap_or(LARGEST),
        }))
    }

    /// Returns the debug file of a build id, from the cache or from a server. Says what is asked of whom. `of`: the module's
    /// name.
    pub(crate) fn debug_file(
        &self,
        build_id: &str,
        of: &str,
        context: &Context,
    ) -> Option<PathBuf> {
        let what = format!("the debug file of {of} (build id {build_id})");
        let is_right = |path: &Path| match ElfFile::read(path).map(|elf| elf.build_id) {
            Some(found) if found == build_id => Ok(()),
            Some(found) => Err(format!("its file has the build id {found}, not {build_id}")),
            None => Err("its file is not an ELF file".into()),
        };
        let file = Wanted {
            cached: format!("{build_id}/debuginfo").into(),
            path: format!("buildid/{build_id}/debuginfo"),
            what: &what,
        };
        self.file(&file, is_right, context)
    }

    /// Returns a source file of a build, from the cache or from a server. `path`: where it was when it was compiled.
    fn source(&self, build_id: &str, path: &str, context: &Context) -> Option<PathBuf> {
        // As elfutils' client names it.
        let name = format!("source{}", path.replace('/', "##"));
        if name.len() > LONGEST_NAME {
            return None;
        }
        let file = Wanted {
            cached: Path::new(build_id).join(name),
            path: format!("buildid/{build_id}/source{}", escaped(path)),
            what: path,
        };
        self.file(&file, |_| Ok(()), context)
    }

    fn file(
        &self,
        file: &Wanted<'_>,
        is_right: impl Fn(&Path) -> Result<(), String>,
        context: &Context,
    ) -> Option<PathBuf> {
        let what = file.what;
        let Some(cache) = &self.cache else {
            context.note("no debuginfod server is asked: there is no folder for a cache (set HOME or DEBUGINFOD_CACHE_PATH)");
            return None;
        };
        let path = cache.join(&file.cached);
        if let Ok(about) = path.metadata() {
            if about.len() > 0 {
                return Some(path);
            }
            let age = about.modified().ok().and_then(|at| at.elapsed().ok());
            if age.is_some_and(|age| age < NOT_THERE) {
                context.note(&format!(
                    "no debuginfod server had {what} a few minutes ago: not asked again"
                ));
                return None;
            }
        }
        let mut is_missing = true;
        for server in &self.servers {
            let server = server.trim_end_matches('/');
            context.note(&format!("asking {server} for {what}"));
            match self.download(&format!("{server}/{}", file.path), &path, &is_right) {
                Ok(length) => {
                    context.note(&format!("{server} has it: {}", size(length)));
                    return Some(path);
                }
                Err(Refused::NotThere) => context.note(&format!("{server} does not have it")),
                Err(Refused::Failed(why)) => {
                    is_missing = false;
                    context.note(&format!("{server} could not be asked: {why}"));
                }
            }
        }
        if is_missing {
            // As elfutils' client does; if it fails, the servers are asked again next time.
            let _ = make_parent(&path).and_then(|()| File::create(&path));
        }
        None
    }

    fn download(
        &self,
        url: &str,
        path: &Path,
        is_right: impl Fn(&Path) -> Result<(), String>,
    ) -> Result<u64, Refused> {
        let failed = |error: io::Error| Refused::Failed(error.to_string());
        let answer = self.agent.get(url).call();
        let answer = answer.map_err(|error| Refused::Failed(error.to_string()))?;
        match answer.status().as_u16() {
            200 => {}
            404 => return Err(Refused::NotThere),
            status => return Err(Refused::Failed(format!("it answers with status {status}"))),
        }
        make_parent(path).map_err(failed)?;
        let dir = path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(dir).map_err(failed)?;
        let mut body = answer.into_body().into_reader().take(self.largest + 1);
        let length = io::copy(&mut body, &mut file).map_err(failed)?;
        if length > self.largest {
            let most = size(self.largest);
            return Err(Refused::Failed(format!(
                "the file is larger than {most} (DEBUGINFOD_MAXSIZE allows more)"
            )));
        }
        file.flush().map_err(failed)?;
        is_right(file.path()).map_err(Refused::Failed)?;
        file.persist(path).map_err(|error| failed(error.error))?;
        Ok(length)
    }
}

/// A file that servers may have.
struct Wanted<'w> {
    /// Where it is in the cache.
    cached: PathBuf,
    /// Where it is on a server.
    path: String,
    /// What it is called in messages.
    what: &'w str,
}

/// Longest name of a file in the cache, in bytes.
const LONGEST_NAME: usize = 255;

/// Sources of builds, from servers.
#[derive(Debug)]
pub(crate) struct DebuginfodSources {
    servers: Debuginfod,
    context: Context,
}

impl DebuginfodSources {
    pub(crate) fn new(servers: Debuginfod, context: Context) -> DebuginfodSources {
        DebuginfodSources { servers, context }
    }
}

impl SourceServer for DebuginfodSources {
    fn source(&self, build_id: &str, path: &str) -> Option<String> {
        let is_id = build_id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let file = is_id.then(|| self.servers.source(build_id, path, &self.context));
        fs::read_to_string(file??).ok()
    }
}

/// Returns a path as a part of an address.
fn escaped(path: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    path.bytes().map(escaped).collect()
}

/// Why there is no file.
#[derive(Debug)]
enum Refused {
    NotThere,
    Failed(String),
}

fn make_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

fn of_environment() -> Vec<String> {
    let urls = env::var("DEBUGINFOD_URLS").unwrap_or_default();
    urls.split_whitespace().map(str::to_owned).collect()
}

/// Returns the servers that the distribution names.
fn of_system() -> Vec<String> {
    let Ok(files) = fs::read_dir("/etc/debuginfod") else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = files.flatten().map(|file| file.path()).collect();
    files.sort();
    let files = files
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == "urls"));
    let text: String = files
        .filter_map(|path| fs::read_to_string(path).ok())
        .collect();
    text.split_whitespace().map(str::to_owned).collect()
}

/// Returns the folder of the cache: elfutils' own.
fn cache() -> Option<PathBuf> {
    let folder = |name: &str| {
        let value = env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    folder("DEBUGINFOD_CACHE_PATH")
        .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("debuginfod_client")))
        .or_else(|| Some(folder("HOME")?.join(".cache/debuginfod_client")))
}
