//! Whose code a frame is, in programs that cargo builds here in many ways: the same code is the service's own in all of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use heapray_report::views::{Kind, Origins};

use super::scratch::Scratch;
use super::*;
use crate::symbolize::resolve::resolve_elsewhere;
use crate::symbolize::{NameMode, ReportOptions};

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Runs a command of a build, and returns whether it is installed and succeeded.
fn run(command: &mut Command) -> bool {
    // The variables of the build that this test is part of are not for another build.
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET"] {
        command.env_remove(variable);
    }
    let output = command.output();
    if let Ok(output) = &output
        && !output.status.success()
    {
        println!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    output.is_ok_and(|output| output.status.success())
}

/// A crate whose functions call each other, one of them generic and one inlined.
fn library(name: &str) -> String {
    format!(
        "pub struct Row<T>(pub T);
         impl<T: Clone> Row<T> {{
             #[inline(never)] pub fn twice(&self) -> Vec<T> {{ vec![self.0.clone(), self.0.clone()] }}
         }}
         pub trait Total {{ fn total(&self) -> u64; }}
         impl Total for Vec<u64> {{
             #[inline(never)] fn total(&self) -> u64 {{ self.iter().map(|&x| short(x)).sum() }}
         }}
         #[inline(always)] fn short(x: u64) -> u64 {{ format!(\"{{x}}{name}\").len() as u64 }}
         #[inline(never)] pub fn keep(list: &mut Vec<Vec<u64>>) {{
             list.push(Row(7).twice());
             let sum = list[0].total();
             list.push(vec![sum; 3]);
         }}"
    )
}

/// A way of building the program.
struct Build {
    name: &'static str,
    /// Directory of the packages, from the directory of all sources.
    vendor: &'static str,
    /// Whether their directories have versions.
    versions: bool,
    flags: &'static str,
    profile: &'static str,
    /// Options that only an unstable cargo has.
    unstable: &'static [&'static str],
    /// Crates that the service names as its own.
    own: &'static [&'static str],
}

const USUAL: Build = Build {
    name: "vendored, as cargo proposes",
    vendor: "workspace/vendor",
    versions: false,
    flags: "",
    profile: "",
    unstable: &[],
    own: &[],
};

/// Builds a workspace of two crates, with a path dependency, a git dependency and two vendored packages, which are called
/// as two that heapray depends on. Returns the executable.
fn build(root: &Path, build: &Build) -> Option<PathBuf> {
    let workspace = root.join("workspace");
    let vendor = root.join(build.vendor);
    for name in ["gimli", "libc"] {
        let dir = match build.versions {
            true => vendor.join(format!("{name}-1.2.3")),
            false => vendor.join(name),
        };
        write(
            &dir.join("Cargo.toml"),
            &format!("[package]\nname = \"{name}\"\nversion = \"1.2.3\"\nedition = \"2021\"\n"),
        );
        write(&dir.join("src/lib.rs"), &library(name));
        write(&dir.join(".cargo-checksum.json"), "{\"files\":{}}");
    }
    for (dir, name) in [
        ("shared", "shared"),
        ("fork", "fork"),
        ("workspace/crates/core", "shop_core"),
    ] {
        let manifest =
            format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
        write(&root.join(dir).join("Cargo.toml"), &manifest);
        write(&root.join(dir).join("src/lib.rs"), &library(name));
    }
    let fork = root.join("fork");
    let git = |args: &[&str]| {
        let who = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
        run(Command::new("git").current_dir(&fork).args(who).args(args))
    };
    if !(git(&["init", "-q"]) && git(&["add", "."]) && git(&["commit", "-qm", "all"])) {
        return None;
    }
    write(
        &workspace.join("Cargo.toml"),
        &format!(
            "[workspace]\nmembers = [\"crates/*\"]\nresolver = \"2\"\n[profile.dev]\ndebug = 1\nopt-level = 1\n{}\n",
            build.profile
        ),
    );
    write(
        &workspace.join("crates/shop/Cargo.toml"),
        &format!(
            "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\n\
             shop_core = {{ path = \"../core\" }}\nshared = {{ path = \"../../../shared\" }}\n\
             fork = {{ git = \"file://{}\" }}\ngimli = \"1\"\nlibc = \"1\"\n",
            fork.display()
        ),
    );
    write(
        &workspace.join("crates/shop/src/main.rs"),
        "fn main() {
             let mut list = Vec::new();
             for keep in [shop_core::keep, shared::keep, fork::keep, gimli::keep, libc::keep, keep] { keep(&mut list); }
             println!(\"{}\", list.len());
         }
         #[inline(never)] fn keep(list: &mut Vec<Vec<u64>>) { list.push(vec![1, 2, 3]); }",
    );
    write(
        &workspace.join(".cargo/config.toml"),
        &format!(
            "[source.crates-io]\nreplace-with = \"vendored\"\n[source.vendored]\ndirectory = \"{}\"\n",
            vendor.display()
        ),
    );
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--quiet"])
        .args(build.unstable)
        .current_dir(&workspace)
        .env("CARGO_HOME", root.join("cargo"))
        .env("CARGO_TARGET_DIR", root.join("target"))
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove("RUSTC_WRAPPER");
    if !build.flags.is_empty() {
        let flags = build.flags.replace("{root}", &root.to_string_lossy());
        command.env("CARGO_BUILD_RUSTFLAGS", flags);
    }
    // `run` removes the flags of this test's own build; these go by another variable.
    run(&mut command).then(|| root.join("target/debug/shop"))
}

/// Returns the return addresses of all calls in functions of the program's crates.
fn return_addresses(program: &Path) -> Vec<u64> {
    let output = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn"])
        .arg(program)
        .output()
        .unwrap();
    let names = ["shop", "shared", "fork", "gimli", "libc"];
    let mut addresses = Vec::new();
    let (mut is_theirs, mut after_call) = (false, false);
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        // `0000000000012340 <_RNvCs1_4shop4main>:`, then `   12344:\tcall   12400 <malloc>`.
        if let Some((_, symbol)) = line.split_once(" <").filter(|_| line.ends_with(">:")) {
            let is_rust = symbol.starts_with("_R") || symbol.starts_with("_ZN");
            is_theirs = is_rust && names.iter().any(|name| symbol.contains(name));
            after_call = false;
        } else if let Some((address, instruction)) = line.split_once(":\t")
            && is_theirs
        {
            if after_call {
                addresses.push(u64::from_str_radix(address.trim(), 16).unwrap());
            }
            after_call = ["call", "bl"]
                .iter()
                .any(|call| instruction.starts_with(call));
        }
    }
    addresses
}

/// Returns the owner of each function's code, by the function's name.
fn owners(program: &Path, own: &[&str]) -> BTreeMap<String, Kind> {
    let module = Module {
        load_bias: 0,
        start: 0,
        end: u64::MAX,
        ..module(&program.to_string_lossy(), true)
    };
    let mut snapshot = snapshot(vec![module]);
    for address in return_addresses(program) {
        push(&mut snapshot, NodeId::ROOT, ModuleId(0), address);
    }
    let options = ReportOptions::new().full(true).names(NameMode::Plain);
    let now = SystemTime::now();
    let mut report = resolve_elsewhere(&snapshot.stacks, &options, now).report;
    report.about.own_crates = own.iter().map(|&name| name.to_owned()).collect();
    let origins = Origins::of(&report);
    let frames = report.frames.iter().enumerate();
    let owners = frames.map(|(nth, frame)| {
        let kind = origins.kind(heapray_report::model::FrameId(nth as u32));
        (report.strings.get(frame.function).to_owned(), kind)
    });
    owners.collect()
}

const BUILDS: [Build; 9] = [
    USUAL,
    Build {
        name: "vendored in the workspace under another name",
        vendor: "workspace/crates-io",
        ..USUAL
    },
    Build {
        name: "vendored elsewhere",
        vendor: "opt/packages",
        ..USUAL
    },
    Build {
        name: "with versions, as Bazel, Nix and Debian unpack them",
        vendor: "opt/packages",
        versions: true,
        ..USUAL
    },
    Build {
        name: "with remapped paths",
        vendor: "workspace/crates-io",
        flags: "--remap-path-prefix={root}=/build",
        ..USUAL
    },
    Build {
        name: "with the root's path removed",
        flags: "--remap-path-prefix={root}/=",
        ..USUAL
    },
    // Cargo then gives a path dependency outside of the workspace the form of a package: only the service can say that it is
    // its own.
    Build {
        name: "with trimmed paths",
        vendor: "opt/packages",
        versions: true,
        unstable: &["-Ztrim-paths", "--config=profile.dev.trim-paths=\"all\""],
        own: &["sha*"],
        ..USUAL
    },
    Build {
        name: "with legacy names and one unit for all",
        vendor: "workspace/crates-io",
        flags: "-Csymbol-mangling-version=legacy -Zunstable-options",
        profile: "lto = \"fat\"\ncodegen-units = 1\nincremental = false",
        ..USUAL
    },
    Build {
        name: "with DWARF 5 and v0 names",
        vendor: "workspace/crates-io",
        flags: "-Csymbol-mangling-version=v0 -Cdwarf-version=5",
        profile: "incremental = false",
        ..USUAL
    },
];

#[test]
fn the_same_code_is_own_however_the_program_was_built() {
    for (nth, how) in BUILDS.iter().enumerate() {
        let scratch = Scratch::new(&format!("own-code-{nth}"));
        let Some(program) = build(&scratch.0, how) else {
            assert!(
                std::env::var_os("CI").is_none(),
                "{} cannot be built",
                how.name
            );
            println!("skipped: {} cannot be built", how.name);
            continue;
        };
        let owners = owners(&program, how.own);
        for (function, expected) in [
            ("shop::main", Kind::Own),
            ("shop::keep", Kind::Own),
            ("shop_core::keep", Kind::Own),
            ("shared::keep", Kind::Own),
            ("shop_core::short", Kind::Own),
            ("fork::keep", Kind::Package),
            ("gimli::keep", Kind::Package),
            ("libc::keep", Kind::Package),
            ("gimli::short", Kind::Package),
        ] {
            let found = owners.get(function).copied();
            // With one unit for all, the optimiser leaves nothing of the inlined function.
            let may_be_gone = function.ends_with("::short") && found.is_none();
            let is_right = found == Some(expected) || may_be_gone;
            assert!(is_right, "{function} is {found:?}, {}", how.name);
        }
        for (function, kind) in &owners {
            if ["alloc::", "core::", "std::"]
                .iter()
                .any(|it| function.starts_with(it))
            {
                // The library's own trait on a type of the library, in another crate: `Total for Vec<u64>`.
                let is_total = function.ends_with("::total") || function.contains("::total::");
                assert!(
                    is_total || *kind == Kind::Language,
                    "{function}, {}",
                    how.name
                );
            }
        }
    }
}
