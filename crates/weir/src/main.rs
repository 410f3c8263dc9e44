//! The `weir` command.

use clap::Parser;
use std::process::ExitCode;
use weir::cmd::{self, Command};

/// Weir controls the timing of TCP from anywhere on its path.
///
/// A gateway between LAN and WAN gives every TCP flow its rate by controlling ACKs instead of
/// buffering data; a WAN emulator and a lab with the real Linux TCP show what it does.
#[derive(Debug, Parser)]
#[command(name = "weir", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    ExitCode::from(cmd::run(&cli.command))
}
