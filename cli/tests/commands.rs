//! Tests of the commands' output, and of files that they must not change.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::Read;
use std::process::Stdio;

use serde_json::Value;
use support::{Folder, aggregated, all, bare, err, heapray, leaking, out, run, run_with};

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(bytes));
    })
}

#[test]
fn every_printing_command_prints_the_same_from_a_file_and_from_a_pipe() {
    let folder = Folder::new();
    let file = folder.put("memray-x.bin", &all());
    for command in [
        &["stats"][..],
        &["stats", "--json"],
        &["leaks"],
        &["leaks", "--json", "--full-names"],
        &["table", "--leaks"],
        &["table", "--since", "50ms", "--until", "0.2s"],
        &["tree", "--inverted", "--by-count"],
        &[
            "summary",
            "-s",
            "3",
            "-r",
            "2",
            "--temporary-allocation-threshold",
            "4",
        ],
        &["table", "--json"],
        &["convert", "collapsed", "-o", "-"],
    ] {
        let [from_file, from_pipe] = [&*file, "-"].map(|input| {
            let output = run_with(&[command, &[input]].concat(), &all());
            assert!(output.status.success(), "{command:?}: {}", err(&output));
            assert_eq!(err(&output), "");
            output.stdout
        });
        assert!(!from_file.is_empty());
        assert_eq!(from_file, from_pipe, "{command:?}");
    }
}

#[test]
fn known_call_sites_are_those_of_the_named_file_or_of_the_folders_own() {
    let folder = Folder::new();
    let file = folder.put("leaking.bin", &leaking());
    let rules = b"[[known]]\nfunction = \"leaky::cache::*\"\nreason = \"bounded\"\n";
    let named = folder.put("rules.toml", rules);
    let text = out(&run(&["leaks", "--known", &named, &file]));
    assert!(text.contains("Nothing grows with the work"), "{text}");
    assert!(
        text.contains("Known, and not ranked:\n   bounded: 400.000kB live in 200 blocks"),
        "{text}"
    );

    let in_folder = |arguments: &[&str]| {
        let mut command = heapray();
        out(&command
            .args(arguments)
            .current_dir(folder.root())
            .output()
            .unwrap())
    };
    assert!(in_folder(&["leaks", &file]).contains("\n1. leaky::cache::keep"));
    folder.put("heapray-known.toml", rules);
    assert_eq!(in_folder(&["leaks", &file]), text);

    let wrong = folder.put("wrong.toml", b"[[known]]\nfuntion = \"a\"\n");
    for (path, problem) in [
        (wrong.as_str(), "has the key `funtion`"),
        ("none.toml", "No such file"),
    ] {
        let output = run(&["leaks", "--known", path, &file]);
        assert_eq!(output.status.code(), Some(1));
        let said = err(&output);
        assert!(said.contains(path) && said.contains(problem), "{said}");
    }
    // A command without a capture has no need of it.
    assert!(
        run(&["completions", "--known", "none.toml", "bash"])
            .status
            .success()
    );
}

#[test]
fn leaks_are_named_and_a_capture_that_does_not_tell_is_not_a_failure() {
    let folder = Folder::new();
    let file = folder.put("leaking.bin", &leaking());
    let text = out(&run(&["leaks", &file]));
    assert!(
        text.contains("\n1. leaky::cache::keep  src/cache.rs:20\n   high confidence, "),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "{text}");
    let coloured = out(&run(&["leaks", "--color", "always", &file]));
    assert!(coloured.contains("\u{1b}[31mhigh\u{1b}[0m"), "{coloured}");

    let found = json(&run(&["leaks", "--json", &file]).stdout);
    let leak = &found["candidates"][0];
    assert_eq!(leak["function"], "leaky::cache::keep");
    assert_eq!(leak["stack"][1]["function"], "leaky::main");
    assert_eq!(found.get("unknown"), None);
    let none = json(&run(&["leaks", "--json", "-n", "0", &file]).stdout);
    assert_eq!(none, serde_json::json!({ "candidates": [] }));
    let stats = json(&run(&["stats", "--json", &file]).stdout);
    assert_eq!(&stats["heapray"]["leaks"][0], leak);
    assert!(
        out(&run(&["stats", &file])).contains("\n💧 Probably leaking:\n\t- leaky::cache::keep:")
    );

    let written = folder.name("leaks.txt");
    assert!(run(&["leaks", &file, "-o", &written]).status.success());
    assert_eq!(fs::read_to_string(&written).unwrap(), text);

    // A capture of memray's, whose sums have no times.
    let unpacked = bare(&aggregated(1));
    let at = unpacked.windows(8).rposition(|bytes| bytes == b"heapray\0");
    let untold = folder.put("untold.bin", &unpacked[..at.unwrap()]);
    let output = run(&["leaks", &untold]);
    assert!(output.status.success(), "{}", err(&output));
    assert!(
        out(&output)
            .contains("Whether anything leaks cannot be told.\nThe report does not tell when"),
        "{}",
        out(&output)
    );
    let found = json(&run(&["leaks", "--json", &untold]).stdout);
    assert!(found["unknown"].is_string(), "{found}");
}

#[test]
fn a_page_is_written_beside_the_capture_once_and_again_only_when_forced() {
    let folder = Folder::new();
    let file = folder.put("memray-web.bin", &all());
    let page = folder.path("memray-flamegraph-web.html");
    let output = run(&["flamegraph", "--leaks", "--inverted", "--temporal", &file]);
    assert!(output.status.success(), "{}", err(&output));
    assert!(out(&output).starts_with("Wrote ") && page.exists());
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("data-opens=\"view=live&amp;order=leaf\""));

    fs::write(&page, "mine").unwrap();
    let output = run(&["flamegraph", &file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("-f"), "{}", err(&output));
    assert_eq!(fs::read_to_string(&page).unwrap(), "mine");
    assert!(run(&["flamegraph", "-f", &file]).status.success());
    assert_ne!(fs::read_to_string(&page).unwrap(), "mine");
    assert_eq!(folder.files().len(), 2, "no temporary file stays");
}

#[test]
fn overwritten_files_keep_their_links_and_devices_stay_devices() {
    let folder = Folder::new();
    let file = folder.put("a.bin", &all());
    let real = folder.put("real.csv", b"old");
    let link = folder.path("link.csv");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let link = link.to_str().unwrap();
    assert!(
        run(&["convert", "csv", &file, "-f", "-o", link])
            .status
            .success()
    );
    assert!(fs::symlink_metadata(link).unwrap().is_symlink());
    assert_ne!(fs::read(&real).unwrap(), b"old");
    assert!(
        run(&["convert", "csv", &file, "-o", "/dev/null"])
            .status
            .success()
    );
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn every_format_can_be_converted_to_and_names_the_file() {
    let folder = Folder::new();
    let file = folder.put("memray-x.bin", &all());
    for (format, name) in [
        ("pprof", "memray-pprof-x.pb.gz"),
        ("collapsed", "memray-collapsed-x.folded"),
        ("speedscope", "memray-speedscope-x.speedscope.json"),
        ("svg", "memray-svg-x.svg"),
        ("csv", "memray-csv-x.csv"),
        ("gprof2dot", "memray-gprof2dot-x.gprof2dot.json"),
        ("mprof", "memray-mprof-x.dat"),
        ("memray", "memray-memray-x.bin"),
        ("parquet", "memray-parquet-x.parquet"),
    ] {
        let output = run(&["transform", format, &file, "--json"]);
        assert!(output.status.success(), "{format}: {}", err(&output));
        assert_eq!(json(&output.stdout)["wrote"], folder.name(name));
        assert!(folder.path(name).exists());
    }
}

#[test]
fn a_table_is_whole_and_a_label_needs_a_name() {
    let folder = Folder::new();
    let file = folder.put("x.bin", &all());
    let table =
        |options: &[&str]| run(&[&["convert", "parquet", &file, "-o", "-"], options].concat());
    let output = table(&["--service", "shop", "--row-label", "region=eu"]);
    assert!(output.status.success(), "{}", err(&output));
    let magic = b"PAR1";
    assert!(output.stdout.starts_with(magic) && output.stdout.ends_with(magic));
    for label in ["region", "=eu"] {
        let refused = table(&["--row-label", label]);
        assert_eq!(refused.status.code(), Some(64));
        assert!(err(&refused).contains("KEY=VALUE"), "{}", err(&refused));
    }
}

#[test]
fn a_profile_for_pprof_has_the_requested_labels_and_samples() {
    let folder = Folder::new();
    let file = folder.put("x.bin", &all());
    let profile = |options: &[&str]| {
        let command = [
            "convert",
            "pprof",
            &file,
            "-f",
            "-o",
            &folder.name("x.pb.gz"),
        ];
        let output = run(&[&command, options].concat());
        assert!(output.status.success(), "{}", err(&output));
        let packed = fs::read(folder.path("x.pb.gz")).unwrap();
        let mut bytes = Vec::new();
        let mut unpacked = flate2::read::GzDecoder::new(&packed[..]);
        std::io::Read::read_to_end(&mut unpacked, &mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    for (options, expected) in [
        (&[][..], [false, false, false]),
        (&["--labels", "thread"], [true, false, false]),
        (&["--labels", "allocator,thread"], [true, true, false]),
        (&["--split-threads"], [true, false, false]),
        (&["--limit", "1"], [false, false, true]),
        (&["--limit", "0"], [false, false, false]),
    ] {
        let text = profile(options);
        let has = ["worker", "malloc", "other call sites"].map(|word| text.contains(word));
        assert_eq!(has, expected, "{options:?}");
    }
    for (options, allowed) in [
        (
            ["--labels", "thread,rute"],
            "use one or more of thread,allocator",
        ),
        (["--limit", "many"], "invalid digit"),
    ] {
        let output = run(&[&["convert", "pprof", &file], &options[..]].concat());
        assert_eq!(output.status.code(), Some(64), "{options:?}");
        assert!(err(&output).contains(allowed), "{}", err(&output));
    }
}

#[test]
fn merged_captures_have_the_sum_and_a_diff_finds_what_grew() {
    let folder = Folder::new();
    let small = folder.put("small.bin", &aggregated(1));
    let large = folder.put("large.bin", &aggregated(3));
    let merged = folder.name("merged.bin");
    let output = run(&["merge", &small, &large, "-o", &merged]);
    assert!(output.status.success(), "{}", err(&output));
    let live = |file: &str| {
        let output = run(&["info", "--json", file]);
        json(&output.stdout)["live"]["bytes"].as_u64().unwrap()
    };
    assert_eq!(live(&merged), live(&small) + live(&large));

    let diff = json(&run(&["diff", "--json", &small, &large]).stdout);
    let change = &diff["total"]["live"];
    assert_eq!(change["before"]["bytes"], live(&small));
    assert_eq!(change["after"]["bytes"], live(&large));
    let text = out(&run(&["diff", "--leaks", &small, &large]));
    assert!(
        text.contains("leaky::cache::keep src/cache.rs:20"),
        "{text}"
    );
    assert_eq!(out(&run(&["diff", &small, &small])).lines().count(), 1);
}

#[test]
fn own_crates_are_named_on_the_command_line() {
    let folder = Folder::new();
    let small = folder.put("small.bin", &aggregated(1));
    let large = folder.put("large.bin", &aggregated(3));
    let line = "tokio-1.0.0/src/lib.rs:7";
    let text = |args: &[&str]| {
        out(&run(
            &[&["diff", "--allocated", &small, &large], args].concat()
        ))
    };
    assert!(!text(&[]).contains(line), "{}", text(&[]));
    let owned = text(&["--own", "shop,tok*"]);
    assert!(owned.contains(line), "{owned}");
}

#[test]
fn the_address_of_the_sources_is_one_of_the_web_with_a_file() {
    let folder = Folder::new();
    let file = folder.put("a.bin", &aggregated(1));
    let page = |template: &str| run(&["flamegraph", "--force", "--source-url", template, &file]);
    assert!(page("https://git.example/{file}#L{line}").status.success());
    for wrong in ["javascript:alert({file})", "https://git.example/"] {
        let output = page(wrong);
        assert_eq!(output.status.code(), Some(64), "{wrong}");
        assert!(
            err(&output).contains("address of the web"),
            "{}",
            err(&output)
        );
    }
}

#[test]
fn an_aggregated_capture_has_no_events_and_says_so() {
    let folder = Folder::new();
    let file = folder.put("a.bin", &aggregated(1));
    for option in [
        &["--since", "1s"][..],
        &["--temporary-allocation-threshold", "3"],
    ] {
        let output = run(&[&["table", &file], option].concat());
        assert_eq!(output.status.code(), Some(64));
        assert!(err(&output).contains("aggregated"), "{}", err(&output));
    }
}

#[test]
fn temporary_allocations_are_those_of_the_whole_capture() {
    let folder = Folder::new();
    let file = folder.put("a.bin", &all());
    let output = run(&["table", "--temporary-allocations", "--since", "1ms", &file]);
    assert_eq!(output.status.code(), Some(64));
    assert!(
        err(&output).contains("over the whole capture"),
        "{}",
        err(&output)
    );
}

#[test]
fn filters_and_folds_keep_the_selected_frames() {
    let folder = Folder::new();
    let file = folder.put("a.bin", &bare(&all()));
    let table = |options: &[&str]| out(&run(&[&["table", "--allocated", &file], options].concat()));
    assert!(table(&[]).contains("main.rs") && table(&[]).contains("cache.rs"));
    assert!(!table(&["--matching", "CACHE"]).contains("main.rs:3"));
    assert!(!table(&["--package", "tokio"]).contains("cache.rs"));
    assert!(table(&["--split-threads", "--thread", "worker"]).contains("worker"));
    let text = out(&run(&["tree", "--allocated", "--fold", "packages", &file]));
    assert!(
        text.contains("tokio") && !text.contains("<script>"),
        "{text}"
    );
}

#[test]
fn colours_are_for_terminals_or_on_request() {
    let folder = Folder::new();
    let file = folder.put("a.bin", &all());
    let escapes =
        |options: &[&str]| out(&run(&[&["tree", &file], options].concat())).contains('\x1b');
    assert!(!escapes(&[]));
    assert!(escapes(&["--color", "always"]));
    assert!(!escapes(&["--color", "never"]));
}

#[test]
fn a_reader_that_closes_the_pipe_is_not_a_failure() {
    let folder = Folder::new();
    let file = folder.put("a.bin", &all());
    for command in [
        &["stats"][..],
        &["table"],
        &["convert", "json", "-o", "-"],
        &["info"],
    ] {
        let mut child = heapray()
            .args(command)
            .arg(&file)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert!(child.wait().unwrap().success(), "{command:?}");
        assert_eq!(said, "", "{command:?}");
    }
}

#[test]
fn help_names_every_exit_code_and_nonsense_is_refused_with_64() {
    let help = out(&run(&["--help"]));
    for code in ["0 ", "1 ", "2 ", "64 "] {
        assert!(
            help.lines().any(|line| line.trim_start().starts_with(code)),
            "{code}: {help}"
        );
    }
    for nonsense in [
        &["stats"][..],
        &["nothing"],
        &["convert", "xls", "x"],
        &["table", "--leaks", "--allocated", "x"],
        &["table", "--allocator", "free", "x"],
        &["merge", "one"],
        &["fetch", "ftp://x"],
    ] {
        let output = run(nonsense);
        assert_eq!(
            output.status.code(),
            Some(64),
            "{nonsense:?}: {}",
            err(&output)
        );
    }
    assert_eq!(run(&["stats", "/nowhere/x.bin"]).status.code(), Some(1));
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(
            out(&run(&["completions", shell])).contains("flamegraph"),
            "{shell}"
        );
    }
    assert!(out(&run(&["man"])).contains(".TH heapray 1"));
    let folder = Folder::new();
    let output = run(&["man", "--all", folder.root().to_str().unwrap()]);
    assert!(output.status.success(), "{}", err(&output));
    let pages = folder.files();
    assert!(
        pages.contains(&"heapray.1".into()) && pages.contains(&"heapray-stats.1".into()),
        "{pages:?}"
    );
}
