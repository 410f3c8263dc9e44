//! Pacing at an output: packets of a class start as far apart as its rate says, exact over any time.
//!
//! Two back ends have one interface, the [`Pacer`]:
//!
//! - **`gap`** counts bytes. A NIC sends back to back, so a packet's start is decided by the bytes queued before it, and a hole between
//!   packets is filled with frames that the next switch discards (Takano et al., "Precise Software Pacing Method Using Gap Packets",
//!   IPSJ Transactions on Advanced Computing Systems 47 SIG 7, 2006). No timer decides anything. The pacer keeps the line's clock itself:
//!   bytes that it has put on the line, and time where it had nothing to put. It needs the rate of the line.
//! - **`clock`** has deadlines instead: a packet leaves at its time. It is for devices whose rate is not known or means
//!   nothing (veth, TUN), and is as precise as the driver's wake-ups.
//!
//! Both are one arithmetic. The `gap` pacer's unit is the time of a byte on the line, the `clock` pacer's is the nanosecond: a line of 8 Gb/s on
//! which packets take no room. On a line of rate `L`, a packet of `C` counted bytes in a class of rate `R` is followed by the next one
//! of the class `C × L/R` units later, and the remainder of that division is carried to the next.
//!
//! - A class knows the unit at which its next packet is due. It is charged from there, however late the packet was, so that what collides
//!   loses nothing. A class that had nothing to send saves nothing.
//! - Of the packets that are due, the one goes first whose class is due again first (earliest deadline first). If the rates
//!   fit on the line, no packet is through later than one packet after that deadline (Jeffay, Stanat and Martel, RTSS 1991).
//! - If they do not fit, the schedule as a whole is held back, and each class has its rate's share of the line.
//! - Packets of no class take what is left: they go where no packet is due.
//! - A filler has [84](LEAST_ON_WIRE) to [1538](FULL_ON_WIRE) bytes on the wire. A hole of fewer bytes cannot be filled: the packet after it leaves up to 83
//!   byte times early, and its class is charged as if it had not. So packets go out in groups of at most ⌈84 / hole⌉.
//!   Where the line has been idle before, it stays idle for as long instead.
//!
//! What is left out: flow control of the far side (a PAUSE frame that comes in does not stop the line's clock).

mod filler;
mod line;
mod member;
mod pacer;
mod probe;
mod size;
#[cfg(test)]
mod tests;

pub use filler::{Filler, RESERVED};
pub use pacer::{Pacer, Slot, Stats};
pub use probe::{Probe, Span};
pub use size::{Size, FULL_ON_WIRE, LEAST_ON_WIRE};

use crate::queue;
use crate::rate::Rate;
use core::fmt;

/// What keeps the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Backend {
    /// Bytes on the line.
    Gap,
    /// Deadlines.
    #[default]
    Clock,
}

impl Backend {
    /// By the names that configurations have for them.
    pub const ALL: [(&'static str, Backend); 2] = [("gap", Backend::Gap), ("clock", Backend::Clock)];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Gap => "gap",
            Backend::Clock => "clock",
        }
    }
}

/// Which bytes of a packet a rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Counts {
    /// Those of the IP packet.
    #[default]
    Ip,
    /// Those of the Ethernet frame with its FCS, padding included.
    Frame,
    /// All that it takes on the wire: the frame, preamble and inter-frame gap.
    Wire,
}

impl Counts {
    /// By the names that configurations have for them.
    pub const ALL: [(&'static str, Counts); 3] =
        [("ip", Counts::Ip), ("frame", Counts::Frame), ("wire", Counts::Wire)];
}

/// How fast a class sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// At this rate.
    Rate(Rate),
    /// At so many millionths of the line's rate.
    Share(u32),
    /// At the windows of its TCP flows over their round-trip times; as long as these are not known, as fast as the line.
    Window,
}

/// A class without a rate of its own is not faster than this, where that of the line is not known.
pub const FASTEST: Rate = Rate::mbit(400_000);

/// A class that is paced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// How fast it sends.
    pub target: Target,
    /// Which bytes that counts.
    pub counts: Counts,
    /// By what it is paced. One port has one back end.
    pub backend: Backend,
}

impl Class {
    /// Its rate on a line, the highest if it varies. `None` for a share of no line, or of nothing.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Rate of the line, if it has one that is known.
    pub line: Option<Rate>,
    /// What holes are filled with.
    pub filler: Filler,
    /// Source address of fillers.
    pub source: [u8; 6],
    /// Most bytes that a filler takes on the wire, by the MTU of the device; at most [`FULL_ON_WIRE`].
    pub longest: u64,
    /// Is a hole told of as one run of fillers, when it ends? In virtual time it is.
    pub runs: bool,
}

impl Default for Port {
    fn default() -> Port {
        Port { line: None, filler: Filler::default(), source: [0; 6], longest: FULL_ON_WIRE, runs: false }
    }
}

/// Why classes cannot be paced at a port, with the number of the class among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsound {
    /// `gap` and `clock` at one port.
    TwoBackends(usize),
    /// `gap`, and the line has no rate that is known.
    NoLine(usize),
    /// A share of a line whose rate is not known.
    ShareOfNothing(usize),
    /// A rate above the line's.
    AboveLine(usize, Rate, Rate),
    /// The device takes no frame that is long enough to fill all holes: a filler may take so many bytes on the wire.
    FillerTooShort(u64),
}

impl Unsound {
    /// The number of the class at fault, if it is one.
    pub fn class(&self) -> usize {
        match *self {
            Unsound::TwoBackends(i) | Unsound::NoLine(i) | Unsound::ShareOfNothing(i) => i,
            Unsound::AboveLine(i, ..) => i,
            Unsound::FillerTooShort(_) => 0,
        }
    }
}

impl fmt::Display for Unsound {
    /// Of the class, without its name.
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

/// Can these classes be paced at this port?
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
    // A hole that is longer than one filler is cut into equal ones, each of which must be long enough.
    if gap && port.longest < 2 * LEAST_ON_WIRE {
        return Err(Unsound::FillerTooShort(port.longest));
    }
    Ok(())
}

/// A class with its queue, as a [`Pacer`] is made of them.
pub type Queued = (Class, queue::Config);
