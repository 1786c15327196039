//! The head of a profile: its types, time, period and comments.

use super::code::{OTHERS, Texts};
use super::fold::Fold;
use super::proto::{Profile, ValueType};
use super::samples::TYPES;
use crate::Report;
use crate::memray::in_one_line;
use crate::stats::estimates;
use crate::units::{counted, duration, grouped, lost_since};
use crate::views::Measure;

/// Returns the index of the first of [`TYPES`] that is known of `report`.
pub(super) fn first_type(report: &Report) -> usize {
    let unknown = report.totals.allocated.count == 0
        && report.sites.iter().all(|site| site.allocated.count == 0);
    usize::from(unknown)
}

/// Returns everything except samples and code. Sample types begin with the number `first_type` of [`TYPES`]. A reader shows
/// the type of `shown` first, or what is live.
pub(super) fn header(
    report: &Report,
    fold: &Fold<'_>,
    first_type: usize,
    shown: Measure,
    texts: &mut Texts,
) -> Profile {
    let about = &report.about;
    let mut of = |r#type: &str, unit: &str| ValueType {
        r#type: texts.number(r#type),
        unit: texts.number(unit),
    };
    let mut sample_type = Vec::new();
    for (name, _) in &TYPES[first_type..] {
        sample_type.push(of(&format!("{name}_objects"), "count"));
        sample_type.push(of(&format!("{name}_space"), "bytes"));
    }
    let first = TYPES[first_type..]
        .iter()
        .find(|(_, measure)| *measure == shown);
    let first = first.map_or("inuse", |(name, _)| name);
    let period_type = Some(of("space", "bytes"));
    Profile {
        sample_type,
        period_type,
        // 1: every allocation was recorded.
        period: report.conditions.sampling.as_ref().map_or(1, |sampling| {
            i64::try_from(sampling.mean_bytes()).unwrap_or(i64::MAX)
        }),
        // The moment that the profile shows. A capture that does not know its end has its start.
        time_nanos: about.end_ms.max(about.start_ms).saturating_mul(1_000_000),
        // A snapshot has no duration. Parca takes every value of a profile that has one for a change.
        duration_nanos: 0,
        comment: comments(report, fold)
            .iter()
            .map(|comment| texts.number(comment))
            .collect(),
        default_sample_type: texts.number(&format!("{first}_space")),
        ..Profile::default()
    }
}

/// Returns the lines that `go tool pprof -comments` prints.
fn comments(report: &Report, fold: &Fold<'_>) -> Vec<String> {
    let (about, conditions) = (&report.about, &report.conditions);
    let mut comments = vec![
        in_one_line(&about.command_line).into_owned(),
        format!("written by {}", in_one_line(&about.producer)),
    ];
    comments
        .push("inuse: live at the end of the capture; peak: live at the high-water mark".into());
    let recorded_ms = about.end_ms.saturating_sub(about.start_ms);
    if let Ok(ms @ 1..) = u64::try_from(recorded_ms) {
        comments.push(format!("recorded for {}", duration(ms)));
    }
    if let folded @ 1.. = fold.call_sites() {
        comments.push(format!(
            "{} of {} are summed up in \"{OTHERS}\": limit=0 writes them all",
            grouped(folded),
            counted(report.sites.len() as u64, "call site"),
        ));
    }
    if conditions.still_recording {
        comments.push("still recording: a snapshot".into());
    }
    comments.extend(estimates(report));
    if conditions.lost_events > 0 {
        let lost = conditions.lost_events;
        let since = lost_since(conditions);
        comments.push(format!("{lost} events were lost{since}: sums are too low"));
    }
    let notes = conditions.notes.iter();
    comments.extend(notes.map(|note| in_one_line(note).into_owned()));
    comments.retain(|comment| !comment.is_empty());
    comments
}
