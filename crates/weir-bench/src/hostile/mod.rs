//! Hostile traffic: attacks on the rates of classes and flows, and floods of forged segments beside shaped
//! flows.

mod attacks;
pub(super) mod flood;
mod floods;

use super::Common;
use std::path::PathBuf;

/// Arguments of `weir-bench hostile`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    common: Common,
    /// Only this attack or flood, by the beginning of its name in the tables
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Forged segments a second that the floods try
    #[arg(long, value_name = "N", default_value_t = floods::PPS, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    pps: u32,
    /// Attack this build of weir too, as the gateway of a network of its own
    #[arg(long, value_name = "PROGRAM", hide = true)]
    before: Option<PathBuf>,
}

impl Args {
    fn wants(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.only.as_ref().is_none_or(|only| name.starts_with(&only.to_lowercase()))
    }
}

/// Figures of both tables.
#[derive(serde::Serialize)]
struct Figures {
    attacks: Vec<attacks::Row>,
    floods: Vec<floods::Row>,
}

pub(super) fn run(args: &Args) -> Result<(), String> {
    let attacks = attacks::run(args)?;
    let floods = floods::run(args)?;
    super::write(&args.common, &Figures { attacks, floods })
}
