//! `weir reload`: a running gateway reads its configuration again.

use super::ctl;
use crate::command::error::Failure;
use crate::experiment::config::addresses;
use crate::field::Version;
use std::path::PathBuf;

/// Arguments of `weir reload`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  sudo weir reload
  sudo weir reload --dev eth1
  sudo weir reload /etc/weir/wan0.toml       # the gateway of that file's interface; an error in it is said first

The gateway reads the file that `weir run` was given and changes in place what differs: flows, handshakes and counters \
stay. A file with an error, or with a change that needs a restart, changes nothing. Whatever `weir ctl set` and \
`weir ctl off` did since the last reload is undone. The signal SIGHUP does the same.")]
pub struct Args {
    /// The file of the gateway, whose interface it names
    #[arg(value_name = "GATEWAY.toml", conflicts_with = "dev")]
    file: Option<PathBuf>,
    /// The interface of the gateway, if several gateways run
    #[arg(long, value_name = "INTERFACE", value_parser = addresses::interface)]
    dev: Option<String>,
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

/// Requests a reload and reports the changes.
pub fn run(args: &Args) -> Result<(), Failure> {
    let named =
        args.file.as_deref().map(|file| Ok::<_, Failure>(Version::read(super::source(file)?)?.file.dev));
    let dev = named.transpose()?.or_else(|| args.dev.clone());
    ctl::change(dev.as_deref(), "reload", args.json)
}
