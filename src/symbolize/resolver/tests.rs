//! Tests with small libraries that the C compiler and rustc build here.

use super::*;
use crate::symbolize::tests::scratch::Scratch;
use std::process::Command;

impl Scratch {
    /// Runs a tool in this directory. Returns `false` if it is not installed; on CI that is a failure.
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

    /// Builds a library of C functions, one of them inlined. Returns `None` without a compiler.
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

fn build_id(path: &Path) -> Vec<u8> {
    Sections::of(path).map_or_else(Vec::new, |sections| sections.build_id())
}

/// Looks up `offsets`, and checks that each is answered once.
fn look_up(
    lookup: &mut ElfLookup,
    module: &Module,
    offsets: &[u64],
) -> Vec<Vec<(String, String, u32)>> {
    let mut answers = vec![None; offsets.len()];
    lookup.lookup(module, offsets, &mut |nth, places| {
        let frames = places.iter().map(|place| {
            (
                place.function.full.clone(),
                place.file.to_string(),
                place.line,
            )
        });
        let former = answers[nth].replace(frames.collect());
        assert_eq!(former, None, "{nth} is answered twice");
    });
    answers.into_iter().map(Option::unwrap).collect()
}

/// Returns every address that may be in the code of a small library.
fn all_offsets() -> Vec<u64> {
    (0x1000..0x1200).collect()
}

fn lookup() -> ElfLookup {
    ElfLookup::with_debug_dirs(Vec::new().into())
}

/// The first three lines of a Rust library without the standard library.
const NO_STD: &str = "#![no_std]\n\
                      #[panic_handler]\n\
                      fn panic(_: &core::panic::PanicInfo) -> ! { loop {} }\n";

#[test]
fn units_name_the_crate_and_its_directory_and_damage_only_loses_them() {
    let scratch = Scratch::new("units");
    std::fs::create_dir(scratch.0.join("src")).unwrap();
    let code = "\
                  #[unsafe(no_mangle)]\n\
                  pub extern \"C\" fn run(x: u32) -> u32 { x / 3 }\n";
    let source = [NO_STD, code].concat();
    std::fs::write(scratch.0.join("src/lib.rs"), source).unwrap();
    for version in ["-Cdwarf-version=4", "-Cdwarf-version=5"] {
        let args = [
            "--edition=2024",
            "--crate-name=shop",
            "--crate-type=cdylib",
            "-Cpanic=abort",
            "-Cdebuginfo=1",
            "-Clink-arg=-nostartfiles",
            "-olib.so",
            version,
            "src/lib.rs",
        ];
        if !scratch.run("rustc", &args) {
            return;
        }
        let path = scratch.0.join("lib.so");
        let own = Unit {
            root: "src/lib.rs".to_owned(),
            directory: scratch.0.canonicalize().unwrap().display().to_string(),
            crate_name: Some("shop".to_owned()),
        };
        let read = || {
            let sections = Sections::of(&path);
            sections.map_or_else(Vec::new, |sections| units::of(&sections).collect())
        };
        assert!(read().contains(&own), "{:?}", read());

        let whole = std::fs::read(&path).unwrap();
        let mut lost = 0;
        for round in 0..300 {
            let bytes = damaged(&whole, round, 300);
            std::fs::write(&path, bytes).unwrap();
            lost += usize::from(!read().contains(&own));
        }
        assert!(lost > 20, "the damage was felt {lost} times");
    }
}

#[test]
fn functions_of_rust_have_their_paths_where_debug_information_is_lines_only() {
    let scratch = Scratch::new("lines");
    let code = "\
                  mod shop { pub mod cart {\n\
                  #[inline(never)]\n\
                  pub fn add(x: u32) -> u32 { x / 3 }\n\
                  } }\n\
                  #[unsafe(no_mangle)]\n\
                  pub extern \"C\" fn run(x: u32) -> u32 { shop::cart::add(x) }\n";
    let source = [NO_STD, code].concat();
    std::fs::write(scratch.0.join("lib.rs"), source).unwrap();
    for mangling in ["-Copt-level=0", "-Csymbol-mangling-version=v0"] {
        let args = [
            "--edition=2024",
            "--crate-type=cdylib",
            "-Cpanic=abort",
            "-Cdebuginfo=line-tables-only",
            "-Clink-arg=-nostartfiles",
            "-olib.so",
            "lib.rs",
            mangling,
        ];
        if !scratch.run("rustc", &args) {
            return;
        }
        let offsets: Vec<u64> = (0..0x4000).collect();
        let frames = look_up(&mut lookup(), &scratch.module("lib.so"), &offsets);
        for (name, line) in [("lib::shop::cart::add", 6), ("run", 9)] {
            let found = frames.iter().flatten().any(|(function, file, at)| {
                function == name && file.ends_with("lib.rs") && *at == line
            });
            assert!(found, "{mangling}, {name}: {frames:?}");
        }
    }
}

/// Returns the range of the code of `lib::cart::add` in a library.
fn code_of_add(library: &Path) -> std::ops::Range<u64> {
    let output = Command::new("nm").arg("-S").arg(library).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.contains("cart3add"));
    let mut numbers = line.unwrap().split(' ').map(|n| u64::from_str_radix(n, 16));
    let start = numbers.next().unwrap().unwrap();
    start..start + numbers.next().unwrap().unwrap()
}

/// Builds a library whose debug information is in files of its own. Returns its module and the addresses of `cart::add`.
fn split_library(scratch: &Scratch, version: &str) -> Option<(Module, Vec<u64>)> {
    let source = "pub mod cart {\n\
                  #[inline(never)]\n\
                  pub fn add(list: &mut Vec<u64>, x: u64) {\n\
                      list.push(x);\n\
                      list.push(x + 1);\n\
                  } }\n\
                  #[unsafe(no_mangle)]\n\
                  pub extern \"C\" fn run(x: u64) -> usize { let mut v = Vec::new(); cart::add(&mut v, x); v.len() }\n";
    std::fs::write(scratch.0.join("lib.rs"), source).unwrap();
    let args = [
        "--edition=2024",
        "--crate-type=cdylib",
        "-O",
        "-Cdebuginfo=1",
        "-Csplit-debuginfo=unpacked",
        version,
        "-olib.so",
        "lib.rs",
    ];
    scratch.run("rustc", &args).then(|| {
        let module = scratch.module("lib.so");
        let offsets = code_of_add(&module.path).collect();
        (module, offsets)
    })
}

/// Checks that every address of `cart::add` has its function, and that its lines and inlined calls are found.
fn check_whole(lookup: &mut ElfLookup, module: &Module, offsets: &[u64]) {
    let frames = look_up(lookup, module, offsets);
    let mut lines = [false; 2];
    let mut inlined = 0;
    for frames in &frames {
        let (function, file, line) = &frames[0];
        assert_eq!(function, "lib::cart::add", "{frames:?}");
        assert!(file.ends_with("lib.rs") || *line == 0, "{frames:?}");
        lines[0] |= *line == 4;
        lines[1] |= *line == 5;
        inlined += usize::from(
            frames
                .iter()
                .any(|(function, ..)| function.contains("push")),
        );
    }
    assert!(lines == [true; 2] && inlined > 0, "{frames:?}");
    assert_eq!(lookup.notes(), Vec::<String>::new());
}

#[test]
fn split_debug_information_of_dwarf_5_is_read_from_its_files() {
    let scratch = Scratch::new("split-5");
    if let Some((module, offsets)) = split_library(&scratch, "-Cdwarf-version=5") {
        check_whole(&mut lookup(), &module, &offsets);
    }
}

#[test]
fn split_debug_information_is_read_from_its_files_and_from_their_package() {
    let scratch = Scratch::new("split");
    // binutils' `dwp` packs no later version.
    let Some((module, offsets)) = split_library(&scratch, "-Cdwarf-version=4") else {
        return;
    };
    check_whole(&mut lookup(), &module, &offsets);

    // With a package beside the library.
    if !scratch.run("dwp", &["-e", "lib.so"]) {
        return;
    }
    let units: Vec<PathBuf> = std::fs::read_dir(&scratch.0)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|is| is == "dwo"))
        .collect();
    assert!(!units.is_empty());
    for unit in &units {
        std::fs::remove_file(unit).unwrap();
    }
    check_whole(&mut lookup(), &module, &offsets);

    // A package of another build is not used.
    let program = scratch.0.join("lib.so");
    let package = scratch.0.join("lib.so.dwp");
    let right = std::fs::read(&package).unwrap();
    std::fs::remove_file(&package).unwrap();
    std::fs::copy(&program, &package).unwrap();
    let mut other = lookup();
    let frames = look_up(&mut other, &module, &offsets);
    assert!(frames.iter().all(|frames| frames[0].0 == "lib::cart::add"));
    assert!(frames.iter().any(|frames| frames[0].2 > 0), "{frames:?}");
    assert_eq!(other.notes().len(), 1, "{:?}", other.notes());
    std::fs::remove_file(&package).unwrap();
    std::fs::write(&package, right).unwrap();

    // Without files and package, the function has its name, and the report says what is missing.
    std::fs::remove_file(scratch.0.join("lib.so.dwp")).unwrap();
    // A file of another build under that name is not used.
    std::fs::copy(&module.path, &units[0]).unwrap();
    let mut without = lookup();
    for frames in look_up(&mut without, &module, &offsets) {
        let (function, file, line) = &frames[0];
        assert_eq!(function, "lib::cart::add");
        let role = super::super::trim::role(function, file, *line);
        assert_eq!(role, super::super::trim::Role::Code, "{file}:{line}");
    }
    let notes = without.notes().join("; ");
    assert!(
        notes.contains("files of split debug information"),
        "{notes}"
    );
    assert!(
        notes.contains("are missing, for example") && notes.contains(".dwo: "),
        "{notes}"
    );
}

#[test]
fn a_note_names_debug_information_that_zstd_compresses() {
    let scratch = Scratch::new("zstd");
    // Enough functions that compression makes the sections smaller.
    let functions = (0..300).map(|n| format!("int f{n}(int x{n}) {{ return x{n} / 3; }}\n"));
    std::fs::write(scratch.0.join("lib.c"), functions.collect::<String>()).unwrap();
    let cc = ["-g", "-shared", "-fPIC", "-o", "lib.so", "lib.c"];
    let objcopy = ["--compress-debug-sections=zstd", "lib.so", "packed.so"];
    if !scratch.run("cc", &cc) || !scratch.run("objcopy", &objcopy) {
        return;
    }
    let mut lookup = lookup();
    let offsets: Vec<u64> = (0x1000..0x4000).collect();
    let frames = look_up(&mut lookup, &scratch.module("packed.so"), &offsets);
    let named = frames
        .iter()
        .flatten()
        .any(|(function, ..)| function == "f7");
    assert!(named, "by the table of symbols: {frames:?}");
    let notes = lookup.notes().join("; ");
    assert!(
        notes.contains("packed.so is compressed with zstd"),
        "{notes}"
    );
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
    let mut with_debug_files = ElfLookup::with_debug_dirs(dirs.into());
    assert_eq!(
        look_up(&mut with_debug_files, &module, &all_offsets()),
        expected
    );

    // The debug file is enough, even if the object itself was deleted.
    std::fs::remove_file(&module.path).unwrap();
    assert_eq!(
        look_up(&mut with_debug_files, &module, &all_offsets()),
        expected
    );

    // The file with the right name belongs to another build.
    std::fs::copy("/bin/true", scratch.0.join(&debug)).unwrap();
    let frames = look_up(&mut with_debug_files, &module, &all_offsets());
    assert!(frames.iter().all(Vec::is_empty));
}

#[test]
fn a_debug_file_is_found_by_its_link_if_its_checksum_is_right() {
    let scratch = Scratch::new("link");
    let Some(module) = scratch.library() else {
        return;
    };
    let expected = look_up(&mut lookup(), &module, &all_offsets());
    let here = scratch.0.canonicalize().unwrap();
    let below = scratch
        .0
        .join("debug")
        .join(here.strip_prefix("/").unwrap());
    std::fs::create_dir_all(&below).unwrap();
    std::fs::create_dir(scratch.0.join(".debug")).unwrap();
    let keep = ["--only-keep-debug", "lib.so", "lib.debug"];
    if !scratch.run("objcopy", &keep) {
        return;
    }
    let strip = ["--strip-all", "--add-gnu-debuglink=lib.debug", "lib.so"];
    scratch.run("objcopy", &strip);
    let debug = scratch.0.join("lib.debug");
    let bytes = std::fs::read(&debug).unwrap();
    std::fs::remove_file(&debug).unwrap();
    let with_link = || {
        let mut lookup = ElfLookup::with_debug_dirs(vec![scratch.0.join("debug")].into());
        look_up(&mut lookup, &module, &all_offsets())
    };
    assert_ne!(with_link(), expected);
    for dir in [&scratch.0, &scratch.0.join(".debug"), &below] {
        let file = dir.join("lib.debug");
        std::fs::write(&file, &bytes).unwrap();
        assert_eq!(with_link(), expected, "{}", file.display());
        // A file of another build.
        let mut other = bytes.clone();
        *other.last_mut().unwrap() ^= 1;
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, other).unwrap();
        assert_ne!(with_link(), expected, "{}", file.display());
        std::fs::remove_file(&file).unwrap();
    }
}

#[test]
fn names_that_dwz_moved_to_a_shared_file_are_found_there() {
    let scratch = Scratch::new("dwz");
    let header = "static inline __attribute__((always_inline)) int a_rather_long_name_of_a_shared_function(int *x) {\n\
                  \x20   int quotient_with_a_long_name = *x / 3, remainder_with_a_long_name = *x % 3;\n\
                  \x20   return quotient_with_a_long_name * remainder_with_a_long_name;\n}\n\
                  struct row { int first_member_of_the_row, second_member_of_the_row; };\n";
    std::fs::write(scratch.0.join("shared.h"), header).unwrap();
    let libraries = ["one", "two", "three"];
    for name in libraries {
        let code = format!(
            "#include \"shared.h\"\nstruct row {name}_row;\nint {name}(int *x) {{\n\
             \x20   return a_rather_long_name_of_a_shared_function(x) + {name}_row.first_member_of_the_row;\n}}\n"
        );
        let (source, library) = (format!("{name}.c"), format!("{name}.so"));
        std::fs::write(scratch.0.join(&source), code).unwrap();
        let args = [
            "-g",
            "-O1",
            "-shared",
            "-fPIC",
            "-Wl,--build-id=sha1",
            "-o",
            &library,
            &source,
        ];
        if !scratch.run("cc", &args) {
            return;
        }
    }
    let all = || {
        libraries.map(|name| {
            let module = scratch.module(&format!("{name}.so"));
            look_up(&mut lookup(), &module, &all_offsets())
        })
    };
    let expected = all();
    let files = libraries.map(|name| format!("{name}.so"));
    let mut dwz = vec!["-m", "shared.debug", "-M", "shared.debug"];
    dwz.extend(files.iter().map(String::as_str));
    if !scratch.run("dwz", &dwz) {
        return;
    }
    let shared = scratch.0.join("shared.debug");
    assert!(shared.exists(), "dwz has moved something");
    assert_eq!(all(), expected);

    // Without it, the functions that each library has of its own are still there.
    std::fs::remove_file(shared).unwrap();
    for (name, frames) in libraries.iter().zip(all()) {
        let has_own = frames
            .iter()
            .flatten()
            .any(|(function, ..)| function == name);
        assert!(has_own, "{name}: {frames:?}");
    }
}

#[test]
fn a_file_that_was_not_loaded_gives_no_names() {
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
    // A relative path, as a program can pass it to `dlopen`. Tests run in the package's directory.
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

/// Returns `whole` with the damage of `round` among `rounds`: every tenth is cut short, the others have ever more bytes
/// changed.
fn damaged(whole: &[u8], round: usize, rounds: usize) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    if round.is_multiple_of(10) {
        bytes.truncate(whole.len() * round / rounds);
        return bytes;
    }
    let mut state = round as u64;
    for _ in 0..round {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let at = (state >> 33) as usize % bytes.len();
        bytes[at] = (state >> 56) as u8;
    }
    bytes
}

#[test]
fn damaged_files_neither_panic_nor_lose_an_address() {
    let scratch = Scratch::new("damaged");
    let Some(module) = scratch.library() else {
        return;
    };
    // Without a build id, the lookup reads this file whatever the damage is.
    let module = Module {
        build_id: Vec::new(),
        ..module
    };
    let whole = std::fs::read(&module.path).unwrap();
    let expected = look_up(&mut lookup(), &module, &all_offsets());
    let named = |frames: &[Vec<(String, String, u32)>]| {
        frames.iter().filter(|frames| !frames.is_empty()).count()
    };
    let mut fewer = 0;
    for round in 0..200 {
        let bytes = damaged(&whole, round, 200);
        // A new file each time, because a mapped file must not be truncated.
        std::fs::remove_file(&module.path).unwrap();
        std::fs::write(&module.path, bytes).unwrap();
        let frames = look_up(&mut lookup(), &module, &all_offsets());
        fewer += usize::from(named(&frames) < named(&expected));
    }
    assert!(fewer > 20, "the damage was felt {fewer} times");
}

#[test]
fn without_a_build_id_a_file_that_came_after_the_process_gives_no_names() {
    let scratch = Scratch::new("later");
    let path = scratch.0.join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
    let module = Module {
        build_id: Vec::new(),
        ..scratch.module("program")
    };
    let written = path.metadata().unwrap().modified().unwrap();
    let mut of_after = ElfLookup::elsewhere(written);
    assert_eq!(of_after.object(&module), Some(path));
    let before = written - std::time::Duration::from_secs(1);
    let mut of_before = ElfLookup::elsewhere(before);
    assert_eq!(of_before.object(&module), None);
    let notes = of_before.notes();
    assert!(notes[0].contains("was replaced"), "{notes:?}");
}
