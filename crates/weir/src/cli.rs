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
Exit codes: 0 success, 1 an expectation does not hold, 2 wrong configuration or command line,
3 anything else, 130 interrupted.";

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Parse a configuration file and say what it will do
    Check(cmd::check::Args),
}

/// Runs the command of a command line.
pub fn run(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        Command::Check(args) => cmd::check::run(&args, &cmd::check::no_host_checks),
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
