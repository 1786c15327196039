//! `heapray fleet`

use std::path::PathBuf;
use std::time::{Duration, Instant};

use heapray_report::Report;
use heapray_report::memray::{Version, write_aggregated};
use heapray_report::units::counted;

use crate::access::AccessArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::fleet::ask::{self, Bounds};
use crate::fleet::compare::Comparison;
use crate::fleet::figures::{Replica, median_and_worst};
use crate::fleet::page::page;
use crate::fleet::reports;
use crate::fleet::shown::{Fleet, Silent};
use crate::fleet::targets::{self, Target};
use crate::input::add_rules;
use crate::limit;
use crate::output::Destination;
use crate::remote::{Client, Remote, Timeouts};
use crate::selection::NamesArgs;

/// Ask all replicas of a service at once: what each holds, which one stands out, and by which lines.
///
/// A table shows each replica's build, resident memory, live bytes, growth, and the line that holds the most. Figures that are
/// far above the median are marked. Then the report of the replica that holds the most is compared with that of the median.
/// Nothing is stopped.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("targets").required(true).multiple(true)))]
pub(crate) struct Args {
    /// Addresses of replicas.
    #[arg(value_name = "URL", group = "targets")]
    urls: Vec<String>,
    /// File of the replicas, in JSON, as Prometheus reads it with `file_sd_configs`.
    #[arg(long, value_name = "FILE", group = "targets")]
    file: Option<PathBuf>,
    /// Name whose addresses are the replicas', and their port: `shop.prod.svc.cluster.local:7000`.
    #[arg(long, value_name = "NAME:PORT", group = "targets")]
    dns: Option<String>,
    /// Pods with these labels, as `kubectl get pods --selector` takes them. Their addresses must be reachable from here.
    #[arg(long, value_name = "SELECTOR", group = "targets")]
    kubernetes: Option<String>,
    /// Namespace of the pods; by default kubectl's.
    #[arg(long, value_name = "NAME", requires = "kubernetes")]
    namespace: Option<String>,
    /// Port of the pods; by default that of the annotation `prometheus.io/port`, or else their first one.
    #[arg(long, value_name = "PORT", requires = "kubernetes")]
    port: Option<u16>,
    #[command(flatten)]
    access: AccessArgs,
    /// Most replicas that are asked at once.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=256))]
    parallel: u16,
    /// Longest wait for the answer of a replica, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Longest time for everything, in seconds. What is not there by then is left out.
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    max_time: u64,
    /// Largest report that is downloaded.
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = limit::size)]
    max_size: u64,
    /// Download no reports: only the table.
    #[arg(long, conflicts_with = "merge")]
    no_diff: bool,
    /// Write the reports of all replicas as one capture. Each thread belongs to its replica, and its name begins with that of
    /// the replica; `heapray convert` makes it the label or column `replica`.
    #[arg(long, value_name = "FILE")]
    merge: Option<PathBuf>,
    /// Write the result as a page, too.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Overwrite files.
    #[arg(long, short)]
    force: bool,
    #[command(flatten)]
    names: NamesArgs,
}

impl Args {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let file = |path: &Option<PathBuf>| {
            let path = path.as_ref();
            path.map(|path| Destination::new(path, self.force))
                .transpose()
        };
        let html = file(&self.html)?;
        let merge = file(&self.merge)?
            .map(Destination::for_binary)
            .transpose()?;
        let to_stdout = [&html, &merge].map(|file| matches!(file, Some(Destination::Stdout)));
        if to_stdout == [true; 2] {
            let text = "only one of --merge and --html can go to standard output";
            return Err(Failure::Usage(text.into()));
        }
        let asked = self.targets()?;
        let bounds = self.bounds();
        let client = Client::new(Timeouts {
            answer: bounds.answer,
            download: bounds.max_time,
        });
        let asked = asked.into_iter().map(|target| {
            let remote = client.service(&target.url, self.access.headers())?;
            Ok((target, remote))
        });
        let asked: Vec<(Target, Remote)> = asked.collect::<Result<_, Failure>>()?;
        let (mut replicas, silent) = ask_all(&asked, bounds, context);
        let mut fleet = Fleet {
            silent,
            ..Fleet::default()
        };
        let all: Vec<&Answered<'_>> = replicas.iter().collect();
        if let Some(out) = merge.filter(|_| !all.is_empty()) {
            let merged = self.merge(&all, bounds, &out, &mut fleet, context)?;
            self.compare(&merged, bounds, &mut fleet, context)?;
        } else if !self.no_diff {
            self.compare(&all, bounds, &mut fleet, context)?;
        }
        fleet.replicas = replicas.drain(..).map(|(replica, _)| replica).collect();
        if let Some(html) = html {
            html.write(context, |out| out.write_all(page(&fleet).as_bytes()))?;
        }
        if to_stdout != [false; 2] {
            // The table would be in the middle of it.
        } else if context.json() {
            context.print_json(&fleet.as_json())?;
        } else {
            context.print(&fleet.as_text(context.width()))?;
        }
        if fleet.replicas.is_empty() {
            let all = counted(asked.len() as u64, "replica");
            return Err(Failure::Other(format!("none of {all} has answered")));
        }
        Ok(())
    }

    fn targets(&self) -> Result<Vec<Target>, Failure> {
        let urls = self.urls.iter().map(|url| targets::of_url(url));
        let mut found = urls.collect::<Result<Vec<Target>, Failure>>()?;
        if let Some(path) = &self.file {
            found.extend(targets::of_file(path)?);
        }
        if let Some(name) = &self.dns {
            found.extend(targets::of_dns(name)?);
        }
        if let Some(selector) = &self.kubernetes {
            let namespace = self.namespace.as_deref();
            found.extend(targets::of_kubernetes(selector, namespace, self.port)?);
        }
        if found.is_empty() {
            return Err(Failure::Other("there is no replica to ask".into()));
        }
        Ok(targets::distinct(found))
    }

    /// Returns the bounds of all that begins now.
    fn bounds(&self) -> Bounds {
        let max_time = Duration::from_secs(self.max_time);
        Bounds {
            at_once: usize::from(self.parallel),
            answer: Duration::from_secs(self.timeout),
            deadline: Instant::now() + max_time,
            max_time,
        }
    }

    /// Compares the replica that holds the most with the median. Where that fails, the table is still of use.
    fn compare(
        &self,
        replicas: &[&Answered<'_>],
        bounds: Bounds,
        fleet: &mut Fleet,
        context: &mut Context,
    ) -> Result<(), Failure> {
        let of: Vec<&Replica> = replicas.iter().map(|(replica, _)| replica).collect();
        let Some((median, worst)) = median_and_worst(&of) else {
            return Ok(());
        };
        let both = [replicas[median], replicas[worst]];
        let spinner = context.spinner("Comparing the replica that holds the most with the median");
        let files = ask::each(&both, bounds, |(replica, remote), left| {
            reports::download(replica, remote, self.max_size, left)
        });
        let mut read = Vec::new();
        for ((replica, _), file) in both.iter().zip(files) {
            match file.and_then(|file| reports::read(file, context.memory_limit())) {
                Ok(mut report) => {
                    add_rules(&mut report, context)?;
                    read.push(report);
                }
                Err(failure) => {
                    fleet.no_comparison = Some(format!("{}: {failure}", replica.name));
                    break;
                }
            }
        }
        if let Ok([median, worst]) = <[Report; 2]>::try_from(read) {
            let both = [(&both[0].0, median), (&both[1].0, worst)];
            fleet.comparison = Some(Comparison::of(both, self.names));
        }
        spinner.finish_and_clear();
        Ok(())
    }

    /// Writes the reports of all replicas as one. Returns those whose reports are in it.
    fn merge<'r, 'a>(
        &self,
        replicas: &[&'r Answered<'a>],
        bounds: Bounds,
        out: &Destination,
        fleet: &mut Fleet,
        context: &mut Context,
    ) -> Result<Vec<&'r Answered<'a>>, Failure> {
        let all = counted(replicas.len() as u64, "report");
        let spinner = context.spinner(&format!("Downloading {all}"));
        let memory = context.memory_limit();
        let (added, merger) = reports::merged(memory, |add| {
            ask::each(replicas, bounds, |(replica, remote), left| {
                if !replica.has_report {
                    return Err(Failure::Other("it has recorded nothing".into()));
                }
                let file = reports::download(replica, remote, self.max_size, left)?;
                add(&replica.name, file)
            })
        });
        let mut merged = Vec::new();
        for (one, added) in replicas.iter().zip(added) {
            match added {
                Ok(()) => merged.push(*one),
                Err(failure) => fleet.not_merged.push(silent(&one.0.name, one.1, &failure)),
            }
        }
        if let ([], [first, ..]) = (&merged[..], &fleet.not_merged[..]) {
            let text = format!("there is no report to merge: {}: {}", first.name, first.why);
            return Err(Failure::Other(text));
        }
        let mut report = merger.finish();
        add_rules(&mut report, context)?;
        spinner.finish_and_clear();
        out.write(context, |out| write_aggregated(&report, Version::V13, out))?;
        Ok(merged)
    }
}

/// Returns those that have answered, the one with the most live bytes first, and those that have not.
fn ask_all<'r>(
    asked: &'r [(Target, Remote)],
    bounds: Bounds,
    context: &Context,
) -> (Vec<Answered<'r>>, Vec<Silent>) {
    let all = counted(asked.len() as u64, "replica");
    let spinner = context.spinner(&format!("Asking {all}"));
    let answers = ask::each(asked, bounds, |(target, remote), left| {
        ask::state(target, remote, left.min(bounds.answer))
    });
    spinner.finish_and_clear();
    let (mut replicas, mut without) = (Vec::new(), Vec::new());
    for ((target, remote), answer) in asked.iter().zip(answers) {
        match answer {
            Ok(replica) => replicas.push((replica, remote)),
            Err(failure) => without.push(silent(&target.name, remote, &failure)),
        }
    }
    replicas.sort_by_key(|(replica, _)| std::cmp::Reverse(replica.live));
    (replicas, without)
}

fn silent(name: &str, remote: &Remote, failure: &Failure) -> Silent {
    let (url, failure) = (remote.base(), failure.to_string());
    // Failures of requests begin with the address, which is shown anyway.
    let rest = failure.strip_prefix(url);
    let why = rest.and_then(|rest| rest.split_once(": "));
    Silent {
        name: name.to_owned(),
        url: url.to_owned(),
        why: why.map_or(failure.as_str(), |(_, why)| why).to_owned(),
    }
}

/// A replica that has answered, and where it is.
type Answered<'r> = (Replica, &'r Remote);
