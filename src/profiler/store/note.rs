//! The note beside a kept report: with it, a list of reports can be made without reading them.
//!
//! ```text
//! heapray report 1              the first line, and the format's number
//! session 3                     one fact a line: its name, a space, its value
//! live 18400 24000168           blocks, bytes
//! largest.at 12 24000000 7      the line with the most live bytes: blocks, bytes, line
//! largest.function app::load
//! leak.at 12 24000000 7         the line that probably leaks
//! leak.growth 48000000 high     bytes an hour, confidence
//! stored s3://bucket/shop/7.bin the address of its copy in an object storage
//! end                           the last line: without it, the note was cut short and is ignored
//! ```

use std::collections::HashMap;
use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use heapray_report::model::Tally;
use heapray_report::views::Confidence;

use crate::flight_recorder::TriggerKind;

/// Most bytes that a note may have; names are cut so that it has fewer.
pub(super) const LONGEST: u64 = 16 << 10;
const LONGEST_NAME: usize = 2_000;

/// Facts about a finished session and its report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) session: u64,
    pub(crate) pid: u32,
    /// The process's life ([`life`](super::life)): another process may have the same pid. 0 if it is not known.
    pub(crate) life: u64,
    /// The machine or container that it ran in; empty if that is not known.
    pub(crate) host: String,
    /// To the millisecond.
    pub(crate) started: SystemTime,
    /// To the millisecond.
    pub(crate) ended: SystemTime,
    /// The report's length.
    pub(crate) len: u64,
    /// Its checksum.
    pub(crate) hash: u64,
    pub(crate) events: u64,
    pub(crate) allocated: Tally,
    pub(crate) live: Tally,
    pub(crate) high_water: Tally,
    pub(crate) lost_events: u64,
    /// The line with the most live bytes.
    pub(crate) largest: Option<Line>,
    /// The line that most probably leaks.
    pub(crate) leak: Option<ProbableLeak>,
    /// Why it was written, if nobody asked for it.
    pub(crate) trigger: Option<Triggered>,
    /// The address of its copy in an object storage.
    pub(crate) stored: Option<String>,
}

/// Why a report was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Triggered {
    pub(crate) kind: TriggerKind,
    pub(crate) reason: String,
    /// Whether the session ended with it.
    pub(crate) at_end: bool,
}

/// A line of code, and what of its allocations is live.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Line {
    pub(crate) function: String,
    pub(crate) file: String,
    /// 0 if it is not known.
    pub(crate) line: u32,
    pub(crate) live: Tally,
}

/// A line that probably leaks.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct ProbableLeak {
    pub(crate) line: Line,
    pub(crate) growth_bytes_per_hour: u64,
    pub(crate) confidence: Confidence,
}

const HEAD: &str = "heapray report 1";
const TAIL: &str = "end";

impl Note {
    /// Returns the note as text.
    pub(super) fn write(&self) -> String {
        let mut text = format!("{HEAD}\n");
        let mut fact = |name: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name} {value}");
        };
        fact("session", &self.session.to_string());
        fact("pid", &self.pid.to_string());
        fact("life", &self.life.to_string());
        if !self.host.is_empty() {
            fact("host", &one_line(&self.host));
        }
        fact("started", &millis(self.started).to_string());
        fact("ended", &millis(self.ended).to_string());
        fact("report", &format!("{} {}", self.len, self.hash));
        fact("events", &self.events.to_string());
        for (name, tally) in [
            ("allocated", self.allocated),
            ("live", self.live),
            ("high_water", self.high_water),
        ] {
            fact(name, &format!("{} {}", tally.count, tally.bytes));
        }
        fact("lost", &self.lost_events.to_string());
        let leak = self.leak.as_ref();
        let lines = [
            ("largest", self.largest.as_ref()),
            ("leak", leak.map(|leak| &leak.line)),
        ];
        for (name, line) in lines {
            let Some(Line {
                function,
                file,
                line,
                live,
            }) = line
            else {
                continue;
            };
            fact(
                &format!("{name}.at"),
                &format!("{} {} {line}", live.count, live.bytes),
            );
            fact(&format!("{name}.function"), &one_line(function));
            fact(&format!("{name}.file"), &one_line(file));
        }
        if let Some(leak) = leak {
            let growth = format!("{} {}", leak.growth_bytes_per_hour, leak.confidence.name());
            fact("leak.growth", &growth);
        }
        if let Some(trigger) = &self.trigger {
            let end = if trigger.at_end { " end" } else { "" };
            fact("trigger", &format!("{}{end}", trigger.kind.name()));
            fact("trigger.reason", &one_line(&trigger.reason));
        }
        if let Some(stored) = &self.stored {
            fact("stored", &one_line(stored));
        }
        text.push_str(TAIL);
        text.push('\n');
        text
    }

    /// Reads a note; `None` if it is not whole.
    pub(super) fn read(text: &str) -> Option<Note> {
        let mut lines = text.strip_suffix("\nend\n")?.lines();
        if lines.next() != Some(HEAD) {
            return None;
        }
        let facts = Facts(lines.filter_map(|line| line.split_once(' ')).collect());
        let [len, hash] = facts.numbers("report")?;
        let leak = facts.growth("leak.growth").zip(facts.line("leak"));
        let leak = leak.map(|((growth_bytes_per_hour, confidence), line)| ProbableLeak {
            line,
            growth_bytes_per_hour,
            confidence,
        });
        let trigger = facts.0.get("trigger").and_then(|words| {
            let (name, end) = words.split_once(' ').unwrap_or((words, ""));
            Some(Triggered {
                kind: TriggerKind::parse(name)?,
                reason: facts.text("trigger.reason"),
                at_end: end == "end",
            })
        });
        Some(Note {
            session: facts.number("session")?,
            pid: facts.number("pid")?.try_into().ok()?,
            life: facts.number("life").unwrap_or_default(),
            host: facts.text("host"),
            started: facts.moment("started")?,
            ended: facts.moment("ended")?,
            len,
            hash,
            events: facts.number("events")?,
            allocated: facts.tally("allocated")?,
            live: facts.tally("live")?,
            high_water: facts.tally("high_water")?,
            lost_events: facts.number("lost")?,
            largest: facts.line("largest"),
            leak,
            trigger,
            stored: Some(facts.text("stored")).filter(|address| !address.is_empty()),
        })
    }
}

struct Facts<'t>(HashMap<&'t str, &'t str>);

impl Facts<'_> {
    fn numbers<const N: usize>(&self, name: &str) -> Option<[u64; N]> {
        let numbers: Option<Vec<u64>> = self
            .0
            .get(name)?
            .split(' ')
            .map(|n| n.parse().ok())
            .collect();
        numbers?.try_into().ok()
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.numbers(name).map(|[number]| number)
    }

    fn tally(&self, name: &str) -> Option<Tally> {
        self.numbers(name)
            .map(|[count, bytes]| Tally { count, bytes })
    }

    fn moment(&self, name: &str) -> Option<SystemTime> {
        UNIX_EPOCH.checked_add(Duration::from_millis(self.number(name)?))
    }

    fn line(&self, name: &str) -> Option<Line> {
        let [count, bytes, line] = self.numbers(&format!("{name}.at"))?;
        Some(Line {
            function: self.text(&format!("{name}.function")),
            file: self.text(&format!("{name}.file")),
            line: line.try_into().ok()?,
            live: Tally { count, bytes },
        })
    }

    fn growth(&self, name: &str) -> Option<(u64, Confidence)> {
        let (growth, confidence) = self.0.get(name)?.split_once(' ')?;
        Some((growth.parse().ok()?, Confidence::parse(confidence)?))
    }

    fn text(&self, name: &str) -> String {
        self.0.get(name).copied().unwrap_or_default().to_owned()
    }
}

/// Returns milliseconds since 1970.
pub(super) fn millis(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Writes a name on one line, cut to a bound: it comes from a program's debug information and may hold anything.
fn one_line(name: &str) -> String {
    let plain = name
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c });
    let mut line = String::new();
    for c in plain {
        if line.len() + c.len_utf8() > LONGEST_NAME {
            line.push('…');
            break;
        }
        line.push(c);
    }
    line
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line() -> Line {
        Line {
            function: "app::load".into(),
            file: "/home/dev/app/src/load it.rs".into(),
            line: 7,
            live: Tally {
                count: 1,
                bytes: 10,
            },
        }
    }

    pub(in crate::profiler::store) fn note(started_ms: u64) -> Note {
        Note {
            session: 3,
            pid: 7,
            life: 9,
            host: "shop-7f9c".into(),
            started: UNIX_EPOCH + Duration::from_millis(started_ms),
            ended: UNIX_EPOCH + Duration::from_millis(started_ms + 1),
            len: 5,
            hash: 11,
            events: 8,
            allocated: Tally {
                count: 4,
                bytes: 40,
            },
            live: Tally {
                count: 1,
                bytes: 10,
            },
            high_water: Tally {
                count: 2,
                bytes: 20,
            },
            lost_events: 0,
            largest: Some(line()),
            leak: Some(ProbableLeak {
                line: line(),
                growth_bytes_per_hour: 4000,
                confidence: Confidence::Medium,
            }),
            trigger: None,
            stored: None,
        }
    }

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let whole = note(1_795_252_380_250);
        assert_eq!(Note::read(&whole.write()), Some(whole.clone()));
        let without = Note {
            largest: None,
            leak: None,
            host: String::new(),
            stored: Some("s3://bucket/shop/7.bin".into()),
            ..whole
        };
        assert_eq!(Note::read(&without.write()), Some(without));
        for at_end in [false, true] {
            let trigger = Triggered {
                kind: TriggerKind::ControlGroup,
                reason: "memory.max is near its end".into(),
                at_end,
            };
            let triggered = Note {
                trigger: Some(trigger),
                ..note(7)
            };
            assert_eq!(Note::read(&triggered.write()), Some(triggered));
        }
    }

    #[test]
    fn a_note_that_is_cut_anywhere_is_none() {
        let text = note(5).write();
        for (at, _) in text.char_indices() {
            assert_eq!(Note::read(&text[..at]), None, "{:?}", &text[..at]);
        }
    }

    #[test]
    fn a_name_of_any_length_and_kind_stays_in_its_line() {
        let mut hostile = note(5);
        let leak = hostile.leak.as_mut().unwrap();
        leak.line.function = format!("a\nend\nlive 0 0\n{}", "ü".repeat(50_000));
        leak.line.file = "\0\r\n".into();
        let text = hostile.write();
        assert!((text.len() as u64) < LONGEST);
        let read = Note::read(&text).unwrap();
        assert_eq!(read.live, hostile.live);
        assert!(
            read.leak
                .unwrap()
                .line
                .function
                .starts_with("a\u{fffd}end\u{fffd}live")
        );
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "(heapray report 1\n)?([a-z.]{1,12} [0-9 ]{0,40}\n){0,12}(end\n)?") {
            let _ = Note::read(&text);
        }
    }
}
