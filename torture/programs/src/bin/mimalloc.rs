//! Maps of strings on mimalloc, recorded through `heapray::Alloc`.

use heapray::Alloc;

#[global_allocator]
static GLOBAL: Alloc<mimalloc::MiMalloc> = Alloc::new(mimalloc::MiMalloc);

fn main() {
    let profiler = heapray::init();
    println!("{} bytes of JSON", programs::maps(60));
    if profiler.is_enabled() {
        heapray::shutdown().unwrap();
    }
}
