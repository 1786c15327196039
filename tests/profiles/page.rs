//! Helpers that read pages of parallel profiles.
#![allow(dead_code)] // without the features, no test makes a page

use std::io::Read as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use flate2::read::ZlibDecoder;
use serde_json::Value;

/// Returns the path of a test's page.
pub(crate) fn page_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("parallel-{name}.html"))
}

/// A page's data.
pub(crate) struct Page {
    pub(crate) data: Value,
}

/// A piece of a task.
pub(crate) struct Piece {
    pub(crate) worker: String,
    pub(crate) depth: u64,
    pub(crate) length_ms: f64,
}

impl Page {
    pub(crate) fn read(path: &Path) -> Page {
        let html = std::fs::read_to_string(path).unwrap();
        let begin = "<script id=\"data\" type=\"application/octet-stream\">";
        let (_, rest) = html.split_once(begin).unwrap();
        let (data, _) = rest.split_once("</script>").unwrap();
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(data)
            .unwrap();
        let mut json = String::new();
        ZlibDecoder::new(&bytes[..])
            .read_to_string(&mut json)
            .unwrap();
        Page {
            data: serde_json::from_str(&json).unwrap(),
        }
    }

    pub(crate) fn workers(&self) -> Vec<String> {
        let workers = self.data["workers"].as_array().unwrap().iter();
        workers
            .map(|worker| worker["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Returns the pieces of the tasks whose name ends with `name`.
    pub(crate) fn tasks(&self, name: &str) -> Vec<Piece> {
        let tasks = &self.data["tasks"];
        let column = |column: &str, at: usize| tasks[column][at].as_u64().unwrap();
        let workers = self.workers();
        (0..tasks["name"].as_array().unwrap().len())
            .filter(|&at| {
                let of = &self.data["task_names"][column("name", at) as usize];
                of.as_str().unwrap().ends_with(name)
            })
            .map(|at| Piece {
                worker: workers[column("worker", at) as usize].clone(),
                depth: column("depth", at),
                length_ms: column("length", at) as f64 / 1e6,
            })
            .collect()
    }

    /// Returns the share of the samples in the function or in functions that it called.
    pub(crate) fn share_of(&self, function: &str) -> f64 {
        let functions = self.data["functions"].as_array().unwrap().iter();
        let samples = functions
            .filter(|one| one["name"].as_str().unwrap().ends_with(function))
            .map(|one| one["cumulative"][0].as_u64().unwrap())
            .max();
        samples.unwrap_or(0) as f64 / self.data["samples"].as_u64().unwrap().max(1) as f64
    }

    /// Sums the CPU time of the workers whose names begin with `name`.
    pub(crate) fn cpu_ms(&self, name: &str) -> f64 {
        let workers = self.data["workers"].as_array().unwrap().iter();
        workers
            .filter(|worker| worker["name"].as_str().unwrap().starts_with(name))
            .map(|worker| worker["cpu_ns"].as_u64().unwrap() as f64 / 1e6)
            .sum()
    }
}
