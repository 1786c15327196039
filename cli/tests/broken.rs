//! Tests every command on every kind of broken file: it prints one line with the problem and its position, exits with 2,
//! does not panic, and leaves nothing behind.
#![allow(clippy::unwrap_used)]

mod support;

use support::{Folder, aggregated, all, bare, err, heapray, out};

/// The commands' arguments. `FILE` stands for the capture.
const COMMANDS: [&[&str]; 12] = [
    &["flamegraph", "FILE"],
    &["flamegraph", "--temporal", "FILE"],
    &["stats", "FILE"],
    &["table", "FILE"],
    &["tree", "FILE"],
    &["summary", "FILE"],
    &["diff", "FILE", "GOOD"],
    &["diff", "GOOD", "FILE"],
    &["merge", "GOOD", "FILE"],
    &["convert", "csv", "FILE"],
    &["info", "FILE"],
    &["table", "--since", "10ms", "FILE"],
];

/// Returns files that are refused: name, bytes, and a text that must be in the message.
fn refused() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let whole = bare(&all());
    let version = |number: u8| {
        let mut bytes = whole.clone();
        bytes[7] = number;
        bytes
    };
    let mut kind = whole.clone();
    kind[16] = 9;
    let mut packed = all();
    packed.truncate(12);
    vec![
        ("empty", Vec::new(), "not a memray capture"),
        ("text", b"hello, world\n".to_vec(), "not a memray capture"),
        ("zeros", vec![0; 100_000], "not a memray capture"),
        ("magic-only", whole[..7].to_vec(), "not a memray capture"),
        (
            "half-a-header",
            whole[..40].to_vec(),
            "bad capture header at byte ",
        ),
        ("version-10", version(10), "version 10 is not supported"),
        ("version-99", version(99), "version 99 is not supported"),
        ("kind-9", kind, "bad capture header at byte "),
        (
            "cut-lz4",
            packed,
            "cut short before the end of its first packed block",
        ),
    ]
}

/// Returns files that are read as far as possible, with a warning.
fn partial() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let whole = bare(&all());
    let half = whole.len() / 2;
    let mut damaged = whole[..half].to_vec();
    damaged.extend([0xff; 40]);
    let sums = bare(&aggregated(1));
    vec![
        ("cut", whole[..half].to_vec(), "at byte "),
        ("damaged", damaged, "at byte "),
        ("cut-sums", sums[..sums.len() / 3].to_vec(), "at byte "),
    ]
}

#[test]
fn every_command_refuses_every_file_that_is_not_a_capture() {
    for (name, bytes, expected) in refused() {
        for command in COMMANDS {
            let folder = Folder::new();
            folder.put(name, &bytes);
            folder.put("good.bin", &aggregated(1));
            let output = in_folder(&folder, command, name);
            let message = err(&output);
            let context = format!("{command:?} on {name}: {message}{}", out(&output));
            assert_eq!(output.status.code(), Some(2), "{context}");
            assert!(
                message.contains(name) && message.contains(expected),
                "{context}"
            );
            assert_eq!(message.lines().count(), 1, "{context}");
            assert_eq!(folder.files().len(), 2, "{context}: {:?}", folder.files());
        }
    }
}

#[test]
fn every_command_shows_the_complete_part_of_a_capture_that_is_cut_short() {
    for (name, bytes, expected) in partial() {
        for command in COMMANDS {
            if name == "cut-sums" && command.contains(&"--since") {
                continue; // refused, because the file has no events
            }
            let folder = Folder::new();
            folder.put(name, &bytes);
            folder.put("good.bin", &aggregated(1));
            let output = in_folder(&folder, command, name);
            let message = err(&output);
            let context = format!("{command:?} on {name}: {message}");
            assert_eq!(output.status.code(), Some(2), "{context}");
            assert!(
                message.contains(name) && message.contains(expected),
                "{context}"
            );
            let complaints = message.lines().filter(|line| line.contains(expected));
            assert_eq!(complaints.count(), 1, "{context}");
            let written = folder.files().len() > 2;
            assert!(written || !out(&output).is_empty(), "{context}");
        }
    }
}

#[test]
fn a_cut_anywhere_does_not_panic() {
    /// Bytes at the end that only say where the sums are. Without them, nothing is missing.
    const SIGNPOST: usize = 40;
    let mut packed = all();
    packed.truncate(packed.len() - SIGNPOST);
    for whole in [bare(&all()), bare(&aggregated(1)), packed] {
        for end in (0..whole.len()).step_by(whole.len() / 40 + 1) {
            let output = support::run_with(&["stats", "-"], &whole[..end]);
            assert_eq!(output.status.code(), Some(2), "{end}: {}", err(&output));
        }
    }
}

#[test]
fn with_json_a_failure_is_json_too() {
    let output = support::run_with(&["stats", "--json", "-"], b"no capture");
    assert_eq!(output.status.code(), Some(2));
    let value: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(value["exit_code"], 2);
    assert!(value["error"].as_str().unwrap().contains("standard input"));
}

fn in_folder(folder: &Folder, command: &[&str], file: &str) -> std::process::Output {
    let arguments = command.iter().map(|&argument| match argument {
        "FILE" => file,
        "GOOD" => "good.bin",
        other => other,
    });
    heapray()
        .current_dir(folder.root())
        .args(arguments)
        .output()
        .unwrap()
}
