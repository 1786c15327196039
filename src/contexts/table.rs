//! The labels of each context, by number. A context keeps its number as long as the process runs.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{LazyLock, PoisonError, RwLock};

use crate::capture::thread::Busy;

/// Largest number of contexts, without those of `other`. See [`set_most`].
static MOST: AtomicUsize = AtomicUsize::new(4096);
/// Most contexts of `other`: one for each set of keys.
const MOST_OTHER: usize = 64;
/// Most labels of a context.
const MOST_LABELS: usize = 8;
/// Most bytes of a key or a value.
pub(super) const LONGEST: usize = 128;
/// The value of labels for which there is no room.
const OTHER: &str = "other";

/// Pairs of a key and a value, sorted by key.
type Labels = Vec<(String, String)>;

#[derive(Debug)]
struct Table {
    labels: Vec<Labels>,
    numbers: HashMap<Labels, u32>,
    /// The number of contexts of `other`.
    others: usize,
}

static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(|| RwLock::new(Table::new()));

/// How often a context was counted as `other`.
static REFUSED: AtomicU64 = AtomicU64::new(0);

impl Table {
    fn new() -> Table {
        Table {
            labels: vec![Labels::new()],
            numbers: HashMap::from([(Labels::new(), 0)]),
            others: 0,
        }
    }

    fn add(&mut self, labels: Labels) -> u32 {
        let number = u32::try_from(self.labels.len()).unwrap_or(0);
        self.labels.push(labels.clone());
        self.numbers.insert(labels, number);
        number
    }

    /// Returns the number of `labels`, which are added if there are fewer than `most`. `None` without room.
    fn number(&mut self, labels: Labels, most: usize) -> Option<u32> {
        if let Some(&known) = self.numbers.get(&labels) {
            return Some(known);
        }
        let has_room = self.labels.len() - self.others <= most;
        has_room.then(|| self.add(labels))
    }

    /// Returns the context that `labels` are counted under without room for them: that of the same keys, or none.
    fn other(&mut self, mut labels: Labels) -> u32 {
        for (_, value) in &mut labels {
            OTHER.clone_into(value);
        }
        if let Some(&known) = self.numbers.get(&labels) {
            return known;
        }
        if self.others >= MOST_OTHER {
            return 0;
        }
        self.others += 1;
        self.add(labels)
    }
}

/// Returns the number of the context with the labels of context `parent` and `labels`.
pub(super) fn number<K: AsRef<str>, V: AsRef<str>>(
    parent: u32,
    labels: impl IntoIterator<Item = (K, V)>,
) -> u32 {
    // The iterator is the service's own code, and what it allocates is the service's.
    let added: Vec<(K, V)> = labels.into_iter().collect();
    let _busy = Busy::enter();
    let mut all = labels_of(parent);
    for (key, value) in &added {
        let (key, value) = (tidy(key.as_ref()), tidy(value.as_ref()));
        match all.iter().position(|(known, _)| *known == key) {
            Some(at) => all[at].1 = value.into_owned(),
            None if all.len() < MOST_LABELS => all.push((key.into_owned(), value.into_owned())),
            None => {}
        }
    }
    all.retain(|(key, value)| !key.is_empty() && !value.is_empty());
    all.sort();
    let known = read(|table| table.numbers.get(&all).copied());
    known.unwrap_or_else(|| {
        let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
        let most = MOST.load(Ordering::Relaxed);
        table.number(all.clone(), most).unwrap_or_else(|| {
            REFUSED.fetch_add(1, Ordering::Relaxed);
            table.other(all)
        })
    })
}

fn read<R>(of: impl FnOnce(&Table) -> R) -> R {
    of(&TABLE.read().unwrap_or_else(PoisonError::into_inner))
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

/// Returns the labels of a context.
pub(crate) fn labels_of(number: u32) -> Labels {
    read(|table| {
        table
            .labels
            .get(number as usize)
            .cloned()
            .unwrap_or_default()
    })
}

/// Returns the labels of all contexts, by number. The first has none.
pub(crate) fn labels() -> Vec<Labels> {
    labels_from(0)
}

/// Returns the labels of the contexts whose number is at least `first`.
pub(crate) fn labels_from(first: usize) -> Vec<Labels> {
    read(|table| table.labels.get(first..).unwrap_or_default().to_vec())
}

/// Returns whether any context has a label of `key`.
#[cfg(feature = "http")]
pub(crate) fn has_key(key: &str) -> bool {
    read(|table| {
        let mut labels = table.labels.iter().flatten();
        labels.any(|(known, _)| known == key)
    })
}

/// Sets the largest number of contexts. Those that there are stay.
pub(crate) fn set_most(most: u32) {
    MOST.store(most as usize, Ordering::Relaxed);
}

/// Returns a sentence for the user, if contexts were counted together.
pub(crate) fn note() -> Option<String> {
    let refused = REFUSED.load(Ordering::Relaxed);
    let most = MOST.load(Ordering::Relaxed);
    let times = match refused {
        0 => return None,
        1 => "once".to_owned(),
        times => format!("{times} times"),
    };
    Some(format!(
        "more than {most} contexts: later ones, asked for {times}, are counted as `{OTHER}`; set MEMRAY_PROFILER_CONTEXTS \
         for more"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 100;

    fn labels(value: &str) -> Labels {
        vec![("key".to_owned(), value.to_owned())]
    }

    #[test]
    fn contexts_past_the_bound_are_other() {
        let mut table = Table::new();
        for number in 1..=MOST {
            let added = table.number(labels(&number.to_string()), MOST);
            assert_eq!(added, Some(number as u32));
        }
        assert_eq!(table.number(labels("one more"), MOST), None);
        let other = table.other(labels("one more"));
        assert_eq!(table.labels[other as usize], labels(OTHER));
        assert_eq!(table.other(labels("and another")), other);
        assert_eq!(table.number(labels("7"), MOST), Some(7), "known ones stay");
        for key in 0..2 * MOST_OTHER {
            table.other(vec![(key.to_string(), String::new())]);
        }
        assert_eq!(table.labels.len(), 1 + MOST + MOST_OTHER);
        let added = table.number(labels("one more"), MOST + 1);
        assert!(added.is_some(), "a larger bound makes room");
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
