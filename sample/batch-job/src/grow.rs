//! A job that takes more and more memory, to show what a report has at the end.

use std::error::Error;
use std::time::Duration;

const STEP: usize = 8 << 20;

/// Allocates until an allocation fails.
pub(crate) fn without_end() -> Result<(), Box<dyn Error>> {
    let mut held: Vec<Vec<u8>> = Vec::new();
    loop {
        held.push(cache_more()?);
        println!("{} MiB", held.len() * (STEP >> 20));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[inline(never)]
fn cache_more() -> Result<Vec<u8>, Box<dyn Error>> {
    let mut more = Vec::new();
    more.try_reserve_exact(STEP)?;
    more.resize(STEP, 1);
    Ok(more)
}
