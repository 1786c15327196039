//! The descendants of a process: from `/proc/<pid>/task/<tid>/children`, or, if the kernel has no such file, from the parent
//! of every process.

use std::collections::HashMap;
use std::fs;

use crate::os::process::stat_fields;

/// Largest number of descendants that are read, for a process that starts too many.
const MOST: usize = 10_000;

/// Returns the numbers of all processes below `pid`, parents before their children. A process that begins or ends meanwhile
/// may be missing.
pub(super) fn of(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    if !by_files(pid, &mut found) {
        return by_parents(pid);
    }
    let mut next = 0;
    while next < found.len() && found.len() < MOST {
        by_files(found[next], &mut found);
        next += 1;
    }
    found
}

/// Adds the children of each of the process's threads. Returns whether the kernel has the files.
fn by_files(pid: u32, found: &mut Vec<u32>) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        // The process has ended.
        return true;
    };
    let mut complete = true;
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(children) => {
                let children = children.split_ascii_whitespace();
                found.extend(children.filter_map(|child| child.parse::<u32>().ok()));
            }
            // The directory of a thread that has ended is gone, too.
            Err(_) => complete &= !thread.path().join("stat").exists(),
        }
    }
    complete
}

fn by_parents(pid: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let process = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let stat = || fs::read_to_string(entry.path().join("stat")).ok();
        if let Some(process) = process
            && let Some(parent) = stat().as_deref().and_then(parent)
        {
            children.entry(parent).or_default().push(process);
        }
    }
    let mut found = children.remove(&pid).unwrap_or_default();
    let mut next = 0;
    while next < found.len() && found.len() < MOST {
        found.extend(children.remove(&found[next]).unwrap_or_default());
        next += 1;
    }
    found
}

/// Returns the parent in a `stat` file: `number (name) state parent …`.
fn parent(stat: &str) -> Option<u32> {
    stat_fields(stat)?.nth(1)?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn both_ways_find_children_and_their_children() {
        // The shell waits for its children, and prints a line once both exist.
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 600 & sh -c 'sleep 600 & echo; wait' & wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut ready).unwrap();
        let (found, mut by_parents) = (of(shell.id()), by_parents(shell.id()));
        let mut sorted = found.clone();
        sorted.sort_unstable();
        by_parents.sort_unstable();
        assert_eq!(sorted, by_parents);
        assert_eq!(found.len(), 3, "two children, one of a child");
        assert!(of(std::process::id()).contains(&found[2]));
        // The shell's own `kill`: a system may lack the program of that name. A shell whose children have ended may have
        // ended too.
        let script = "for pid; do kill \"$pid\"; done";
        let mut kill = Command::new("sh");
        kill.args(["-c", script, "sh"])
            .args(found.iter().map(u32::to_string));
        kill.arg(shell.id().to_string()).stderr(Stdio::null());
        kill.status().unwrap();
        shell.wait().unwrap();
        assert!(of(shell.id()).is_empty());
    }

    #[test]
    fn a_name_may_hold_anything() {
        assert_eq!(parent("7 (a) R 1) S 42 7 7"), Some(42));
        assert_eq!(parent("7 (a"), None);
    }
}
