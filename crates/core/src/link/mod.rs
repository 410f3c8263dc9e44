//! The WAN emulator's elements, and one direction of a path made of them.
//!
//! A frame that enters a [`Link`] passes, in this order:
//!
//! 1. **loss**: the path's own losses: random, periodic, in bursts or from a trace;
//! 2. **queue**: a [`Queue`](crate::queue::Queue) of one of the disciplines.
//!    Only frames that wait for the rate are in it, and its limit never counts frames in flight (an emulator that mixes
//!    the two drops frames of a long path at any load);
//! 3. **server**: takes one frame after the other from the queue and serializes it at the rate, exact to the byte, with
//!    remainders carried; with a trace of [`Opportunities`] it lets a number of bytes leave at once;
//! 4. **damage**: frames that come out twice, or with a bit flipped;
//! 5. **propagation line**: a delay without a limit, with jitter on top of it, and frames that come late, so that others overtake them.
//!
//! The departure of a frame is computed when it leaves the queue. So the rate may change while frames wait
//! ([`Link::set_rate`], or a trace of [`Rates`]). A link without a rate has no queue either: frames go straight into the line.
//!
//! The rate counts IP bytes plus [`Config::overhead`] per packet. A giant frame is charged as the
//! packets that it stands for (each repeats the headers), counts as that many in the queue, is serialized as a
//! whole and comes out when its last packet would.
//!
//! Frames are parked in the pool while they wait and while they are serialized. The storage of a line's frames grows by doubling, up to
//! the most that the line ever holds.

mod bottleneck;
mod burst;
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
use crate::rate::Rate;
use crate::stats::{DropReason, Drops};
use crate::time::{Duration, Time};
use bottleneck::Bottleneck;
use loss::Losses;
use pipe::Pipe;
use wire::Wire;

/// One direction of a path. The default is a bare wire: no rate, no delay, no loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Config {
    /// Bits per second; `None` for a link that never makes a frame wait. With a trace, whose rate this is on average, it says what
    /// is counted in round trips.
    pub rate: Option<Rate>,
    /// What the rate does over time, where it is not one rate.
    pub trace: Option<RateTrace>,
    /// When traces begin.
    pub epoch: Time,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// What frames take longer than that.
    pub jitter: Jitter,
    /// Frames that others overtake.
    pub reorder: Reorder,
    /// The path's own losses.
    pub loss: Loss,
    /// Frames that come out twice, or broken.
    pub damage: Damage,
    /// What the queue in front of the rate holds. Default: 1,000 packets.
    pub queue: QueueLimit,
    /// Step marking: a packet of an ECN-capable transport that finds *more* than this waiting as it arrives is
    /// marked with Congestion Experienced, the threshold K of DCTCP (Alizadeh et al., SIGCOMM 2010, §3.1: marked
    /// if the occupancy is greater than K upon arrival). Counted as the queue's limit is: frames
    /// that wait, not the one being serialized. A giant frame is marked as a whole. `None`, the
    /// default, marks nothing.
    pub mark: Option<QueueLimit>,
    /// What the queue drops or marks while there is room; with it, `mark` means nothing.
    pub aqm: Aqm,
    /// Bytes that each packet costs on top of its IP packet. 0, the default, counts IP bytes; see
    /// [`Config::NETEM`], [`Config::FRAME`] and [`Config::WIRE`].
    pub overhead: u16,
    /// Depth of the token bucket in bytes: after a time without frames so many leave at once, as the rate counts
    /// them. 0, the default, is a wire: each bit takes its time.
    pub burst: u64,
    /// Seed of what is random: losses, damage, jitter, reordering, each drawn for itself.
    pub seed: u64,
}

impl Config {
    /// [`Config::overhead`] that counts as Linux queueing disciplines do: with the Ethernet header,
    /// without tags and FCS.
    pub const NETEM: u16 = 14;
    /// [`Config::overhead`] that counts Ethernet header and FCS.
    pub const FRAME: u16 = 18;
    /// [`Config::overhead`] that counts everything an Ethernet sends: preamble (8), header (14), FCS (4)
    /// and inter-frame gap (12).
    pub const WIRE: u16 = 38;

    /// A bare wire, whose rate would count as Linux does if it had one: what a configuration begins with.
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
        burst: 0,
        seed: 0,
    };

    /// Is everything that a link with this does the same for any headers, so that it need not read them?
    fn ignores_headers(&self) -> bool {
        let Config { rate, trace, epoch, delay, jitter, reorder, loss, queue, overhead, burst, seed, .. } =
            *self;
        let same = Config {
            rate,
            trace,
            epoch,
            delay,
            jitter,
            reorder,
            loss,
            queue,
            overhead,
            burst,
            seed,
            ..Config::BARE
        };
        *self == same
    }

    /// Is there nothing that a frame would notice: no rate, no delay, no jitter, no loss, no damage?
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
    /// Dropped before the queue.
    lost: Drops,
    received: u64,
    sent: u64,
}

/// What makes frames wait for the rate. Its kind is looked at for each frame, and is a number of its own.
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
    /// Where frames come in.
    pub const IN: Port = Port(0);
    /// Where they leave.
    pub const OUT: Port = Port(1);

    /// A link as configured.
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

    /// What the link was told to do.
    pub fn config(&self) -> &Config {
        &self.config
    }
    /// The frames that come out next, as far as they are known by now: whoever gets them may load what is kept of their flows.
    #[inline]
    pub fn coming<const N: usize>(&self) -> [Option<&Frame>; N] {
        match &self.serializer {
            Serializer::Pipe(pipe) => pipe.coming(),
            _ => self.wire.line.coming(),
        }
    }

    /// Brings the link up to `cx.now`: what has been serialized by then is in the propagation line. Nodes' calls
    /// do this themselves; for samplers that read the queue or the statistics between them.
    #[inline(always)]
    pub fn advance(&mut self, cx: &mut Cx<'_>) {
        match &mut self.serializer {
            Serializer::None => {}
            Serializer::Pipe(pipe) => pipe.advance(cx.now, &mut self.wire),
            Serializer::Bottleneck(bottleneck) => bottleneck.advance(cx, &mut self.wire),
        }
    }

    /// The rate is another one from `cx.now` on: what is left of the frame being serialized is sent at the new one,
    /// and what is counted in round trips ([`QueueLimit::Bdp`]) follows. Of a link without a rate, frames on their
    /// way stay there; of one that follows a trace this is the end of the trace, and a frame of which an opportunity has sent a part is
    /// sent from its beginning. Ask for the deadline again after this.
    pub fn set_rate(&mut self, cx: &mut Cx<'_>, rate: Rate) {
        self.advance(cx);
        (self.config.rate, self.config.trace) = (Some(rate), None);
        match &mut self.serializer {
            // What flies without a rate stays in the line.
            none @ Serializer::None => *none = Serializer::Bottleneck(Bottleneck::new(&self.config, rate)),
            Serializer::Pipe(pipe) => pipe.set_rate(cx.now, rate),
            Serializer::Bottleneck(bottleneck) => bottleneck.set_rate(cx, &self.config, rate),
        }
    }

    /// When the next frame is out, on the line or still to be serialized; [`Time::MAX`] for never. How late the latter will be is
    /// drawn as it enters the line: where frames may be late, that is a deadline of its own.
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

    /// Brings the link up to `cx.now`. Is a frame out?
    #[inline(always)]
    pub fn is_out(&mut self, cx: &mut Cx<'_>) -> bool {
        self.advance(cx);
        match &self.serializer {
            Serializer::Pipe(pipe) => pipe.due() <= cx.now,
            _ => self.wire.line.due() <= cx.now,
        }
    }

    /// The next frame that is out, and since when. Panics if there is none: [`Link::is_out`] says so.
    #[inline(always)]
    pub fn take_out(&mut self) -> (Time, Frame) {
        self.sent += 1;
        match &mut self.serializer {
            Serializer::Pipe(pipe) => pipe.take(),
            _ => self.wire.line.take(),
        }
    }

    /// The next frame that is out by `cx.now`, and since when.
    #[inline]
    fn take(&mut self, cx: &mut Cx<'_>) -> Option<(Time, Frame)> {
        self.is_out(cx).then(|| self.take_out())
    }

    /// The frame is lost on its way to the queue.
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
        let charge = Charge::of(&frame, head, self.config.overhead);
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

    /// When the next frame is out. Serialization has no deadlines of its own, except where frames may be late: it is caught up with.
    #[inline]
    fn next_deadline(&self, writable: PortSet) -> Option<Time> {
        Some(self.due()).filter(|&due| due < Time::MAX && writable.contains(Link::OUT))
    }
}
