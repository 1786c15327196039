//! How the profiler stands during a measurement.

use std::path::PathBuf;
use std::str::FromStr;

use heapray::Profiler;

use crate::measure::Result;

/// What a child is told as its second argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// No profiler in the process, as without `MEMRAY_PROFILER`.
    Off,
    /// Enabled, and stopped: it recorded before.
    Stopped,
    /// Recording.
    Recording,
    /// No profiler of ours; heaptrack is preloaded.
    Heaptrack,
}

impl Mode {
    /// As it is printed and handed to children.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Mode::Off => "off",
            Mode::Stopped => "stopped",
            Mode::Recording => "recording",
            Mode::Heaptrack => "heaptrack",
        }
    }

    /// Those that this machine can measure.
    pub(crate) fn available() -> Vec<Mode> {
        let mut modes = vec![Mode::Off, Mode::Stopped, Mode::Recording];
        if heaptrack().is_some() {
            modes.push(Mode::Heaptrack);
        } else {
            println!(
                "(heaptrack is not installed: no peer is measured; apt-get install heaptrack)"
            );
        }
        modes
    }

    /// The profiler of this process, brought to this mode.
    pub(crate) fn enter(self) -> Result<Profiler> {
        let builder = heapray::builder().ignore_environment();
        let profiler = match self {
            Mode::Off | Mode::Heaptrack => builder.init(),
            Mode::Stopped | Mode::Recording => builder
                .enabled(true)
                .dir(directory(std::process::id()))
                .try_init()?,
        };
        if self == Mode::Stopped {
            profiler.stop()?;
        }
        Ok(profiler)
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Mode, String> {
        let all = [Mode::Off, Mode::Stopped, Mode::Recording, Mode::Heaptrack];
        all.into_iter()
            .find(|mode| mode.name() == text)
            .ok_or_else(|| format!("{text} is no mode"))
    }
}

/// Where the profiler of child `process` writes; its parent removes it.
pub(crate) fn directory(process: u32) -> PathBuf {
    std::env::temp_dir().join(format!("heapray-bench-{process}"))
}

/// The library that heaptrack preloads, if it is installed.
pub(crate) fn heaptrack() -> Option<PathBuf> {
    [
        "/usr/lib/heaptrack",
        "/usr/lib/x86_64-linux-gnu/heaptrack",
        "/usr/local/lib/heaptrack",
    ]
    .iter()
    .map(|folder| PathBuf::from(folder).join("libheaptrack_preload.so"))
    .find(|library| library.exists())
}
