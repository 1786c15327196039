//! The size that heapray adds to a program: a small axum service without it, with it, and with it but without Swagger UI.

use std::path::Path;
use std::process::Command;

use heapray_bench_workloads::Result;

use super::mib;

/// Prints the figures.
pub(crate) fn section() -> Result<()> {
    println!("\n## Size of a release binary, stripped\n");
    let without = size("without", &[])?;
    println!("- a small axum service: {}", mib(without));
    for (title, features) in [
        ("with heapray", ["--features", "swagger-ui"].as_slice()),
        ("without Swagger UI", &[]),
    ] {
        println!(
            "- {title}: + {}",
            mib(size("with", features)?.saturating_sub(without))
        );
    }
    Ok(())
}

fn size(example: &str, features: &[&str]) -> Result<u64> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args([
            "build",
            "--release",
            "--quiet",
            "--package",
            "heapray-bench",
            "--example",
            example,
        ])
        .args(features)
        .status()?;
    if !built.success() {
        return Err(format!("the example {example} could not be built").into());
    }
    let folder = std::env::current_exe()?;
    let built = folder
        .parent()
        .unwrap_or(Path::new("."))
        .join("examples")
        .join(example);
    let stripped =
        std::env::temp_dir().join(format!("heapray-bench-{example}-{}", std::process::id()));
    let strip = Command::new("strip")
        .arg("-o")
        .arg(&stripped)
        .arg(&built)
        .status();
    let size = match strip {
        Ok(status) if status.success() => std::fs::metadata(&stripped)?.len(),
        _ => return Err("strip is not installed (apt-get install binutils)".into()),
    };
    std::fs::remove_file(&stripped)?;
    Ok(size)
}
