//! Maps of strings on the system's allocator, recorded through `heapray::Alloc`.

use heapray::Alloc;

#[global_allocator]
static GLOBAL: Alloc<std::alloc::System> = Alloc::new(std::alloc::System);

fn main() {
    let profiler = heapray::init();
    println!("{} bytes of JSON", programs::maps(60));
    if profiler.is_enabled() {
        heapray::shutdown().unwrap();
    }
}
