//! What a process is called in a profile store.

use crate::config::push::Destination;
use crate::os::unique::life;
use crate::os::{command_line, process};

/// Names of the process whose memory a profile shows. They wait with the profile: after a restart it is still of the process
/// that it was made in.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Identity {
    /// The service.
    pub(super) service: String,
    /// The machine or container; empty if the system does not say.
    pub(super) host: String,
    pub(super) pid: u32,
    /// A number that no other process has.
    pub(super) life: u64,
    /// Further names and values, such as `service.version`.
    pub(super) labels: Vec<(String, String)>,
}

impl Identity {
    /// Returns the names of this process. Without a configured name, the service is called like its program.
    pub(crate) fn of_process(destination: &Destination) -> Identity {
        Identity {
            service: command_line::service(destination.service.clone()),
            host: process::host(),
            pid: std::process::id(),
            life: life(),
            labels: destination.labels.clone(),
        }
    }
}
