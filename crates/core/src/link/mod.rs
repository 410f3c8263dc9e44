//! The WAN emulator's elements, and one direction of a path made of them.
//!
//! A frame that enters a [`Link`] passes, in this order:
//!
//! 1. **loss**: the path's own losses: random, periodic, in bursts or from a trace;
//! 2. **queue**: a [`Queue`](crate::queue::Queue) of one of the disciplines. It holds only frames that wait
//!    for the rate, and its limit never counts frames in flight (an emulator that mixes the two drops frames
//!    of a long path at any load);
//! 3. **server**: takes one frame after the other from the queue and serializes it at the rate, exact to the
//!    byte, with remainders carried. With a trace of [`Opportunities`] it lets a number of bytes leave at
//!    once;
//! 4. **damage**: frames that come out twice, or with a flipped bit;
//! 5. **propagation line**: a delay without a limit, with jitter on top of it, and late frames that others
//!    overtake.
//!
//! The departure of a frame is computed when it leaves the queue, so the rate may change while frames wait
//! ([`Link::set_rate`], or a trace of [`Rates`]). A link without a rate has no queue either: frames go
//! straight into the line.
//!
//! The rate counts IP bytes plus [`Config::overhead`] per packet, in [cells](Config::cells) if the link has
//! them. A giant frame is charged as the packets that it stands for (each repeats the headers), and counts as
//! that many in the queue. It is serialized as a whole and comes out when its last packet would.
//!
//! Frames are parked in the pool while they wait and while they are serialized. The storage of a line's
//! frames grows by doubling, up to the most that the line ever holds.

mod bottleneck;
mod burst;
mod change;
mod changes;
mod damage;
mod deliveries;
mod jitter;
mod line;
mod loss;
mod path;
mod pipe;
mod ring;
mod server;
mod stats;
#[cfg(test)]
mod tests;
mod trace;
mod wire;

pub use crate::queue::{Aqm, QueueLimit};
pub use burst::Burst;
pub use damage::Damage;
pub use jitter::{Jitter, Law, Reorder};
pub use loss::{Loss, TRILLION};
pub use path::Path;
pub use stats::LinkStats;
pub use trace::{LossTrace, Opportunities, RateTrace, Rates};

use crate::frame::{Charge, Frame};
use crate::node::{Cx, Node, Port, PortSet, Transmit};
use crate::packet::{Cells, LinkLayer};
use crate::rate::Rate;
use crate::stats::{DropReason, Drops};
use crate::time::{Duration, Time};
use bottleneck::Bottleneck;
use loss::Losses;
use pipe::Pipe;
use wire::Wire;

/// One direction of a path. The default is a bare wire: no rate, no delay, no loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Config {
    /// Bits per second. `None` for a link that never delays a frame by a rate. With a trace this is its mean
    /// rate, used for limits in round trips.
    pub rate: Option<Rate>,
    /// Changes of the rate over time, if it is not constant.
    pub trace: Option<RateTrace>,
    /// Start of the traces.
    pub epoch: Time,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// Random time on top of the delay.
    pub jitter: Jitter,
    /// Frames that others overtake.
    pub reorder: Reorder,
    /// Losses of the path itself.
    pub loss: Loss,
    /// Frames that come out twice, or broken.
    pub damage: Damage,
    /// Limit of the queue in front of the rate. Default: 1,000 packets.
    pub queue: QueueLimit,
    /// Step marking: a packet of an ECN-capable transport is marked with Congestion Experienced if *more*
    /// than this waits when it arrives. This is the threshold K of DCTCP (Alizadeh et al., SIGCOMM 2010,
    /// §3.1: marked if the occupancy is greater than K upon arrival). It counts like the queue's limit:
    /// waiting frames, without the one being serialized. A giant frame is marked as a whole. `None`, the
    /// default, marks nothing.
    pub mark: Option<QueueLimit>,
    /// Active queue management, which drops or marks while there is room. With it, `mark` has no effect.
    pub aqm: Aqm,
    /// Bytes charged for each packet on top of its IP packet. 0, the default, counts IP bytes. See
    /// [`Config::NETEM`], [`Config::FRAME`] and [`Config::WIRE`].
    pub overhead: u16,
    /// Cells that carry each packet with its overhead.
    #[serde(default)]
    pub cells: Cells,
    /// Depth of the token bucket in bytes, as the rate counts them. After an idle time this many leave at
    /// once. 0, the default, is a wire: each bit takes its time.
    pub burst: u64,
    /// Resolution of the timer of the token bucket: a frame that waits for tokens leaves at a multiple of it,
    /// together with all others that have theirs by then. Zero, the default, waits exactly.
    pub timer: Duration,
    /// Seed of the random draws. Losses, damage, jitter and reordering have a generator each.
    pub seed: u64,
}

impl Config {
    /// [`Config::overhead`] of Linux queueing disciplines: with the Ethernet header, without tags and FCS.
    pub const NETEM: u16 = 14;
    /// [`Config::overhead`] with Ethernet header and FCS.
    pub const FRAME: u16 = 18;
    /// [`Config::overhead`] with all that an Ethernet sends: preamble (8), header (14), FCS (4) and
    /// inter-frame gap (12).
    pub const WIRE: u16 = 38;

    /// A bare wire, whose rate would count as Linux does if it had one: the start of a configuration.
    pub const BARE: Config = Config {
        rate: None,
        trace: None,
        epoch: Time::ZERO,
        delay: Duration::ZERO,
        jitter: Jitter::NONE,
        reorder: Reorder::NONE,
        loss: Loss::None,
        damage: Damage::NONE,
        queue: QueueLimit::Packets(1000),
        mark: None,
        aqm: Aqm::None,
        overhead: Config::NETEM,
        cells: Cells::None,
        burst: 0,
        timer: Duration::ZERO,
        seed: 0,
    };

    /// Returns whether a link of this configuration treats frames alike for any headers, so that it need not
    /// read them.
    fn ignores_headers(&self) -> bool {
        let Config {
            damage,
            mark,
            aqm,
            rate: _,
            trace: _,
            epoch: _,
            delay: _,
            jitter: _,
            reorder: _,
            loss: _,
            queue: _,
            overhead: _,
            cells: _,
            burst: _,
            timer: _,
            seed: _,
        } = self;
        *damage == Damage::NONE && mark.is_none() && *aqm == Aqm::None
    }

    /// Returns the bytes that the rate counts for a packet of `ip` bytes.
    pub fn bytes(&self, ip: u64) -> u64 {
        self.cells.carry(ip + u64::from(self.overhead))
    }

    #[inline(never)]
    fn charge_in_cells(&self, frame: &Frame, head: &[u8]) -> Charge {
        let layer = LinkLayer {
            overhead: i16::try_from(self.overhead).unwrap_or(i16::MAX),
            mpu: 0,
            cells: self.cells,
        };
        Charge::on_link(frame, head, &layer)
    }

    /// Returns whether the link has no effect on frames: no rate, no delay, no jitter, no loss, no damage.
    pub fn is_bare(&self) -> bool {
        let in_time = self.jitter.by == Duration::ZERO && !self.reorder.overtakes();
        let whole = self.loss == Loss::None && self.damage == Damage::NONE;
        self.rate.is_none() && self.delay == Duration::ZERO && in_time && whole
    }
}

/// One direction of a path: in on [`Link::IN`], out on [`Link::OUT`].
#[derive(Debug)]
pub struct Link {
    config: Config,
    takes_drafts: bool,
    losses: Losses,
    serializer: Serializer,
    wire: Wire,
    /// Frames dropped before the queue.
    lost: Drops,
    received: u64,
    sent: u64,
}

/// Service at the rate. It is matched for each frame, so its kind is a number of its own.
#[derive(Debug)]
#[repr(u8)]
enum Serializer {
    /// No rate: frames go straight into the line.
    None,
    /// A rate and a queue of the simplest kind, with a line of their own.
    Pipe(Pipe),
    /// Any other queue and rate.
    Bottleneck(Bottleneck),
}

impl Serializer {
    fn new(config: &Config) -> Serializer {
        let Some(rate) = config.rate else { return Serializer::None };
        Pipe::new(config, rate)
            .map_or_else(|| Serializer::Bottleneck(Bottleneck::new(config, rate)), Serializer::Pipe)
    }
}

impl Link {
    /// Port at which frames enter.
    pub const IN: Port = Port(0);
    /// Port at which frames leave.
    pub const OUT: Port = Port(1);

    /// Returns a link with this configuration.
    pub fn new(config: Config) -> Link {
        Link {
            config,
            takes_drafts: config.ignores_headers(),
            losses: Losses::new(config.loss, config.seed),
            serializer: Serializer::new(&config),
            wire: Wire::new(&config),
            lost: Drops::default(),
            received: 0,
            sent: 0,
        }
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }
    /// Returns the frames that come out next, as far as they are known by now. Their receiver may prefetch
    /// the state of their flows.
    #[inline]
    pub fn coming<const N: usize>(&self) -> [Option<&Frame>; N] {
        match &self.serializer {
            Serializer::Pipe(pipe) => pipe.coming(),
            _ => self.wire.line.coming(),
        }
    }

    /// Advances the link to `cx.now`: frames serialized by then are in the propagation line. Calls of nodes
    /// do this themselves. It is meant for samplers that read the queue or the statistics between them.
    #[inline(always)]
    pub fn advance(&mut self, cx: &mut Cx<'_>) {
        match &mut self.serializer {
            Serializer::None => {}
            Serializer::Pipe(pipe) => pipe.advance(cx.now, &mut self.wire),
            Serializer::Bottleneck(bottleneck) => bottleneck.advance(cx, &mut self.wire),
        }
    }

    /// Changes the rate from `cx.now` on. The rest of the frame being serialized is sent at the new rate, and
    /// limits in round trips ([`QueueLimit::Bdp`]) follow. On a link without a rate, frames on their way stay
    /// there. A trace ends here, and a frame that an opportunity has sent in part is sent from its beginning.
    /// Ask for the deadline again afterwards.
    pub fn set_rate(&mut self, cx: &mut Cx<'_>, rate: Rate) {
        self.advance(cx);
        (self.config.rate, self.config.trace) = (Some(rate), None);
        match &mut self.serializer {
            // Frames in flight without a rate stay in the line.
            none @ Serializer::None => *none = Serializer::Bottleneck(Bottleneck::new(&self.config, rate)),
            Serializer::Pipe(pipe) => pipe.set_rate(cx.now, rate),
            Serializer::Bottleneck(bottleneck) => bottleneck.set_rate(cx, &self.config, rate),
        }
    }

    /// Returns the time at which the next frame is out, on the line or still to be serialized. [`Time::MAX`]
    /// for never. The lateness of a frame is drawn as it enters the line. Where frames may be late, entering
    /// the line is therefore a deadline of its own.
    #[inline]
    pub fn due(&self) -> Time {
        match &self.serializer {
            Serializer::None => self.wire.line.due(),
            Serializer::Pipe(pipe) => pipe.due(),
            Serializer::Bottleneck(bottleneck) => self.due_behind(bottleneck),
        }
    }

    #[inline(never)]
    fn due_behind(&self, bottleneck: &Bottleneck) -> Time {
        let (out, exact) = (self.wire.line.due(), self.wire.line.is_exact());
        if exact && out < Time::MAX {
            return out;
        }
        out.min(bottleneck.due(self.config.delay, exact).unwrap_or(Time::MAX))
    }

    /// Advances the link to `cx.now`. Returns whether a frame is out.
    #[inline(always)]
    pub fn is_out(&mut self, cx: &mut Cx<'_>) -> bool {
        self.advance(cx);
        match &self.serializer {
            Serializer::Pipe(pipe) => pipe.due() <= cx.now,
            _ => self.wire.line.due() <= cx.now,
        }
    }

    /// Returns the next frame that is out, and its exit time. Panics if there is none, see [`Link::is_out`].
    #[inline(always)]
    pub fn take_out(&mut self) -> (Time, Frame) {
        self.sent += 1;
        match &mut self.serializer {
            Serializer::Pipe(pipe) => pipe.take(),
            _ => self.wire.line.take(),
        }
    }

    /// Returns the next frame that is out by `cx.now`, and its exit time.
    #[inline]
    fn take(&mut self, cx: &mut Cx<'_>) -> Option<(Time, Frame)> {
        self.is_out(cx).then(|| self.take_out())
    }

    /// Drops a frame on its way to the queue.
    #[inline(never)]
    fn lose(&mut self, cx: &mut Cx<'_>, frame: Frame, reason: DropReason) {
        self.advance(cx);
        self.lost.count(reason);
        cx.drop(frame, reason);
    }
}

impl Node for Link {
    #[inline]
    fn takes_drafts(&self) -> bool {
        self.takes_drafts
    }

    #[inline(always)]
    fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        self.received += 1;
        if port != Link::IN {
            return self.lose(cx, frame, DropReason::NotWired);
        }
        if let Some(reason) = self.losses.next() {
            return self.lose(cx, frame, reason);
        }
        let head = if frame.is_draft() { &[] } else { cx.frames.bytes(&frame) };
        let charge = match self.config.cells {
            Cells::None => Charge::of(&frame, head, self.config.overhead),
            _ => self.config.charge_in_cells(&frame, head),
        };
        match &mut self.serializer {
            Serializer::None => self.wire.pass(cx, frame, charge),
            Serializer::Pipe(pipe) => {
                pipe.advance(cx.now, &mut self.wire);
                pipe.arrive(cx, &mut self.wire, frame, charge);
            }
            Serializer::Bottleneck(bottleneck) => bottleneck.take_in(cx, &mut self.wire, frame, charge),
        }
    }

    #[inline]
    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        if !writable.contains(Link::OUT) {
            self.advance(cx);
            return None;
        }
        let (at, frame) = self.take(cx)?;
        Some(Transmit { port: Link::OUT, at, frame })
    }

    /// Returns the time at which the next frame is out. Serialization is caught up with, and has no deadlines
    /// of its own, except where frames may be late.
    #[inline]
    fn next_deadline(&self, writable: PortSet) -> Option<Time> {
        Some(self.due()).filter(|&due| due < Time::MAX && writable.contains(Link::OUT))
    }
}
