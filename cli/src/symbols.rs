//! Names that a capture lacks, from files of the same build.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use heapray::symbolize::{
    ElfFile, FoundBefore, FoundNames, NamedLater, SymbolFiles, can_name_later, name_later,
};
use heapray_report::Report;
use heapray_report::model::Module;
use heapray_report::units::grouped;

use crate::context::Context;
use crate::debuginfod::Debuginfod;
use crate::failure::Failure;
use crate::name_cache;

/// Where to look for files of the same build.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct FilesArgs {
    /// A program, a library, or a debug file of one, of the service's build. May be given several times.
    #[arg(long, value_name = "PATH")]
    binary: Vec<PathBuf>,
    /// A directory of debug files: by build id, as in .build-id/ab/cdef.debug, or of any name. May be given several times.
    #[arg(long, value_name = "DIR")]
    debug_dir: Vec<PathBuf>,
    /// A directory that holds the service's file system, such as an unpacked image.
    #[arg(long, value_name = "DIR")]
    sysroot: Option<PathBuf>,
    /// Ask a debuginfod server for debug files that are not here: this one, or those of DEBUGINFOD_URLS. If that variable is
    /// set, they are asked anyway.
    #[arg(long, value_name = "URL", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    debuginfod: Option<String>,
    /// Ask no server.
    #[arg(long, conflicts_with = "debuginfod")]
    offline: bool,
}

impl FilesArgs {
    /// Returns whether files are named.
    pub(crate) fn is_given(&self) -> bool {
        let has_dirs = !self.debug_dir.is_empty() || self.sysroot.is_some();
        has_dirs || !self.binary.is_empty() || self.debuginfod.is_some()
    }

    /// Returns where names are looked up.
    ///
    /// # Errors
    /// Servers are asked for, but none are named.
    pub(crate) fn names(&self) -> Result<Names, Failure> {
        Ok(Names {
            files: SymbolFiles {
                binaries: self.binary.clone(),
                debug_dirs: self.debug_dir.clone(),
                sysroot: self.sysroot.clone(),
            },
            servers: Debuginfod::new(self.debuginfod.as_deref(), self.offline)?,
            asked: BTreeSet::new(),
            before: FoundBefore::default(),
        })
    }

    /// Returns when the first of the programs was built, as its file says.
    pub(crate) fn built(&self) -> Option<SystemTime> {
        self.binary.first()?.metadata().ok()?.modified().ok()
    }
}

/// Files and servers that have names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    files: SymbolFiles,
    servers: Option<Debuginfod>,
    /// The build ids that servers were asked for.
    asked: BTreeSet<String>,
    before: FoundBefore,
}

impl Names {
    /// Looks up the names that `report` lacks. Asks servers for a file once, and keeps what they have.
    pub(crate) fn name(&mut self, report: &Report, context: &Context) -> NamedLater {
        let named = self.name_from_files(report);
        let Some(servers) = &self.servers else {
            return named;
        };
        let lacking = named.modules.iter().filter(|found| found.with_lines == 0);
        let lacking = lacking.filter_map(|found| report.modules.get(found.module));
        let asked = &mut self.asked;
        let lacking: Vec<&Module> = lacking
            .filter(|module| !module.build_id.is_empty() && asked.insert(module.build_id.clone()))
            .collect();
        let found: Vec<PathBuf> = lacking
            .into_iter()
            .flat_map(|module| {
                let name = file_name(&module.path);
                let file = servers.debug_file(&module.build_id, &name, context);
                let shared = file
                    .as_deref()
                    .and_then(ElfFile::read)
                    .map(|elf| elf.shared);
                // What several debug files share has a build id of its own.
                let shared = shared.filter(|id| !id.is_empty() && asked.insert(id.clone()));
                let shared = shared.and_then(|id| {
                    let of = format!("{name} and others");
                    servers.debug_file(&id, &of, context)
                });
                file.into_iter().chain(shared)
            })
            .collect();
        if found.is_empty() {
            return named;
        }
        self.files.binaries.extend(found);
        self.name_from_files(report)
    }

    fn name_from_files(&mut self, report: &Report) -> NamedLater {
        name_cache::load(report, &mut self.before);
        let named = name_later(report, &self.files, &mut self.before);
        name_cache::save(&mut self.before);
        named
    }
}

/// Looks up the names that `report` lacks where files of the same build are, on this machine. Says so if it finds any.
pub(crate) fn look_up_by_itself(report: &mut Report, context: &Context) -> Option<NamedLater> {
    let mut names = Names::default();
    if !context.symbolizes() || !can_name_later(report, &names.files) {
        return None;
    }
    let mut named = names.name_from_files(report);
    *report = std::mem::take(&mut named.report);
    for found in named.modules.iter().filter(|found| found.with_lines > 0) {
        let line = line(found, report);
        context.note(&format!("{line} (--no-symbolize leaves it as it is)"));
    }
    Some(named)
}

/// Says which of the named files are not of the build of `report`.
pub(crate) fn say_strangers(report: &Report, named: &NamedLater, context: &Context) {
    for stranger in &named.strangers {
        let path = stranger.path.display();
        context.note(&match &stranger.id {
            Some(id) => format!(
                "{path} is not used: its build id is {id}, and the capture has {}",
                wanted(report, named)
            ),
            None => format!("{path} is not used: it is not a 64-bit ELF file that can be read"),
        });
    }
}

/// Says what was found of each module.
pub(crate) fn say_found(report: &Report, named: &NamedLater, context: &Context) {
    for found in &named.modules {
        context.note(&line(found, report));
    }
}

/// Returns what the modules without lines are recognized by.
pub(crate) fn wanted(report: &Report, named: &NamedLater) -> String {
    let lacking = named.modules.iter().filter(|found| found.with_lines == 0);
    let modules = lacking.filter_map(|found| report.modules.get(found.module));
    let described = |module: &Module| format!("{} ({})", file_name(&module.path), identity(module));
    let described: Vec<String> = modules.map(described).collect();
    if described.is_empty() {
        return "nothing: all modules have lines".to_owned();
    }
    described.join(", ")
}

/// Returns a line about what was found of a module.
fn line(found: &FoundNames, report: &Report) -> String {
    let module = report.modules.get(found.module);
    let path = module.map_or("", |module| &*module.path);
    let numbers = [found.addresses, found.named, found.with_lines];
    let [addresses, named, with_lines] = numbers.map(|count| grouped(count as u64));
    format!("{path}: {with_lines} of {addresses} addresses have a line now, {named} a function")
}

/// Returns how a file of the module is recognized.
pub(crate) fn identity(module: &Module) -> String {
    match (&*module.build_id, &*module.hash) {
        ("", "") => "without a build id".to_owned(),
        ("", hash) => format!(
            "without a build id, htlhash {hash}: only the very same file will do; link with \
             `-C link-arg=-Wl,--build-id` to be able to use another"
        ),
        (build_id, _) => format!("build id {build_id}"),
    }
}

/// Returns the file name of a path.
pub(crate) fn file_name(path: &str) -> String {
    let name = Path::new(path).file_name();
    name.map_or_else(
        || path.to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}
