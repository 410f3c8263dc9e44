//! `weir device` (hidden): a gateway or an emulator of the lab, which standard input describes.

use crate::command::error::Failure;
use crate::execute::lab::Device;
use crate::field::{self, Version};
use crate::output::Target;
use std::path::PathBuf;

/// Arguments of `weir device`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Write the report to this file as JSON, every second and at the end
    #[arg(long, value_name = "FILE")]
    json: PathBuf,
}

/// Runs the device of the first line of standard input until SIGINT or SIGTERM.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).map_err(|e| Failure::Input(e.to_string()))?;
    let device: Device =
        serde_json::from_str(&line).map_err(|e| Failure::Input(format!("standard input: {e}")))?;
    let json = Some(Target::of_a_daemon(&args.json).map_err(Failure::Input)?);
    super::log::begin(super::log::Form::Text)?;
    match device {
        Device::Gateway(file) => {
            let seed = super::random_seed().map_err(Failure::Other)?;
            field::gateway(Version::of(*file), None, seed, json)
        }
        Device::Emulator(file) => field::emulator(&file, json),
    }
    .map_err(Failure::Other)
}
