//! Debug information that is not in the program: separate debug files, what they share, and split debug information.

use super::*;
use crate::symbolize::trim;

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

    // Elsewhere, it is found if it is named.
    let elsewhere = scratch.0.join("elsewhere.debug");
    std::fs::rename(&shared, &elsewhere).unwrap();
    for (name, expected) in libraries.iter().zip(&expected) {
        let module = scratch.module(&format!("{name}.so"));
        let files = SymbolFiles {
            binaries: vec![module.path.clone(), elsewhere.clone()],
            ..SymbolFiles::default()
        };
        let mut lookup = FileLookup::new(&files, SystemTime::UNIX_EPOCH);
        assert_eq!(lookup.strangers().len(), 1, "the library itself");
        lookup.meet(&module, "");
        let offsets = all_offsets();
        let found = answers(offsets.len(), |found| {
            lookup.look_up(&module, "", &offsets, found);
        });
        assert_eq!(&found, expected, "{name}");
        assert!(lookup.strangers().is_empty());
        let of_file = ElfFile::read(&module.path).unwrap();
        assert_eq!(of_file.shared, ElfFile::read(&elsewhere).unwrap().build_id);
    }
    std::fs::rename(&elsewhere, &shared).unwrap();

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
        let role = trim::role(function, file, *line);
        assert_eq!(role, trim::Role::Code, "{file}:{line}");
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
