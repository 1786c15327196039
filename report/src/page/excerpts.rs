//! The text of source lines, where the sources are at hand.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use crate::Report;
use crate::model::FrameId;
use crate::sources::below;
use crate::views::{Kind, Origins};

/// Lines before and after the one that is shown.
const AROUND: u32 = 2;
/// The most bytes of a source file that is read.
const LONGEST_FILE: u64 = 2 << 20;
/// The most characters of a line that are shown.
const LONGEST_LINE: usize = 160;
/// The most frames that have excerpts, and the most bytes of all.
const MOST_FRAMES: usize = 2000;
const MOST_BYTES: usize = 256 << 10;
/// Names of source files end like this. Nothing else is read, whatever a report says.
const ENDINGS: [&str; 9] = ["rs", "c", "cc", "cpp", "cxx", "h", "hpp", "S", "py"];

/// Where source files are looked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct SourceFiles<'a> {
    /// The directory that has the sources. It stands for the one in which the program was compiled
    /// ([`About::source_root`](crate::model::About::source_root)).
    pub root: &'a str,
    /// When the program was written, if the report is of a program of this machine. A file that was written later is not
    /// shown: its lines may be others than those that were compiled. Without it nothing outside of `root` is read.
    pub until: Option<SystemTime>,
    /// Who is asked for files that are not there.
    pub server: Option<&'a dyn SourceServer>,
}

/// Something that has the sources of builds.
pub trait SourceServer: Debug {
    /// Returns the text of a source file. `path`: where it was when it was compiled, absolute. `build_id`: that of the program
    /// or library that was built of it.
    fn source(&self, build_id: &str, path: &str) -> Option<String>;
}

/// Some lines of a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Excerpt {
    /// The frame whose line is in it.
    pub(super) frame: FrameId,
    /// The number of its first line, from 1.
    pub(super) first: u32,
    pub(super) lines: Vec<String>,
}

impl SourceFiles<'_> {
    /// Returns excerpts around the lines of `report`'s own code, as far as their files can be read.
    pub(super) fn excerpts(&self, report: &Report, origins: &Origins) -> Vec<Excerpt> {
        let mut by_file: BTreeMap<&str, Vec<(FrameId, u32)>> = BTreeMap::new();
        let frames = (0_u32..).zip(&report.frames);
        let own = frames.filter(|&(number, frame)| {
            frame.line > 0 && origins.kind(FrameId(number)) == Kind::Own
        });
        for (number, frame) in own.take(MOST_FRAMES) {
            let file = by_file.entry(report.strings.get(frame.file)).or_default();
            file.push((FrameId(number), frame.line));
        }
        let (mut excerpts, mut bytes) = (Vec::new(), 0);
        for (file, frames) in by_file {
            let root = &*report.about.source_root;
            let ask = || self.ask(file, root, build_id(report, frames[0].0)?);
            let Some(text) = self.read(file, root).or_else(ask) else {
                continue;
            };
            let lines: HashMap<u32, &str> = (1..).zip(text.lines()).collect();
            for (frame, line) in frames {
                if !lines.contains_key(&line) {
                    continue;
                }
                let first = line.saturating_sub(AROUND).max(1);
                let lines = (first..=line.saturating_add(AROUND)).map_while(|at| lines.get(&at));
                let lines: Vec<String> = lines.map(|line| shown(line)).collect();
                bytes += lines.iter().map(String::len).sum::<usize>();
                if bytes > MOST_BYTES {
                    return excerpts;
                }
                excerpts.push(Excerpt {
                    frame,
                    first,
                    lines,
                });
            }
        }
        excerpts
    }

    /// Reads `file` of a program that was compiled in `compiled`.
    fn read(&self, file: &str, compiled: &str) -> Option<String> {
        let path = Path::new(file);
        if !is_source(path) {
            return None;
        }
        let inside = match path.is_absolute() {
            true => below(file, compiled),
            false => Some(file),
        };
        let path: PathBuf = match inside {
            Some(_) if self.root.is_empty() => return None,
            Some(inside) => Path::new(self.root).join(inside),
            // A path dependency beside the workspace.
            None if self.until.is_some() && self.root == compiled => path.into(),
            None => return None,
        };
        // Before it is opened: to open a pipe waits for its other end.
        let about = path.metadata().ok()?;
        let is_later = |until| about.modified().map_or(true, |at| at > until);
        if !about.is_file() || about.len() > LONGEST_FILE || self.until.is_some_and(is_later) {
            return None;
        }
        let mut text = String::new();
        let file = File::open(path).ok()?;
        file.take(LONGEST_FILE).read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Asks the server for `file` of a build that was compiled in `compiled`.
    fn ask(&self, file: &str, compiled: &str, build_id: &str) -> Option<String> {
        let path = Path::new(compiled).join(file);
        if !path.is_absolute() || !is_source(&path) {
            return None;
        }
        let text = self.server?.source(build_id, path.to_str()?)?;
        (text.len() as u64 <= LONGEST_FILE).then_some(text)
    }
}

/// Returns whether `path` is that of a source file, and leads nowhere else.
fn is_source(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.contains(&ending))
        && !path.components().any(|part| part == Component::ParentDir)
}

/// Returns the build id of the module whose code `frame` is, if it has one.
fn build_id(report: &Report, frame: FrameId) -> Option<&str> {
    let module = report.places.get(frame.0 as usize)?.module?;
    let build_id = &report.modules.get(module as usize)?.build_id;
    (!build_id.is_empty()).then_some(build_id)
}

/// Returns `line` with blanks for tabs, and cut if it is long.
fn shown(line: &str) -> String {
    let mut shown = line.replace('\t', "    ");
    shown.retain(|c| !c.is_control());
    if let Some((cut, _)) = shown.char_indices().nth(LONGEST_LINE) {
        shown.truncate(cut);
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{About, Module, Place};

    /// Returns a report with a frame at line 3 of `file`.
    fn report(file: &str) -> Report {
        let mut report = Report {
            about: About {
                own_crates: vec!["shop".into()],
                source_root: "/build".into(),
                ..About::default()
            },
            ..Report::default()
        };
        report.add_frame("shop::load", file, 3);
        report
    }

    #[test]
    fn only_sources_that_are_not_newer_than_the_program_are_shown() {
        let dir = std::env::temp_dir().join(format!("heapray-excerpt-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let text = "one\ntwo\n\tthree\nfour\nfive\nsix\n";
        for name in ["lib.rs", "secret", "key.pem"] {
            std::fs::write(dir.join(name), text).unwrap();
        }
        let root = dir.to_str().unwrap();
        let found = |file: &str, files: SourceFiles<'_>| {
            let report = report(file);
            files.excerpts(&report, &Origins::of(&report))
        };
        let files = SourceFiles {
            root,
            ..SourceFiles::default()
        };
        let shown = found("lib.rs", files);
        assert_eq!(shown[0].lines, ["one", "two", "    three", "four", "five"]);
        assert_eq!((shown.len(), shown[0].first), (1, 1));
        // An absolute path that is not below the directory of the compilation is another machine's.
        assert_eq!(found(&format!("{root}/lib.rs"), files), []);
        assert_eq!(found("/build/lib.rs", files), shown);
        for other in ["secret", "key.pem", "missing.rs", ".", "/build/../lib.rs"] {
            assert_eq!(found(other, files), [], "{other}");
        }
        // A hostile capture may name any directory as that of its compilation.
        let mut hostile = report(&format!("{root}/lib.rs"));
        hostile.about.source_root = "/build".into();
        let build = SourceFiles {
            root: "/build",
            ..SourceFiles::default()
        };
        assert_eq!(build.excerpts(&hostile, &Origins::of(&hostile)), []);
        let until = Some(SystemTime::UNIX_EPOCH);
        assert_eq!(found("lib.rs", SourceFiles { until, ..files }), []);
        assert_eq!(found("lib.rs", SourceFiles::default()), []);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    /// A server that has one file of one build.
    #[derive(Debug)]
    struct Server;

    impl SourceServer for Server {
        fn source(&self, build_id: &str, path: &str) -> Option<String> {
            let text = || "one\ntwo\nthree of the server\n".to_owned();
            ((build_id, path) == ("c0ffee", "/build/src/lib.rs")).then(text)
        }
    }

    #[test]
    fn a_server_is_asked_for_sources_of_the_build_that_are_not_here() {
        let found = |file: &str, build_id: &str| {
            let mut report = report(file);
            report.modules.push(Module {
                build_id: build_id.into(),
                ..Module::default()
            });
            report.places.resize_with(report.frames.len(), || Place {
                module: Some(0),
                ..Place::default()
            });
            let files = SourceFiles {
                server: Some(&Server),
                ..SourceFiles::default()
            };
            files.excerpts(&report, &Origins::of(&report))
        };
        let shown = found("src/lib.rs", "c0ffee");
        assert_eq!(shown[0].lines, ["one", "two", "three of the server"]);
        assert_eq!(found("/build/src/lib.rs", "c0ffee"), shown);
        assert_eq!(found("src/lib.rs", "other"), []);
        assert_eq!(found("src/lib.rs", ""), []);
        assert_eq!(found("/build/src/../src/lib.rs", "c0ffee"), []);
    }

    #[test]
    fn long_lines_are_cut_and_control_characters_left_out() {
        assert_eq!(shown("a\u{1b}[31mb"), "a[31mb");
        let long = shown(&"ä".repeat(1000));
        assert_eq!(long.chars().count(), LONGEST_LINE + 1);
    }
}
