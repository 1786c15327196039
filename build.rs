//! Sets `cfg(heapray_native)` for all modules and tests where heapray has an unwinder, hooks and timers of its own. On all
//! other systems, and with `--cfg heapray_portable`, only the portable code is used.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CARGO_CFG_HEAPRAY_PORTABLE");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let processors = ["x86_64", "aarch64"];
    let is_native = variable("CARGO_CFG_TARGET_OS") == "linux"
        && processors.contains(&&*variable("CARGO_CFG_TARGET_ARCH"))
        && std::env::var_os("CARGO_CFG_HEAPRAY_PORTABLE").is_none();
    if is_native {
        println!("cargo::rustc-cfg=heapray_native");
    }
}
