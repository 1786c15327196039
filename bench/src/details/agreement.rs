//! Random addresses, looked up by heapray and by llvm-symbolizer: do both say the same?

use std::collections::BTreeMap;
use std::fs::File;
use std::process::Command;

use heapray::symbolize::{NameMode, ReportOptions, resolve};
use heapray_bench_workloads::Result;

use super::symbols::{addresses, input, table};

/// A frame: function, file and line.
type Shown = (String, String, u32);

/// Examples of each difference that are printed.
const EXAMPLES: usize = 3;

/// Compares `count` addresses of each file.
pub(crate) fn section(count: &str, files: &[&str]) -> Result<()> {
    for path in files {
        let addresses = addresses(path, count.parse()?)?;
        let mut differences: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let (mut same, mut inlined) = (0, 0);
        let ours = ours(path, &addresses)?;
        let theirs = theirs(path, &addresses)?;
        if theirs.len() != ours.len() {
            return Err(format!(
                "llvm-symbolizer answers {} of {} addresses",
                theirs.len(),
                ours.len()
            )
            .into());
        }
        for ((address, ours), theirs) in addresses.iter().zip(&ours).zip(&theirs) {
            match difference(ours, theirs) {
                None => {
                    same += 1;
                    inlined += usize::from(ours.len() > 1);
                }
                Some(what) => {
                    let text = format!("{address:#x}\n  heapray {ours:?}\n  llvm    {theirs:?}");
                    differences.entry(what).or_default().push(text);
                }
            }
        }
        println!(
            "{path}: {same} of {count} addresses are the same, {inlined} of them with inlined calls"
        );
        for (what, texts) in differences {
            println!("- {what}: {}", texts.len());
            for text in texts.iter().take(EXAMPLES) {
                println!("  {text}");
            }
        }
    }
    Ok(())
}

/// Returns how the frames of an address differ.
fn difference(ours: &[Shown], theirs: &[Shown]) -> Option<&'static str> {
    if ours == theirs {
        return None;
    }
    let has_line = |frames: &[Shown]| frames.iter().any(|(_, _, line)| *line > 0);
    Some(match (has_line(ours), has_line(theirs)) {
        (false, false) => "another name of code without lines",
        (true, false) => "only heapray has a line",
        (false, true) => "only llvm-symbolizer has a line",
        _ if ours.len() != theirs.len() => "another number of frames",
        _ if ours
            .iter()
            .zip(theirs)
            .any(|(ours, theirs)| ours.2 != theirs.2) =>
        {
            "another line"
        }
        _ if ours
            .iter()
            .zip(theirs)
            .any(|(ours, theirs)| ours.1 != theirs.1) =>
        {
            "another file"
        }
        _ => "another function",
    })
}

fn ours(path: &str, addresses: &[u64]) -> Result<Vec<Vec<Shown>>> {
    let table = table(path, addresses)?;
    let options = ReportOptions::new().full(true).names(NameMode::Full);
    let resolved = resolve(&table, &options);
    let report = &resolved.report;
    let module = table.modules.first().ok_or("there is no module")?;
    let module = module.path.to_string_lossy();
    let frame = |id: heapray_report::model::FrameId| {
        let frame = report
            .frames
            .get(id.0 as usize)
            .copied()
            .unwrap_or_default();
        let text = |id| report.strings.get(id).to_owned();
        let (function, file) = (text(frame.function), text(frame.file));
        // What is not known: the program itself, and `program+0x1234` in it. There: nothing, and `??`.
        match (file == module, function.contains("+0x")) {
            (true, true) => ("??".to_owned(), String::new(), 0),
            (true, false) => (function, String::new(), 0),
            (false, _) => (function, file, frame.line),
        }
    };
    let stacks = table.sites.iter().map(|site| resolved.stack_of(site.node));
    Ok(stacks
        .map(|stack| report.stacks.leaf_to_root(stack).map(frame).collect())
        .collect())
}

fn theirs(path: &str, addresses: &[u64]) -> Result<Vec<Vec<Shown>>> {
    let input = input(addresses)?;
    let output = Command::new("llvm-symbolizer")
        .args([
            "--functions=linkage",
            "--inlining",
            "--no-demangle",
            "--obj",
            path,
        ])
        .stdin(File::open(&input)?)
        .output()?;
    std::fs::remove_file(input)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let frames = text.split_terminator("\n\n").map(|block| {
        let lines: Vec<&str> = block.lines().collect();
        let frame = |pair: &[&str]| {
            let name = format!("{:#}", rustc_demangle::demangle(pair[0]));
            let mut place = pair[1].rsplitn(3, ':');
            let line = place.nth(1).and_then(|line| line.parse().ok());
            // Where there is no line, it takes the object file of the nearest symbol.
            let file = place.next().filter(|file| file.contains('/'));
            (name, file.unwrap_or_default().to_owned(), line.unwrap_or(0))
        };
        lines.chunks_exact(2).map(frame).collect()
    });
    Ok(frames.collect())
}
