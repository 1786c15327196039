//! A program: traffic, a cause and a seed.

use crate::catalogue::causes;
use crate::simulation::Simulation;
use crate::traffic::DURATION_MS;
use crate::{Cause, Site, Step, Traffic};

/// A program of known truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// `traffic-cause`.
    pub name: String,
    /// Shape of the traffic.
    pub traffic: Traffic,
    /// What the program does besides the background.
    pub cause: Cause,
    /// Seed of all random numbers. Another seed gives other noise and the same truth.
    pub seed: u64,
}

impl Program {
    /// Returns all programs, each with a seed of its own.
    pub fn all() -> Vec<Program> {
        Traffic::ALL
            .iter()
            .flat_map(|&traffic| causes(traffic).map(|cause| (traffic, cause)))
            .zip(1..)
            .map(|((traffic, cause), seed)| Program {
                name: format!("{}-{}", traffic.name(), cause.name()),
                traffic,
                cause,
                seed,
            })
            .collect()
    }

    /// Returns the program of this name.
    pub fn named(name: &str) -> Option<Program> {
        Self::all().into_iter().find(|program| program.name == name)
    }

    /// Returns the call site that leaks. `None`: nothing leaks, and a profiler that accuses a call site is wrong.
    pub fn leaks(&self) -> Option<Site> {
        self.cause.leaks()
    }

    /// Returns a second call site that a profiler may rightly accuse: the container of the blocks that leak.
    pub fn also_grows(&self) -> Option<Site> {
        self.cause.also_grows()
    }

    /// Returns the number of threads that the steps name.
    pub fn threads(&self) -> u8 {
        self.cause.threads()
    }

    /// Returns the steps, made while they are asked for. The program ends without freeing what is live.
    pub fn steps(&self) -> impl Iterator<Item = Step> + use<> {
        Simulation::new(self)
    }

    /// Returns the virtual duration.
    pub fn duration_ms(&self) -> u64 {
        DURATION_MS
    }
}
