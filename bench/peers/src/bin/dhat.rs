//! The workloads with dhat.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use heapray_bench_workloads::{Folded, Profiler, Result, Written};
use serde_json::Value;

#[global_allocator]
static GLOBAL: dhat::Alloc = dhat::Alloc;

struct Dhat {
    profiler: Option<dhat::Profiler>,
    file: PathBuf,
}

fn main() -> ExitCode {
    heapray_bench_workloads::main(|| {
        let file = std::env::var_os("DHAT_FILE").unwrap_or_else(|| "/dev/null".into());
        let file = PathBuf::from(file);
        Ok(Dhat {
            profiler: Some(dhat::Profiler::builder().file_name(&file).build()),
            file,
        })
    })
}

impl Profiler for Dhat {
    fn facts(&mut self) -> Vec<(&'static str, f64)> {
        let stats = dhat::HeapStats::get();
        vec![
            ("recorded", stats.total_blocks as f64),
            ("live", stats.curr_blocks as f64),
        ]
    }

    fn finish(&mut self, _folder: &Path) -> Result<Written> {
        // Dropping it writes the file. There is no flame graph: dhat's viewer shows trees.
        drop(self.profiler.take());
        Ok(Written {
            recording_bytes: Some(self.file.metadata()?.len()),
            page: None,
        })
    }

    fn folded(&mut self) -> Result<Option<Folded>> {
        let file: Value = serde_json::from_slice(&std::fs::read(&self.file)?)?;
        let mut folded = Folded::default();
        for point in file["pps"].as_array().into_iter().flatten() {
            let frames = point["fs"].as_array().ok_or("a point without frames")?;
            let numbers: Vec<_> = frames.iter().filter_map(Value::as_u64).collect();
            let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(numbers);
            folded.add(hash, frames.len(), point["tbk"].as_u64().unwrap_or(0));
        }
        Ok(Some(folded))
    }
}
