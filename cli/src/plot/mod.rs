//! Pictures of memory over time, as `mprof plot` draws them.
//!
//! A [`Figure`] is the content, in seconds and MiB; `svg`, `png` and `terminal` draw it. The PNG is made from the SVG, with
//! a font that is built in, since containers have none.

mod colour;
mod figure;
mod labels;
mod scale;
mod svg;
mod terminal;

pub(crate) use figure::{Figure, Options, Source};
pub(crate) use svg::{png, svg};
pub(crate) use terminal::terminal;
