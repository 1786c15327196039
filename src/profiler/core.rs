//! An enabled profiler: four parts, each of which owns its threads.
//!
//! ```text
//! endpoints, Profiler
//!    │      │      └──────▶ LiveFeed ────────┐     live      what watchers see, once a second, while there are any
//!    │      └─────────────▶ Lifecycle        │     control   start, stop: one at a time, in the order of the requests
//!    │                       │     │         │     recover   what killed processes left; nobody waits for it
//!    │                       │     ▼         │
//!    │                       │  FlightWriter │     flight    reports that the flight recorder asks for; never waits
//!    │                       ▼     ▼         ▼               for the other threads
//!    └────────────────────────▶ Reports ◀────┘     output    resolves frames and renders, one output at a time
//!                                  │               files     reads pieces, looks up; never waits for the others
//!                                  ▼
//!                           Machine, Store                   which session runs; what is on disk
//! ```
//!
//! A memory log has a thread of its own that reads it (`timeline`). Profiles that are pushed have one too (`push`),
//! and so have reports that are copied to an object storage (`store`). The order of all locks is
//! [`Rank`](super::lock::Rank)'s.

use std::io;
use std::path::Path;
use std::sync::Arc;

use heapray_report::known::{self, Known};

use super::Error;
use super::figures::{ProcessFigures, ProcessReader};
use super::flight::{FlightWriter, OnTrigger};
use super::lifecycle::Lifecycle;
use super::machine::Machine;
use super::reports::Reports;
use super::store::Store;
use crate::announce;
use crate::capture::signal;
use crate::config::{Config, source_url};
use crate::os::helper;
use crate::symbolize;
use crate::symbolize::about::Said;

/// An enabled profiler.
#[derive(Debug)]
pub(crate) struct Core {
    lifecycle: Arc<Lifecycle>,
    reports: Arc<Reports>,
    flight: Arc<FlightWriter>,
    process: Arc<ProcessReader>,
    #[cfg(feature = "http")]
    live: Arc<super::live::LiveFeed>,
    config: Arc<Config>,
    /// Where a memory log is written.
    #[cfg(feature = "http")]
    log_reader: Option<Arc<super::log_reader::LogReader>>,
    #[cfg(feature = "http")]
    listeners: super::listeners::Listeners,
    /// The process that this was made in; a forked child has another.
    pid: u32,
}

/// Returns the rules for call sites that are known. A file that cannot be used is a warning: recording matters more.
fn known_sites(file: Option<&Path>) -> Vec<Known> {
    known::read(file).unwrap_or_else(|error| {
        announce::warn(format_args!("no call site is known: {error}"));
        Vec::new()
    })
}

impl Core {
    /// Begins by clearing away what dead processes have left, without waiting for it.
    ///
    /// # Errors
    ///
    /// There can be no more threads.
    pub(super) fn new(config: Config, on_trigger: Option<OnTrigger>) -> io::Result<Core> {
        if config.sigusr2 && !signal::handle() {
            tracing::warn!("SIGUSR2 could not be handled: it will write no report");
        }
        symbolize::about::set_said(Said {
            own_crates: config.own_crates.clone(),
            known: known_sites(config.known_sites.as_deref()),
            source_url: source_url::template(&config.source_url, &config.commit),
            symbols: config.symbols,
        });
        if !config.helper {
            helper::switch_off();
        }
        #[cfg(not(feature = "push"))]
        if config.destination.is_some() {
            announce::warn(
                "nothing is pushed to a profile store: the program was built without heapray's feature push",
            );
        }
        #[cfg(not(feature = "store"))]
        if config.store.is_some() {
            announce::warn(
                "no report is copied to an object storage: the program was built without heapray's feature store",
            );
        }
        let config = Arc::new(config);
        let machine = Arc::new(Machine::new());
        let store = Arc::new(Store::new(&config));
        let reports = Arc::new(Reports::new(Arc::clone(&machine), Arc::clone(&store))?);
        let flight = Arc::new(FlightWriter::new(
            Arc::clone(&config),
            Arc::clone(&machine),
            Arc::clone(&store),
            Arc::clone(&reports),
            on_trigger,
        )?);
        let process = Arc::new(ProcessReader::new(Arc::clone(&store)));
        let lifecycle = Arc::new(Lifecycle::new(
            Arc::clone(&config),
            Arc::clone(&machine),
            store,
            Arc::clone(&reports),
            Arc::clone(&flight),
            Arc::clone(process.sessions()),
        )?);
        let core = Core {
            #[cfg(feature = "http")]
            live: Arc::new(super::live::LiveFeed::new(
                machine,
                Arc::clone(&reports),
                Arc::clone(&lifecycle),
            )?),
            #[cfg(feature = "http")]
            log_reader: match &config.memory_log {
                Some(_) => Some(Arc::new(super::log_reader::LogReader::new()?)),
                None => None,
            },
            #[cfg(feature = "http")]
            listeners: super::listeners::Listeners::new(),
            config,
            lifecycle,
            reports,
            flight,
            process,
            pid: std::process::id(),
        };
        core.lifecycle.recover();
        Ok(core)
    }

    /// # Errors
    ///
    /// [`Error::Forked`] in a forked child, where neither the threads nor the locks of the parent may be touched.
    pub(super) fn check_process(&self) -> Result<(), Error> {
        if std::process::id() == self.pid {
            Ok(())
        } else {
            Err(Error::Forked)
        }
    }

    pub(super) fn config(&self) -> &Arc<Config> {
        &self.config
    }

    pub(super) fn directory(&self) -> &std::path::Path {
        self.reports.directory()
    }

    pub(crate) fn lifecycle(&self) -> &Arc<Lifecycle> {
        &self.lifecycle
    }

    pub(crate) fn reports(&self) -> &Arc<Reports> {
        &self.reports
    }

    pub(super) fn flight(&self) -> &FlightWriter {
        &self.flight
    }

    /// Returns what can be said of the process at this moment without asking the collector. Blocks for moments.
    pub(crate) fn figures_blocking(&self) -> ProcessFigures {
        ProcessFigures {
            push: self.lifecycle.push_status(),
            store: self.lifecycle.store_status(),
            ..self.process.read()
        }
    }

    /// Does what [`figures_blocking`](Self::figures_blocking) does, without blocking.
    ///
    /// # Errors
    ///
    /// A panic of the profiler's.
    #[cfg(feature = "http")]
    pub(crate) async fn figures(&self) -> Result<ProcessFigures, Error> {
        let process = Arc::clone(&self.process);
        let (push, store) = (self.lifecycle.push_status(), self.lifecycle.store_status());
        let figures = self.reports.look_up(move || process.read()).await?;
        Ok(ProcessFigures {
            push,
            store,
            ..figures
        })
    }

    #[cfg(feature = "http")]
    pub(crate) fn live(&self) -> &Arc<super::live::LiveFeed> {
        &self.live
    }

    #[cfg(feature = "http")]
    pub(crate) fn log_reader(&self) -> Option<&Arc<super::log_reader::LogReader>> {
        self.log_reader.as_ref()
    }

    #[cfg(feature = "http")]
    pub(crate) fn listeners(&self) -> &super::listeners::Listeners {
        &self.listeners
    }
}
