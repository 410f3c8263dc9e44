//! The command line.

use crate::cmd;
use crate::error::Failure;
use clap::{Parser, Subcommand};
use std::io::Write;
use std::process::ExitCode;

/// Weir controls the timing of TCP from anywhere on its path.
#[derive(Parser, Debug)]
#[command(name = "weir", version, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 success, 1 an expectation or parity does not hold, 2 wrong configuration or command line,
3 anything else: this host lacks something, an interface is missing; 130 interrupted.";

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run a gateway on an interface of this host, until SIGINT or SIGTERM
    Run(cmd::run::Args),
    /// Remove what an abnormal end left on this host
    Down(cmd::down::Args),
    /// Parse a configuration and say what it will do
    Check(cmd::check::Args),
    /// Run an experiment in virtual time, with simulated hosts
    Sim(cmd::sim::Args),
    /// Run an experiment with the real Linux TCP in network namespaces
    Lab(cmd::lab::Args),
    /// Put results of one experiment side by side, and judge how far apart they are
    Compare(cmd::compare::Args),
    /// Run a WAN emulator on an interface of this host, or between two, until SIGINT or SIGTERM
    Wan(cmd::wan::Args),
    /// Measure the figures of the README
    #[command(subcommand)]
    Bench(cmd::bench::Bench),
    /// Play the traffic that standard input specifies; the lab starts it
    #[command(hide = true)]
    Traffic,
}

/// Runs the command of a command line.
pub fn run(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        Command::Run(args) => cmd::run::run(&args),
        Command::Down(args) => cmd::down::run(&args),
        Command::Check(args) => cmd::check::run(&args, &cmd::check::this_host),
        Command::Sim(args) => cmd::sim::run(&args),
        Command::Lab(args) => cmd::lab::run(&args),
        Command::Compare(args) => cmd::compare::run(&args),
        Command::Wan(args) => cmd::wan::run(&args),
        Command::Bench(bench) => cmd::bench::run(&bench).map_err(Failure::Other),
        Command::Traffic => cmd::traffic::run().map_err(Failure::Other),
    }
}

/// `main`: parses the command line, runs it, reports a failure on standard error.
pub fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // A closed standard error changes nothing about the exit code.
            let _ = match &failure {
                Failure::Config(e) => writeln!(std::io::stderr(), "{e}"),
                f => writeln!(std::io::stderr(), "weir: {f}"),
            };
            ExitCode::from(&failure)
        }
    }
}
