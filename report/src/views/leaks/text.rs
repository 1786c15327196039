//! What speaks for and against a leak, in words.

use super::Confidence;
use super::judge::{Shape, Verdict};
use super::lines::Line;
use crate::units::{counted, duration, rounded_size};

/// With fewer blocks, their number speaks against a leak.
const FEW_BLOCKS: f64 = 16.0;

/// Returns what speaks for a leak, and what speaks against it.
pub(super) fn sentences(verdict: &Verdict, line: &Line) -> (Vec<String>, Vec<String>) {
    let mut evidence = Vec::new();
    let mut against = Vec::new();
    match verdict.shape {
        Shape::Kept => {
            evidence.push(format!(
                "grew by {} in {} within {}",
                rounded_size(verdict.grown as u64),
                counted(verdict.grown_blocks.round() as u64, "block"),
                duration(verdict.span_ms),
            ));
            evidence.push(format!(
                "blocks of {} of {} parts of the work are still live",
                verdict.gaining, verdict.parts
            ));
            if let Some(survival) = verdict.survival {
                evidence.push(format!(
                    "keeps {} of the bytes that it allocates",
                    percent(survival)
                ));
            }
            if verdict.gaining < verdict.parts {
                against.push(format!(
                    "nothing was kept in {} of {} parts of the work",
                    verdict.parts - verdict.gaining,
                    verdict.parts
                ));
            }
            if verdict.grown_blocks < FEW_BLOCKS && verdict.confidence < Confidence::High {
                against.push(
                    "these are few blocks: set-up that is done step by step would look the same"
                        .into(),
                );
            }
            if verdict.later < 0.7 {
                against.push(format!(
                    "grew less in the second half, {} of the first: a cache that fills does that, too",
                    percent(verdict.later)
                ));
            }
        }
        Shape::Enlarged => {
            let blocks = if line.live.count == 1 {
                "its block".to_owned()
            } else {
                format!("its {} blocks", line.live.count)
            };
            evidence.push(format!(
                "{blocks} became larger {} times and never smaller, to {}: a vector or a map that is never emptied",
                verdict.gaining,
                rounded_size(line.live.bytes),
            ));
            against.push(
                "a collection that has reached its size looks the same until it would grow again"
                    .into(),
            );
        }
    }
    if verdict.from > 0.35 && verdict.shape == Shape::Kept {
        against.push(format!(
            "it began after {} of the work: set-up that is not over would look the same",
            percent(verdict.from)
        ));
    }
    (evidence, against)
}

fn percent(part: f64) -> String {
    if part < 0.001 {
        return "less than 0.1 %".into();
    }
    if part < 0.01 {
        return format!("{:.1} %", part * 100.0);
    }
    format!("{:.0} %", part * 100.0)
}
