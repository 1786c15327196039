//! What the tables give to a [`Snapshot`](super::snapshot::Snapshot).

use heapray_report::model::{Moment, Survivors};

use super::birth::Birth;
use super::snapshot::{EventLog, RawNode, RawSite, RawThread, RawTotals};
use super::survivors;
use super::tables::Tables;

/// The tables' part of a snapshot, by the names of its fields.
#[derive(Debug, Clone)]
#[allow(missing_docs)] // each is the field of that name
pub struct Export {
    pub nodes: Vec<RawNode>,
    pub sites: Vec<RawSite>,
    pub survivors: Survivors,
    pub threads: Vec<RawThread>,
    pub timeline: Vec<Moment>,
    pub totals: RawTotals,
    pub log: Option<EventLog>,
    pub log_given_up: Option<String>,
    pub notes: Vec<String>,
}

impl Tables {
    /// A consistent copy of everything up to the last event. Ends the log's block, so that the log is of the same moment.
    ///
    /// A `realloc` whose outcome is not known yet counts as not begun.
    pub fn export(&mut self) -> Export {
        self.flush_log();
        let log = self.log.as_ref();
        let timeline = self.timeline.rows();
        let (survivors, oldest) = survivors::count(
            self.live.blocks().chain(self.ranges.blocks()),
            self.sites.len(),
            std::iter::empty(),
            timeline.last().map_or(0, |moment| moment.at_ms),
        );
        Export {
            nodes: self.call_tree.nodes().to_vec(),
            sites: self.raw_sites(&oldest),
            survivors,
            threads: self.threads.list().to_vec(),
            timeline,
            totals: self.raw_totals(),
            log: log.and_then(|log| log.written()),
            log_given_up: log.and_then(|log| log.given_up()).map(str::to_owned),
            notes: self.threads.note().into_iter().collect(),
        }
    }

    fn raw_sites(&self, oldest: &[Birth]) -> Vec<RawSite> {
        let sites = self.sites.iter(self.peak.epoch()).zip(oldest);
        sites
            .map(|((key, tallies), &oldest)| RawSite {
                thread: key.entry,
                node: key.node,
                kind: key.kind,
                allocated: tallies.allocated,
                high_water: tallies.high_water,
                live: tallies.live,
                temporary: tallies.temporary,
                oldest_live_ms: (oldest != Birth::NEVER).then(|| oldest.ms()),
            })
            .collect()
    }

    fn raw_totals(&self) -> RawTotals {
        let counters = self.counters();
        RawTotals {
            events: counters.events,
            allocated: counters.allocated,
            freed: counters.freed,
            live: counters.live,
            high_water: counters.high_water,
            high_water_ms: self.clock.clock().at_ms(self.peak.stamp()),
            unknown_frees: counters.unknown_frees,
            sizes: self.sizes.counts(),
            sizes_rounded: self.sizes.rounded(),
        }
    }
}
