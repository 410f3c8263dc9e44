//! The WAN emulator's elements, and one direction of a path made of them.
//!
//! A frame that enters a [`Link`] passes, in this order:
//!
//! 1. **loss**: the path's own, random or periodic;
//! 2. **queue**: first in, first out, drop tail, with marks (ECN) above a threshold if wanted; only frames
//!    that wait for the rate are in it;
//! 3. **rate**: serializes frame after frame, exact to the byte, remainders carried;
//! 4. **propagation line**: constant delay, no limit.
//!
//! A link without a rate has no queue either: frames go straight into the line.
//!
//! What the rate counts is IP bytes plus [`Config::overhead`] per packet. A giant frame is charged as the
//! packets that it stands for (each repeats the headers), counts as that many in the queue, is serialized as a
//! whole and comes out when its last packet would.
//!
//! The storage of a link's frames grows, by doubling, until it has held as many as the link ever does.
//!
//! Not here yet: jitter, Gilbert–Elliott and trace-driven loss, duplication, corruption and AQM.

mod charge;
mod line;
mod loss;
mod mark;
mod path;
mod queue;
#[cfg(test)]
mod tests;

pub use loss::{Loss, TRILLION};
pub use path::Path;
pub use queue::QueueLimit;

use crate::frame::Frame;
use crate::node::{Cx, Node, Port, PortSet, Transmit};
use crate::rate::Rate;
use crate::stats::{DropReason, Drops, Histogram, Ledger};
use crate::time::{Duration, Time};
use charge::Charge;
use line::{Line, Transit};
use loss::Losses;
use queue::{Queue, Serializer};

/// One direction of a path. The default is a bare wire: no rate, no delay, no loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Config {
    /// Bits per second; `None` for a link that never makes a frame wait.
    pub rate: Option<Rate>,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// The path's own losses.
    pub loss: Loss,
    /// What the queue in front of the rate holds. Default: 1,000 packets.
    pub queue: QueueLimit,
    /// Step marking: a packet of an ECN-capable transport that finds *more* than this waiting as it arrives is
    /// marked with Congestion Experienced, the threshold K of DCTCP (Alizadeh et al., SIGCOMM 2010, §3.1: marked
    /// if the occupancy is greater than K upon arrival). Counted as the queue's limit is: frames
    /// that wait, not the one being serialized. A giant frame is marked as a whole. `None`, the
    /// default, marks nothing.
    pub mark: Option<QueueLimit>,
    /// Bytes that each packet costs on top of its IP packet. 0, the default, counts IP bytes; see
    /// [`Config::NETEM`], [`Config::FRAME`] and [`Config::WIRE`].
    pub overhead: u16,
    /// Depth of the token bucket in bytes: after a time without frames so many leave at once, as the rate counts
    /// them. 0, the default, is a wire: each bit takes its time.
    pub burst: u64,
    /// Seed of the random losses.
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
}

/// What a link has done, as of the last call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets that the link has serialized (segments of giant frames); without a rate, taken in.
    pub packets: u64,
    /// Their bytes, as the rate counts them.
    pub bytes: u64,
    /// Most packets that ever waited at once.
    pub queue_peak_packets: u64,
    /// Most bytes that ever waited at once, as the rate counts them.
    pub queue_peak_bytes: u64,
    /// Frames dropped, by reason.
    pub drops: Drops,
    /// Packets (segments of giant frames) marked here with Congestion Experienced.
    pub marks: u64,
    /// Time spent serializing those packets. Utilization is this over the time elapsed.
    pub busy: Duration,
    /// Nanoseconds that frames waited before the rate began to serialize them; empty without a rate.
    pub queue_delay: Histogram,
}

/// A queue and the rate it waits for.
#[derive(Debug)]
struct Bottleneck {
    queue: Queue,
    serializer: Serializer,
}

/// One direction of a path: in on [`Link::IN`], out on [`Link::OUT`].
#[derive(Debug)]
pub struct Link {
    config: Config,
    losses: Losses,
    bottleneck: Option<Bottleneck>,
    line: Line,
    stats: LinkStats,
    received: u64,
    sent: u64,
}

impl Link {
    /// Where frames come in.
    pub const IN: Port = Port(0);
    /// Where they leave.
    pub const OUT: Port = Port(1);

    /// A link as configured.
    pub fn new(config: Config) -> Link {
        let bottleneck = config.rate.map(|rate| Bottleneck {
            queue: Queue::new(config.queue, config.mark, rate),
            serializer: Serializer::new(rate, config.burst),
        });
        Link {
            config,
            losses: Losses::new(config.loss, config.seed),
            bottleneck,
            line: Line::new(config.delay),
            stats: LinkStats::default(),
            received: 0,
            sent: 0,
        }
    }

    /// What the link was told to do.
    pub fn config(&self) -> &Config {
        &self.config
    }
    /// What it has done, as of the last call.
    pub fn stats(&self) -> &LinkStats {
        &self.stats
    }
    /// The conservation law's account.
    pub fn ledger(&self) -> Ledger {
        let Link { received, sent, .. } = *self;
        Ledger { received, sent, drops: self.stats.drops, ..Ledger::default() }
    }
    /// Packets that wait for the rate, as of the last call.
    pub fn queue_packets(&self) -> u64 {
        self.bottleneck.as_ref().map_or(0, |b| b.queue.packets())
    }
    /// Bytes that wait for the rate, as the rate counts them, as of the last call.
    pub fn queue_bytes(&self) -> u64 {
        self.bottleneck.as_ref().map_or(0, |b| b.queue.bytes())
    }

    /// Brings the link up to `now`: what has been serialized by then is in the propagation line. Nodes' calls
    /// do this themselves; for samplers that read the queue or the statistics between them.
    pub fn advance(&mut self, now: Time) {
        while self.line.next_done() <= now {
            self.serve();
        }
    }

    /// The frame being serialized is through, and the next one begins.
    fn serve(&mut self) {
        let (Some(Bottleneck { queue, serializer }), done) = (&mut self.bottleneck, self.line.next_done())
        else {
            return;
        };
        let (served, next) = self.line.served();
        if let Some(served) = served {
            self.stats.carried(served.charge, done.since(serializer.begun));
        }
        if let Some(next) = next {
            serializer.begun = done;
            queue.leave(next.charge);
            self.stats.queue_delay.record(done.since(next.since).as_nanos());
        }
    }

    /// The next frame that is out by `now`, and since when. Call [`Link::advance`] before.
    fn take(&mut self, now: Time) -> Option<(Time, Frame)> {
        let out = self.line.pop(now)?;
        self.sent += 1;
        Some(out)
    }

    fn lose(&mut self, cx: &mut Cx<'_>, frame: Frame, reason: DropReason) {
        self.stats.drops.count(reason);
        cx.drop(frame, reason);
    }
}

impl LinkStats {
    fn carried(&mut self, charge: Charge, took: Duration) {
        self.packets += u64::from(charge.packets);
        self.bytes += charge.bytes;
        self.busy = self.busy + took;
    }
}

impl Node for Link {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        self.advance(cx.now);
        self.received += 1;
        if port != Link::IN {
            return self.lose(cx, frame, DropReason::NotWired);
        }
        if let Some(reason) = self.losses.next() {
            return self.lose(cx, frame, reason);
        }
        let charge = Charge::of(&frame, cx.frames.bytes(&frame), self.config.overhead);
        let Some(Bottleneck { queue, serializer }) = &mut self.bottleneck else {
            self.stats.carried(charge, Duration::ZERO);
            return self.line.push_at_once(cx.now, frame);
        };
        let done = if self.line.is_idle() {
            self.stats.queue_delay.record(0);
            serializer.start(cx.now, charge)
        } else if queue.admits(charge) {
            if queue.congested() && mark::mark(cx.frames.bytes_mut(&frame)) {
                self.stats.marks += u64::from(charge.packets);
            }
            queue.enter(charge);
            self.stats.queue_peak_packets = self.stats.queue_peak_packets.max(queue.packets());
            self.stats.queue_peak_bytes = self.stats.queue_peak_bytes.max(queue.bytes());
            serializer.follow(charge)
        } else {
            return self.lose(cx, frame, DropReason::QueueFull);
        };
        self.line.push(Transit { frame, charge, since: cx.now, done });
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        self.advance(cx.now);
        if !writable.contains(Link::OUT) {
            return None;
        }
        let (at, frame) = self.take(cx.now)?;
        Some(Transmit { port: Link::OUT, at, frame })
    }

    /// When the next frame is out. Serialization has no deadlines of its own: it is caught up with.
    fn next_deadline(&self, writable: PortSet) -> Option<Time> {
        self.line.due().filter(|_| writable.contains(Link::OUT))
    }
}
