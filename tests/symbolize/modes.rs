//! Every way in which Rust builds and strips a program: what was recorded without names gets those that the program would have
//! given itself.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use heapray::collector::snapshot::Module;
use heapray::symbolize::{FoundBefore, NamedLater, SymbolFiles, name_later};
use heapray_report::Report;

use crate::child::{Scratch, objcopy};
use crate::later::{OPTIONS, Sums, assert_same, recorded_in, stacks_of, sums};
use crate::oracles::addresses_in;
use crate::process::{build_id, has_tool};

const ADDRESSES: usize = 1000;

/// A program on disk.
struct Program {
    path: PathBuf,
    build_id: Vec<u8>,
    /// Its code, in addresses of the file.
    code: Range<u64>,
    /// Whether it is loaded anywhere.
    is_pie: bool,
}

impl Program {
    /// Builds the program with `flags`.
    fn built(scratch: &Scratch, flags: &[&str]) -> Program {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/symbolize/programs/shop.rs");
        let path = scratch.0.join("shop");
        let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
            .args(["--edition=2024", "-C", "opt-level=2"])
            .args(flags)
            .arg(source)
            .arg("-o")
            .arg(&path)
            .current_dir(&scratch.0)
            .output()
            .unwrap();
        assert!(output.status.success(), "{flags:?}: {output:?}");
        Program::at(path)
    }

    fn at(path: PathBuf) -> Program {
        let file = std::fs::read(&path).unwrap();
        let number = |at: usize, size: usize| {
            let mut bytes = [0; 8];
            bytes[..size].copy_from_slice(&file[at..at + size]);
            u64::from_le_bytes(bytes)
        };
        // The ELF header and the program headers of 64 bits.
        let (table, size, count) = (number(32, 8), number(54, 2), number(56, 2));
        let mut headers = (0..count).map(|nth| (table + nth * size) as usize);
        let code = headers.find_map(|at| {
            let is_code = number(at, 4) == 1 && number(at + 4, 4) & 1 == 1;
            let (start, size) = (number(at + 16, 8), number(at + 40, 8));
            is_code.then(|| start..start + size)
        });
        Program {
            build_id: build_id(&path),
            code: code.unwrap(),
            is_pie: number(16, 2) == 3,
            path,
        }
    }

    /// Returns the program as a module of a process that ran it at `path`.
    fn module_at(&self, path: &Path) -> Module {
        let load_bias = if self.is_pie { 0x5500_0000_0000 } else { 0 };
        Module {
            path: path.to_owned(),
            load_bias,
            start: load_bias + self.code.start,
            end: load_bias + self.code.end,
            code: None,
            build_id: self.build_id.clone(),
            // The main module is this test.
            is_main: false,
        }
    }

    fn stacks(&self) -> Vec<Vec<u64>> {
        let module = self.module_at(&self.path);
        stacks_of(&addresses_in(&(module.start..module.end), ADDRESSES))
    }

    fn recorded_at(&self, path: &Path) -> Report {
        recorded_in(&self.stacks(), vec![self.module_at(path)], &OPTIONS)
    }
}

/// Asserts that a report which was recorded where the program is not gets the names of `at_hand` from `files`.
fn assert_named(program: &Program, at_hand: &Sums, files: &SymbolFiles) {
    let gone = Path::new("/nowhere").join(program.path.file_name().unwrap());
    let offsets = program.recorded_at(&gone);
    let NamedLater {
        report, strangers, ..
    } = name_later(&offsets, files, &mut FoundBefore::default());
    assert_same(&sums(&report, &gone), at_hand);
    assert_eq!(strangers, []);
}

/// Builds with `flags` and checks each way to keep the names.
fn check(name: &str, flags: &[&str]) {
    if !has_tool("objcopy") || !has_tool("rustc") {
        return;
    }
    let scratch = Scratch::new(&format!("mode-{name}"));
    let program = Program::built(&scratch, flags);
    check_program(&program, &scratch);
}

/// Checks each way to keep the names of `program`, with files in `scratch`.
fn check_program(program: &Program, scratch: &Scratch) {
    let name = program.path.file_name().unwrap().to_str().unwrap();
    let at_hand = program.recorded_at(&program.path);
    let functions = at_hand
        .frames
        .iter()
        .map(|frame| at_hand.strings.get(frame.function));
    let named = functions
        .filter(|function| !function.starts_with(&format!("{name}+0x")))
        .count();
    assert!(named > at_hand.frames.len() * 3 / 4, "{named} names");

    let at_hand = sums(&at_hand, &program.path);

    // The program as it was built.
    let kept = SymbolFiles {
        binaries: vec![program.path.clone()],
        ..SymbolFiles::default()
    };
    assert_named(program, &at_hand, &kept);

    // Debug files of any name in a folder, compressed or not.
    for kind in ["none", "zlib", "zstd"] {
        let folder = scratch.0.join(kind);
        std::fs::create_dir(&folder).unwrap();
        objcopy(
            &[
                "--only-keep-debug",
                &format!("--compress-debug-sections={kind}"),
            ],
            &[&program.path, &folder.join("kept")],
        );
        // Packed debug information stays beside its program; it is found beside the debug file too.
        let packed = program.path.with_extension("dwp");
        if packed.exists() {
            std::fs::copy(packed, folder.join("kept.dwp")).unwrap();
        }
        let in_folder = SymbolFiles {
            debug_dirs: vec![folder],
            ..SymbolFiles::default()
        };
        assert_named(program, &at_hand, &in_folder);
    }

    // A stripped program with a debug link finds the names itself.
    let stripped = scratch.0.join("none").join(name);
    let debug = scratch.0.join("none/kept");
    let link = format!("--add-gnu-debuglink={}", debug.display());
    objcopy(&["--strip-all", &link], &[&program.path, &stripped]);
    let stripped = Program::at(stripped);
    let linked = stripped.recorded_at(&stripped.path);
    assert_same(&sums(&linked, &stripped.path), &at_hand);
}

macro_rules! modes {
    ($($name:ident: $flags:expr;)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name), &$flags);
        })*
    };
}

modes! {
    debug_0: ["-Cdebuginfo=0"];
    debug_1: ["-Cdebuginfo=1"];
    debug_2: ["-Cdebuginfo=2"];
    line_tables_only: ["-Cdebuginfo=line-tables-only"];
    unpacked: ["-Cdebuginfo=2", "-Csplit-debuginfo=unpacked"];
    packed: ["-Cdebuginfo=2", "-Csplit-debuginfo=packed"];
    without_functions: ["-Cdebuginfo=2", "-Cstrip=debuginfo"];
    link_time_optimized: ["-Cdebuginfo=1", "-Clto=fat", "-Cembed-bitcode=yes"];
    not_position_independent: ["-Cdebuginfo=1", "-Crelocation-model=static"];
    not_optimized: ["-Cdebuginfo=2", "-Copt-level=0"];
    compressed: ["-Cdebuginfo=1", "-Clink-arg=-Wl,--compress-debug-sections=zlib"];
    compressed_with_zstd: ["-Cdebuginfo=1", "-Clink-arg=-Wl,--compress-debug-sections=zstd"];
}

#[test]
#[ignore = "scripts/symbol-modes builds the programs that it names here"]
fn programs_that_were_built_before() {
    let paths = std::env::var_os("HEAPRAY_PROGRAMS").expect("HEAPRAY_PROGRAMS names programs");
    for path in std::env::split_paths(&paths) {
        let scratch = Scratch::new("built-before");
        check_program(&Program::at(path), &scratch);
    }
}

#[test]
fn builds_of_the_same_code_share_a_chosen_build_id() {
    if !has_tool("rustc") {
        return;
    }
    let chosen = "-Clink-arg=-Wl,--build-id=0x5f0e2c7d9a4b1836e0c5d2f7a8b9013246578acd";
    let (images, kept) = (Scratch::new("image"), Scratch::new("kept"));
    // As `strip = true` in a profile of Cargo's builds it.
    let image = Program::built(&images, &[chosen, "-Cdebuginfo=1", "-Cstrip=symbols"]);
    let program = Program::built(&kept, &[chosen, "-Cdebuginfo=1"]);
    assert_eq!(image.build_id, program.build_id);
    assert_eq!(image.code, program.code);
    let files = SymbolFiles {
        binaries: vec![program.path.clone()],
        ..SymbolFiles::default()
    };
    let at_hand = program.recorded_at(&program.path);
    assert_named(&image, &sums(&at_hand, &program.path), &files);
}

#[test]
fn a_stripped_program_has_the_functions_that_its_distribution_left_in_it() {
    if !has_tool("objcopy") || !has_tool("rustc") || !has_tool("xz") {
        return;
    }
    let scratch = Scratch::new("left-in");
    let program = Program::built(&scratch, &["-Cdebuginfo=1"]);
    let functions = scratch.0.join("functions");
    objcopy(
        &["--only-keep-debug", "--strip-debug"],
        &[&program.path, &functions],
    );
    let packed = Command::new("xz").arg(&functions).status().unwrap();
    assert!(packed.success());
    let add = format!("--add-section=.gnu_debugdata={}.xz", functions.display());
    objcopy(&["--strip-all", &add], &[&program.path]);
    let stripped = Program::at(program.path.clone());

    let names = |program: &Program| {
        let report = program.recorded_at(&program.path);
        sums(&report, &program.path)
    };
    let with_functions = Scratch::new("with-functions");
    let expected = Program::built(&with_functions, &["-Cdebuginfo=1"]);
    objcopy(&["--strip-debug"], &[&expected.path]);
    assert_same(&names(&stripped), &names(&expected));
}
