//! `weir dashboard`: a page about a running gateway, and the API that it is made of. It is a process of its
//! own that asks the gateway as `weir ctl` does, so nothing that watches can stop what shapes.
//!
//! - `live`: the newest rows, and what has changed since a client last heard; `history`: the last 24 hours;
//! - `older`: history of before, from a Prometheus;
//! - `server`: files, the API, and the stream of changes; `page/`: the files of the page.

mod history;
mod live;
mod older;
mod server;

pub use history::BYTES as HISTORY_BYTES;

use super::metrics::{listen, place, Place};
use crate::command::error::Failure;
use crate::experiment::config::addresses;
use crate::field;
use older::Prometheus;
use server::Shared;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Arguments of `weir dashboard`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  sudo weir dashboard                                    # http://127.0.0.1:8650
  sudo weir dashboard --listen /run/weir/page.sock
  sudo weir dashboard --host weir.example.org            # behind a reverse proxy of that name
  sudo weir dashboard --history http://127.0.0.1:9090    # older history, from a Prometheus
  curl http://127.0.0.1:8650/api/v1/report

It shows the last 24 hours from when it was started on, and changes nothing.")]
pub struct Args {
    /// The interface of the gateway, if several gateways run
    #[arg(long, value_name = "INTERFACE", value_parser = addresses::interface)]
    dev: Option<String>,
    /// Serve HTTP at a loopback address, or at a Unix socket
    #[arg(long, value_name = "ADDRESS:PORT or PATH", value_parser = place, default_value = "127.0.0.1:8650")]
    listen: Place,
    /// Answer requests for this name too: that of a reverse proxy
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Take history of more than a day from the Prometheus that scrapes `weir metrics`
    #[arg(long, value_name = "http://HOST:PORT", value_parser = older::url)]
    history: Option<String>,
    /// Labels that tell this gateway's series from others', as instance="127.0.0.1:9650"
    #[arg(long, value_name = "LABELS", requires = "history", default_value = "")]
    history_labels: String,
}

/// Time between two requests for the busiest rows, and for all.
const EVERY: Duration = Duration::from_secs(1);
const ALL_EVERY: Duration = Duration::from_secs(10);

/// Runs until it is stopped.
pub fn run(args: &Args) -> Result<(), Failure> {
    field::may_ask().map_err(Failure::Other)?;
    let server = listen(&args.listen).map_err(Failure::Other)?;
    let prometheus = args.history.as_deref().map(|url| Prometheus::new(url, &args.history_labels));
    let shared = Arc::new(Shared::new(prometheus));
    let (asks, dev) = (shared.clone(), args.dev.clone());
    let asker = std::thread::Builder::new().spawn(move || ask(&asks, dev.as_deref()));
    asker.map_err(|e| Failure::Other(format!("no thread: {e}")))?;
    let at = match &args.listen {
        Place::Loopback(address) => format!("http://{address}"),
        Place::Socket(path) => path.display().to_string(),
    };
    crate::output::say(&format!("weir: the page is at {at}"));
    server::serve(&server, &shared, &server::Names::new(&args.listen, &args.host));
    Ok(())
}

/// Asks the gateway, as often as somebody wants to know.
fn ask(shared: &Shared, dev: Option<&str>) {
    let begin = Instant::now();
    let mut all_at = None;
    loop {
        let now = begin.elapsed();
        let all = all_at.is_none_or(|at| now.saturating_sub(at) >= ALL_EVERY);
        if all || shared.has_clients() {
            if all {
                all_at = Some(now);
            }
            let answer = field::report(dev, if all { "show all" } else { "show" });
            shared.heard(answer, all, now);
        }
        std::thread::sleep(EVERY);
    }
}
