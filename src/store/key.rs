//! Which outputs there are, and under which names.

use heapray_report::memray::Version;

use crate::symbolize::ThreadMode;

/// What is made from a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutputKind {
    /// memray's own capture file.
    Report,
    /// The flame graph, one self-contained page.
    Flamegraph,
    /// The statistics, as text.
    Stats,
}

impl OutputKind {
    /// The name under which it is downloaded: Racetrack's.
    #[must_use]
    pub const fn file_name(self) -> &'static str {
        match self {
            OutputKind::Report => "memray-report.bin",
            OutputKind::Flamegraph => "memray-flamegraph.html",
            OutputKind::Stats => "memray-stats.txt",
        }
    }
}

/// An output and how it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OutputKey {
    kind: OutputKind,
    full: bool,
    each_thread: bool,
    version_12: bool,
}

impl OutputKey {
    /// `kind`, made as is usual: standard library frames trimmed, threads of one name as one, format version 13.
    #[must_use]
    pub const fn new(kind: OutputKind) -> OutputKey {
        OutputKey {
            kind,
            full: false,
            each_thread: false,
            version_12: false,
        }
    }

    /// Whether leaf frames inside Rust's own library are kept.
    #[must_use]
    pub const fn full(mut self, full: bool) -> OutputKey {
        self.full = full;
        self
    }

    /// Whether threads of one name count as one.
    #[must_use]
    pub const fn threads(mut self, threads: ThreadMode) -> OutputKey {
        self.each_thread = matches!(threads, ThreadMode::Each);
        self
    }

    /// The version of memray's format. Only a report has one.
    #[must_use]
    pub const fn version(mut self, version: Version) -> OutputKey {
        self.version_12 =
            matches!(version, Version::V12) && matches!(self.kind, OutputKind::Report);
        self
    }

    pub(crate) const fn kind(self) -> OutputKind {
        self.kind
    }

    pub(crate) const fn format(self) -> Version {
        if self.version_12 {
            Version::V12
        } else {
            Version::V13
        }
    }

    pub(crate) fn options(self) -> crate::symbolize::ReportOptions {
        crate::symbolize::ReportOptions {
            full: self.full,
            threads: if self.each_thread {
                ThreadMode::Each
            } else {
                ThreadMode::ByName
            },
        }
    }

    /// The same making with another kind of result.
    pub(crate) const fn sibling(self, kind: OutputKind) -> OutputKey {
        OutputKey {
            kind,
            version_12: false,
            ..self
        }
    }

    /// Its file in the profiler's directory. Made from nothing but these few words, never from a request's text.
    pub(crate) fn stored_name(self) -> String {
        let name = self.kind.file_name();
        let (stem, extension) = name.rsplit_once('.').expect("file names have extensions");
        let full = if self.full { ".full" } else { "" };
        let each = if self.each_thread { ".each" } else { "" };
        let version = if self.version_12 { ".v12" } else { "" };
        format!("{stem}{full}{each}{version}.{extension}")
    }
}

#[cfg(test)]
mod tests {
    use super::{OutputKey, OutputKind, ThreadMode, Version};

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
            .threads(ThreadMode::Each)
            .version(Version::V12);
        assert_eq!(key.stored_name(), "memray-report.full.each.v12.bin");
        assert_eq!(
            key.sibling(OutputKind::Stats).stored_name(),
            "memray-stats.full.each.txt"
        );
    }

    #[test]
    fn only_a_report_has_a_format_version() {
        let key = OutputKey::new(OutputKind::Stats);
        assert_eq!(key.version(Version::V12), key);
    }
}
