//! The profiler's settings. The environment overrides the code, so that an operator can change a setting without a rebuild.
//!
//! Every setting is declared once, in `declared`.
//!
//! Reading a setting has no effect: a [`Config`] is a value. Every bad value is an error that names the setting, the value
//! and the allowed values.

mod address;
pub(crate) mod declared;
mod error;
pub(crate) mod flight;
pub(crate) mod hosts;
mod memory;
pub(crate) mod overhead;
pub(crate) mod own_crates;
pub(crate) mod prefix;
pub(crate) mod push;
mod service;
mod settings;
pub(crate) mod size;
pub(crate) mod source_url;
pub(crate) mod store;
mod symbols;
#[cfg(test)]
mod tests;
pub(crate) mod token;
pub(crate) mod truth;
mod unknown;
pub(crate) mod values;

pub use error::ConfigError;
pub use hosts::Hosts;
pub use memory::{MemoryChildren, MemoryLogConfig, MemoryMetric, MemoryRole};
pub(crate) use overhead::overhead_share;
pub use prefix::Prefix;
pub use push::PushTarget;
pub use settings::{Config, Settings};
pub use store::StoreTarget;
pub use symbols::SymbolMode;
pub use token::Token;
pub(crate) use unknown::unknown;
