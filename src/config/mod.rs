//! What the profiler can be told, and by whom: the environment has the last word over the code, so that an operator
//! can change a setting without a rebuild.
//!
//! Reading it has no effect on anything: a [`Config`] is a value. Every bad value is an error that names the setting,
//! the value and what is allowed.

mod error;
mod flight;
mod hosts;
mod memory;
mod overhead;
mod prefix;
mod settings;
pub(crate) mod size;
mod token;
pub(crate) mod truth;

pub use error::ConfigError;
pub use flight::{FlightConfig, FlightSettings};
pub use hosts::Hosts;
pub use memory::{MemoryChildren, MemoryLogConfig, MemoryLogSettings, MemoryMetric, MemoryRole};
pub(crate) use overhead::overhead_share;
pub use prefix::Prefix;
pub use settings::{Config, Settings};
pub use token::{Secret, Token};
