//! Common parts of the programs.

/// Deterministic source of numbers (splitmix64).
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Returns text that compresses somewhat.
pub fn text(random: &mut Random, words: u64) -> String {
    let words: Vec<String> = (0..words)
        .map(|_| format!("word{}", random.below(5000)))
        .collect();
    words.join(" ")
}

/// Builds, merges, sorts and drops maps of strings: the same requests with any allocator. Returns a check sum.
pub fn maps(rounds: u64) -> u64 {
    let mut random = Random(7);
    let mut sum = 0;
    for _ in 0..rounds {
        let mut map = std::collections::BTreeMap::new();
        for _ in 0..500 {
            let key = text(&mut random, 2);
            map.entry(key)
                .or_insert_with(Vec::new)
                .push(text(&mut random, 5));
        }
        let json = serde_json::to_string(&map).unwrap();
        let back: std::collections::BTreeMap<String, Vec<String>> =
            serde_json::from_str(&json).unwrap();
        assert_eq!(back, map);
        sum += json.len() as u64;
    }
    sum
}
