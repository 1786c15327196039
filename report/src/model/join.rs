//! Entries that become one.

/// Sorts `list` by `key`, and adds entries with equal keys to the first of them.
pub(super) fn join<T, K: Ord>(list: &mut Vec<T>, key: impl Fn(&T) -> K, add: impl Fn(&mut T, &T)) {
    list.sort_unstable_by_key(&key);
    list.dedup_by(|later, first| {
        let same = key(later) == key(first);
        if same {
            add(first, later);
        }
        same
    });
}
