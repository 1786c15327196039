#![warn(unused, unreachable_code, unused_qualifications, unused_lifetimes, unused_results)]

#[heapray::profile]
pub fn variables(unused_argument: u32) -> u32 {
    let unused = 1;
    let mut never_changed = 2;
    let mut assigned = 3;
    assigned = 4;
    never_changed
}

#[heapray::profile]
pub fn results(text: &str) {
    text.parse::<u32>();
    text.len();
    text == "a";
    let _ = (text.len());
}

#[heapray::profile]
pub fn unreachable(number: u32) -> u32 {
    if number == 1 {
        return 1;
        println!("never");
    }
    if number == 2 {
        panic!("two");
        let later = 3;
    }
    for n in 0..number {
        if n == 3 {
            break;
            drop(n);
        }
    }
    let given = stop();
    println!("{number}");
    2
}

#[heapray::profile]
fn stop() -> ! {
    loop {
        std::process::exit(1);
    }
}

#[heapray::profile]
fn never_called() {
    let inner = || {
        let unused = 1;
        2
    };
}

#[heapray::profile]
#[deprecated]
pub fn old() {}

pub fn calls() {
    old();
}

fn main() {}
