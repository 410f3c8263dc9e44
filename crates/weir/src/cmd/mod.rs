//! The commands of `weir`, one module each.
//!
//! Exit codes: 0 success, 1 a failed `[[expect]]`, 2 bad input or a host that lacks something,
//! 3 interrupted.

pub mod bench;
pub mod check;
pub mod gateway;
pub mod lab;
pub mod traffic;
pub mod wan;

use clap::Subcommand;
use std::path::Path;

/// A command and its arguments.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a gateway between two interfaces of this host, until SIGINT or SIGTERM.
    Run(gateway::Arguments),
    /// Parse a configuration or experiment file and say what it would do; nothing is changed.
    Check(check::Arguments),
    /// Run an experiment with the real Linux TCP in network namespaces.
    Lab(lab::Arguments),
    /// Run a WAN emulator between two interfaces of this host, until SIGINT or SIGTERM.
    Wan(wan::Arguments),
    /// Measure the figures of the README.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// The lab's traffic generator: plays the specification on standard input.
    #[command(hide = true)]
    Traffic,
}

/// How a command ends other than well.
#[derive(Debug)]
pub enum Failure {
    /// A check of the experiment failed.
    Expect,
    /// Bad input, or a host that lacks something; the message says what and where.
    Input(String),
    /// Stopped before its end.
    Interrupted,
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure::Input(message)
    }
}

/// Runs a command and returns what the process exits with.
pub fn run(command: &Command) -> u8 {
    let ended = match command {
        Command::Run(a) => gateway::run(a),
        Command::Check(a) => check::run(a),
        Command::Lab(a) => lab::run(a),
        Command::Wan(a) => wan::run(a),
        Command::Bench(b) => bench::run(b).map_err(Failure::from),
        Command::Traffic => traffic::run().map_err(Failure::from),
    };
    match ended {
        Ok(()) => 0,
        Err(Failure::Expect) => 1,
        Err(Failure::Input(message)) => {
            eprintln!("{}", message.trim_end());
            2
        }
        Err(Failure::Interrupted) => 3,
    }
}

/// Log lines to standard error, without control characters.
fn log() {
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).with_target(false);
    // A second start in one process (tests) keeps the first.
    let _ = log.try_init();
}

/// Writes `text` to `path`, `-` being standard output.
fn write_text(path: &Path, text: &str) -> Result<(), Failure> {
    if path.as_os_str() == "-" {
        print!("{text}");
        return Ok(());
    }
    std::fs::write(path, text).map_err(|e| Failure::Input(format!("{}: {e}", path.display())))
}
