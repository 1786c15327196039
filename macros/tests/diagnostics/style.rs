#![warn(clippy::all, clippy::pedantic, clippy::used_underscore_binding)]
// Says that a function has no effect: a profiled one has.
#![allow(clippy::must_use_candidate)]

#[heapray::profile]
pub fn fine(numbers: &[u32]) -> u32 {
    use std::collections::HashSet;
    const LIMIT: u32 = 3;
    let mut seen = HashSet::new();
    for &number in numbers {
        if number > LIMIT || !seen.insert(number) {
            continue;
        }
        match number {
            0 => println!("none"),
            1 | 2 => {
                let text = format!("{number}");
                println!("{text}");
            }
            _ => seen.clear(),
        }
    }
    let doubled = numbers.iter().map(|number| {
        let twice = number * 2;
        twice + 1
    });
    doubled.sum()
}

/// # Errors
/// No number.
#[heapray::profile]
pub async fn asynchronous(text: &str, count: usize) -> Result<usize, std::num::ParseIntError> {
    let number: usize = text.parse()?;
    let pending = std::future::ready(number);
    let result = pending.await;
    if result > count {
        return Ok(count);
    }
    Ok(result)
}

#[heapray::profile]
pub fn not_fine(numbers: &Vec<u32>) -> bool {
    let first = numbers.iter().next();
    let length = numbers.len() as u32;
    if numbers.len() == 0 {
        return false;
    }
    for n in 0..numbers.len() {
        println!("{}", numbers[n]);
    }
    return first.map(|n| n + length).is_some();
}

fn main() {}
