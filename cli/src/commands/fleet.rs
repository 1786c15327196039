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
use crate::fleet::compare::{self, Comparison};
use crate::fleet::figures::{Replica, median_and_worst};
use crate::fleet::page::page;
use crate::fleet::shown::Fleet;
use crate::fleet::targets::{self, Target};
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
    /// Time after which no other replica is asked, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    max_time: u64,
    /// Largest report that is downloaded.
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = limit::size)]
    max_size: u64,
    /// Download no reports: only the table.
    #[arg(long, conflicts_with = "merge")]
    no_diff: bool,
    /// Write the reports of all replicas as one capture. The name of each thread begins with that of its replica.
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
        let client = Client::new(Timeouts {
            answer: Duration::from_secs(self.timeout),
            download: Duration::from_secs(self.max_time),
        });
        let headers = self.access.headers();
        let asked = self.targets()?.into_iter().map(|target| {
            let remote = client.service(&target.url, headers.clone())?;
            Ok((target, remote))
        });
        let asked: Vec<(Target, Remote)> = asked.collect::<Result<_, Failure>>()?;
        let (replicas, silent) = self.ask(&asked, context)?;
        let comparison = if let Some(out) = merge {
            self.merge(&replicas, &out, context)?
        } else if self.no_diff {
            None
        } else {
            self.compare(&replicas, context)
        };
        let fleet = Fleet {
            replicas: replicas.into_iter().map(|(replica, _)| replica).collect(),
            silent,
            comparison,
        };
        if let Some(html) = html {
            html.write(context, |out| out.write_all(page(&fleet).as_bytes()))?;
        }
        if context.json() {
            context.print_json(&fleet.as_json())
        } else {
            context.print(&fleet.as_text())
        }
    }

    fn targets(&self) -> Result<Vec<Target>, Failure> {
        let mut found: Vec<Target> = self.urls.iter().map(|url| targets::of_url(url)).collect();
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

    fn bounds(&self) -> Bounds {
        let max_time = Duration::from_secs(self.max_time);
        Bounds {
            at_once: usize::from(self.parallel),
            deadline: Instant::now() + max_time,
            max_time,
        }
    }

    /// Returns those that have answered, the one with the most live bytes first, and those that have not.
    fn ask<'r>(
        &self,
        asked: &'r [(Target, Remote)],
        context: &Context,
    ) -> Result<(Vec<Answered<'r>>, Vec<Silent>), Failure> {
        let all = counted(asked.len() as u64, "replica");
        let spinner = context.spinner(&format!("Asking {all}"));
        let answers = ask::each(asked, self.bounds(), |(target, remote)| {
            ask::state(target, remote)
        });
        spinner.finish_and_clear();
        let (mut replicas, mut silent) = (Vec::new(), Vec::new());
        for ((target, remote), answer) in asked.iter().zip(answers) {
            match answer {
                Ok(replica) => replicas.push((replica, remote)),
                Err(failure) => silent.push((target.name.clone(), failure.to_string())),
            }
        }
        if let ([], [(_, why), ..]) = (&replicas[..], &silent[..]) {
            return Err(Failure::Other(format!("none of {all} has answered: {why}")));
        }
        replicas.sort_by_key(|(replica, _)| std::cmp::Reverse(replica.live));
        Ok((replicas, silent))
    }

    /// Compares the replica that holds the most with the median. Where that fails, the table is still of use.
    fn compare(&self, replicas: &[Answered<'_>], context: &Context) -> Option<Comparison> {
        let of: Vec<&Replica> = replicas.iter().map(|(replica, _)| replica).collect();
        let (median, worst) = median_and_worst(&of)?;
        let both = [&replicas[median], &replicas[worst]];
        let spinner = context.spinner("Comparing the replica that holds the most with the median");
        let reports = ask::each(&both, self.bounds(), |(replica, remote)| {
            compare::report(replica, remote, self.max_size, context.memory_limit())
        });
        spinner.finish_and_clear();
        let reports: Result<Vec<Report>, Failure> = reports.into_iter().collect();
        let reports = reports
            .inspect_err(|failure| context.note(&format!("there is no comparison: {failure}")));
        let [median, worst] = reports.ok()?.try_into().ok()?;
        let both = [(&both[0].0, median), (&both[1].0, worst)];
        Some(Comparison::of(both, self.names))
    }

    /// Writes the reports of all replicas as one, and compares two of them.
    fn merge(
        &self,
        replicas: &[Answered<'_>],
        out: &Destination,
        context: &Context,
    ) -> Result<Option<Comparison>, Failure> {
        let with_session: Vec<&Answered<'_>> = replicas
            .iter()
            .filter(|(replica, _)| replica.has_session())
            .collect();
        let all = counted(with_session.len() as u64, "report");
        let spinner = context.spinner(&format!("Downloading {all}"));
        let reports = ask::each(&with_session, self.bounds(), |(replica, remote)| {
            compare::report(replica, remote, self.max_size, context.memory_limit())
        });
        spinner.finish_and_clear();
        let (mut of, mut merged) = (Vec::new(), Vec::new());
        for ((replica, _), report) in with_session.into_iter().zip(reports) {
            match report {
                Ok(report) => {
                    of.push(replica);
                    merged.push((replica.name.clone(), report));
                }
                Err(failure) => context.note(&format!("not merged: {failure}")),
            }
        }
        if merged.is_empty() {
            return Err(Failure::Other("there is no report to merge".into()));
        }
        let compared = median_and_worst(&of).map(|(median, worst)| {
            let both = [median, worst].map(|at| (of[at], merged[at].1.clone()));
            Comparison::of(both, self.names)
        });
        let merged = compare::merged(merged);
        out.write(context, |out| write_aggregated(&merged, Version::V13, out))?;
        Ok(compared)
    }
}

/// A replica that has answered, and where it is.
type Answered<'r> = (Replica, &'r Remote);

/// A replica that has not, and why.
type Silent = (String, String);
