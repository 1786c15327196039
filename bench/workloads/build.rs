//! Compiles the C++ library of the workload `cpp`.

fn main() {
    println!("cargo::rerun-if-changed=cpp");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .opt_level(2)
        // Tail calls stay calls, because they are the frames of the call stacks.
        .flag("-fno-optimize-sibling-calls")
        .flag("-fno-omit-frame-pointer")
        .warnings(true)
        .file("cpp/index.cpp")
        .compile("heapray_bench_cpp");
}
