//! The replicas of a service, asked at once and compared.
//!
//! ```text
//! targets ──▶ ask: all at once, a few at a time ──▶ figures ──▶ text, JSON or page
//!                                                      │
//!                            reports of two, or of all ◀┘  worst and median: difference; all: merged
//! ```

pub(crate) mod ask;
pub(crate) mod compare;
pub(crate) mod figures;
mod live;
pub(crate) mod page;
pub(crate) mod reports;
pub(crate) mod shown;
pub(crate) mod targets;
