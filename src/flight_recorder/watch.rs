//! The check of all conditions, as rarely as possible.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use heapray_report::units::size;

use super::condition::Condition;
use super::growth::{self, Growth};
use super::reason::{Reason, TriggerKind};
use super::settings::WatchSettings;
use super::supply::{Supplies, Supply};
use crate::capture::memory::Reserve;
use crate::capture::{failure, signal};

/// Time from one check to the next while there is plenty of memory. A check costs some 100 µs of CPU time.
const SELDOM: Duration = Duration::from_millis(500);
/// Time between checks when memory is short, and the shortest time in any case.
const OFTEN: Duration = Duration::from_millis(10);
/// Memory is short if less is left than so many times the threshold.
const NEAR: u64 = 4;
/// A check is also due when this fraction of the free memory has been allocated.
const PART: u64 = 100;

/// Smallest address space that is worth reserving.
const LEAST_RESERVE: u64 = 32 << 20;

/// Address space for a report, besides the program's own file, which is mapped for its symbols.
const BESIDES: u64 = 64 << 20;

/// Time to wait for a thread whose allocation is about to fail before the reserve is given up. Such a thread then waits
/// itself, and does not take the reserve.
const FAILS_SOON: Duration = Duration::from_millis(20);

/// The session's figures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    /// Bytes allocated so far.
    pub(crate) allocated: u64,
    /// Bytes live.
    pub(crate) live: u64,
}

/// Check whether a report is due. Each session has one, on the collector's thread.
#[derive(Debug)]
pub(crate) struct Watch {
    settings: WatchSettings,
    supplies: Option<Supplies>,
    due: Instant,
    /// Allocated bytes at which a check is due.
    due_at: u64,
    last: Instant,
    near: HashMap<String, Condition>,
    kills: u64,
    killed: Condition,
    failed: Condition,
    growth: Growth,
    /// Set while a failure was reported and its report is not finished.
    failure_reported: bool,
    signals: u32,
    reserve: Option<Reserve>,
    /// Time since which the tables find too little address space.
    short_since: Option<Instant>,
    /// Address space that a report needs.
    needed: u64,
    approach: Condition,
    approaches: bool,
}

impl Watch {
    pub(crate) fn new(settings: WatchSettings) -> Watch {
        let supplies = settings
            .out_of_memory
            .then(|| Supplies::find(&settings.root));
        let now = Instant::now();
        let kills = supplies.as_ref().map_or(0, |all| all.groups.kills());
        if settings.out_of_memory {
            failure::arm();
        }
        let mut watch = Watch {
            settings,
            supplies,
            due: now,
            due_at: 0,
            last: now,
            near: HashMap::new(),
            kills,
            killed: Condition::default(),
            failed: Condition::default(),
            growth: Growth::default(),
            failure_reported: false,
            signals: signal::received(),
            reserve: None,
            short_since: None,
            needed: program_bytes().saturating_add(BESIDES),
            approach: Condition::default(),
            approaches: false,
        };
        let supplies = watch.read();
        watch.take_reserve(&supplies);
        watch
    }

    /// Returns the time at which the next check is due in any case.
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// Returns whether a check is due, with so many bytes allocated so far. Costs two comparisons and three loads.
    pub(crate) fn is_due(&self, now: Instant, allocated: u64) -> bool {
        let enough = allocated >= self.due_at && now.saturating_duration_since(self.last) >= OFTEN;
        now >= self.due
            || enough
            || (failure::is_waited_for() && !self.failure_reported)
            || signal::received() != self.signals
    }

    /// Notes that the tables find too little address space. Returns whether to wait a little before
    /// [`give_up_reserve`](Self::give_up_reserve).
    pub(crate) fn waits(&mut self, now: Instant) -> bool {
        let since = *self.short_since.get_or_insert(now);
        let long = now.saturating_duration_since(since) >= FAILS_SOON;
        self.reserve.is_some() && !failure::is_waited_for() && !long
    }

    /// Gives up the address space that is reserved for a report. Returns whether there was any.
    pub(crate) fn give_up_reserve(&mut self) -> bool {
        self.short_since = None;
        self.reserve.take().is_some()
    }

    /// Returns whether an allocation has failed and its report is being written. The report uses the reserve that was given
    /// up, and threads that need memory wait for it.
    pub(crate) fn is_writing(&self) -> bool {
        self.failure_reported && failure::is_waited_for()
    }

    /// Returns whether memory has become shorter since the last call, so that it is time to prepare a report.
    pub(crate) fn approaches(&mut self) -> bool {
        std::mem::take(&mut self.approaches)
    }

    /// Returns the reason for a report if the tables themselves find too little address space.
    pub(crate) fn shortage(&mut self, text: String, now: Instant) -> Option<Reason> {
        if failure::is_waited_for() {
            // The failed allocation is the reason, and the next check reports it.
            return None;
        }
        let condition = self.near.entry("tables".to_owned()).or_default();
        condition
            .fires(true, false, now, self.settings.pause)
            .then_some(Reason {
                kind: TriggerKind::AddressSpace,
                text,
            })
    }

    /// Checks all conditions. Returns the reason for a report, if one is due now.
    pub(crate) fn look(&mut self, now: Instant, usage: Usage) -> Option<Reason> {
        let supplies = self.read();
        self.plan(now, usage, &supplies);
        // All conditions are checked, so that each is up to date. The gravest is the reason.
        let failed = self.look_at_failures(now);
        let near = self.look_at_supplies(&supplies, now);
        let killed = self.look_at_kills(now);
        let grown = self.growth.look(&self.settings, usage.live, now);
        let signalled = self.look_at_signals();
        let reason = failed.or(near).or(killed).or(signalled).or(grown);
        match &reason {
            // Threads that need memory wait, so the report gets the reserve.
            Some(reason) if reason.kind == TriggerKind::AllocationFailed => {
                self.give_up_reserve();
            }
            None if self.reserve.is_none() => self.take_reserve(&supplies),
            _ => {}
        }
        reason
    }

    fn read(&self) -> Vec<Supply> {
        self.supplies
            .as_ref()
            .map(Supplies::read)
            .unwrap_or_default()
    }

    /// Returns the threshold for what is left. For address space, it is what a report needs: nothing can be freed to make
    /// one.
    fn threshold(&self, supply: &Supply) -> u64 {
        let threshold = self.settings.threshold.of(supply.limit);
        if supply.kind == TriggerKind::AddressSpace {
            threshold.max(self.needed.min(supply.limit / 4))
        } else {
            threshold
        }
    }

    fn plan(&mut self, now: Instant, usage: Usage, supplies: &[Supply]) {
        let times = |supply: &Supply| supply.left / self.threshold(supply).max(1);
        let least_times = supplies.iter().map(times).min().unwrap_or(u64::MAX);
        let (near, far) = (least_times < NEAR, least_times > NEAR * 3 / 2);
        let pause = self.settings.pause;
        self.approaches |= self.approach.fires(near, far, now, pause);
        let mut every = if near { OFTEN } else { SELDOM };
        if let Some(growth) = growth::every(&self.settings) {
            every = every.min(growth.max(OFTEN));
        }
        let least = supplies.iter().map(|supply| supply.left).min();
        let mut step = least.map_or(u64::MAX, |left| left / PART);
        for grown in [self.settings.size, self.settings.step]
            .into_iter()
            .flatten()
        {
            step = step.min(grown / PART);
        }
        self.last = now;
        self.due = now + every;
        self.due_at = usage.allocated.saturating_add(step.max(1));
    }

    fn look_at_failures(&mut self, now: Instant) -> Option<Reason> {
        if !self.settings.out_of_memory {
            return None;
        }
        match failure::waited_for() {
            Some(bytes) if !self.failure_reported => {
                self.failure_reported = true;
                self.failed.fires(true, true, now, Duration::ZERO);
                Some(Reason {
                    kind: TriggerKind::AllocationFailed,
                    text: format!("an allocation of {} failed", size(bytes)),
                })
            }
            Some(_) => None,
            None => {
                self.failure_reported = false;
                self.failed.fires(false, true, now, Duration::ZERO);
                if self.failed.is_rested(now, self.settings.pause) {
                    failure::arm();
                }
                None
            }
        }
    }

    fn look_at_supplies(&mut self, supplies: &[Supply], now: Instant) -> Option<Reason> {
        let mut gravest: Option<(f64, Reason)> = None;
        for supply in supplies {
            let threshold = self.threshold(supply);
            let over = supply.left >= threshold.saturating_add(threshold / 2);
            let condition = self.near.entry(supply.what.clone()).or_default();
            if !condition.fires(supply.left < threshold, over, now, self.settings.pause) {
                continue;
            }
            let part = supply.left as f64 / supply.limit.max(1) as f64;
            if gravest.as_ref().is_none_or(|(least, _)| part < *least) {
                let text = format!(
                    "{} is near its end: {} of {} are left, less than {}",
                    supply.what,
                    size(supply.left),
                    size(supply.limit),
                    size(threshold)
                );
                gravest = Some((
                    part,
                    Reason {
                        kind: supply.kind,
                        text,
                    },
                ));
            }
        }
        gravest.map(|(_, reason)| reason)
    }

    fn look_at_kills(&mut self, now: Instant) -> Option<Reason> {
        let kills = self.supplies.as_ref()?.groups.kills();
        let more = kills > self.kills;
        self.kills = kills;
        let fires = self.killed.fires(more, true, now, self.settings.pause);
        fires.then(|| Reason {
            kind: TriggerKind::ControlGroup,
            text: "the kernel found no memory in the control group, or killed a process in it"
                .to_owned(),
        })
    }

    fn look_at_signals(&mut self) -> Option<Reason> {
        let received = signal::received();
        let more = received != self.signals && self.settings.sigusr2;
        self.signals = received;
        more.then(|| Reason {
            kind: TriggerKind::Signal,
            text: "the process got SIGUSR2".to_owned(),
        })
    }

    /// Reserves some address space for the report if the process's address space is limited and there is plenty.
    fn take_reserve(&mut self, supplies: &[Supply]) {
        let limited = supplies
            .iter()
            .filter(|supply| supply.kind == TriggerKind::AddressSpace);
        // A thread that needs the reserve gets it, but later. So do not take too much, and nothing if little is left.
        let wanted = limited.map(|supply| self.needed.min(supply.limit / 4).min(supply.left / 3));
        let bytes = wanted.min().unwrap_or(0);
        if bytes >= LEAST_RESERVE {
            self.reserve = Reserve::take(bytes as usize);
        }
    }
}

fn program_bytes() -> u64 {
    std::fs::metadata("/proc/self/exe").map_or(0, |file| file.len())
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The session has ended: no report is written for waiting threads, unless one is being written.
        if self.settings.out_of_memory && !self.is_writing() {
            failure::disarm();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::{OomThreshold, Slope};
    use super::*;
    use crate::flight_recorder::supply::Machine;
    use crate::os::cgroup::Groups;

    fn settings(machine: &Machine) -> WatchSettings {
        WatchSettings {
            out_of_memory: true,
            threshold: OomThreshold::Bytes(100),
            size: None,
            step: None,
            slope: None,
            pause: Duration::from_secs(60),
            sigusr2: false,
            root: machine.0.clone(),
        }
    }

    fn usage(allocated: u64) -> Usage {
        Usage {
            allocated,
            live: allocated,
        }
    }

    fn use_of(machine: &Machine, bytes: u64) {
        machine.put("sys/fs/cgroup/app/memory.current", &bytes.to_string());
    }

    fn in_a_group(name: &str) -> Machine {
        let machine = Machine::new(name);
        machine.put("proc/self/cgroup", "0::/app\n");
        machine.put("sys/fs/cgroup/app/memory.max", "1000\n");
        use_of(&machine, 100);
        assert_eq!(Groups::find(&machine.0).kills(), 0);
        machine
    }

    #[test]
    fn a_service_near_its_limit_is_reported_once_and_not_for_ever() {
        let machine = in_a_group("once");
        let mut watch = Watch::new(settings(&machine));
        let start = Instant::now();
        let mut reported = Vec::new();
        let uses = [500, 900, 901, 950, 890, 999, 860, 849, 901, 901, 100];
        for (seconds, bytes) in (0..).map(|nth| nth * 20).zip(uses) {
            use_of(&machine, bytes);
            let now = start + Duration::from_secs(seconds);
            if let Some(reason) = watch.look(now, usage(0)) {
                assert_eq!(reason.kind, TriggerKind::ControlGroup);
                assert!(
                    reason.text.contains("memory.max of /sys/fs/cgroup/app"),
                    "{}",
                    reason.text
                );
                reported.push(bytes);
            }
        }
        assert_eq!(reported, [901, 901]);
    }

    #[test]
    fn looks_are_often_only_near_the_end_or_where_much_is_allocated() {
        let machine = in_a_group("often");
        let mut watch = Watch::new(settings(&machine));
        let now = Instant::now();
        assert_eq!(watch.look(now, usage(5000)), None);
        assert_eq!(watch.due(), now + SELDOM);
        assert!(!watch.is_due(now + OFTEN, 5008));
        assert!(
            watch.is_due(now + OFTEN, 5009),
            "a hundredth of what is left"
        );
        assert!(
            !watch.is_due(now + OFTEN / 2, 5009),
            "but no more often than that"
        );
        use_of(&machine, 700);
        assert_eq!(watch.look(now, usage(5000)), None);
        assert_eq!(watch.due(), now + OFTEN);
    }

    #[test]
    fn a_kill_in_the_group_is_reported() {
        let machine = in_a_group("kill");
        machine.put("sys/fs/cgroup/app/memory.events", "oom 1\noom_kill 1\n");
        let mut watch = Watch::new(settings(&machine));
        let now = Instant::now();
        assert_eq!(watch.look(now, usage(0)), None, "that was before");
        machine.put("sys/fs/cgroup/app/memory.events", "oom 2\noom_kill 1\n");
        let reason = watch.look(now, usage(0)).unwrap();
        assert!(reason.text.contains("the kernel found no memory"));
        assert_eq!(watch.look(now, usage(0)), None);
    }

    #[test]
    fn growth_is_reported_without_a_watch_for_the_end_of_memory() {
        let machine = in_a_group("growth");
        use_of(&machine, 999);
        let mut watch = Watch::new(WatchSettings {
            out_of_memory: false,
            size: Some(1000),
            slope: Some(Slope {
                bytes: 1 << 40,
                within: Duration::from_secs(1),
            }),
            ..settings(&machine)
        });
        let now = Instant::now();
        assert_eq!(watch.look(now, usage(999)), None);
        assert_eq!(
            watch.look(now, usage(1000)).unwrap().kind,
            TriggerKind::Size
        );
    }
}
