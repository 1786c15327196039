//! Maps of strings on jemalloc, recorded through `heapray::Alloc`.

use heapray::Alloc;

#[global_allocator]
static GLOBAL: Alloc<tikv_jemallocator::Jemalloc> = Alloc::new(tikv_jemallocator::Jemalloc);

fn main() {
    let profiler = heapray::init();
    println!("{} bytes of JSON", programs::maps(60));
    if profiler.is_enabled() {
        heapray::shutdown().unwrap();
    }
}
