//! Prints the cost of capturing a call stack: `cargo run --release --example capture_cost [captures in thousands
//! [library]]`.
//!
//! Under `valgrind --tool=callgrind --toggle-collect='*capture_in_a_run*'` it counts instructions instead.
#![allow(clippy::print_stdout, clippy::unwrap_used, unreachable_pub)]

#[cfg(heapray_native)]
fn main() {
    imp::main();
}

#[cfg(not(heapray_native))]
fn main() {
    println!("only where call stacks are unwound by rules");
}

#[cfg(heapray_native)]
mod imp {
    use std::hint::black_box;
    use std::time::Duration;

    use heapray::capture::arch::registers_here;
    use heapray::capture::call_tree::CallTree;
    use heapray::capture::unwind::ThreadUnwinder;
    use heapray::capture::{memory, modules};

    struct Bench {
        unwinder: ThreadUnwinder,
        tree: CallTree,
        captures: u64,
        seed: u64,
        capturing: bool,
        run: fn(&mut Bench),
        runs: u64,
    }

    impl Bench {
        fn next(&mut self) -> u64 {
            self.seed ^= self.seed << 13;
            self.seed ^= self.seed >> 7;
            self.seed ^= self.seed << 17;
            self.seed
        }

        #[inline(always)]
        fn capture(&mut self) {
            if self.capturing {
                let registers = registers_here();
                // SAFETY: registers of the running function.
                black_box(unsafe { self.unwinder.capture(registers, &mut self.tree) });
            }
            self.captures += 1;
        }
    }

    /// Returns the CPU time of this thread, because the machine may be busy with other work.
    fn cpu_time() -> Duration {
        let mut now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: fills the structure.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    }

    type Step = fn(&mut Bench, u32);

    /// One of many functions with their own frames.
    #[inline(never)]
    fn step<const N: usize>(bench: &mut Bench, left: u32) {
        let room = [left as u8; 16];
        let room = black_box(room);
        if left == 0 {
            leaf(bench);
        } else {
            let function = STEPS[(bench.next() % STEPS.len() as u64) as usize];
            function(bench, left - 1);
        }
        black_box(room[N % 16]);
    }

    /// Goes down the same path each time: warm stacks.
    #[inline(never)]
    fn warm<const N: usize>(bench: &mut Bench, left: u32) {
        let room = black_box([left as u8; 24]);
        if left == 0 {
            for _ in 0..bench.runs {
                (bench.run)(bench);
            }
        } else if left > 3 {
            WARM[left as usize % WARM.len()](bench, left - 1);
        } else {
            WARM[(bench.next() % 8) as usize](bench, left - 1);
        }
        black_box(room[N % 16]);
    }

    /// Makes eight allocations in one function.
    #[inline(never)]
    fn capture_in_a_run(bench: &mut Bench) {
        bench.capture();
        bench.capture();
        bench.capture();
        bench.capture();
        bench.capture();
        bench.capture();
        bench.capture();
        bench.capture();
    }

    /// Calls the same three frames from eight places.
    #[inline(never)]
    fn siblings(bench: &mut Bench) {
        shared_outer(bench);
        shared_outer(bench);
        shared_outer(bench);
        shared_outer(bench);
        shared_outer(bench);
        shared_outer(bench);
        shared_outer(bench);
        shared_outer(bench);
    }

    #[inline(never)]
    fn shared_outer(bench: &mut Bench) {
        shared_inner(bench);
        black_box(&bench);
    }

    #[inline(never)]
    fn shared_inner(bench: &mut Bench) {
        leaf(bench);
        black_box(&bench);
    }

    #[inline(never)]
    fn leaf(bench: &mut Bench) {
        bench.capture();
    }

    macro_rules! table {
        ($function:ident; $($high:literal)*) => {
            [$(
                $function::<{ $high * 16 }>, $function::<{ $high * 16 + 1 }>, $function::<{ $high * 16 + 2 }>,
                $function::<{ $high * 16 + 3 }>, $function::<{ $high * 16 + 4 }>, $function::<{ $high * 16 + 5 }>,
                $function::<{ $high * 16 + 6 }>, $function::<{ $high * 16 + 7 }>, $function::<{ $high * 16 + 8 }>,
                $function::<{ $high * 16 + 9 }>, $function::<{ $high * 16 + 10 }>, $function::<{ $high * 16 + 11 }>,
                $function::<{ $high * 16 + 12 }>, $function::<{ $high * 16 + 13 }>, $function::<{ $high * 16 + 14 }>,
                $function::<{ $high * 16 + 15 }>,
            )*]
        };
    }

    static WARM: [Step; 64] = table!(warm; 0 1 2 3);
    static STEPS: [Step; 1024] = table!(step; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27
        28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63);

    /// Prints the nanoseconds per capture: the best of five runs with captures, minus the best run without.
    fn cost(bench: &mut Bench, name: &str, run: impl Fn(&mut Bench)) {
        let mut best = [f64::INFINITY; 2];
        for round in 0..10 {
            bench.capturing = round % 2 == 1;
            bench.captures = 0;
            let start = cpu_time();
            run(bench);
            let each = (cpu_time() - start).as_nanos() as f64 / bench.captures as f64;
            best[round % 2] = best[round % 2].min(each);
        }
        println!("{name:48} {:8.1} ns a capture", best[1] - best[0]);
    }

    pub fn main() {
        let mut arguments = std::env::args().skip(1);
        let thousands: u64 = arguments
            .next()
            .and_then(|text| text.parse().ok())
            .unwrap_or(200);

        let start = cpu_time();
        modules::refresh();
        println!(
            "rules of this program and its libraries: {:?}, {:?}",
            (cpu_time() - start),
            modules::table_size()
        );
        if let Some(library) = arguments.next() {
            let name = std::ffi::CString::new(library.clone()).unwrap();
            // SAFETY: the user names a library that may be loaded.
            let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY) };
            assert!(!handle.is_null(), "{library} was not loaded");
            let start = cpu_time();
            modules::refresh();
            println!(
                "with {library}: {:?}, {:?}",
                (cpu_time() - start),
                modules::table_size()
            );
        }

        let before = memory::own_bytes();
        let mut bench = Bench {
            unwinder: ThreadUnwinder::new().unwrap(),
            tree: CallTree::new().unwrap(),
            captures: 0,
            seed: 0x1234_5678_9abc_def1,
            capturing: true,
            run: capture_in_a_run,
            runs: 1,
        };
        println!(
            "a thread begins with {} bytes",
            memory::own_bytes() - before
        );
        for depth in [20, 60, 200] {
            let name = format!("a new stack for each 8, {depth} deep");
            cost(&mut bench, &name, |bench| {
                (0..thousands * 125).for_each(|_| WARM[0](bench, depth - 4))
            });
        }
        bench.runs = 1000;
        for depth in [20, 60, 200] {
            let name = format!("one stack, {depth} deep");
            cost(&mut bench, &name, |bench| {
                (0..thousands / 8).for_each(|_| WARM[0](bench, depth - 4))
            });
        }
        bench.run = siblings;
        cost(
            &mut bench,
            "the same 3 frames from 8 places, 60 deep",
            |bench| {
                (0..thousands / 8).for_each(|_| WARM[0](bench, 54));
            },
        );
        println!(
            "  the thread then has {} bytes, {} nodes",
            memory::own_bytes() - before,
            bench.tree.count()
        );
        for deep in [0, 48] {
            let name = format!("one of 1,000 random stacks, {} deep", deep + 4);
            let times = if deep == 0 {
                thousands * 100
            } else {
                thousands * 5
            };
            cost(&mut bench, &name, |bench| {
                for time in 0..times {
                    // As many different stacks as a service has call sites.
                    bench.seed = (time % 1000 + 1) * 0x9e37_79b9_7f4a_7c15;
                    STEPS[0](bench, deep);
                }
            });
        }
        println!(
            "  the thread then has {} bytes, {} nodes",
            memory::own_bytes() - before,
            bench.tree.count()
        );
        println!("  {:?}", bench.unwinder.counts());
    }
}
