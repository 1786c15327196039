//! Where profiles are pushed to, and the names that they have there.

mod destination;
mod target;

pub(crate) use destination::Destination;
#[cfg(feature = "push")]
pub(crate) use target::Protocol;
pub use target::PushTarget;
pub(crate) use target::PushTargets;
