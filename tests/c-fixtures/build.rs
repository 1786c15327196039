//! Compiles the C code: without frame pointers, with them, for a fixed address, and as a library to load at run time.

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=c");
    let without = [
        "-O2",
        "-fomit-frame-pointer",
        "-fno-optimize-sibling-calls",
        "-fno-inline",
    ];
    let with = [
        "-O1",
        "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls",
        "-fno-inline",
    ];
    compile("frames_without_fp", &without, "without");
    compile("frames_with_fp", &with, "with");

    // This crate's own tests are programs at a fixed address.
    println!("cargo::rustc-link-arg-tests=-no-pie");
    cc::Build::new()
        .pic(false)
        .flag("-fno-pie")
        .opt_level(2)
        .file("c/fixed.c")
        .warnings(true)
        .compile("fixed");

    library("c/plugin.c", &["-DNUMBER=1"], "plugin1.so");
    library("c/plugin.c", &["-DNUMBER=2"], "plugin2.so");
    library("c/others.c", &[], "libothers.so");
    library("c/interposer.c", &["-ldl"], "interposer.so");
    library("c/lookup.c", &["-ldl"], "lookup.so");
    library("c/sized.c", &[], "sized.so");
    library("c/thread_context.c", &[], "libthread_context.so");
    library("c/allocator.cc", &["-std=c++17"], "liballocator.so");
    library(
        "c/allocator.cc",
        &["-std=c++17", "-DHEADER"],
        "libheader.so",
    );
    // Each call is a call site of its own.
    let calls = ["-std=c++17", "-fno-optimize-sibling-calls"];
    library("c/operators.cc", &calls, "liboperators.so");
    let needed = ["-L", &out_dir(), "-lothers", "-Wl,-rpath,$ORIGIN"];
    // Slots in pages that the loader makes read-only, and slots that are bound at their first call.
    let now = [&["-fno-plt", "-Wl,-z,now"], &needed[..]].concat();
    library("c/allocate.c", &now, "allocate_now.so");
    let lazy = [&["-fplt", "-Wl,-z,lazy"], &needed[..]].concat();
    library("c/allocate.c", &lazy, "allocate_lazy.so");
}

fn out_dir() -> String {
    env::var("OUT_DIR").expect("cargo sets it")
}

fn library(source: &str, flags: &[&str], name: &str) {
    let mut build = cc::Build::new();
    let build = build.opt_level(2).pic(true).cpp(source.ends_with(".cc"));
    let compiler = build.get_compiler();
    let status = compiler
        .to_command()
        .args(["-shared", "-Wl,--build-id"])
        .arg(source)
        .args(flags)
        .arg("-o")
        .arg(Path::new(&out_dir()).join(name))
        .status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "{name} was not built"
    );
}

fn compile(name: &str, flags: &[&str], suffix: &str) {
    let mut build = cc::Build::new();
    for flag in flags {
        build.flag(flag);
    }
    build
        .define("SUFFIX", suffix)
        .file("c/frames.c")
        .warnings(true)
        .compile(name);
}
