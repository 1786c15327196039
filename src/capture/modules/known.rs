//! The list of modules, loaded now or earlier, and what is kept of each.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use super::compile::{self, UnwindSections};
use super::list::{self, Loaded, LoaderCounts, UnwindBytes};
use super::published::{self, CodeRange};
use super::table::Table;
use super::{Changed, TableSize};
#[cfg(all(target_arch = "x86_64", not(heapray_portable)))]
use crate::capture::unwind;
use crate::collector::snapshot::{Module, ModuleId};

/// A module of the history and when it was there.
#[derive(Debug, Clone, Copy)]
struct Stay {
    /// The epoch in which it came.
    from: u32,
    /// The epoch that its removal began, if it is gone.
    until: Option<u32>,
    code: Option<CodeRange>,
}

#[derive(Debug, Default)]
struct Known {
    counts: Option<LoaderCounts>,
    /// Everything that was ever loaded; the index is the `ModuleId`.
    history: Arc<Vec<Module>>,
    stays: Vec<Stay>,
    /// Modules that are loaded now, by their start.
    loaded: Vec<usize>,
    /// Compiled tables by what they were made from: a module that comes again gets its old one.
    tables: HashMap<u64, &'static Table>,
}

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

fn lock() -> MutexGuard<'static, Known> {
    // Nothing is left half done by a panic: the list is replaced in one piece.
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Brings the published modules up to date with the loader. Cheap if nothing has changed: one call of the loader.
pub fn refresh() -> Changed {
    let mut known = lock();
    #[cfg(all(target_arch = "x86_64", not(heapray_portable)))]
    unwind::prepare();
    let counts = list::counts();
    if known.counts == Some(counts) {
        return Changed::default();
    }
    let removals = known
        .counts
        .map_or(0, |before| counts.removed - before.removed);
    let modules = list::loaded(|module| known.find(&known.loaded, module, removals > 0).is_none());
    let changed = known.replace(modules, removals > 0);
    known.counts = Some(counts);
    changed
}

/// Goes up when a module was removed, so that addresses may mean something else from then on.
#[must_use]
pub fn epoch() -> u32 {
    published::epoch_of(published::version())
}

/// The module that `address` lies in now; one that is gone if none does and one did.
#[must_use]
pub fn module_of(address: u64) -> ModuleId {
    module_of_at(address, epoch())
}

/// The module that `address` lay in when the [`epoch`] was `epoch`; else the one that lay there last.
#[must_use]
pub fn module_of_at(address: u64, epoch: u32) -> ModuleId {
    let known = lock();
    let covers = |&index: &usize| {
        let module = &known.history[index];
        (module.start..module.end).contains(&address)
    };
    let there = |&index: &usize| {
        let stay = &known.stays[index];
        stay.from <= epoch && stay.until.is_none_or(|until| epoch < until)
    };
    let after = known
        .loaded
        .partition_point(|&index| known.history[index].start <= address);
    let now = after
        .checked_sub(1)
        .map(|before| known.loaded[before])
        .filter(covers);
    let found = now.filter(there).or_else(|| {
        let mut past = (0..known.history.len()).rev().filter(covers);
        let first = past.clone().next();
        past.find(there).or(now).or(first)
    });
    found.map_or(ModuleId::NONE, module_id)
}

/// Every module that was loaded at some time; the index is the [`ModuleId`].
#[must_use]
pub fn history() -> Arc<Vec<Module>> {
    Arc::clone(&lock().history)
}

/// How large the rules of all modules are.
#[must_use]
pub fn table_size() -> TableSize {
    let known = lock();
    let tables = known.tables.values();
    tables.fold(TableSize::default(), |sum, table| TableSize {
        rows: sum.rows + table.rows(),
        bytes: sum.bytes + table.bytes(),
    })
}

fn module_id(index: usize) -> ModuleId {
    // `NONE` is the highest number: more modules than fit below it are not told apart.
    u16::try_from(index).map_or(ModuleId::NONE, ModuleId)
}

impl Known {
    /// The history's entry for a module that the loader has.
    fn find(&self, loaded: &[usize], module: &Loaded, removals: bool) -> Option<usize> {
        // After a removal, a module without a build id may be another file that took the name and the place.
        let certain = !removals || module.is_main || !module.build_id.is_empty();
        loaded
            .iter()
            .copied()
            .find(|&index| certain && self.is_same(index, module))
    }

    fn is_same(&self, index: usize, module: &Loaded) -> bool {
        let known = &self.history[index];
        known.start == module.start
            && known.end == module.end
            && known.load_bias == module.load_bias
            && known.is_main == module.is_main
            && known.build_id == module.build_id
            && (known.is_main || known.path == module.path)
    }

    fn replace(&mut self, modules: Vec<Loaded>, removals: bool) -> Changed {
        let before = std::mem::take(&mut self.loaded);
        let mut changed = Changed::default();
        let mut loaded = Vec::with_capacity(modules.len());
        let next_epoch = epoch().wrapping_add(1);
        for module in modules {
            let index = match self.find(&before, &module, removals) {
                Some(index) => index,
                None => {
                    changed.added += 1;
                    self.add(module)
                }
            };
            loaded.push(index);
        }
        for &index in before.iter().filter(|index| !loaded.contains(index)) {
            changed.removed += 1;
            self.stays[index].until = Some(next_epoch);
        }
        if changed.removed > 0 {
            for &index in loaded.iter().filter(|index| !before.contains(index)) {
                self.stays[index].from = next_epoch;
            }
        }
        loaded.sort_by_key(|&index| self.history[index].start);
        self.loaded = loaded;
        if changed != Changed::default() {
            let mut ranges: Vec<CodeRange> = self
                .loaded
                .iter()
                .filter_map(|&index| self.stays[index].code)
                .collect();
            ranges.sort_by_key(|range| range.start);
            published::publish(&ranges, changed.removed > 0);
        }
        changed
    }

    /// Enters a module that is new, or was there before and comes again.
    fn add(&mut self, module: Loaded) -> usize {
        let table = module
            .unwind
            .as_ref()
            .zip(module.code)
            .and_then(|(bytes, code)| self.table(bytes, code, &module));
        let code = module
            .code
            .map(|(start, end)| CodeRange { start, end, table });
        let stay = Stay {
            from: epoch(),
            until: None,
            code,
        };
        let again = (0..self.history.len())
            .find(|&index| self.stays[index].until.is_some() && self.is_same(index, &module));
        if let Some(index) = again {
            self.stays[index] = stay;
            return index;
        }
        Arc::make_mut(&mut self.history).push(Module {
            path: if module.is_main {
                program_path(&module.path)
            } else {
                module.path
            },
            load_bias: module.load_bias,
            start: module.start,
            end: module.end,
            build_id: module.build_id,
            is_main: module.is_main,
        });
        self.stays.push(stay);
        self.stays.len() - 1
    }

    fn table(
        &mut self,
        bytes: &UnwindBytes,
        code: (u64, u64),
        module: &Loaded,
    ) -> Option<&'static Table> {
        // Addresses in `.eh_frame` are relative: the same bytes at the same distance from the code are the same rules.
        // The program itself, the largest by far, cannot come again, so its bytes are not worth hashing.
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let distance = bytes.frames_address.wrapping_sub(code.0);
        let frames: &[u8] = if module.is_main { &[] } else { &bytes.frames };
        let key = hasher.hash_one((
            frames,
            distance,
            code.1 - code.0,
            &module.build_id,
            module.is_main,
        ));
        if let Some(table) = self.tables.get(&key) {
            return Some(table);
        }
        let table = compile::compile(&UnwindSections {
            header: &bytes.header,
            header_address: bytes.header_address,
            frames: &bytes.frames,
            frames_address: bytes.frames_address,
            code,
        })?;
        // Leaked: hooks may read it at any time, and the module may come again.
        let table: &'static Table = Box::leak(Box::new(table));
        self.tables.insert(key, table);
        Some(table)
    }
}

fn program_path(given: &Path) -> PathBuf {
    std::fs::read_link("/proc/self/exe").unwrap_or_else(|_| given.to_owned())
}
