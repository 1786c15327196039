//! rayon: a pool of threads that sorts, folds and collects.

use programs::{Random, text};
use rayon::prelude::*;
use std::collections::HashMap;

fn main() {
    rayon::ThreadPoolBuilder::new()
        .num_threads(8)
        .build_global()
        .unwrap();
    let texts: Vec<String> = (0..20_000_u64)
        .into_par_iter()
        .map(|seed| text(&mut Random(seed), 20))
        .collect();
    let counts = texts
        .par_iter()
        .map(|text| {
            let mut counts: HashMap<String, u64> = HashMap::new();
            for word in text.split(' ') {
                *counts.entry(word.to_owned()).or_default() += 1;
            }
            counts
        })
        .reduce(HashMap::new, |mut sum, more| {
            for (word, count) in more {
                *sum.entry(word).or_default() += count;
            }
            sum
        });
    assert_eq!(counts.values().sum::<u64>(), 20_000 * 20);
    let mut sorted = texts.clone();
    sorted.par_sort();
    assert!(sorted.is_sorted());
    println!("{} words, {} texts", counts.len(), sorted.len());
}
