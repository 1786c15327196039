//! Memory that is known, as the page's head has it.

use serde::Serialize;

use super::used::Used;
use crate::Report;
use crate::model::FrameId;
use crate::views::{KnownSites, KnownSums};

/// Known memory with the page's numbers of frames; `report/page/js/decode.js` reads it.
#[derive(Debug, Serialize)]
pub(super) struct KnownMemory {
    /// The rules that match memory, most live bytes first.
    list: Vec<KnownRule>,
    /// The frames that a rule matches.
    frames: Vec<u32>,
}

#[derive(Debug, Serialize)]
struct KnownRule {
    title: String,
    pattern: String,
    bytes: u64,
    blocks: u64,
}

impl KnownMemory {
    pub(super) fn of(report: &Report, used: &Used) -> KnownMemory {
        let rules = &report.about.known;
        let mut sites = KnownSites::of(report);
        let list = sites
            .sums()
            .into_iter()
            .map(|KnownSums { rule, sums }| KnownRule {
                title: rules[rule].title(),
                pattern: rules[rule].pattern(),
                bytes: sums.live.bytes,
                blocks: sums.live.count,
            });
        let list: Vec<KnownRule> = list.collect();
        let frames = (0..).zip(&used.frames);
        let frames = frames.filter(|&(_, &old)| sites.of_frame(FrameId(old)).is_some());
        KnownMemory {
            list,
            frames: frames.map(|(number, _)| number).collect(),
        }
    }
}
