//! From addresses to frames; the only user of debug information. Runs when a report is made, never while capturing.
