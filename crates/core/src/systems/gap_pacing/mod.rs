//! Pacing at an output: the rate of a class sets the distance between its packets' starts, exactly over any
//! time.
//!
//! Two back ends have one interface, the [`Pacer`]:
//!
//! - **`gap`** counts bytes. A NIC sends back to back, so the bytes queued before a packet decide its start.
//!   Gaps between packets are filled with frames that the next switch discards (Takano et al., "Precise
//!   Software Pacing Method Using Gap Packets", IPSJ Transactions on Advanced Computing Systems 47 SIG 7,
//!   2006). No timer is involved. The pacer keeps the line's clock itself, from the bytes that it has put on
//!   the line and the time in which it was idle. It needs the rate of the line.
//! - **`clock`** has deadlines instead: a packet leaves at its time. It is for devices whose rate is unknown
//!   or meaningless (veth, TUN), and is as precise as the driver's wake-ups.
//!
//! Both share one arithmetic. The unit of the `gap` pacer is the time of a byte on the line. That of the
//! `clock` pacer is the nanosecond: a line of 8 Gb/s on which packets take no room. On a line of rate `L`, a
//! packet of `C` counted bytes in a class of rate `R` is followed by the next one of the class `C × L/R`
//! units later. The remainder of that division is carried to the next.
//!
//! - A class knows the unit at which its next packet is due. It is charged from there, however late the
//!   packet was, so that collisions cost no rate. A class with nothing to send saves no credit.
//! - Among due packets, the first to go is the one whose class is due again first (earliest deadline first).
//!   If the rates fit on the line, each packet finishes within one packet after that deadline (Jeffay, Stanat
//!   and Martel, RTSS 1991).
//! - If they do not fit, the schedule as a whole is held back, and each class has its rate's share of the
//!   line.
//! - Packets of no class use the remaining time: they go where no packet is due.
//! - A filler has [84](LEAST_ON_WIRE) to [1538](FULL_ON_WIRE) bytes on the wire. A shorter hole cannot be
//!   filled: the packet after it leaves up to 83 byte times early, and its class is charged as if it had not.
//!   Packets therefore go out in groups of at most ⌈84 / hole⌉. Where the line was idle before, it stays idle
//!   through the hole instead.
//!
//! Flow control of the far side is not handled: an arriving PAUSE frame does not stop the line's clock.

mod filler;
mod lanes;
mod line;
mod member;
mod pacer;
mod probe;
mod size;
#[cfg(test)]
mod tests;

pub use filler::{Filler, RESERVED};
pub use lanes::{Each, Lanes, Spread};
pub use pacer::{Pacer, Slot, Stats};
pub use probe::{Probe, Span};
pub use size::{Size, FULL_ON_WIRE, LEAST_ON_WIRE};

use crate::queue;
use crate::rate::Rate;
use core::fmt;

/// Source of a pacer's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum Backend {
    /// Bytes on the line.
    Gap,
    /// Deadlines.
    #[default]
    Clock,
}

impl Backend {
    /// Back ends by their names in configurations.
    pub const ALL: [(&'static str, Backend); 2] = [("gap", Backend::Gap), ("clock", Backend::Clock)];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Gap => "gap",
            Backend::Clock => "clock",
        }
    }
}

/// Bytes of a packet that a rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum Counts {
    /// The IP packet.
    #[default]
    Ip,
    /// The Ethernet frame with its FCS, padding included.
    Frame,
    /// All bytes on the wire: frame, preamble and inter-frame gap.
    Wire,
}

impl Counts {
    /// Ways of counting by their names in configurations.
    pub const ALL: [(&'static str, Counts); 3] =
        [("ip", Counts::Ip), ("frame", Counts::Frame), ("wire", Counts::Wire)];
}

/// Speed of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Target {
    /// This rate.
    Rate(Rate),
    /// This many millionths of the line's rate.
    Share(u32),
    /// The windows of its TCP flows over their round-trip times. The line's rate as long as these are not
    /// known.
    Window,
}

/// Maximum rate of a class without a rate of its own, where the line's rate is not known.
pub const FASTEST: Rate = Rate::mbit(400_000);

/// A class that is paced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Class {
    /// Speed.
    pub target: Target,
    /// Bytes that the rate counts.
    pub counts: Counts,
    /// Back end. One port has one back end.
    pub backend: Backend,
}

impl Class {
    /// Returns the rate on a line, or the highest if it varies. `None` for a zero share, or a share of an
    /// unknown rate.
    pub fn rate(&self, line: Option<Rate>) -> Option<Rate> {
        match self.target {
            Target::Rate(rate) => Some(rate),
            Target::Window => Some(line.unwrap_or(FASTEST)),
            Target::Share(millionths) => {
                Rate::from_bps(crate::rate::mul_div(line?.bps(), millionths.into(), 0, 1_000_000).0)
            }
        }
    }
}

/// A port at which classes are paced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Port {
    /// Rate of the line, if it is known.
    pub line: Option<Rate>,
    /// Kind of frame that fills gaps.
    pub filler: Filler,
    /// Source address of fillers.
    pub source: [u8; 6],
    /// Most bytes that a filler takes on the wire, by the MTU of the device. At most [`FULL_ON_WIRE`].
    pub longest: u64,
    /// Reports a hole as one run of fillers, when it ends. Set in virtual time.
    pub runs: bool,
}

impl Default for Port {
    fn default() -> Port {
        Port { line: None, filler: Filler::default(), source: [0; 6], longest: FULL_ON_WIRE, runs: false }
    }
}

/// Reasons why classes cannot be paced at a port, with the number of the class among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsound {
    /// `gap` and `clock` at one port.
    TwoBackends(usize),
    /// `gap` on a line whose rate is not known.
    NoLine(usize),
    /// A share of a line whose rate is not known.
    ShareOfNothing(usize),
    /// A rate above the line's.
    AboveLine(usize, Rate, Rate),
    /// The device takes no frame that is long enough to fill all holes. Its longest filler takes this many
    /// bytes on the wire.
    FillerTooShort(u64),
}

impl Unsound {
    /// Returns the number of the class at fault, or 0 if it is none.
    pub fn class(&self) -> usize {
        match *self {
            Unsound::TwoBackends(i) | Unsound::NoLine(i) | Unsound::ShareOfNothing(i) => i,
            Unsound::AboveLine(i, ..) => i,
            Unsound::FillerTooShort(_) => 0,
        }
    }
}

impl fmt::Display for Unsound {
    /// Writes the reason, without the name of the class.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsound::TwoBackends(_) => {
                f.write_str("classes of one direction are paced by `gap` or by `clock`, not by both")
            }
            Unsound::NoLine(_) => f.write_str("`gap` needs the rate of the line, which is not known"),
            Unsound::ShareOfNothing(_) => {
                f.write_str("its rate is a share of the line's, which is not known")
            }
            Unsound::AboveLine(_, rate, line) => write!(f, "its rate, {rate}, is above the line's, {line}"),
            Unsound::FillerTooShort(longest) => write!(
                f,
                "the device takes frames of at most {longest} bytes on the wire, and gaps need fillers of {}",
                2 * LEAST_ON_WIRE
            ),
        }
    }
}

/// Checks that these classes can be paced at this port.
pub fn check(port: &Port, classes: &[Class]) -> Result<(), Unsound> {
    for (i, class) in classes.iter().enumerate() {
        if class.backend != classes[0].backend {
            return Err(Unsound::TwoBackends(i));
        }
        if class.backend == Backend::Gap && port.line.is_none() {
            return Err(Unsound::NoLine(i));
        }
        let rate = class.rate(port.line).ok_or(Unsound::ShareOfNothing(i))?;
        if let Some(line) = port.line.filter(|&line| rate > line) {
            return Err(Unsound::AboveLine(i, rate, line));
        }
    }
    let gap = classes.first().is_some_and(|class| class.backend == Backend::Gap);
    // A hole longer than one filler is cut into equal parts. Each of them must be long enough.
    if gap && port.longest < 2 * LEAST_ON_WIRE {
        return Err(Unsound::FillerTooShort(port.longest));
    }
    Ok(())
}

/// A class with its queue, as taken by [`Pacer::new`].
pub type Queued = (Class, queue::Config);
