//! The workloads on jemalloc with its own profiler, set up by `MALLOC_CONF`.

use std::ffi::CString;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use heapray_bench_workloads::{Folded, Profiler, Result, Written};

#[global_allocator]
static GLOBAL: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(Default)]
struct Jemalloc {
    dump: Option<PathBuf>,
}

fn main() -> ExitCode {
    heapray_bench_workloads::main(|| Ok(Jemalloc::default()))
}

impl Profiler for Jemalloc {
    fn finish(&mut self, folder: &Path) -> Result<Written> {
        // SAFETY: `opt.prof` is a `bool`.
        if !unsafe { tikv_jemalloc_ctl::raw::read::<bool>(b"opt.prof\0") }? {
            return Ok(Written::default());
        }
        let dump = folder.join("jemalloc.heap");
        let name = CString::new(dump.as_os_str().as_bytes())?;
        // SAFETY: `prof.dump` takes a pointer to a text that ends with a zero byte, and only reads it.
        unsafe { tikv_jemalloc_ctl::raw::write(b"prof.dump\0", name.as_ptr()) }?;
        let recording_bytes = Some(dump.metadata()?.len());
        // After the dump, since this allocates, and jemalloc profiles that too.
        let control = jemalloc_pprof::PROF_CTL
            .as_ref()
            .ok_or("jemalloc does not profile")?;
        let page = folder.join("jemalloc.svg");
        // jemalloc_pprof 0.9 panics if almost nothing is live.
        let drawn = catch_unwind(AssertUnwindSafe(|| {
            control.blocking_lock().dump_flamegraph()
        }));
        let drawn = drawn.ok().and_then(std::result::Result::ok);
        let page = match drawn {
            Some(picture) => std::fs::write(&page, picture).map(|()| Some(page))?,
            None => None,
        };
        self.dump = Some(dump);
        Ok(Written {
            recording_bytes,
            page,
        })
    }

    fn folded(&mut self) -> Result<Option<Folded>> {
        let Some(dump) = &self.dump else {
            return Ok(None);
        };
        // `@ address …` lines, each followed by `t*: live: bytes [accumulated: bytes]` of all threads together.
        let (mut folded, mut frames) = (Folded::default(), None);
        for line in std::fs::read_to_string(dump)?.lines() {
            if let Some(addresses) = line.strip_prefix("@ ") {
                frames = Some(addresses.to_owned());
            } else if let Some(counts) = line.trim().strip_prefix("t*: ")
                && let Some(addresses) = frames.take()
            {
                let accumulated = counts
                    .split_once('[')
                    .and_then(|(_, rest)| rest.split_once(':'));
                let allocations = accumulated.and_then(|(count, _)| count.trim().parse().ok());
                let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(&addresses);
                folded.add(hash, addresses.split(' ').count(), allocations.unwrap_or(0));
            }
        }
        Ok(Some(folded))
    }
}
