//! `weir wan`: the WAN emulator alone, on one interface or between two.

use crate::config::path::{self, WanFile};
use crate::config::ports::{Attach, Driving};
use crate::config::units::{self, Fault};
use crate::error::Failure;
use crate::output::Target;
use crate::plan::{Link, Loss, Path, Probability};
use crate::run;
use std::path::PathBuf;
use weir_core::rate::Rate;
use weir_core::time::Duration;

/// Arguments of `weir wan`. Flags describe a path that is the same both ways; a file can tell the two
/// directions apart.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  sudo weir wan --dev eth1 --rate 10Mbit --delay 20ms --queue 100p
  sudo weir wan --lan eth0 --wan eth1 --rtt 400ms --loss 0.01%
  sudo weir wan path.toml          # [ports] and [path], each direction by itself

With --dev both directions of one interface, that of a router, a bridge or the end host itself, go
through the emulator. With --lan and --wan it is a bump in the wire: it joins two interfaces, and
without it nothing passes from one to the other.")]
pub struct Args {
    /// A file with [ports] and [path], instead of flags
    #[arg(value_name = "PATH.toml", conflicts_with_all = ["dev", "lan", "wan", "rate", "delay", "rtt", "loss", "loss_every", "queue"])]
    pub config: Option<PathBuf>,
    /// Interface both directions of which are emulated
    #[arg(long, value_name = "INTERFACE", required_unless_present_any = ["config", "lan", "wan"], value_parser = units::interface)]
    pub dev: Option<String>,
    /// Interface towards the LAN, of two
    #[arg(long, value_name = "INTERFACE", requires = "wan", conflicts_with = "dev", value_parser = units::interface)]
    pub lan: Option<String>,
    /// Interface towards the WAN, of two
    #[arg(long, value_name = "INTERFACE", requires = "lan", conflicts_with = "dev", value_parser = units::interface)]
    pub wan: Option<String>,
    /// Rate of each direction, e.g. 10Mbit
    #[arg(long, value_parser = units::rate)]
    pub rate: Option<Rate>,
    /// Delay of each direction, e.g. 20ms
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub delay: Option<Duration>,
    /// Round-trip time, half of it in each direction
    #[arg(long, value_name = "TIME", value_parser = units::duration, conflicts_with = "delay")]
    pub rtt: Option<Duration>,
    /// Probability that a frame is lost, e.g. 0.01% or 0.0001
    #[arg(long, value_name = "P", value_parser = units::probability)]
    pub loss: Option<Probability>,
    /// Every n-th frame is lost
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "loss")]
    pub loss_every: Option<u64>,
    /// Limit of the queue of each direction: 100p, 64KiB or 1bdp
    #[arg(long, value_name = "LIMIT", value_parser = units::queue, requires = "rate")]
    pub queue: Option<units::QueueLimit>,
    /// Seed of random loss
    #[arg(long, value_name = "N", conflicts_with = "config")]
    pub seed: Option<u64>,
    /// Write what the links did as JSON to this file, every second and at the end
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

impl Args {
    /// The emulator that the file or the flags describe.
    pub fn load(&self) -> Result<WanFile, Failure> {
        match &self.config {
            Some(file) => Ok(path::parse_wan(&super::source(file)?)?),
            None => self.flags().map_err(|fault| Failure::Input(fault.to_string())),
        }
    }

    fn flags(&self) -> Result<WanFile, Fault> {
        let attach = self.attach()?;
        let half = |up: u64| self.rtt.map(|rtt| Duration::from_nanos((rtt.as_nanos() + up) / 2));
        let (out, back) = (half(0).or(self.delay), half(1).or(self.delay));
        let (out, back) = (out.unwrap_or_default(), back.unwrap_or_default());
        let loss = match (self.loss, self.loss_every) {
            (Some(p), _) => Loss::random(p),
            (None, Some(n)) => Loss::Every(n),
            (None, None) => Loss::None,
        };
        let queue = match (self.queue, self.rate) {
            (Some(limit), Some(rate)) => path::queue_of(limit, rate, out + back)?,
            _ => Default::default(),
        };
        let link = |delay| Link { rate: self.rate, delay, loss, queue, ..Link::default() };
        let path = Path { lan: Link::default(), wan_out: link(out), wan_back: link(back) };
        let file = WanFile { attach, driving: Driving::default(), seed: self.seed.unwrap_or(1), path };
        file.idle().map_or(Ok(file), Err)
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
    super::log();
    run::emulator(&file, json).map_err(Failure::Other)
}
