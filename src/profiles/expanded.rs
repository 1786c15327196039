//! What the attributes expand to calls these, and nothing else.

pub use crate::profiles::cpu::attribute::SingleThread;
pub use crate::profiles::line as line_profile;
pub use crate::profiles::parallel::attribute::Parallel;
