//! What heapray adds to a service that embeds it: crates, CPU time of a clean release build, and bytes of the program.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use heapray_bench_workloads::{Result, children_cpu};

use super::mib;

/// The service that is built, in `bench/embedding`.
const PACKAGE: &str = "heapray-bench-embedding";

/// Features of the service: without heapray first.
const BUILDS: [(&str, &str); 3] = [
    ("without heapray", ""),
    ("with its default features", "all"),
    ("with the endpoints alone (`features = [\"http\"]`)", "http"),
];

/// Prints the figures. Each build begins with an empty folder, which takes minutes.
pub(crate) fn section() -> Result<()> {
    println!("\n## A small axum service, built for release\n");
    println!("| | crates | CPU time | program, stripped |");
    println!("|---|---|---|---|");
    let mut without = None;
    for (title, features) in BUILDS {
        let crates = crates(features)?;
        let (time, size) = build(features)?;
        let plus = match &without {
            None => "",
            Some(_) => "+ ",
        };
        let (crates_0, time_0, size_0) = without.unwrap_or_default();
        println!(
            "| {title} | {plus}{} | {plus}{:.0} s | {plus}{} |",
            crates - crates_0,
            time.saturating_sub(time_0).as_secs_f64(),
            mib(size.saturating_sub(size_0)),
        );
        without.get_or_insert((crates, time, size));
    }
    Ok(())
}

/// Returns the number of crates that the service is built from, itself and build scripts' crates included.
fn crates(features: &str) -> Result<usize> {
    let listed = cargo()
        .args(["tree", "--package", PACKAGE, "--features", features])
        .args(["--edges", "normal,build", "--prefix", "none"])
        .args(["--format", "{p}"])
        .output()?;
    if !listed.status.success() {
        return Err(String::from_utf8_lossy(&listed.stderr).into());
    }
    let listed = String::from_utf8(listed.stdout)?;
    let packages = listed.lines().map(|line| line.split(" (").next());
    Ok(packages.collect::<BTreeSet<_>>().len())
}

/// Builds the service in an empty folder. Returns the CPU time of the build and the size of the stripped program.
fn build(features: &str) -> Result<(Duration, u64)> {
    let folder = std::env::temp_dir().join(format!("heapray-bench-size-{}", std::process::id()));
    let before = children_cpu();
    let built = cargo()
        .args(["build", "--release", "--quiet", "--package", PACKAGE])
        .args(["--features", features, "--target-dir"])
        .arg(&folder)
        .env_remove("RUSTFLAGS")
        .status()?;
    let time = children_cpu() - before;
    if !built.success() {
        return Err("the service could not be built".into());
    }
    let size = stripped_size(&folder.join("release").join(PACKAGE));
    std::fs::remove_dir_all(&folder)?;
    Ok((time, size?))
}

fn stripped_size(program: &Path) -> Result<u64> {
    let status = Command::new("strip").arg(program).status();
    match status {
        Ok(status) if status.success() => Ok(std::fs::metadata(program)?.len()),
        _ => Err("strip is not installed (apt-get install binutils)".into()),
    }
}

fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(cargo);
    cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    cargo
}

#[cfg(test)]
mod tests {
    use super::crates;

    #[test]
    fn the_readme_says_how_many_crates_heapray_adds() {
        let without = crates("").unwrap();
        let [all, http] = ["all", "http"].map(|features| crates(features).unwrap() - without);
        let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
        let readme = std::fs::read_to_string(readme).unwrap();
        let row = readme.lines().find(|line| line.starts_with("| embedded"));
        let expected = format!("| embedded in a small axum service | {all} crates");
        let row = row.unwrap();
        assert!(row.starts_with(&expected), "{row}, not {expected}");
        let expected = format!("the endpoints alone: {http} crates");
        assert!(row.contains(&expected), "{row}, not {expected}");
    }
}
