//! `weir down`: removes the remains of an abnormal end from this host.

use crate::command::error::Failure;
use crate::experiment::config::addresses;
use crate::field;

/// Arguments of `weir down`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  sudo weir down
  sudo weir down --dev eth1

After a normal end nothing is left to remove, nor after `kill -9` on Linux 6.6 or newer. Whatever a running Weir uses is \
left alone.")]
pub struct Args {
    /// Remove only what belongs to this interface
    #[arg(long, value_name = "INTERFACE", value_parser = addresses::interface)]
    dev: Option<String>,
}

/// Removes the remains and lists them.
pub fn run(args: &Args) -> Result<(), Failure> {
    let removed = field::down(args.dev.as_deref()).map_err(Failure::Other)?;
    let text = match removed.as_slice() {
        [] => "nothing was left\n".to_string(),
        lines => lines.iter().map(|line| format!("{line}\n")).collect(),
    };
    let running = field::running().map_err(Failure::Other)?.into_iter().filter(|_| args.dev.is_none());
    let running: String = running.map(|dev| format!("a gateway runs on {dev} and is left alone\n")).collect();
    super::print(&(text + &running))
}
