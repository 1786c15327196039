//! `heapray serve`

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::access::AccessArgs;
use crate::browser;
use crate::context::Context;
use crate::failure::Failure;
use crate::limit;
use crate::remote::{Client, ENDPOINTS, Timeouts};
use crate::serve::{self, Front};
use crate::symbols::{FilesArgs, say_found, say_strangers};

/// Show the live page and the reports of a running service with names that are looked up here.
///
/// For a service that is stripped, or that looks up no symbols. URL is the service's address, with its path prefix if it has
/// one. The page is at http://127.0.0.1:7077/, and the outputs are at the same paths as in the service. The service gets the token
/// with each request. The command goes on until it is ended.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The service's address.
    url: String,
    #[command(flatten)]
    access: AccessArgs,
    /// Where to listen. Everybody who reaches that address can use the service's profiler.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7077")]
    listen: SocketAddr,
    #[command(flatten)]
    files: FilesArgs,
    /// Open the page in the browser.
    #[arg(long)]
    open: bool,
    /// Longest wait for the service's answer, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=24 * 3600))]
    timeout: u64,
    /// Largest size of a report.
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = limit::size)]
    max_size: u64,
}

/// Longest time of a download.
const DOWNLOAD: Duration = Duration::from_secs(3600);

impl Args {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let timeouts = Timeouts {
            answer: Duration::from_secs(self.timeout),
            download: DOWNLOAD,
        };
        let remote = Client::new(timeouts).service(&self.url, self.access.headers())?;
        let service = remote.base().to_owned();
        let front = Arc::new(Front::new(
            remote,
            self.files.names()?,
            self.files.built(),
            self.max_size,
            context.clone(),
        ));
        let listener = TcpListener::bind(self.listen).map_err(|error| {
            let doing = format!(
                "cannot listen on {} (--listen chooses another address)",
                self.listen
            );
            Failure::io(doing, error)
        })?;
        let address = listener.local_addr();
        let address = address.map_err(|error| Failure::io("cannot listen", error))?;

        // An address, a token or a file that is wrong is said before anybody opens the page.
        let spinner = context.spinner("Asking the service");
        let first = serve::first(&front);
        spinner.finish_and_clear();
        if let Some(named) = first? {
            say_strangers(&named.report, &named, context);
            say_found(&named.report, &named, context);
        }
        let page = format!("http://{address}{ENDPOINTS}/");
        if context.json() {
            context.print_json(&json!({ "page": page, "service": service }))?;
        } else {
            context.print(&format!("{page} shows {service}; Ctrl-C ends it\n"))?;
        }
        if self.open {
            browser::open(page.as_ref())?;
        }
        serve::run(listener, front).map_err(|error| Failure::io("cannot serve", error))
    }
}
