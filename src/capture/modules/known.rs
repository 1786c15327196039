//! The list of modules that are loaded, or were earlier, and the data that is kept for each.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use super::compile::{self, UnwindSections};
use super::list::{self, Loaded, LoaderCounts, UnwindBytes};
use super::published::{self, CodeRange};
use super::table::Table;
use super::{Changed, TableSize};
use crate::capture::arch;
use crate::capture::modules::{MappedCode, Module, ModuleId};
#[cfg(heapray_native)]
use crate::capture::unwind;

/// Module that is loaded now.
#[derive(Debug, Clone, Copy)]
struct Present {
    /// Index of the module in the history.
    index: usize,
    /// The epoch in which the module was loaded.
    from: u32,
    code: Option<CodeRange>,
}

/// Time during which a module was loaded.
#[derive(Debug, Clone, Copy)]
struct Past {
    index: usize,
    from: u32,
    /// The epoch that the module's removal began.
    until: u32,
}

/// Number of past loads that are remembered. A program may load and unload modules for years.
const MOST_PAST: usize = 4096;

#[derive(Debug, Default)]
struct Known {
    counts: Option<LoaderCounts>,
    /// All modules that were ever loaded; the index is the `ModuleId`.
    history: Arc<Vec<Module>>,
    /// Loaded modules, sorted by their start.
    loaded: Vec<Present>,
    past: VecDeque<Past>,
    /// Compiled tables, by a hash of their source. A module that is loaded again gets its old table.
    tables: HashMap<u64, &'static Table>,
}

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

fn lock() -> MutexGuard<'static, Known> {
    // A panic leaves nothing half done: the list is replaced in one piece.
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Brings the published modules up to date with the loader. If nothing has changed, this costs one call of the loader.
pub fn refresh() -> Changed {
    let mut known = lock();
    #[cfg(heapray_native)]
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

/// Returns a number that goes up when a module is removed, because addresses may mean something else from then on.
#[must_use]
pub fn epoch() -> u32 {
    published::epoch_of(published::version())
}

/// Returns the module that `address` lies in now, or, if there is none, the last one that it lay in.
#[must_use]
pub fn module_of(address: u64) -> ModuleId {
    module_of_at(address, epoch())
}

/// Does what [`module_of`] does for many addresses: enters the module of each beside it.
pub fn enter_modules<'a>(addresses: impl Iterator<Item = (u64, &'a mut ModuleId)>) {
    let epoch = epoch();
    let known = lock();
    let mut last = (0..0, ModuleId::NONE);
    for (address, module) in addresses {
        // The frames of a stack are mostly in the module of the frame before.
        if !last.0.contains(&address) {
            let at = known.find_at(address);
            let present = at.filter(|&at| known.loaded[at].from <= epoch);
            last = (
                present.map_or(0..0, |at| known.addresses(at)),
                known.module_at(at, address, epoch),
            );
        }
        *module = last.1;
    }
}

/// Returns the module that `address` lay in when the [`epoch`] was `epoch`, or else the last one that it lay in.
#[must_use]
pub fn module_of_at(address: u64, epoch: u32) -> ModuleId {
    let known = lock();
    known.module_at(known.find_at(address), address, epoch)
}

/// Returns all modules that were ever loaded; the index is the [`ModuleId`].
#[must_use]
pub fn history() -> Arc<Vec<Module>> {
    Arc::clone(&lock().history)
}

/// Returns the size of all modules' rules.
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
    // `NONE` is the highest number. All modules that do not fit below it share it.
    u16::try_from(index).map_or(ModuleId::NONE, ModuleId)
}

impl Known {
    /// Returns the addresses at which the loaded module number `at` is found.
    fn addresses(&self, at: usize) -> Range<u64> {
        let module = |at: usize| Some(&self.history[self.loaded.get(at)?.index]);
        // A module may lie in a hole of the one before.
        let next = module(at + 1).map_or(u64::MAX, |next| next.start);
        module(at).map_or(0..0, |module| module.start..module.end.min(next))
    }

    /// Returns the number of the loaded module that `address` lies in.
    fn find_at(&self, address: u64) -> Option<usize> {
        let begins = |present: &Present| self.history[present.index].start <= address;
        let before = self.loaded.partition_point(begins).checked_sub(1)?;
        self.addresses(before).contains(&address).then_some(before)
    }

    /// Returns the module that `address` lay in in the epoch `epoch`, or else the last one that it lay in. `at` is the number of
    /// the loaded module that it lies in.
    fn module_at(&self, at: Option<usize>, address: u64, epoch: u32) -> ModuleId {
        let now = at.map(|at| self.loaded[at]);
        if let Some(present) = now.filter(|present| present.from <= epoch) {
            return module_id(present.index);
        }
        let past = || {
            let past = self.past.iter().rev();
            past.filter(|past| self.history[past.index].covers(address))
        };
        let then = past().find(|past| (past.from..past.until).contains(&epoch));
        let index = then
            .map(|past| past.index)
            .or(now.map(|present| present.index));
        let index = index.or_else(|| past().next().map(|past| past.index));
        index.map_or(ModuleId::NONE, module_id)
    }

    /// Returns the entry of `loaded` for a module of the loader.
    fn find(&self, loaded: &[Present], module: &Loaded, removals: bool) -> Option<Present> {
        // After a removal, a module without a build id may be another file with the same name at the same address.
        let certain = !removals || module.is_main || !module.build_id.is_empty();
        let found = loaded
            .iter()
            .find(|present| certain && self.is_same(present.index, module));
        found.copied()
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
        let mut loaded = Vec::with_capacity(modules.len());
        let mut added = Vec::new();
        for module in modules {
            match self.find(&before, &module, removals) {
                Some(present) => loaded.push(present),
                None => added.push(module),
            }
        }
        let stays = |gone: &&Present| {
            loaded
                .iter()
                .any(|present: &Present| present.index == gone.index)
        };
        let gone: Vec<Present> = before
            .iter()
            .filter(|present| !stays(present))
            .copied()
            .collect();
        let changed = Changed {
            added: added.len(),
            removed: gone.len(),
        };
        let next_epoch = epoch().wrapping_add(u32::from(!gone.is_empty()));
        for present in gone {
            if self.past.len() == MOST_PAST {
                self.past.pop_front();
            }
            self.past.push_back(Past {
                index: present.index,
                from: present.from,
                until: next_epoch,
            });
        }
        for module in added {
            loaded.push(self.add(module, next_epoch));
        }
        loaded.sort_by_key(|present| self.history[present.index].start);
        self.loaded = loaded;
        if changed != Changed::default() {
            let mut ranges: Vec<CodeRange> = self
                .loaded
                .iter()
                .filter_map(|present| present.code)
                .collect();
            ranges.sort_by_key(|range| range.start);
            published::publish(&ranges, changed.removed > 0);
        }
        changed
    }

    /// Enters a module that is new, or that is loaded again.
    fn add(&mut self, module: Loaded, from: u32) -> Present {
        let unwind = module.unwind.as_ref().zip(module.code);
        let table = unwind.and_then(|(bytes, code)| self.table(bytes, code, &module));
        let code = module
            .code
            .map(|(start, end)| CodeRange { start, end, table });
        if let Some(index) = (0..self.history.len()).find(|&index| self.is_same(index, &module)) {
            return Present { index, from, code };
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
            code: module
                .code
                .map(|code| MappedCode::around(code, module.code_offset, arch::page_size() as u64)),
            build_id: module.build_id,
            is_main: module.is_main,
        });
        Present {
            index: self.history.len() - 1,
            from,
            code,
        }
    }

    fn table(
        &mut self,
        bytes: &UnwindBytes,
        code: (u64, u64),
        module: &Loaded,
    ) -> Option<&'static Table> {
        // Addresses in `.eh_frame` are relative: the same bytes at the same distance from the code mean the same rules. The
        // program itself, by far the largest module, cannot be loaded again, so its bytes are not worth hashing.
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
        // Leaked: hooks may read it at any time, and the module may be loaded again.
        let table: &'static Table = Box::leak(Box::new(table));
        self.tables.insert(key, table);
        Some(table)
    }
}

fn program_path(given: &Path) -> PathBuf {
    std::fs::read_link("/proc/self/exe").unwrap_or_else(|_| given.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(path: &str, build_id: &[u8]) -> Loaded {
        Loaded {
            path: path.into(),
            load_bias: 0x1000,
            start: 0x1000,
            end: 0x2000,
            code: Some((0x1000, 0x2000)),
            code_offset: 0,
            build_id: build_id.to_vec(),
            is_main: false,
            unwind: None,
        }
    }

    #[test]
    fn another_module_at_the_same_place_gets_another_id_and_the_same_one_its_old_id() {
        let mut known = Known::default();
        let first = known.add(module("a.so", b"1"), 0).index;
        let rebuilt = known.add(module("a.so", b"2"), 1).index;
        let other = known.add(module("b.so", b"1"), 2).index;
        assert_eq!([first, rebuilt, other], [0, 1, 2]);
        assert_eq!(known.add(module("a.so", b"1"), 3).index, first);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn code_lies_where_the_kernel_says() {
        refresh();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let history = history();
        let program = history.iter().find(|module| module.is_main).unwrap();
        let code = program.code.unwrap();
        let line = maps
            .lines()
            .find(|line| line.starts_with(&format!("{:x}-", code.start)));
        let expected = format!("{:x}-{:x} r-xp {:08x}", code.start, code.end, code.offset);
        assert!(
            line.is_some_and(|line| line.starts_with(&expected)),
            "{expected} is not {line:?}"
        );
    }

    #[test]
    fn an_address_in_a_hole_of_a_module_is_that_of_the_module_there() {
        let mut known = Known::default();
        for (path, start, end) in [("outer", 0x1000, 0x5000), ("inner", 0x2000, 0x3000)] {
            let mut loaded = module(path, path.as_bytes());
            (loaded.start, loaded.end) = (start, end);
            let present = known.add(loaded, 0);
            known.loaded.push(present);
        }
        let found = [0x1fff, 0x2000, 0x2fff, 0xfff].map(|address| known.find_at(address));
        assert_eq!(found, [Some(0), Some(1), Some(1), None]);
        assert_eq!(
            [0, 1].map(|at| known.addresses(at)),
            [0x1000..0x2000, 0x2000..0x3000]
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn many_addresses_have_the_modules_that_each_has() {
        refresh();
        let history = history();
        let ends = |module: &Module| [module.start - 1, module.start, module.start + 1, module.end];
        let addresses: Vec<u64> = history.iter().flat_map(ends).chain([0, u64::MAX]).collect();
        let mut modules = vec![ModuleId(7_000); addresses.len()];
        enter_modules(addresses.iter().copied().zip(&mut modules));
        let expected: Vec<ModuleId> = addresses.iter().copied().map(module_of).collect();
        assert_eq!(modules, expected);
        assert!(expected.contains(&ModuleId(0)) && expected.contains(&ModuleId::NONE));
    }
}
