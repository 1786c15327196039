#![warn(unused)]

use std::future::ready;

#[heapray::profile]
pub async fn tail(text: &str) -> usize {
    ready(()).await;
    text
}

#[heapray::profile]
pub async fn unused(argument: u32, mut changed: u32) -> u32 {
    let value = 1;
    ready(2);
    3
}

#[heapray::profile]
pub async fn moved(text: String) -> usize {
    let other = text;
    ready(()).await;
    text.len() + other.len()
}

#[heapray::profile]
pub async fn no_await() -> u32 {
    let number: u32 = ready(2);
    number
}

fn main() {}
