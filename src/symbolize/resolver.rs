//! Symbols from ELF files, by blazesym.
//!
//! Memory is the scarce thing: this runs in the service that is being profiled, perhaps because it is short
//! of memory. blazesym keeps the debug information of every compilation unit it has touched, so addresses
//! are looked up in ascending chunks and the symbolizer is dropped after each.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use blazesym::helper::read_elf_build_id;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Reason, Sym, Symbolized, Symbolizer};

use super::lookup::{Found, Lookup, Place};
use super::names::demangle;
use super::notes::about_modules;
use crate::collector::snapshot::Module;

/// Addresses that one symbolizer looks up at most.
const CHUNK: usize = 2500;

/// Bytes of code that one symbolizer looks at. Memory goes with the compilation units that are touched, so a
/// few addresses all over a large program cost as much as many: 2,000 in a program of 81 MB take 40 MB in one
/// go and 13 MB so, for a fifth more time (a symbolizer costs some 7 ms to begin with).
const CHUNK_SPAN: u64 = 2 << 20;

/// Looks into the ELF files of modules, and into their separate debug files.
#[derive(Debug)]
pub(super) struct ElfLookup {
    /// Where separate debug files are, as gdb has it: `<dir>/.build-id/ab/cdef….debug`, or by debug link.
    debug_dirs: Vec<PathBuf>,
    /// Modules are those of another process, perhaps long ended.
    elsewhere: bool,
    gone: Vec<String>,
    replaced: Vec<String>,
    unreadable: Vec<String>,
}

impl Default for ElfLookup {
    fn default() -> Self {
        ElfLookup::with_debug_dirs(vec!["/usr/lib/debug".into(), "/lib/debug".into()])
    }
}

impl Lookup for ElfLookup {
    fn lookup(&mut self, module: &Module, offsets: &[u64], found: &mut Found<'_>) {
        let mut left: Vec<usize> = (0..offsets.len()).collect();
        for source in self.sources(module) {
            if left.is_empty() {
                break;
            }
            let mut still_left = Vec::new();
            for chunk in chunks(&left, offsets) {
                still_left.extend(self.look_up_chunk(&source, chunk, offsets, found));
            }
            left = still_left;
        }
        for nth in left {
            found(nth, &[]);
        }
    }

    fn notes(&self) -> Vec<String> {
        [
            about_modules(&self.gone, "is no longer there"),
            about_modules(&self.replaced, "was replaced since it was loaded"),
            about_modules(&self.unreadable, "could not be read"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl ElfLookup {
    /// Looks for the modules of another process.
    pub(super) fn elsewhere() -> Self {
        ElfLookup {
            elsewhere: true,
            ..ElfLookup::default()
        }
    }

    fn with_debug_dirs(debug_dirs: Vec<PathBuf>) -> Self {
        ElfLookup {
            debug_dirs,
            elsewhere: false,
            gone: Vec::new(),
            replaced: Vec::new(),
            unreadable: Vec::new(),
        }
    }

    /// The files that may know the code of `module`, best first.
    fn sources(&mut self, module: &Module) -> Vec<PathBuf> {
        let mut sources = Vec::new();
        sources.extend(self.debug_file(&module.build_id));
        sources.extend(self.object(module));
        sources
    }

    /// The file that `module` was loaded from. Another file of its name would give wrong names, which is
    /// worse than none.
    fn object(&mut self, module: &Module) -> Option<PathBuf> {
        // The kernel's own has a bare name, `linux-vdso.so.1`; a relative path is as `dlopen` was given it.
        if !module.path.as_os_str().as_bytes().contains(&b'/') {
            return None;
        }
        let path = if module.is_main && !self.elsewhere {
            own_program(&module.path)
        } else {
            module.path.clone()
        };
        let name = || {
            let name = module.path.file_name().unwrap_or(module.path.as_os_str());
            name.to_string_lossy().into_owned()
        };
        match read_elf_build_id(&path) {
            Ok(found) => {
                let found = found.unwrap_or_default();
                if module.build_id.is_empty() || found == module.build_id {
                    return Some(path);
                }
                self.replaced.push(name());
            }
            Err(_) if !path.exists() => self.gone.push(name()),
            Err(_) => self.unreadable.push(name()),
        }
        None
    }

    /// The separate debug file of a build id. blazesym looks for one only where a debug link names it.
    fn debug_file(&self, build_id: &[u8]) -> Option<PathBuf> {
        let (first, rest) = build_id.split_first()?;
        let mut name = format!(".build-id/{first:02x}/");
        for byte in rest {
            // Writing to a string cannot fail.
            let _ = write!(name, "{byte:02x}");
        }
        name.push_str(".debug");
        self.debug_dirs
            .iter()
            .map(|dir| dir.join(&name))
            .find(|path| matches!(read_elf_build_id(path), Ok(Some(found)) if found == build_id))
    }

    /// Looks up those of `offsets` that `chunk` names, first with debug information, then, where that is
    /// broken, by symbol table alone. Returns what was not found.
    fn look_up_chunk(
        &self,
        path: &Path,
        chunk: &[usize],
        offsets: &[u64],
        found: &mut Found<'_>,
    ) -> Vec<usize> {
        let mut left = Vec::new();
        let mut broken = Vec::new();
        self.look_up(
            path,
            true,
            chunk,
            offsets,
            &mut |nth, result| match result {
                Answer::Frames(places) => found(nth, places),
                Answer::Unknown => left.push(nth),
                Answer::Broken => broken.push(nth),
            },
        );
        if !broken.is_empty() {
            self.look_up(
                path,
                false,
                &broken,
                offsets,
                &mut |nth, result| match result {
                    Answer::Frames(places) => found(nth, places),
                    Answer::Unknown | Answer::Broken => left.push(nth),
                },
            );
        }
        left
    }

    /// Calls `answer` once for each of `chunk`.
    fn look_up(
        &self,
        path: &Path,
        debug_syms: bool,
        chunk: &[usize],
        offsets: &[u64],
        answer: &mut dyn FnMut(usize, Answer<'_>),
    ) {
        let addresses: Vec<u64> = chunk.iter().map(|&nth| offsets[nth]).collect();
        let symbolizer = Symbolizer::builder()
            .enable_auto_reload(false)
            .enable_demangling(false)
            .set_debug_dirs(Some(&self.debug_dirs))
            .build();
        let mut elf = Elf::new(path);
        elf.debug_syms = debug_syms;
        // blazesym indexes tables of the file it reads: a corrupt one must not take the service down.
        let symbols = catch_unwind(AssertUnwindSafe(|| {
            symbolizer.symbolize(&Source::Elf(elf), Input::VirtOffset(&addresses))
        }));
        let Ok(Ok(symbols)) = symbols else {
            for &nth in chunk {
                answer(nth, Answer::Broken);
            }
            return;
        };
        let mut names = Names::default();
        for (&nth, symbol) in chunk.iter().zip(&symbols) {
            match symbol {
                Symbolized::Sym(sym) => {
                    names.learn(sym);
                    answer(nth, Answer::Frames(&names.places(sym)));
                }
                Symbolized::Unknown(Reason::IgnoredError) => answer(nth, Answer::Broken),
                Symbolized::Unknown(_) => answer(nth, Answer::Unknown),
            }
        }
    }
}

/// Splits `left`, indices of ascending `offsets`, into parts for one symbolizer each.
fn chunks<'l>(left: &'l [usize], offsets: &[u64]) -> impl Iterator<Item = &'l [usize]> {
    let mut left = left;
    std::iter::from_fn(move || {
        let first = offsets[*left.first()?];
        let near = left.partition_point(|&nth| offsets[nth] - first < CHUNK_SPAN);
        let chunk;
        (chunk, left) = left.split_at(near.min(CHUNK));
        Some(chunk)
    })
}

/// What a file says about an address.
enum Answer<'a> {
    Frames(&'a [Place<'a>]),
    Unknown,
    /// The debug information is damaged, or of a kind that is not understood.
    Broken,
}

/// Demangled names of one chunk: most occur many times.
#[derive(Debug, Default)]
struct Names<'s>(HashMap<&'s str, Cow<'s, str>>);

impl<'s> Names<'s> {
    fn learn(&mut self, sym: &'s Sym<'_>) {
        let inlined = sym.inlined.iter().map(|inlined| inlined.name.as_ref());
        for symbol in inlined.chain([sym.name.as_ref()]) {
            self.0.entry(symbol).or_insert_with(|| demangle(symbol));
        }
    }

    fn places<'a>(&'a self, sym: &'a Sym<'_>) -> Vec<Place<'a>> {
        let outer = self.place(&sym.name, sym.code_info.as_deref());
        let inlined = sym
            .inlined
            .iter()
            .map(|inlined| self.place(&inlined.name, inlined.code_info.as_ref()));
        [outer].into_iter().chain(inlined).collect()
    }

    fn place<'a>(&'a self, symbol: &str, code: Option<&'a CodeInfo<'_>>) -> Place<'a> {
        let file = code.map_or(Cow::Borrowed(""), |code| match code.to_path() {
            Cow::Borrowed(path) => path.to_string_lossy(),
            Cow::Owned(path) => Cow::Owned(path.to_string_lossy().into_owned()),
        });
        Place {
            function: self.0.get(symbol).map_or("", |name| name),
            file,
            line: code.and_then(|code| code.line).unwrap_or(0),
        }
    }
}

/// The program's own file: by its path as long as that is still the same file, because debug links and
/// packages (`.dwp`) are found beside it; else through `/proc/self/exe`, which outlives it.
fn own_program(path: &Path) -> PathBuf {
    let exe = Path::new("/proc/self/exe");
    let id = |path: &Path| path.metadata().ok().map(|data| (data.dev(), data.ino()));
    if id(exe).is_none() || id(exe) == id(path) {
        path.to_owned()
    } else {
        exe.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A directory that goes with its owner.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let name = format!("heapray-resolver-{name}-{}", std::process::id());
            let dir = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&dir).unwrap();
            Scratch(dir)
        }

        /// Runs a tool here; `false` if it is not installed, which CI does not accept.
        fn run(&self, tool: &str, args: &[&str]) -> bool {
            match Command::new(tool).args(args).current_dir(&self.0).status() {
                Ok(status) => assert!(status.success(), "{tool} {args:?}"),
                Err(_) => {
                    assert!(std::env::var_os("CI").is_none(), "{tool} is not installed");
                    println!("skipped: {tool} is not installed");
                    return false;
                }
            }
            true
        }

        /// A library of C functions, an inlined one among them; `None` without a compiler.
        fn library(&self) -> Option<Module> {
            let source = "static inline __attribute__((always_inline)) int inner(int *x) { return *x / 3; }\n\
                          int f(int *x) {\n\
                          \x20   return inner(x) + 1;\n\
                          }\n\
                          int g(int *x) { return f(x) * 2; }\n";
            std::fs::write(self.0.join("lib.c"), source).unwrap();
            let args = [
                "-g",
                "-O1",
                "-shared",
                "-fPIC",
                "-Wl,--build-id=sha1",
                "-o",
                "lib.so",
                "lib.c",
            ];
            self.run("cc", &args).then(|| self.module("lib.so"))
        }

        fn module(&self, file: &str) -> Module {
            let path = self.0.join(file);
            Module {
                build_id: build_id(&path),
                path,
                load_bias: 0,
                start: 0,
                end: 0x10_0000,
                code: None,
                is_main: false,
            }
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn build_id(path: &Path) -> Vec<u8> {
        let id = read_elf_build_id(path).ok().flatten();
        id.unwrap_or_default().to_vec()
    }

    /// Looks `offsets` up and checks that each is answered once.
    fn look_up(
        lookup: &mut ElfLookup,
        module: &Module,
        offsets: &[u64],
    ) -> Vec<Vec<(String, String, u32)>> {
        let mut answers = vec![None; offsets.len()];
        lookup.lookup(module, offsets, &mut |nth, places| {
            let frames = places.iter().map(|place| {
                (
                    place.function.to_owned(),
                    place.file.to_string(),
                    place.line,
                )
            });
            let former = answers[nth].replace(frames.collect());
            assert_eq!(former, None, "{nth} is answered twice");
        });
        answers.into_iter().map(Option::unwrap).collect()
    }

    /// Every address that may be in the code of a small library.
    fn all_offsets() -> Vec<u64> {
        (0x1000..0x1200).collect()
    }

    fn lookup() -> ElfLookup {
        ElfLookup::with_debug_dirs(Vec::new())
    }

    #[test]
    fn c_functions_resolve_with_their_inlined_calls() {
        let scratch = Scratch::new("c");
        let Some(module) = scratch.library() else {
            return;
        };
        let frames = look_up(&mut lookup(), &module, &all_offsets());
        let file = scratch.0.join("lib.c").display().to_string();
        let frame = |function: &str, line| (function.to_owned(), file.clone(), line);
        assert!(
            frames.contains(&vec![frame("f", 3), frame("inner", 1)]),
            "{frames:?}"
        );
        assert!(frames.contains(&vec![frame("g", 5)]), "{frames:?}");
        assert!(
            frames.contains(&Vec::new()),
            "there is code between functions"
        );
    }

    #[test]
    fn a_debug_file_is_found_by_build_id_without_a_link() {
        let scratch = Scratch::new("build-id");
        let Some(module) = scratch.library() else {
            return;
        };
        let expected = look_up(&mut lookup(), &module, &all_offsets());
        let hex: String = module
            .build_id
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let dir = format!("debug/.build-id/{}", &hex[..2]);
        std::fs::create_dir_all(scratch.0.join(&dir)).unwrap();
        let debug = format!("{dir}/{}.debug", &hex[2..]);
        let split = [
            "--only-keep-debug",
            "--compress-debug-sections=zlib",
            "lib.so",
            &debug,
        ];
        if !scratch.run("objcopy", &split) {
            return;
        }
        scratch.run("objcopy", &["--strip-all", "lib.so"]);
        assert_ne!(look_up(&mut lookup(), &module, &all_offsets()), expected);

        let dirs = vec![scratch.0.join("nowhere"), scratch.0.join("debug")];
        let mut with_debug_files = ElfLookup::with_debug_dirs(dirs);
        assert_eq!(
            look_up(&mut with_debug_files, &module, &all_offsets()),
            expected
        );

        // The debug file serves even where the object itself is gone.
        std::fs::remove_file(&module.path).unwrap();
        assert_eq!(
            look_up(&mut with_debug_files, &module, &all_offsets()),
            expected
        );

        // Under the right name lies the file of another build.
        std::fs::copy("/bin/true", scratch.0.join(&debug)).unwrap();
        let frames = look_up(&mut with_debug_files, &module, &all_offsets());
        assert!(frames.iter().all(Vec::is_empty));
    }

    #[test]
    fn a_file_that_is_not_the_loaded_one_names_nothing() {
        let scratch = Scratch::new("gone");
        let elf = |file: &str, build_id: &[u8]| Module {
            build_id: build_id.to_vec(),
            ..scratch.module(file)
        };
        std::fs::copy("/bin/true", scratch.0.join("other.so")).unwrap();
        std::fs::write(scratch.0.join("text.so"), "no ELF file").unwrap();
        let mut lookup = lookup();
        for module in [
            elf("gone.so", b""),
            elf("other.so", b"another build"),
            elf("text.so", b""),
        ] {
            let frames = look_up(&mut lookup, &module, &[0x1000, 0x2000]);
            assert_eq!(frames, [Vec::new(), Vec::new()]);
        }
        let vdso = Module {
            path: "linux-vdso.so.1".into(),
            ..elf("", b"")
        };
        assert_eq!(look_up(&mut lookup, &vdso, &[0x1000]), [Vec::new()]);
        // As `dlopen` was given it; tests run where the package is.
        let relative = Module {
            path: "./Cargo.toml".into(),
            ..elf("", b"")
        };
        assert_eq!(look_up(&mut lookup, &relative, &[0x1000]), [Vec::new()]);
        let notes = lookup.notes().join("; ");
        for part in [
            "gone.so is shown as offsets, because the file is no longer there",
            "other.so is shown as offsets, because the file was replaced since it was loaded",
            "text.so, Cargo.toml is shown as offsets, because the file could not be read",
        ] {
            assert!(notes.contains(part), "{notes}");
        }
        assert!(!notes.contains("vdso"), "{notes}");
    }

    #[test]
    fn damaged_files_neither_panic_nor_lose_an_address() {
        let scratch = Scratch::new("damaged");
        let Some(module) = scratch.library() else {
            return;
        };
        // Whatever the damage, it is this file that is asked.
        let module = Module {
            build_id: Vec::new(),
            ..module
        };
        let whole = std::fs::read(&module.path).unwrap();
        let expected = look_up(&mut lookup(), &module, &all_offsets());
        let named = |frames: &[Vec<(String, String, u32)>]| {
            frames.iter().filter(|frames| !frames.is_empty()).count()
        };
        let mut state = 7u64;
        let mut damaged = 0;
        for round in 0..200 {
            let mut bytes = whole.clone();
            if round % 10 == 0 {
                bytes.truncate(whole.len() * round / 200);
            } else {
                for _ in 0..round {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    let at = (state >> 33) as usize % bytes.len();
                    bytes[at] = (state >> 56) as u8;
                }
            }
            // A new file each time: one that is mapped must not be cut short.
            std::fs::remove_file(&module.path).unwrap();
            std::fs::write(&module.path, bytes).unwrap();
            let frames = look_up(&mut lookup(), &module, &all_offsets());
            damaged += usize::from(named(&frames) < named(&expected));
        }
        assert!(damaged > 20, "the damage was felt {damaged} times");
    }

    #[test]
    fn chunks_are_bounded_in_number_and_span() {
        let near: Vec<u64> = (0..CHUNK as u64 + 10).collect();
        let far = [0, CHUNK_SPAN - 1, CHUNK_SPAN, 2 * CHUNK_SPAN, u64::MAX];
        for (offsets, expected) in [
            (&near[..], &[CHUNK, 10][..]),
            (&far, &[2, 1, 1, 1]),
            (&[], &[]),
        ] {
            let all: Vec<usize> = (0..offsets.len()).collect();
            let lengths: Vec<usize> = chunks(&all, offsets).map(<[usize]>::len).collect();
            assert_eq!(lengths, expected);
            let joined: Vec<usize> = chunks(&all, offsets).flatten().copied().collect();
            assert_eq!(joined, all);
        }
    }

    #[test]
    fn chunks_change_nothing() {
        let scratch = Scratch::new("chunks");
        let Some(module) = scratch.library() else {
            return;
        };
        let few = look_up(&mut lookup(), &module, &all_offsets());
        let many: Vec<u64> = all_offsets()
            .into_iter()
            .flat_map(|offset| [offset; 11])
            .collect();
        assert!(many.len() > 2 * CHUNK);
        let frames = look_up(&mut lookup(), &module, &many);
        for (nth, frames) in frames.iter().enumerate() {
            assert_eq!(frames, &few[nth / 11]);
        }
    }
}
