//! Functions for the code that the attributes expand to. That code calls nothing else.

pub use crate::profiles::cpu::attribute::SingleThread;
pub use crate::profiles::line as line_profile;
pub use crate::profiles::parallel::attribute::Parallel;
