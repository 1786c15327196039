//! A folder for the files of one test.

use std::path::PathBuf;

/// A directory that is removed on drop.
pub(in crate::symbolize) struct Scratch(pub(in crate::symbolize) PathBuf);

impl Scratch {
    pub(in crate::symbolize) fn new(name: &str) -> Scratch {
        let name = format!("heapray-symbolize-{name}-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
