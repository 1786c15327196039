//! Tests with small libraries that the C compiler and rustc build here.

mod debug_files;

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
    answers(offsets.len(), |found| lookup.lookup(module, offsets, found))
}

/// Returns what `ask` finds of so many addresses.
fn answers(count: usize, ask: impl FnOnce(&mut Found<'_>)) -> Vec<Vec<(String, String, u32)>> {
    let mut answers = vec![None; count];
    ask(&mut |nth, places| {
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

#[test]
fn debug_information_that_zstd_compresses_is_read_or_named_in_a_note() {
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
    let is_read = frames.iter().flatten().any(|(_, _, line)| *line == 8);
    assert_eq!(is_read, cfg!(feature = "debug-files"));
    assert_eq!(
        notes.contains("packed.so is compressed with zstd"),
        !is_read,
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
