#[heapray::profile]
fn moved(text: String) -> usize {
    let other = text;
    text.len() + other.len()
}

#[heapray::profile]
fn borrowed_twice() -> usize {
    let mut items = vec![1, 2];
    let first = &items[0];
    items.push(3);
    for item in &items {
        items.push(*item);
    }
    *first as usize
}

#[heapray::profile]
fn dangling<'a>() -> &'a str {
    let text = String::new();
    &text
}

#[heapray::profile]
fn temporary() -> usize {
    let text = String::from("a").as_str();
    text.len()
}

#[heapray::profile]
fn escapes(items: &mut Vec<&'static str>) {
    let owned = String::new();
    let push = || items.push("x");
    items.clear();
    push();
    items.push(&owned);
}

#[heapray::profile]
fn in_a_thread(text: &str) {
    std::thread::spawn(|| {
        let length = text.len();
        println!("{length}");
    });
}

#[heapray::profile]
fn not_mutable(number: u32) -> u32 {
    let sum = 0;
    while number > sum {
        sum += 1;
    }
    sum
}

fn main() {}
