//! Colours, if they are enabled.

use std::fmt::Display;

use crate::views::Confidence;

/// Paints texts, or leaves them as they are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint(pub(super) bool);

impl Paint {
    pub(super) fn bold(self, text: impl Display) -> String {
        self.put("1", text)
    }

    pub(super) fn dim(self, text: impl Display) -> String {
        self.put("2", text)
    }

    /// Paints a function.
    pub(super) fn name(self, text: impl Display) -> String {
        self.put("1;35", text)
    }

    /// Paints a file and line.
    pub(super) fn place(self, text: impl Display) -> String {
        self.put("36", text)
    }

    /// Paints a text by its share of the whole, in memray's steps and colours.
    pub(super) fn share(self, share: f64, text: impl Display) -> String {
        let colour = match share {
            share if share > 0.6 => "31",
            share if share > 0.2 => "33",
            share if share > 0.05 => "32",
            _ => "92",
        };
        self.put(colour, text)
    }

    /// Paints the name of a confidence that a line leaks.
    pub(super) fn confidence(self, confidence: Confidence) -> String {
        let colour = match confidence {
            Confidence::High => "31",
            Confidence::Medium => "33",
            Confidence::Low => "32",
        };
        self.put(colour, confidence.name())
    }

    fn put(self, code: &str, text: impl Display) -> String {
        if self.0 {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_string()
        }
    }
}
