//! `weir chirp`: paced chirping as a congestion control of this host's kernel.

use crate::command::error::Failure;
use serde::Serialize;
use weir_io::bpf::chirp::{self, Flow, Problem};

/// Arguments of `weir chirp`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  sudo weir chirp check
  sudo weir chirp load
  sudo sysctl net.ipv4.tcp_congestion_control=weir_chirp
  sudo weir chirp status
  sudo weir chirp unload

Loaded, weir_chirp and weir_dctcp are congestion controls like those that the kernel has: a socket chooses them by \
TCP_CONGESTION, a host by sysctl, a route by `ip route … congctl weir_chirp`. They stay when the command ends, until they are \
unloaded or the host restarts. Without CAP_NET_ADMIN, a process can choose those only that net.ipv4.tcp_allowed_congestion_control \
names. Connections that have them when they are unloaded go on without chirps.")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

/// Action of `weir chirp`.
#[derive(clap::Subcommand, Debug)]
enum What {
    /// Register weir_chirp and weir_dctcp
    Load,
    /// Unregister them
    Unload,
    /// Show the flows of weir_chirp: phase, estimate, gain, chirps, last gap, window
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Report obstacles to loading them or to chirping on this host
    Check,
}

/// Carries out the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    match args.what {
        What::Load => load(),
        What::Unload => unload(),
        What::Status { json } => status(json),
        What::Check => check(),
    }
}

fn other(error: std::io::Error) -> Failure {
    Failure::Other(error.to_string())
}

fn load() -> Result<(), Failure> {
    super::log::begin(super::log::Form::Text)?;
    chirp::load().map_err(other)?;
    let warnings = lines(&chirp::problems());
    super::print(&format!("weir_chirp and weir_dctcp are loaded\n{warnings}"))
}

fn unload() -> Result<(), Failure> {
    let text = match chirp::unload().map_err(other)? {
        true => "weir_chirp and weir_dctcp are unloaded\n",
        false => "nothing was loaded\n",
    };
    super::print(text)?;
    match chirp::default_of_host() {
        Some(name) => super::print(&format!(
            "warning: net.ipv4.tcp_congestion_control is still {name}: connections that begin have it, without chirps, until that is set \
             to another one\n"
        )),
        None => Ok(()),
    }
}

fn check() -> Result<(), Failure> {
    let problems = chirp::problems();
    let state = if chirp::is_loaded() { "loaded" } else { "not loaded" };
    let verdict = match problems.len() {
        0 => "nothing is in the way\n".to_owned(),
        _ => lines(&problems),
    };
    super::print(&format!("weir_chirp and weir_dctcp are {state}\n{verdict}"))?;
    match problems.iter().filter(|p| p.fatal).count() {
        0 => Ok(()),
        n => Err(Failure::Other(format!("{n} of these keep them from being loaded"))),
    }
}

fn lines(problems: &[Problem]) -> String {
    let line = |p: &Problem| format!("{}: {}\n", if p.fatal { "error" } else { "warning" }, p.message);
    problems.iter().map(line).collect()
}

/// A flow as JSON.
#[derive(Serialize)]
struct Shown {
    local: String,
    remote: String,
    /// Inode of the network namespace.
    netns: u32,
    phase: &'static str,
    gap_us: f64,
    deviation_us: f64,
    gain: f64,
    rounds: u32,
    chirps: u32,
    unusable: u32,
    last_gap_us: f64,
    cwnd: u32,
    alpha: f64,
}

impl Shown {
    fn of(flow: &Flow) -> Shown {
        let (row, us) = (&flow.row, |ns: u32| f64::from(ns) / 1e3);
        Shown {
            local: flow.local.to_string(),
            remote: flow.remote.to_string(),
            netns: flow.netns,
            phase: row.phase(),
            gap_us: us(row.gap_ns),
            deviation_us: us(row.deviation_ns),
            gain: f64::from(row.gain) / 8.0,
            rounds: row.rounds,
            chirps: row.chirps,
            unusable: row.unusable,
            last_gap_us: us(row.last_gap_ns),
            cwnd: row.cwnd,
            alpha: f64::from(row.alpha) / 1024.0,
        }
    }
}

fn status(json: bool) -> Result<(), Failure> {
    let flows: Vec<Shown> = chirp::flows().map_err(other)?.iter().map(Shown::of).collect();
    if json {
        return super::write_json("-".as_ref(), &flows);
    }
    super::print(&table(&flows))
}

fn table(flows: &[Shown]) -> String {
    if flows.is_empty() {
        return "no flows\n".into();
    }
    let heading = format!(
        "{:<28} {:<28} {:<8} {:>9} {:>9} {:>5} {:>6} {:>6} {:>8} {:>9} {:>6}\n",
        "local",
        "remote",
        "phase",
        "gap us",
        "+- us",
        "gain",
        "rounds",
        "chirps",
        "unusable",
        "last us",
        "cwnd"
    );
    let row = |f: &Shown| {
        format!(
            "{:<28} {:<28} {:<8} {:>9.1} {:>9.1} {:>5.1} {:>6} {:>6} {:>8} {:>9.1} {:>6}\n",
            f.local,
            f.remote,
            f.phase,
            f.gap_us,
            f.deviation_us,
            f.gain,
            f.rounds,
            f.chirps,
            f.unusable,
            f.last_gap_us,
            f.cwnd
        )
    };
    heading + &flows.iter().map(row).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_say_which_of_them_are_fatal() {
        let problem = |fatal, message: &str| Problem { fatal, message: message.into() };
        let text = lines(&[problem(true, "no BTF"), problem(false, "fq")]);
        assert_eq!(text, "error: no BTF\nwarning: fq\n");
    }

    #[test]
    fn no_flows_are_said_to_be_none() {
        assert_eq!(table(&[]), "no flows\n");
    }
}
