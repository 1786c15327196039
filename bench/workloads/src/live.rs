//! A heap of many live blocks, like that of a service that keeps documents, maps and texts.

use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;

use serde_json::Value;

use crate::measure::{Result, Stretch, resident, second_thread};
use crate::options::Options;
use crate::profiler::Profiler;
use crate::random::Random;
use crate::stacks;

/// Document that is parsed again and again; about thirty blocks.
const DOCUMENT: &str = r#"{"id": 4711, "customer": {"name": "Ada", "city": "London", "tags": ["new", "paper", "post"]},
    "lines": [{"item": "bolt M4", "count": 200, "price": 3.5}, {"item": "nut M4", "count": 200, "price": 2.25},
              {"item": "washer", "count": 1000, "price": 1.0}], "note": "to be delivered before noon"}"#;

/// Number of blocks of each: a document, and an entry of each map.
const OF_DOCUMENT: usize = 31;
const OF_ENTRIES: usize = 5;

/// Number of frames below which all of it happens.
const DEPTH: usize = 20;

#[derive(Debug, Default)]
pub(crate) struct Heap {
    documents: Vec<Option<Value>>,
    by_name: HashMap<String, Box<[u8]>>,
    by_number: BTreeMap<u64, String>,
    texts: Vec<Option<String>>,
}

/// Builds the heap, replaces blocks, frees half; prints the memory of each part. Returns the rest.
pub(crate) fn run(options: &Options, profiler: &mut dyn Profiler) -> Result<Heap> {
    let blocks = options.number("blocks", 2_000_000)? as usize;
    let mut heap = Heap::default();
    let mut random = Random::new(1);
    let process = std::process::id();
    second_thread();
    println!("rss_before={}", resident(process)?.now);
    let stretch = Stretch::begin();
    stacks::trunk(DEPTH, &mut || heap.build(blocks));
    let full = resident(process)?;
    stacks::trunk(DEPTH, &mut || heap.churn(blocks / 4, &mut random));
    stacks::trunk(DEPTH, &mut || heap.free_half());
    merge_free_blocks();
    stretch.end(profiler);
    let most = resident(process)?.most;
    println!("blocks={blocks}\nrss_live={}\nrss_most={most}", full.now);
    Ok(heap)
}

/// Lets glibc merge the free blocks now. It puts that off until a large block is asked for or freed, so a profiler that does so
/// after the work would pay for it, and the unprofiled program would not.
fn merge_free_blocks() {
    drop(black_box(Vec::<u8>::with_capacity(1 << 16)));
}

impl Heap {
    /// Builds half of the blocks in documents, half in maps and texts.
    #[inline(never)]
    fn build(&mut self, blocks: usize) {
        for _ in 0..blocks / 2 / OF_DOCUMENT {
            self.documents.push(document());
        }
        for number in 0..blocks / 2 / OF_ENTRIES {
            self.enter(number as u64);
        }
    }

    #[inline(never)]
    fn enter(&mut self, number: u64) {
        let name = name(number);
        self.by_name.insert(name, vec![0; 24].into());
        self.by_number.insert(number, name_of(number));
        self.texts
            .push(Some(format!("entry {number} of the texts")));
        self.texts.push(Some(format!("{number:032}")));
    }

    /// Replaces about `blocks` blocks, in random places.
    #[inline(never)]
    fn churn(&mut self, blocks: usize, random: &mut Random) {
        for _ in 0..blocks / 2 / OF_DOCUMENT {
            let place = random.below(self.documents.len() as u64) as usize;
            self.documents[place] = document();
        }
        let entries = self.by_number.len() as u64;
        for _ in 0..blocks / 2 / OF_ENTRIES {
            let number = random.below(entries);
            self.by_name.remove(&name(number));
            self.by_name.insert(name(number), vec![1; 40].into());
            self.by_number.insert(number, name_of(number + 1));
            let place = random.below(self.texts.len() as u64) as usize;
            self.texts[place] = Some(format!("{number:048}"));
        }
    }

    #[inline(never)]
    fn free_half(&mut self) {
        for document in self.documents.iter_mut().step_by(2) {
            *document = None;
        }
        for text in self.texts.iter_mut().step_by(2) {
            *text = None;
        }
        let mut number = 0_u64;
        self.by_name.retain(|_, _| {
            number += 1;
            number.is_multiple_of(2)
        });
        self.by_number.retain(|number, _| number.is_multiple_of(2));
    }
}

#[inline(never)]
fn document() -> Option<Value> {
    black_box(serde_json::from_str(DOCUMENT).ok())
}

#[inline(never)]
fn name(number: u64) -> String {
    format!("the name of entry {number}")
}

#[inline(never)]
fn name_of(number: u64) -> String {
    format!("the text of {number}")
}
