//! Labels of curves and functions, as in `mprof`.

use std::collections::HashMap;

use heapray::memory_log::local_stamp;

/// Returns the label of a file that begins at `start`, in seconds since the epoch.
pub(super) fn start(start: f64) -> String {
    let [year, month, day, hour, minute, second] = local_stamp(start.floor() as i64);
    // mprof rounds 0.9996 up to .1000.
    let ms = ((start - start.floor()) * 1000.0).min(999.0) as u32;
    format!("{day:02} / {month:02} / {year} - start at {hour:02}:{minute:02}:{second:02}.{ms:03}")
}

/// Returns short labels of functions: the part after the last dot, and as many more parts as are needed to distinguish them.
pub(super) fn functions<'a>(names: impl IntoIterator<Item = &'a str>) -> HashMap<&'a str, &'a str> {
    let mut level: HashMap<&str, usize> = names.into_iter().map(|name| (name, 1)).collect();
    loop {
        let mut named: HashMap<&str, Vec<&str>> = HashMap::new();
        for (&name, &parts) in &level {
            named.entry(last_parts(name, parts)).or_default().push(name);
        }
        let mut again = false;
        for same in named.values().filter(|same| same.len() > 1) {
            for name in same {
                let parts = level.get_mut(name).expect("it is one of the names");
                if last_parts(name, *parts) != *name {
                    *parts += 1;
                    again = true;
                }
            }
        }
        if !again {
            return level
                .into_iter()
                .map(|(name, parts)| (name, last_parts(name, parts)))
                .collect();
        }
    }
}

fn last_parts(name: &str, parts: usize) -> &str {
    let dot = name.rmatch_indices('.').nth(parts - 1);
    dot.map_or(name, |(at, _)| &name[at + 1..])
}

/// Returns `text` in at most `most` characters, without its middle, or nothing if that would mean nothing.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let all: Vec<char> = text.chars().collect();
    if all.len() <= most {
        return text.to_owned();
    }
    if most < 8 {
        return String::new();
    }
    let half = (most - 1) / 2;
    let (begin, end) = (&all[..most - 1 - half], &all[all.len() - half..]);
    begin.iter().chain(['…'].iter()).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_as_short_as_they_can_be_told_apart() {
        let labels = functions(["a.b.c", "x.b.c", "plain", "m.f", "Rust::path<T>"]);
        for (name, label) in [
            ("a.b.c", "a.b.c"),
            ("x.b.c", "x.b.c"),
            ("plain", "plain"),
            ("m.f", "f"),
            ("Rust::path<T>", "Rust::path<T>"),
        ] {
            assert_eq!(labels[name], label);
        }
        // One name is the other's end.
        let labels = functions(["b.c", "a.b.c"]);
        assert_eq!((labels["b.c"], labels["a.b.c"]), ("b.c", "a.b.c"));
        assert_eq!(shortened("abcdefghij", 9), "abcd…ghij");
        assert_eq!(shortened("abcdefghij", 7), "");
        assert_eq!(shortened("abc", 5), "abc");
    }
}
