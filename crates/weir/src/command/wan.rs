//! `weir wan`: the WAN emulator alone, on one interface or between two.

use super::link_options::LinkOptions;
use crate::command::error::Failure;
use crate::experiment::config::addresses;
use crate::experiment::config::diag::Fault;
use crate::experiment::config::ports::{Attach, Driving};
use crate::experiment::config::wan::{self, WanFile};
use crate::field;
use crate::output::Target;
use std::path::PathBuf;

/// Arguments of `weir wan`. The options describe a path that is equal in both directions; a file can
/// distinguish the two.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  sudo weir wan --dev eth1 --rate 10Mbit --delay 20ms --queue 100p
  sudo weir wan --lan eth0 --wan eth1 --rtt 400ms --loss 0.01%
  sudo weir wan path.toml          # [ports] and [path]; the two directions may differ

With --dev, both directions of one interface go through the emulator, whether this host is a router, a bridge or the \
end host itself. With --lan and --wan, the emulator is a bump in the wire: it joins two interfaces, and without it \
nothing passes from one to the other.

`weir ctl show` has its counters while it runs, and `weir ctl set path.wan.rate=2Mbit` changes it.")]
pub struct Args {
    /// File instead of options
    #[arg(help = "A file with [ports] and [path], instead of options", value_name = "PATH.toml", conflicts_with_all = ["dev", "lan", "wan", "rtt", LinkOptions::GROUP])]
    pub config: Option<PathBuf>,
    /// Interface whose two directions are emulated
    #[arg(long, value_name = "INTERFACE", value_parser = addresses::interface)]
    pub dev: Option<String>,
    /// Interface towards the LAN, for an emulator between two interfaces
    #[arg(long, value_name = "INTERFACE", requires = "wan", conflicts_with = "dev", value_parser = addresses::interface)]
    pub lan: Option<String>,
    /// Interface towards the WAN, for an emulator between two interfaces
    #[arg(long, value_name = "INTERFACE", requires = "lan", conflicts_with = "dev", value_parser = addresses::interface)]
    pub wan: Option<String>,
    /// Options of each direction.
    #[command(flatten)]
    pub link: LinkOptions,
    /// Round-trip time, half of it in each direction
    #[arg(long, value_name = "TIME", conflicts_with = "delay")]
    pub rtt: Option<String>,
    /// Seed of random losses, delays and damage
    #[arg(long, value_name = "N", conflicts_with = "config")]
    pub seed: Option<u64>,
    /// Write counters of both links to this file as JSON, every second and at the end
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Form of the log.
    #[command(flatten)]
    pub log: super::log::Logging,
}

impl Args {
    /// Returns the emulator that the file or the options describe.
    pub fn load(&self) -> Result<WanFile, Failure> {
        match &self.config {
            Some(file) => Ok(wan::parse(&super::source(file)?)?),
            None => self.options().map_err(|faults| {
                Failure::Input(faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("\n"))
            }),
        }
    }

    fn options(&self) -> Result<WanFile, Vec<Fault>> {
        let attach = self.attach().map_err(|fault| vec![fault])?;
        let path = self.link.path(self.rtt.as_ref())?;
        let file = WanFile { attach, driving: Driving::default(), seed: self.seed.unwrap_or(1), path };
        file.idle().map_or(Ok(file), |fault| Err(vec![fault]))
    }

    fn attach(&self) -> Result<Attach, Fault> {
        match (&self.dev, &self.lan, &self.wan) {
            (Some(dev), ..) => Ok(Attach::Dev(dev.clone())),
            (None, Some(lan), Some(wan)) if lan == wan => Err(Fault::new(
                format!("--lan and --wan are the same interface: \"{lan}\""),
                format!("for both directions of one interface: --dev {lan}"),
            )),
            (None, Some(lan), Some(wan)) => Ok(Attach::Pair { lan: lan.clone(), wan: wan.clone() }),
            _ => Err(Fault::bare("no interface: --dev eth1, or --lan eth0 --wan eth1")),
        }
    }
}

/// Runs until SIGINT or SIGTERM.
pub fn run(args: &Args) -> Result<(), Failure> {
    let file = args.load()?;
    let json = args.json.as_deref().map(Target::of_a_daemon).transpose().map_err(Failure::Input)?;
    args.log.begin()?;
    field::emulator(&file, json).map_err(Failure::Other)
}
