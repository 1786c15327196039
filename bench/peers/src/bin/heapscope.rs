//! The workloads with heapscope. `HEAPSCOPE_SAMPLE`: bytes between samples; without it every allocation is recorded.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::path::Path;
use std::process::ExitCode;

use heapray_bench_workloads::{Folded, Profiler, Result, Written};

#[global_allocator]
static GLOBAL: heapscope::Alloc = heapscope::Alloc::system();

struct Heapscope(heapscope::Profiler);

fn main() -> ExitCode {
    heapray_bench_workloads::main(|| {
        let mut builder = heapscope::Profiler::builder()
            .no_output()
            .max_live_blocks(4_000_000);
        if let Ok(bytes) = std::env::var("HEAPSCOPE_SAMPLE") {
            builder = builder.sampling(bytes.parse()?);
        }
        Ok(Heapscope(builder.build()?))
    })
}

impl Profiler for Heapscope {
    fn facts(&mut self) -> Vec<(&'static str, f64)> {
        let stats = self.0.stats();
        vec![
            ("recorded", stats.total_blocks as f64),
            ("live", stats.curr_blocks as f64),
        ]
    }

    fn finish(&mut self, folder: &Path) -> Result<Written> {
        let (recording, page) = (folder.join("heapscope.json"), folder.join("heapscope.html"));
        self.0.save_html(&page)?;
        self.0.save_native(&recording)?;
        Ok(Written {
            recording_bytes: Some(recording.metadata()?.len()),
            page: Some(page),
        })
    }

    fn folded(&mut self) -> Result<Option<Folded>> {
        let mut folded = Folded::default();
        for point in &self.0.snapshot().points {
            let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(&point.frames);
            folded.add(hash, point.frames.len(), point.counters.total_blocks);
        }
        Ok(Some(folded))
    }
}
