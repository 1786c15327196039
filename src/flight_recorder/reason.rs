//! Why a report was written.

/// What made the flight recorder write a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TriggerKind {
    /// The allocator, or `mmap`, had no memory for the service.
    AllocationFailed,
    /// A control group that the process is in (a container) is near its limit, or the kernel has killed in it.
    ControlGroup,
    /// The machine is near the end of its memory.
    Host,
    /// The process is near its limit (`RLIMIT_AS`, `RLIMIT_DATA`).
    AddressSpace,
    /// The heap is as large as was told.
    Size,
    /// The heap has grown by as much as was told.
    Step,
    /// The heap grows as fast as was told.
    Slope,
    /// The process got `SIGUSR2`.
    Signal,
    /// The process ended while it recorded, without a report: it was killed, or crashed. A later process made the report,
    /// from the event log.
    Killed,
    /// The report could not be written when its session ended. It was made later, from the event log.
    Unwritten,
    /// The profiler's own memory has reached its bound, and recording has ended.
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

    /// As JSON and files have it: `allocation_failed`.
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

    /// Whether the report was made afterwards, from an event log that was left.
    pub(crate) const fn is_recovered(self) -> bool {
        matches!(self, TriggerKind::Killed | TriggerKind::Unwritten)
    }

    /// Whether memory is at its end, so that the process may be, too.
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

/// What has happened, for people too.
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
