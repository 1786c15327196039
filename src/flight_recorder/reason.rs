//! The reason why a report was written.

/// Cause for which the flight recorder wrote a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TriggerKind {
    /// The allocator, or `mmap`, had no memory for the service.
    AllocationFailed,
    /// A control group of the process (a container) is near its limit, or the kernel has killed a process in it.
    ControlGroup,
    /// The machine's memory is nearly used up.
    Host,
    /// The process is near its limit (`RLIMIT_AS`, `RLIMIT_DATA`).
    AddressSpace,
    /// The heap has reached the configured size.
    Size,
    /// The heap has grown by the configured number of bytes.
    Step,
    /// The heap grows at the configured rate.
    Slope,
    /// The process got `SIGUSR2`.
    Signal,
    /// The process ended without a report while it recorded: it was killed, or it crashed. A later process made the report
    /// from the event log.
    Killed,
    /// The report could not be written when its session ended. It was made later, from the event log.
    Unwritten,
    /// The profiler's own memory has reached its limit, and recording has ended.
    Overhead,
}

impl TriggerKind {
    pub(crate) const ALL: [TriggerKind; 11] = [
        TriggerKind::AllocationFailed,
        TriggerKind::ControlGroup,
        TriggerKind::Host,
        TriggerKind::AddressSpace,
        TriggerKind::Size,
        TriggerKind::Step,
        TriggerKind::Slope,
        TriggerKind::Signal,
        TriggerKind::Killed,
        TriggerKind::Unwritten,
        TriggerKind::Overhead,
    ];

    /// Returns the name in JSON and files: `allocation_failed`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TriggerKind::AllocationFailed => "allocation_failed",
            TriggerKind::ControlGroup => "control_group",
            TriggerKind::Host => "host",
            TriggerKind::AddressSpace => "address_space",
            TriggerKind::Size => "size",
            TriggerKind::Step => "step",
            TriggerKind::Slope => "slope",
            TriggerKind::Signal => "signal",
            TriggerKind::Killed => "killed",
            TriggerKind::Unwritten => "unwritten",
            TriggerKind::Overhead => "overhead",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<TriggerKind> {
        TriggerKind::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
    }

    /// Returns whether the report was made later, from an event log that was left.
    pub(crate) const fn is_recovered(self) -> bool {
        matches!(self, TriggerKind::Killed | TriggerKind::Unwritten)
    }

    /// Returns whether memory is used up, so that the process may end.
    #[must_use]
    pub const fn is_out_of_memory(self) -> bool {
        matches!(
            self,
            TriggerKind::AllocationFailed
                | TriggerKind::ControlGroup
                | TriggerKind::Host
                | TriggerKind::AddressSpace
        )
    }
}

/// Reason of a report: the cause, and a text for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) kind: TriggerKind,
    pub(crate) text: String,
}

#[cfg(test)]
mod tests {
    use super::TriggerKind;

    #[test]
    fn every_kind_is_found_by_its_name() {
        for kind in TriggerKind::ALL {
            assert_eq!(TriggerKind::parse(kind.name()), Some(kind));
            #[cfg(feature = "http")]
            assert_eq!(
                serde_json::to_string(&kind).unwrap(),
                format!("{:?}", kind.name())
            );
        }
        assert_eq!(TriggerKind::parse(""), None);
    }
}
