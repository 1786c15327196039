#[heapray::profile]
fn tail(text: &str) -> usize {
    let _length = text.len();
    text
}

#[heapray::profile]
fn semicolon(text: &str) -> usize {
    text.len();
}

#[heapray::profile]
fn arms(number: u32) -> u32 {
    let text = match number {
        0 => "none",
        1 =>
            1,
        _ => {
            let two = 2;
            two
        }
    };
    text
}

#[heapray::profile]
fn no_else(number: u32) -> u32 {
    if number > 1 {
        number + 1
    }
}

#[heapray::profile]
fn bodies(number: u32) {
    for n in 0..number {
        n
    }
    while number > 1 {
        number + 1
    }
    let Some(_n) = Some(number) else {
        println!("goes on");
    };
}

#[heapray::profile]
fn question_mark(text: &str) -> u32 {
    let number: u32 = text.parse()?;
    number
}

#[heapray::profile]
fn no_such_method(items: Vec<u32>) -> usize {
    items
        .iter()
        .map(|item| {
            let twice = item * 2;
            twice.lenght()
        })
        .sum()
}

#[heapray::profile]
fn bound<T>(left: T, right: T) -> bool {
    left == right
}

#[heapray::profile]
fn closure() -> impl Fn(u32) -> u32 {
    |n: u32| {
        let m = n;
        "text"
    }
}

#[heapray::profile]
fn breaks() -> u32 {
    loop {
        break "text";
    }
}

#[heapray::profile]
fn exhaustive(number: Option<u32>) -> u32 {
    match number {
        Some(n) => n,
    }
}

#[heapray::profile]
fn unknown() -> u32 {
    let value = Default::default();
    missing(value)
}

fn main() {}
