//! The command line.

use crate::command::error::Failure;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Weir controls the timing of TCP from anywhere on its path.
#[derive(Parser, Debug)]
#[command(name = "weir", version, max_term_width = 100, after_help = AFTER_HELP)]
pub struct Cli {
    /// Command to run.
    #[command(subcommand)]
    pub command: Command,
}

macro_rules! exit_codes {
    () => {
        "\
Exit codes: 0 success; 1 an expectation, parity or a rule of TCP does not hold; 2 the configuration or the command line is wrong; 3 any \
other failure, such as a missing interface or privilege; 4 inconclusive: a run in real time failed while the machine was overloaded; 130 interrupted."
    };
}

#[cfg(feature = "linux")]
const AFTER_HELP: &str = exit_codes!();
#[cfg(not(feature = "linux"))]
const AFTER_HELP: &str = concat!(
    "This build lacks run, reload, ctl, down, lab, wan, pace, shell and chirp, which need Linux and the cargo feature `linux`.

",
    exit_codes!()
);

/// Place of the benchmarks.
const BENCH: &str =
    "the benchmarks are a program of their own, weir-bench: cargo build --release -p weir-bench";

/// Checks of this host for `weir check`.
#[cfg(feature = "linux")]
const HOST_CHECKS: super::check::HostChecks = &super::check::this_host;
#[cfg(not(feature = "linux"))]
const HOST_CHECKS: super::check::HostChecks = &super::check::no_host_checks;

/// Commands of the program.
#[derive(Subcommand, Debug)]
pub enum Command {
    #[cfg(feature = "linux")]
    /// Run a gateway on an interface of this host, until SIGINT or SIGTERM
    Run(super::run::Args),
    #[cfg(feature = "linux")]
    /// Make a running gateway read its configuration again
    Reload(super::reload::Args),
    #[cfg(feature = "linux")]
    /// Query a running gateway, or change its settings
    Ctl(super::ctl::Args),
    #[cfg(feature = "linux")]
    /// Remove what Weir left on this host when it ended abnormally
    Down(super::down::Args),
    /// Parse a configuration and explain what it will do
    Check(super::check::Args),
    /// Print the JSON Schema of a file, for editors
    Schema(super::schema::Args),
    /// Run an experiment in virtual time, with simulated hosts
    Sim(super::sim::Args),
    #[cfg(feature = "linux")]
    /// Run an experiment with the real Linux TCP in network namespaces
    Lab(super::lab::Args),
    /// Compare results of one experiment and judge whether they agree
    Compare(super::compare::Args),
    /// Make the papers' figures, tables and claims again, with a verdict on each
    Repro(super::repro::Args),
    /// Compute a model's prediction for a flow
    #[command(subcommand)]
    Model(super::model::Model),
    /// Check the gateway's presets against the rules of TCP, packet by packet
    Conformance(super::conformance::Args),
    #[cfg(feature = "linux")]
    /// Run a WAN emulator on an interface of this host, or between two, until SIGINT or SIGTERM
    Wan(super::wan::Args),
    #[cfg(feature = "linux")]
    /// Pace traffic that leaves by an interface of this host, until SIGINT or SIGTERM
    Pace(super::pace::Args),
    #[cfg(feature = "linux")]
    /// Run a program behind an emulated path, without privileges
    Shell(super::shell::Args),
    #[cfg(feature = "linux")]
    /// Load paced chirping into this host's kernel as the congestion control weir_chirp
    Chirp(super::chirp::Args),
    /// Say where the benchmarks are
    #[command(hide = true)]
    Bench {
        /// Any arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        _arguments: Vec<String>,
    },
    #[cfg(feature = "linux")]
    /// Play the traffic that standard input specifies; the lab starts it
    #[command(hide = true)]
    Traffic,
    #[cfg(feature = "linux")]
    /// Run the gateway or the emulator that standard input describes; the lab starts it
    #[command(hide = true)]
    Device(super::device::Args),
}

/// Runs the command of a command line.
pub fn run(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        #[cfg(feature = "linux")]
        Command::Run(args) => super::run::run(&args),
        #[cfg(feature = "linux")]
        Command::Reload(args) => super::reload::run(&args),
        #[cfg(feature = "linux")]
        Command::Ctl(args) => super::ctl::run(&args),
        #[cfg(feature = "linux")]
        Command::Down(args) => super::down::run(&args),
        Command::Check(args) => super::check::run(&args, HOST_CHECKS),
        Command::Schema(args) => super::schema::run(&args),
        Command::Sim(args) => super::sim::run(&args),
        #[cfg(feature = "linux")]
        Command::Lab(args) => super::lab::run(&args),
        Command::Compare(args) => super::compare::run(&args),
        Command::Repro(args) => super::repro::run(&args),
        Command::Model(model) => super::model::run(&model),
        Command::Conformance(args) => super::conformance::run(&args),
        #[cfg(feature = "linux")]
        Command::Wan(args) => super::wan::run(&args),
        #[cfg(feature = "linux")]
        Command::Pace(args) => super::pace::run(&args),
        #[cfg(feature = "linux")]
        Command::Shell(args) => super::shell::run(&args),
        #[cfg(feature = "linux")]
        Command::Chirp(args) => super::chirp::run(&args),
        Command::Bench { .. } => Err(Failure::Input(BENCH.into())),
        #[cfg(feature = "linux")]
        Command::Traffic => super::traffic::run().map_err(Failure::Other),
        #[cfg(feature = "linux")]
        Command::Device(args) => super::device::run(&args),
    }
}

/// Parses the command line, runs it, and reports a failure on standard error. This is `main`.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(()) => {
            end_of_log();
            ExitCode::SUCCESS
        }
        Err(failure) => {
            last_words(&match &failure {
                Failure::Config(e) => e.to_string(),
                f => format!("weir: {f}"),
            });
            end_of_log();
            ExitCode::from(&failure)
        }
    }
}

/// Reports why the command failed, in the log if there is one.
fn last_words(text: &str) {
    #[cfg(feature = "linux")]
    if let Some(log) = weir_io::log::opened() {
        return text.lines().for_each(|line| log.write(line));
    }
    crate::output::say(text);
}

/// Waits briefly until the last lines of the log are written.
fn end_of_log() {
    #[cfg(feature = "linux")]
    weir_io::log::opened().into_iter().for_each(weir_io::log::Log::drain);
}
