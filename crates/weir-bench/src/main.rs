//! The command `weir-bench`. Everything is in the library.

use clap::Parser;
use std::process::ExitCode;
use weir::command::error::Failure;

/// Measures the figures of docs/measurements.md
#[derive(Parser)]
#[command(name = "weir-bench", version, max_term_width = 100)]
struct Cli {
    /// Benchmark to run.
    #[command(subcommand)]
    bench: weir_bench::Bench,
}

fn main() -> ExitCode {
    match weir_bench::run(&Cli::parse().bench).map_err(Failure::Other) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("weir-bench: {failure}");
            ExitCode::from(&failure)
        }
    }
}
