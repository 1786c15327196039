//! Compiles the C code: without frame pointers, with them, for a fixed address, and as a library to load at run time.

use std::env;
use std::path::PathBuf;

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

    let compiler = cc::Build::new().opt_level(2).pic(true).get_compiler();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    for number in ["1", "2"] {
        let status = compiler
            .to_command()
            .arg("-shared")
            .arg("-Wl,--build-id")
            .arg(format!("-DNUMBER={number}"))
            .arg("c/plugin.c")
            .arg("-o")
            .arg(out.join(format!("plugin{number}.so")))
            .status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "the plugin was not built"
        );
    }
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
