//! `weir upgrade`: running gateways go on with this version of Weir.

use crate::command::error::Failure;
use crate::experiment::config::addresses;
use crate::field;
use crate::field::control::Answer;
use std::path::{Path, PathBuf};

/// Arguments of `weir upgrade`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  sudo weir upgrade                          # all gateways of this host: the package does it
  sudo weir upgrade --dev eth1
  sudo weir upgrade --program /opt/weir-0.2.0/bin/weir

Each gateway executes the program in its own process, with its configuration as it runs. Connections, flows \
and counters go on, unless the new version keeps other records. First the program is tried with the same \
arguments: if that fails, nothing has changed. Gateways in other network namespaces are reached from there \
(`ip netns exec`).")]
pub struct Args {
    /// Only the gateway on this interface
    #[arg(long, value_name = "INTERFACE", value_parser = addresses::interface)]
    dev: Option<String>,
    /// Program that takes over, instead of this one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Print the answers as JSON, a line each
    #[arg(long)]
    json: bool,
}

/// Upgrades one gateway after the other, and reports each.
pub fn run(args: &Args) -> Result<(), Failure> {
    let program = program(args.program.as_deref())?;
    let named = args.dev.clone().map(|dev| vec![dev]);
    let mut devs = named.map_or_else(field::running, Ok).map_err(Failure::Other)?;
    // Emulators have a path of their own that ends with them.
    devs.retain(|dev| args.dev.is_some() || !field::is_emulator(dev));
    if devs.is_empty() && !args.json {
        super::print("no gateway runs here\n")?;
    }
    let mut failed = Vec::new();
    for dev in devs {
        let text = field::upgrade(&dev, &program).map_err(Failure::Other)?;
        let answer: Answer = serde_json::from_str(&text)
            .map_err(|e| Failure::Other(format!("the gateway's answer cannot be read ({e}): {text}")))?;
        match answer {
            _ if args.json => super::print(&text)?,
            Answer { ok: true, ref text, .. } => super::print(&format!("{text}\n"))?,
            _ => {}
        }
        if !answer.ok {
            failed.push(format!("{dev}: {}", answer.text));
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::Other(failed.join("\n"))),
    }
}

/// Returns the path of the program that takes over, which the gateways' processes find, too.
fn program(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let unusable = |path: &Path, error| Failure::Input(format!("{}: {error}", path.display()));
    match named {
        Some(path) => path.canonicalize().map_err(|error| unusable(path, error)),
        None => std::env::current_exe().map_err(|error| Failure::Other(error.to_string())),
    }
}
