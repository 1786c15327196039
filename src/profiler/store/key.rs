//! The outputs that exist, and their names.

use heapray_report::formats::pprof::{self, Labels as PprofLabels, MOST_SAMPLES};
use heapray_report::formats::{self, Format};
use heapray_report::memray::Version;
use heapray_report::texts;
use heapray_report::views::{Measure, Names, Unit};

use super::id::ReportId;
use crate::contexts::LabelKey;
use crate::symbolize::{NameMode, ThreadMode};

/// A kind of output that is made from a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum OutputKind {
    /// memray's own capture file.
    Report,
    /// The flame graph, one self-contained page.
    Flamegraph,
    /// The statistics, as text.
    Stats,
    /// The statistics, as `memray stats --json` writes them.
    StatsJson,
    /// The places that allocated, as text.
    Table,
    /// The tree of calls, as text.
    Tree,
    /// Sums by function, as text.
    Summary,
    /// A file for another tool.
    File(Format),
}

impl OutputKind {
    /// Returns the name under which it is downloaded: Racetrack's, if Racetrack has such an output.
    #[must_use]
    pub fn file_name(self) -> String {
        match self {
            OutputKind::Report => "memray-report.bin".into(),
            OutputKind::Flamegraph => "memray-flamegraph.html".into(),
            OutputKind::Stats => "memray-stats.txt".into(),
            OutputKind::StatsJson => "memray-stats.json".into(),
            OutputKind::Table => "memray-table.txt".into(),
            OutputKind::Tree => "memray-tree.txt".into(),
            OutputKind::Summary => "memray-summary.txt".into(),
            OutputKind::File(format) => format!("memray-report.{}", format.extension()),
        }
    }

    /// Returns its media type.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            OutputKind::Report => "application/octet-stream",
            OutputKind::Flamegraph => "text/html; charset=utf-8",
            OutputKind::Stats | OutputKind::Table | OutputKind::Tree | OutputKind::Summary => {
                "text/plain; charset=utf-8"
            }
            OutputKind::StatsJson => "application/json",
            OutputKind::File(format) => format.content_type(),
        }
    }

    /// Returns whether it shows one side of the heap, or one of its units.
    const fn shows_one(self) -> bool {
        matches!(
            self,
            OutputKind::Table | OutputKind::Tree | OutputKind::Summary | OutputKind::File(_)
        )
    }

    /// Returns whether it is a text that a browser shows by itself and nobody saves.
    #[cfg(feature = "http")]
    pub(crate) const fn is_read(self) -> bool {
        matches!(
            self,
            OutputKind::Stats | OutputKind::Table | OutputKind::Tree | OutputKind::Summary
        )
    }

    /// Returns whether outputs of this kind are kept as files. The others can be made in many ways.
    const fn is_kept(self) -> bool {
        matches!(
            self,
            OutputKind::Report | OutputKind::Flamegraph | OutputKind::Stats
        )
    }
}

/// An output and how it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct OutputKey {
    kind: OutputKind,
    full: bool,
    full_names: bool,
    each_thread: bool,
    version_12: bool,
    measure: Measure,
    unit: Unit,
    lines: bool,
    inverted: bool,
    labels: PprofLabels,
    limit: u32,
    symbolize: bool,
    since: Option<ReportId>,
    by: Option<LabelKey>,
}

impl OutputKey {
    /// Returns the key of `kind` with the usual options: standard library frames trimmed, threads of one name as one, format
    /// version 13; the high-water mark, in bytes, root first. A profile for pprof has no labels and at most 16,000 samples.
    #[must_use]
    pub const fn new(kind: OutputKind) -> OutputKey {
        OutputKey {
            kind,
            full: false,
            full_names: false,
            each_thread: false,
            version_12: false,
            measure: match kind {
                OutputKind::File(Format::Pprof) => Measure::Live,
                _ => Measure::HighWater,
            },
            unit: Unit::Bytes,
            lines: false,
            inverted: false,
            labels: PprofLabels::NONE,
            limit: MOST_SAMPLES,
            symbolize: true,
            since: None,
            by: None,
        }
    }

    /// Sets an earlier kept report: an output of a kept report then shows what has grown since. It does not matter for the
    /// present session.
    #[must_use]
    pub const fn since(mut self, since: Option<ReportId>) -> OutputKey {
        self.since = since;
        self
    }

    /// Sets the key of contexts by which memory is shown: each call stack is below a root frame of its context's value, and
    /// statistics are a table of the values. A report then has sums only.
    #[must_use]
    pub const fn by(mut self, by: Option<LabelKey>) -> OutputKey {
        self.by = by;
        self
    }

    /// Sets whether leaf frames inside Rust's own library are kept.
    #[must_use]
    pub const fn full(mut self, full: bool) -> OutputKey {
        self.full = full;
        self
    }

    /// Sets whether functions have the names that the compiler gave them, with generic arguments, instead of plain ones. A page
    /// has both, and shows these first; a report has both unless this is set.
    #[must_use]
    pub const fn full_names(mut self, full_names: bool) -> OutputKey {
        self.full_names = full_names;
        self
    }

    /// Sets whether threads of one name count as one.
    #[must_use]
    pub const fn threads(mut self, threads: ThreadMode) -> OutputKey {
        self.each_thread = matches!(threads, ThreadMode::Each);
        self
    }

    /// Sets the version of memray's format. Only a report has one.
    #[must_use]
    pub const fn version(mut self, version: Version) -> OutputKey {
        self.version_12 =
            matches!(version, Version::V12) && matches!(self.kind, OutputKind::Report);
        self
    }

    /// Sets what is shown. It matters only for a file that shows one thing; others hold everything.
    #[must_use]
    pub const fn measure(mut self, measure: Measure) -> OutputKey {
        if self.kind.shows_one() {
            self.measure = measure;
        }
        self
    }

    /// Sets whether bytes or blocks are shown, as for [`measure`](OutputKey::measure).
    #[must_use]
    pub const fn unit(mut self, unit: Unit) -> OutputKey {
        if self.kind.shows_one() {
            self.unit = unit;
        }
        self
    }

    /// Sets whether frames carry file and line, in a format that has the choice.
    #[must_use]
    pub const fn lines(mut self, lines: bool) -> OutputKey {
        if self.kind.shows_one() {
            self.lines = lines;
        }
        self
    }

    /// Sets whether call stacks begin with the leaf, as for [`measure`](OutputKey::measure).
    #[must_use]
    pub const fn inverted(mut self, inverted: bool) -> OutputKey {
        if self.kind.shows_one() {
            self.inverted = inverted;
        }
        self
    }

    /// Sets the labels of samples. Only a profile for pprof has them.
    #[must_use]
    pub const fn labels(mut self, labels: PprofLabels) -> OutputKey {
        if matches!(self.kind, OutputKind::File(Format::Pprof)) {
            self.labels = labels;
        }
        self
    }

    /// Sets the number of samples beyond which the smaller ones are summed up; 0: all are written. Only a profile for pprof has
    /// a limit.
    #[must_use]
    pub const fn limit(mut self, samples: u32) -> OutputKey {
        if matches!(self.kind, OutputKind::File(Format::Pprof)) {
            self.limit = samples;
        }
        self
    }

    /// Sets whether code has names. Only a profile for pprof can do without.
    #[must_use]
    pub const fn symbolize(mut self, symbolize: bool) -> OutputKey {
        if matches!(self.kind, OutputKind::File(Format::Pprof)) {
            self.symbolize = symbolize;
        }
        self
    }

    pub(crate) const fn kind(self) -> OutputKind {
        self.kind
    }

    /// Returns whether frames without lines stay apart by their addresses.
    pub(crate) const fn is_by_address(self) -> bool {
        matches!(self.kind, OutputKind::Report) || !self.symbolize
    }

    /// Returns whether code has names.
    #[cfg(feature = "http")]
    pub(crate) const fn has_names(self) -> bool {
        self.symbolize
    }

    pub(crate) const fn is_inverted(self) -> bool {
        self.inverted
    }

    pub(crate) const fn compared_with(self) -> Option<ReportId> {
        self.since
    }

    pub(crate) const fn by_label(self) -> Option<LabelKey> {
        self.by
    }

    /// Returns whether it has every event, where there is a log. By context there are sums only.
    pub(crate) const fn is_whole(self) -> bool {
        self.by.is_none()
    }

    /// Returns whether its writer turns call stacks over: that of a picture does, and says so in it. By context they are
    /// turned over before they get their root frames.
    pub(crate) const fn is_turned_by_writer(self) -> bool {
        matches!(self.kind, OutputKind::File(Format::Svg)) && self.by.is_none()
    }

    /// Returns whether the present session's is kept as a file in the profiler's directory. Others are made when they are
    /// asked for.
    pub(crate) const fn is_kept(self) -> bool {
        self.kind.is_kept() && self.by.is_none()
    }

    /// Returns whether frames and threads are those of a kept report.
    pub(crate) const fn is_as_kept(self) -> bool {
        !self.full && !self.each_thread
    }

    pub(crate) const fn format(self) -> Version {
        if self.version_12 {
            Version::V12
        } else {
            Version::V13
        }
    }

    /// Returns the options as a file's format takes them.
    pub(crate) fn choices(self) -> formats::Options {
        formats::Options {
            measure: self.measure,
            unit: self.unit,
            by_thread: self.each_thread,
            lines: self.lines,
            reversed: self.inverted && self.is_turned_by_writer(),
            pprof: pprof::Options {
                labels: self.labels,
                limit: self.limit,
                shown: self.measure,
                symbolize: self.symbolize,
            },
            ..formats::Options::default()
        }
    }

    /// Returns the options as a text takes them.
    pub(crate) fn text_choices(self) -> texts::Options {
        texts::Options {
            measure: self.measure,
            unit: self.unit,
            by_thread: self.each_thread,
            ..texts::Options::default()
        }
    }

    /// Returns the names that it shows; `None` if it holds both.
    pub(crate) const fn names(self) -> Option<Names> {
        match self.kind {
            OutputKind::Flamegraph => None,
            _ if self.full_names => Some(Names::Full),
            OutputKind::Report => None,
            _ => Some(Names::Plain),
        }
    }

    /// Returns what a page shows first, in its own spelling.
    pub(crate) const fn opens_at(self) -> &'static str {
        if self.full_names { "names=full" } else { "" }
    }

    pub(crate) fn options(self) -> crate::symbolize::ReportOptions {
        crate::symbolize::ReportOptions {
            full: self.full,
            threads: if self.each_thread {
                ThreadMode::Each
            } else {
                ThreadMode::ByName
            },
            names: match self.names() {
                Some(Names::Full) => NameMode::Full,
                Some(Names::Plain) => NameMode::Plain,
                None => NameMode::Both,
            },
            by_address: self.is_by_address(),
        }
    }

    /// Returns the key of another kind with the same options.
    pub(crate) const fn sibling(self, kind: OutputKind) -> OutputKey {
        OutputKey {
            full: self.full,
            full_names: self.full_names,
            each_thread: self.each_thread,
            ..OutputKey::new(kind)
        }
    }

    /// Returns the name of its file in the profiler's directory, for a kind that has one. It is made only from these few words,
    /// never from a request's text.
    pub(crate) fn stored_name(self) -> String {
        let name = self.kind.file_name();
        let (stem, extension) = name.split_once('.').expect("file names have extensions");
        let full = if self.full { ".full" } else { "" };
        let names = if self.full_names { ".full-names" } else { "" };
        let each = if self.each_thread { ".each" } else { "" };
        let version = if self.version_12 { ".v12" } else { "" };
        format!("{stem}{full}{names}{each}{version}.{extension}")
    }
}

#[cfg(test)]
mod tests {
    use super::{LabelKey, OutputKey, OutputKind, ThreadMode, Version};

    #[test]
    fn the_usual_outputs_have_racetracks_names() {
        let name = |kind| OutputKey::new(kind).stored_name();
        assert_eq!(name(OutputKind::Report), "memray-report.bin");
        assert_eq!(name(OutputKind::Flamegraph), "memray-flamegraph.html");
    }

    #[test]
    fn other_makings_have_other_names() {
        let key = OutputKey::new(OutputKind::Report)
            .full(true)
            .full_names(true)
            .threads(ThreadMode::Each)
            .version(Version::V12);
        assert_eq!(
            key.stored_name(),
            "memray-report.full.full-names.each.v12.bin"
        );
        assert_eq!(
            key.sibling(OutputKind::Stats).stored_name(),
            "memray-stats.full.full-names.each.txt"
        );
    }

    #[test]
    fn what_is_shown_by_a_key_is_not_kept() {
        let key = OutputKey::new(OutputKind::Stats);
        let by = key.by(LabelKey::new("route"));
        assert_eq!((key.is_kept(), by.is_kept()), (true, false));
        assert_eq!(by.sibling(OutputKind::Stats), key);
    }

    #[test]
    fn only_a_report_has_a_format_version() {
        let key = OutputKey::new(OutputKind::Stats);
        assert_eq!(key.version(Version::V12), key);
    }
}
