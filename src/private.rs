//! What the attributes expand to calls these, and nothing else.

pub use crate::cpu_profile::attribute::SingleThread;
pub use crate::line_profile;
pub use crate::parallel_profile::attribute::Parallel;
