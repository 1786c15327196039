//! Where profiles are pushed to, and the names that they have there.

mod destination;
mod target;

pub(crate) use destination::Destination;
pub use target::PushTarget;
#[cfg(feature = "push")]
pub(crate) use target::Protocol;
pub(crate) use target::PushTargets;
