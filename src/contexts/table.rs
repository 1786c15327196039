//! The labels of each context, by number.
//!
//! ```text
//!   number ──▶ active ── retired by the collector ──▶ retired ── many others retired since ──▶ forgotten
//!                 ▲                                      │
//!                 └── asked for or entered again ────────┘
//! ```
//!
//! The number of active contexts is limited. The collector [retires](retire) those that hold no memory, when others need the
//! room. A number is never given to other labels: a [`Context`](super::Context) may be kept, and entered, at any time.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use crate::capture::thread::Busy;

/// Largest number of active contexts, without those of `other`. See [`set_most`].
static MOST: AtomicUsize = AtomicUsize::new(4096);
/// Most contexts in which some values are `other`, and most in which all are.
const MOST_OTHER: [usize; 2] = [1024, 64];
/// Retired contexts that are remembered, for each that may be active.
const REMEMBERED: usize = 4;
/// Most labels of a context. [`Entry::own`] has a bit for each.
const MOST_LABELS: usize = 8;
/// Most bytes of a key or a value.
pub(super) const LONGEST: usize = 128;
/// The value of labels for which there is no room.
pub(crate) const OTHER: &str = "other";

/// Pairs of a key and a value, sorted by key.
pub(crate) type Labels = Vec<(String, String)>;

/// Context that is remembered.
#[derive(Debug)]
struct Entry {
    labels: Arc<Labels>,
    /// A bit for each label: whether its value is `other` when the context is counted with others. The labels of the context
    /// within which it was made stay.
    own: u8,
    state: State,
    /// Whether it never retires.
    is_kept: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Active,
    Retired,
    /// It stands for others, and for nobody's room.
    Other,
}

#[derive(Debug)]
struct Table {
    entries: BTreeMap<u32, Entry>,
    numbers: HashMap<Arc<Labels>, u32>,
    /// The next context's number.
    next: u32,
    /// The number of active contexts.
    active: usize,
    /// The number of contexts of `other`.
    others: usize,
    /// Retired contexts, the earliest first. Those that are active again are among them.
    retired: VecDeque<u32>,
}

static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(|| RwLock::new(Table::new()));

/// How often a context was counted as `other` for lack of room.
static REFUSED: AtomicU64 = AtomicU64::new(0);
/// How often a context retired.
static RETIRED: AtomicU64 = AtomicU64::new(0);

impl Entry {
    fn can_retire(&self) -> bool {
        self.state == State::Active && !self.is_kept
    }
}

impl Table {
    fn new() -> Table {
        let mut table = Table {
            entries: BTreeMap::new(),
            numbers: HashMap::new(),
            next: 0,
            active: 0,
            others: 0,
            retired: VecDeque::new(),
        };
        // The context without labels has the number 0.
        table.add(Labels::new(), 0, State::Other);
        table
    }

    fn add(&mut self, labels: Labels, own: u8, state: State) -> u32 {
        let (number, labels) = (self.next, Arc::new(labels));
        self.next += 1;
        self.numbers.insert(Arc::clone(&labels), number);
        let entry = Entry {
            labels,
            own,
            state,
            is_kept: false,
        };
        self.entries.insert(number, entry);
        number
    }

    /// Returns the number of `labels` for the next allocations: their own if they are known or there is room for one more of
    /// `most`, and that of `other` without.
    fn number(&mut self, labels: Labels, own: u8, most: usize) -> u32 {
        if let Some(&known) = self.numbers.get(&labels) {
            return self.counted_under(known, most);
        }
        // The last number stands for no context elsewhere. Four thousand million contexts are not expected.
        if self.active < most && self.next < u32::MAX {
            self.active += 1;
            return self.add(labels, own, State::Active);
        }
        self.refuse(&labels, own)
    }

    /// Returns the number of `labels`, if a context of them is remembered and has not retired.
    fn active_number(&self, labels: &Labels) -> Option<u32> {
        let number = *self.numbers.get(labels)?;
        let entry = self.entries.get(&number)?;
        (entry.state != State::Retired).then_some(number)
    }

    /// Returns the number under which the next allocations in context `number` are counted. A retired context is active again
    /// if there is room.
    fn counted_under(&mut self, number: u32, most: usize) -> u32 {
        let Some(entry) = self.entries.get_mut(&number) else {
            // A forgotten one has no labels any more.
            return if number < self.next { 0 } else { number };
        };
        if entry.state != State::Retired {
            return number;
        }
        if self.active < most {
            self.active += 1;
            entry.state = State::Active;
            return number;
        }
        let (labels, own) = (Arc::clone(&entry.labels), entry.own);
        self.refuse(&labels, own)
    }

    /// Counts that there is no room. Returns what [`other`](Self::other) does.
    fn refuse(&mut self, labels: &Labels, own: u8) -> u32 {
        REFUSED.fetch_add(1, Ordering::Relaxed);
        self.other(labels, own)
    }

    /// Returns the context that `labels` are counted under without room for them: that of the same labels with `other` in the
    /// place of their `own` values, or of all values, or none.
    fn other(&mut self, labels: &Labels, own: u8) -> u32 {
        let mut most = 0;
        for (own, more) in [own, u8::MAX].into_iter().zip(MOST_OTHER) {
            most += more;
            let masked = masked(labels, own);
            if let Some(&known) = self.numbers.get(&masked) {
                if let Some(entry) = self.entries.get_mut(&known) {
                    self.active -= usize::from(entry.state == State::Active);
                    self.others += usize::from(entry.state != State::Other);
                    entry.state = State::Other;
                }
                return known;
            }
            if self.others < most && self.next < u32::MAX {
                self.others += 1;
                return self.add(masked, 0, State::Other);
            }
        }
        0
    }

    /// Retires contexts of `idle`, the first ones first, until no more than `most` are active. Returns each with the context
    /// that it is counted under from now on.
    fn retire(&mut self, idle: impl Iterator<Item = u32>, most: usize) -> Vec<(u32, u32)> {
        let mut retired = Vec::new();
        for number in idle {
            if self.active <= most {
                break;
            }
            let entry = self.entries.get_mut(&number);
            if let Some(entry) = entry.filter(|entry| entry.can_retire()) {
                entry.state = State::Retired;
                self.active -= 1;
                let (labels, own) = (Arc::clone(&entry.labels), entry.own);
                self.retired.push_back(number);
                let other = self.other(&labels, own);
                // A value may be named like that.
                if other != number {
                    retired.push((number, other));
                }
            }
        }
        retired
    }

    /// Forgets the contexts that retired first, until no more than `most` retired ones are remembered.
    fn forget(&mut self, most: usize) {
        while self.retired.len() > most
            && let Some(number) = self.retired.pop_front()
        {
            let entry = self.entries.get(&number);
            if entry.is_some_and(|entry| entry.state == State::Retired)
                && let Some(entry) = self.entries.remove(&number)
            {
                self.numbers.remove(&entry.labels);
            }
        }
    }
}

/// Returns `labels` with `other` in the place of their `own` values.
fn masked(labels: &Labels, own: u8) -> Labels {
    let labels = (0..).zip(labels);
    labels
        .map(|(at, (key, value))| {
            let is_own = own & 1 << at != 0;
            (key.clone(), if is_own { OTHER } else { value }.to_owned())
        })
        .collect()
}

/// Returns the number of the context with the labels of context `parent` and `labels`.
pub(super) fn number<K: AsRef<str>, V: AsRef<str>>(
    parent: u32,
    labels: impl IntoIterator<Item = (K, V)>,
) -> u32 {
    // The iterator is the service's own code, and what it allocates is the service's.
    let added: Vec<(K, V)> = labels.into_iter().collect();
    let _busy = Busy::enter();
    let inherited = labels_of(parent).into_iter().map(|label| (label, false));
    let mut all: Vec<((String, String), bool)> = inherited.collect();
    for (key, value) in &added {
        let (key, value) = (tidy(key.as_ref()), tidy(value.as_ref()));
        match all.iter().position(|((known, _), _)| *known == key) {
            Some(at) => all[at] = ((key.into_owned(), value.into_owned()), true),
            None if all.len() < MOST_LABELS => {
                all.push(((key.into_owned(), value.into_owned()), true));
            }
            None => {}
        }
    }
    all.retain(|((key, value), _)| !key.is_empty() && !value.is_empty());
    all.sort();
    let own = (0..).zip(&all).map(|(at, (_, own))| u8::from(*own) << at);
    let own = own.fold(0, |all, bit| all | bit);
    let all: Labels = all.into_iter().map(|(label, _)| label).collect();
    let active = read(|table| table.active_number(&all));
    active.unwrap_or_else(|| write(|table, most| table.number(all, own, most)))
}

fn read<R>(of: impl FnOnce(&Table) -> R) -> R {
    of(&TABLE.read().unwrap_or_else(PoisonError::into_inner))
}

/// Calls `change` with the table, and with the largest number of active contexts.
fn write<R>(change: impl FnOnce(&mut Table, usize) -> R) -> R {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    change(&mut table, MOST.load(Ordering::Relaxed))
}

/// Returns `text` on one line, cut to the longest that is kept.
pub(super) fn tidy(text: &str) -> Cow<'_, str> {
    let is_start = |&at: &usize| text.is_char_boundary(at);
    let end = (0..=LONGEST.min(text.len())).rev().find(is_start);
    let cut = &text[..end.unwrap_or(0)];
    if cut.contains(char::is_control) {
        Cow::Owned(cut.replace(char::is_control, " "))
    } else {
        Cow::Borrowed(cut)
    }
}

/// Returns the labels of a context. One that was forgotten has none.
pub(crate) fn labels_of(number: u32) -> Labels {
    read(|table| {
        let entry = table.entries.get(&number);
        entry.map_or_else(Labels::new, |entry| entry.labels.to_vec())
    })
}

/// Returns the number and the labels of each context that is remembered and whose number is at least `first`.
pub(crate) fn labels_from(first: u32) -> Vec<(u32, Labels)> {
    read(|table| {
        let entries = table.entries.range(first..);
        let labels = entries.map(|(&number, entry)| (number, entry.labels.to_vec()));
        labels.collect()
    })
}

/// Returns whether any context has a label of `key`.
#[cfg(feature = "http")]
pub(crate) fn has_key(key: &str) -> bool {
    read(|table| {
        let mut labels = table.entries.values().flat_map(|entry| &*entry.labels);
        labels.any(|(known, _)| known == key)
    })
}

/// Sets the largest number of active contexts. Those that there are stay.
pub(crate) fn set_most(most: u32) {
    MOST.store(most as usize, Ordering::Relaxed);
}

/// Lets a context never retire, unless it is one of `other`. Returns whether it never does.
#[cfg(feature = "http")]
pub(super) fn keep(number: u32) -> bool {
    write(|table, _| {
        let entry = table.entries.get_mut(&number);
        entry.is_some_and(|entry| {
            entry.is_kept = entry.state == State::Active;
            entry.is_kept
        })
    })
}

/// Returns the number under which the next allocations in context `number` are counted: its own, or that of `other`. A
/// retired context is active again if there is room.
pub(crate) fn counted_under(number: u32) -> u32 {
    let is_counted = read(|table| {
        let entry = table.entries.get(&number);
        entry.is_some_and(|entry| entry.state != State::Retired)
    });
    if is_counted {
        return number;
    }
    write(|table, most| table.counted_under(number, most))
}

/// Returns how often a context was refused for lack of room.
pub(crate) fn refusals() -> u64 {
    REFUSED.load(Ordering::Relaxed)
}

/// Returns how full it is: the number of active contexts, and the largest.
pub(crate) fn active() -> [usize; 2] {
    [read(|table| table.active), MOST.load(Ordering::Relaxed)]
}

/// Returns the numbers of the contexts that can retire.
pub(crate) fn can_retire() -> Vec<u32> {
    read(|table| {
        let entries = table.entries.iter();
        let some = entries.filter(|(_, entry)| entry.can_retire());
        some.map(|(&number, _)| number).collect()
    })
}

/// Retires contexts of `idle`, the first ones first, until no more than `active` are active. Returns each with the context that
/// it is counted under.
pub(crate) fn retire(idle: impl Iterator<Item = u32>, active: usize) -> Vec<(u32, u32)> {
    let retired = write(|table, most| {
        let retired = table.retire(idle, active);
        table.forget(REMEMBERED * most);
        retired
    });
    RETIRED.fetch_add(retired.len() as u64, Ordering::Relaxed);
    retired
}

/// Returns sentences for the user, if contexts were counted together.
pub(crate) fn notes() -> Vec<String> {
    let most = MOST.load(Ordering::Relaxed);
    let more = "set MEMRAY_PROFILER_CONTEXTS for more";
    let mut notes = Vec::new();
    if let Some(times) = times(RETIRED.load(Ordering::Relaxed)) {
        notes.push(format!(
            "contexts that held no memory made room for new ones, {times}: what they had allocated is counted as `{OTHER}`; \
             there is room for {most}, and you can {more}"
        ));
    }
    if let Some(times) = times(REFUSED.load(Ordering::Relaxed)) {
        notes.push(format!(
            "more than {most} contexts at one time: later ones, asked for {times}, are counted as `{OTHER}`; {more}"
        ));
    }
    notes
}

fn times(times: u64) -> Option<String> {
    match times {
        0 => None,
        1 => Some("once".to_owned()),
        times => Some(format!("{times} times")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 100;

    fn labels(value: &str) -> Labels {
        vec![("key".to_owned(), value.to_owned())]
    }

    impl Table {
        fn get(&mut self, value: &str) -> u32 {
            self.number(labels(value), 1, MOST)
        }

        fn labels(&self, number: u32) -> &Labels {
            &self.entries[&number].labels
        }
    }

    #[test]
    fn contexts_past_the_bound_are_other() {
        let mut table = Table::new();
        for number in 1..=MOST {
            assert_eq!(table.get(&number.to_string()), number as u32);
        }
        let other = table.get("one more");
        assert_eq!(*table.labels(other), labels(OTHER));
        assert_eq!(table.get("and another"), other);
        assert_eq!(table.get("7"), 7, "known ones stay");
        let more = table.number(labels("one more"), 1, MOST + 1);
        assert_eq!(
            *table.labels(more),
            labels("one more"),
            "a larger bound makes room"
        );
    }

    #[test]
    fn the_labels_around_one_without_room_stay_as_long_as_there_is_room_for_them() {
        let mut table = Table::new();
        let pair = |route: usize, tenant: &str| {
            let route = ("route".to_owned(), route.to_string());
            vec![route, ("tenant".to_owned(), tenant.to_owned())]
        };
        for route in 0..MOST_OTHER[0] {
            let other = table.number(pair(route, "acme"), 0b10, 0);
            assert_eq!(*table.labels(other), pair(route, OTHER));
        }
        let other = table.number(pair(MOST_OTHER[0], "acme"), 0b10, 0);
        let all = [("route", OTHER), ("tenant", OTHER)];
        assert_eq!(
            *table.labels(other),
            all.map(|(k, v)| (k.to_owned(), v.to_owned()))
        );
        for key in 0..2 * MOST_OTHER[1] {
            table.number(vec![(key.to_string(), "x".to_owned())], 1, 0);
        }
        assert_eq!(table.entries.len(), 1 + MOST_OTHER[0] + MOST_OTHER[1]);
    }

    #[test]
    fn a_retired_context_makes_room_and_keeps_its_number() {
        let mut table = Table::new();
        let numbers: Vec<u32> = (0..MOST).map(|nth| table.get(&nth.to_string())).collect();
        let retired = table.retire(numbers[..50].iter().copied(), MOST - 25);
        let other = table.numbers[&labels(OTHER)];
        let first: Vec<(u32, u32)> = numbers[..25]
            .iter()
            .map(|&number| (number, other))
            .collect();
        assert_eq!(retired, first, "no more than need be");
        assert_eq!(table.get("3"), numbers[3]);
        assert_eq!(table.counted_under(numbers[4], MOST), numbers[4]);
        assert_eq!(table.active, MOST - 23, "both are active again");
        for nth in 0..23 {
            assert_ne!(table.get(&format!("new {nth}")), other);
        }
        assert_eq!(table.get("5"), other);
        assert_eq!(table.counted_under(numbers[5], MOST), other);
    }

    #[test]
    fn a_forgotten_context_has_no_labels_and_its_number_is_not_used_again() {
        let mut table = Table::new();
        let old = table.get("old");
        table.retire([old].into_iter(), 0);
        table.forget(0);
        assert_eq!(table.counted_under(old, MOST), 0);
        let again = table.get("old");
        assert!(again > old);
        assert_eq!(*table.labels(again), labels("old"));
        assert_eq!(table.entries.len(), 3, "none, other, and old");
    }

    #[test]
    fn a_value_named_like_other_is_counted_with_them() {
        let mut table = Table::new();
        let named = table.get(OTHER);
        let acme = table.get("acme");
        assert_eq!(table.retire([named, acme].into_iter(), 0), [(acme, named)]);
        assert_eq!((table.active, table.others), (0, 1));
        assert_eq!(table.get(OTHER), named);
    }

    #[test]
    fn texts_are_cut_between_characters_and_stay_on_one_line() {
        let long = "ä".repeat(LONGEST);
        let number = number(0, [("a\nb", &*long), ("empty", ""), ("", "empty")]);
        let [(key, value)] = &labels_of(number)[..] else {
            panic!("one label");
        };
        assert_eq!((&**key, &**value), ("a b", &*"ä".repeat(LONGEST / 2)));
    }

    #[test]
    fn a_context_has_a_limited_number_of_labels() {
        let many: Vec<_> = (0..20).map(|key| (format!("key {key:02}"), "x")).collect();
        assert_eq!(labels_of(number(0, many)).len(), MOST_LABELS);
    }
}
