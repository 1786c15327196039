//! The traffic: how many requests arrive in each virtual millisecond.

use crate::rng::Rng;
use std::f64::consts::TAU;

/// Virtual length of every program.
pub(crate) const DURATION_MS: u64 = 60_000;

/// The shape of the traffic over the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Traffic {
    /// The same rate all the time.
    Steady,
    /// Six bursts with near silence between them.
    Bursts,
    /// No request for 40 % of the time, then steady.
    IdleHead,
    /// Steady for 60 % of the time, then no request.
    IdleTail,
    /// One short burst in a long idle day.
    ShortBurst,
    /// From almost nothing to the most at the end.
    RampUp,
    /// From the most to almost nothing at the end.
    RampDown,
    /// Three days and nights. The run ends at night.
    DayAndNight,
    /// Two and a half days. The run ends at the peak, and the peak was reached twice before.
    EndsAtPeak,
    /// One day and a quarter: the run ends on the way up to the second peak.
    OneAndQuarterDays,
    /// The rate rises for a quarter of the time, then it is steady.
    WarmUp,
    /// Start-up allocates far more than all later requests do.
    StartUp,
    /// About 200 requests, each with many buffers.
    FewRequests,
    /// Steady, with eight times as many requests for a moment in the middle.
    Spike,
}

impl Traffic {
    /// Every shape.
    pub const ALL: [Traffic; 14] = [
        Traffic::Steady,
        Traffic::Bursts,
        Traffic::IdleHead,
        Traffic::IdleTail,
        Traffic::ShortBurst,
        Traffic::RampUp,
        Traffic::RampDown,
        Traffic::DayAndNight,
        Traffic::EndsAtPeak,
        Traffic::OneAndQuarterDays,
        Traffic::WarmUp,
        Traffic::StartUp,
        Traffic::FewRequests,
        Traffic::Spike,
    ];

    /// Returns the first part of a program's name.
    pub fn name(self) -> &'static str {
        match self {
            Traffic::Steady => "steady",
            Traffic::Bursts => "bursts",
            Traffic::IdleHead => "idle-head",
            Traffic::IdleTail => "idle-tail",
            Traffic::ShortBurst => "short-burst",
            Traffic::RampUp => "ramp-up",
            Traffic::RampDown => "ramp-down",
            Traffic::DayAndNight => "day-and-night",
            Traffic::EndsAtPeak => "ends-at-peak",
            Traffic::OneAndQuarterDays => "one-and-quarter-days",
            Traffic::WarmUp => "warm-up",
            Traffic::StartUp => "start-up",
            Traffic::FewRequests => "few-requests",
            Traffic::Spike => "spike",
        }
    }

    /// Returns the rate at a share (0 to 1) of the run, relative to the shape's other moments.
    fn rate(self, share: f64) -> f64 {
        let days = |count: f64| 0.55 - 0.45 * (TAU * count * share).cos();
        let when =
            |condition: bool, rate: f64, otherwise: f64| if condition { rate } else { otherwise };
        match self {
            Traffic::Steady | Traffic::FewRequests => 1.0,
            Traffic::Bursts => when((share * 6.0).fract() < 0.45, 1.0, 0.03),
            Traffic::IdleHead => when(share < 0.4, 0.0, 1.0),
            Traffic::IdleTail => when(share < 0.6, 1.0, 0.0),
            Traffic::ShortBurst => when((0.5..0.58).contains(&share), 1.0, 0.01),
            Traffic::RampUp => 0.05 + share,
            Traffic::RampDown => 1.05 - share,
            Traffic::DayAndNight => days(3.0),
            Traffic::EndsAtPeak => days(2.5),
            Traffic::OneAndQuarterDays => days(1.25),
            Traffic::WarmUp => (share / 0.25).min(1.0),
            Traffic::StartUp => when(share < 0.05, 0.0, 1.0),
            Traffic::Spike => when((0.4..0.46).contains(&share), 8.0, 1.0),
        }
    }

    /// Returns how many requests arrive in the whole run, on average over the seeds.
    fn requests(self) -> f64 {
        match self {
            Traffic::FewRequests => 200.0,
            Traffic::StartUp => 2_500.0,
            // All but a few arrive within five virtual seconds: more would be hundreds in flight.
            Traffic::ShortBurst => 6_000.0,
            _ => 12_000.0,
        }
    }

    /// Returns how many response buffers a request needs one after the other.
    pub(crate) fn buffers_of_a_request(self) -> u64 {
        match self {
            Traffic::FewRequests => 120,
            _ => 3,
        }
    }

    /// Returns the number of requests that arrive in each virtual millisecond.
    pub(crate) fn arrivals(self, mut rng: Rng) -> Vec<u16> {
        let noise: Vec<f64> = (0..DURATION_MS / 1_000)
            .map(|_| 0.85 + 0.3 * rng.unit())
            .collect();
        let rates: Vec<f64> = (0..DURATION_MS)
            .map(|ms| self.rate(ms as f64 / DURATION_MS as f64) * noise[(ms / 1_000) as usize])
            .collect();
        let scale = self.requests() / rates.iter().sum::<f64>();
        rates
            .iter()
            .map(|rate| {
                if *rate > 0.0 {
                    rng.poisson(rate * scale)
                } else {
                    0
                }
            })
            .collect()
    }
}
