//! A program with generic code, closures, inlined calls and library code, for every way to build it. See `modes.rs`.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::sync::mpsc;

struct Cart<T> {
    rows: BTreeMap<String, Vec<T>>,
}

impl<T: Clone + Display> Cart<T> {
    #[inline]
    fn add(&mut self, name: &str, row: &T) {
        let rows = self.rows.entry(name.to_owned()).or_default();
        rows.push(row.clone());
    }

    fn text(&self) -> Vec<String> {
        let line = |(name, rows): (&String, &Vec<T>)| {
            let rows: Vec<String> = rows.iter().map(ToString::to_string).collect();
            format!("{name}: {}", rows.join(", "))
        };
        self.rows.iter().map(line).collect()
    }
}

fn words(text: &str) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    for word in text.split_whitespace() {
        *counts.entry(word).or_insert(0) += 1;
    }
    counts
}

fn main() {
    let text: String = std::env::args().collect::<Vec<_>>().join(" ");
    let (mut numbers, mut letters) = (
        Cart { rows: BTreeMap::new() },
        Cart { rows: BTreeMap::new() },
    );
    let mut counts: Vec<_> = words(&text).into_iter().collect();
    counts.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
    for (word, count) in counts {
        numbers.add(word, &count);
        letters.add(word, &word.to_uppercase());
    }
    let (send, receive) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        for lines in receive {
            let lines: Vec<String> = lines;
            println!("{}", lines.join("\n"));
        }
    });
    for lines in [numbers.text(), letters.text()] {
        if send.send(lines).is_err() {
            break;
        }
    }
    drop(send);
    let _ = thread.join();
}
