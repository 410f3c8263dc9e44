//! `weir wan`: the WAN emulator alone, between two interfaces.

use crate::config::gateway::{Ports, XdpMode};
use crate::config::path::{self, WanFile};
use crate::config::units::{self, Fault};
use crate::error::Failure;
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
  sudo weir wan --lan eth0 --wan eth1 --rate 10Mbit --delay 20ms --queue 100p
  sudo weir wan --lan eth0 --wan eth1 --rtt 400ms --loss 0.01%
  sudo weir wan path.toml          # [ports] and [path], each direction by itself")]
pub struct Args {
    /// A file with [ports] and [path], instead of flags
    #[arg(value_name = "PATH.toml", conflicts_with_all = ["lan", "wan", "rate", "delay", "rtt", "loss", "loss_every", "queue"])]
    pub config: Option<PathBuf>,
    /// Interface towards the LAN
    #[arg(long, value_name = "INTERFACE", required_unless_present = "config")]
    pub lan: Option<String>,
    /// Interface towards the WAN
    #[arg(long, value_name = "INTERFACE", required_unless_present = "config")]
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
        let interface = |name: &Option<String>| name.as_deref().map_or(Ok(String::new()), units::interface);
        let (lan, wan) = (interface(&self.lan)?, interface(&self.wan)?);
        if lan == wan {
            return Err(Fault::bare(format!("--lan and --wan are the same interface: \"{lan}\"")));
        }
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
        let ports = Ports::new(lan, wan, XdpMode::Auto);
        let seed = self.seed.unwrap_or(1);
        Ok(WanFile {
            ports,
            seed,
            path: Path { lan: Link::default(), wan_out: link(out), wan_back: link(back) },
        })
    }
}

/// An emulator's error is how late it wakes.
const SPIN: Duration = Duration::from_micros(50);
/// The kernel's packet processing shares its processor, and must get its turn for every frame.
const PRIORITY: u8 = 0;

/// Runs until SIGINT or SIGTERM.
pub fn run(args: &Args) -> Result<(), Failure> {
    let file = args.load()?;
    super::log();
    let emulator = run::Emulator {
        name: "wan".into(),
        seed: file.seed,
        out: file.path.wan_out,
        back: file.path.wan_back,
    };
    run::emulator(&super::run::ports(&file.ports, SPIN, PRIORITY), &emulator, args.json.clone())
        .map_err(Failure::Input)
}
