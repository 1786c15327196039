//! Options of a profile for pprof.

use std::fmt;
use std::str::FromStr;

use crate::views::Measure;

/// Most samples of a profile unless [`Options::limit`] says otherwise. Pyroscope refuses a profile with more.
pub const MOST_SAMPLES: u32 = 16_000;

/// Most bytes of a profile with a limit, before it is compressed. Pyroscope refuses a larger one.
pub const MOST_BYTES: usize = 4 << 20;

/// Labels and size of a profile for pprof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Labels of each sample. Default: none. Without labels, call sites with the same call stack are one sample.
    pub labels: Labels,
    /// Most samples. The smaller ones are summed up in `other call sites`, one for each root, so that no total changes. A
    /// profile with a limit also has at most [`MOST_BYTES`]. Default: [`MOST_SAMPLES`]. 0: everything is written.
    pub limit: u32,
    /// What a reader shows first: live, allocated or high water. Default: live.
    pub shown: Measure,
    /// Whether code has names. Default: true. Without, code in modules has the addresses of the module's file, and no
    /// functions: `go tool pprof -symbolize=local`, Pyroscope and Parca then look them up by build id, if they have the file.
    pub symbolize: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            labels: Labels::NONE,
            limit: MOST_SAMPLES,
            shown: Measure::Live,
            symbolize: true,
        }
    }
}

/// Set of labels. [`FromStr`] parses a list of their names, separated by commas.
///
/// Profile stores make a series of its own for each value of a label.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
pub struct Labels {
    /// The thread's name, and in a report of [replicas](crate::model::About::replicas) the replica's, as a label of its own.
    pub thread: bool,
    /// The function that allocated, such as `malloc` or `mmap`.
    pub allocator: bool,
    /// The labels of the [context](crate::model::Context), each by its own name, such as `route`.
    pub context: bool,
}

impl Labels {
    /// No label.
    pub const NONE: Labels = Labels {
        thread: false,
        allocator: false,
        context: false,
    };

    /// The names of all labels.
    pub const NAMES: [&str; 3] = ["thread", "allocator", "context"];
}

impl FromStr for Labels {
    type Err = UnknownLabel;

    fn from_str(list: &str) -> Result<Self, Self::Err> {
        let mut labels = Labels::NONE;
        for name in list.split(',').map(str::trim) {
            match name {
                "thread" => labels.thread = true,
                "allocator" => labels.allocator = true,
                "context" => labels.context = true,
                "" => {}
                _ => return Err(UnknownLabel(name.to_owned())),
            }
        }
        Ok(labels)
    }
}

/// Error of a name that is not the name of a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownLabel(String);

impl fmt::Display for UnknownLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown label {:?}: use one or more of {}",
            self.0,
            Labels::NAMES.join(",")
        )
    }
}

impl std::error::Error for UnknownLabel {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_a_list_in_any_order_and_others_are_refused() {
        let labels = |thread, allocator| Labels {
            thread,
            allocator,
            context: false,
        };
        for (list, expected) in [
            ("", labels(false, false)),
            ("thread", labels(true, false)),
            ("allocator", labels(false, true)),
            ("allocator, thread,thread,", labels(true, true)),
        ] {
            assert_eq!(list.parse(), Ok(expected), "{list:?}");
        }
        let all = Labels {
            context: true,
            ..labels(true, true)
        };
        assert_eq!(Labels::NAMES.join(",").parse(), Ok(all));
        let error = "thread,rute\n".parse::<Labels>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown label \"rute\": use one or more of thread,allocator,context"
        );
    }
}
