//! What a link is told to do.

use super::{Aqm, Damage, Jitter, Loss, QueueLimit, RateTrace, Reorder};
use crate::rate::Rate;
use crate::time::{Duration, Time};

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
    pub(super) fn ignores_headers(&self) -> bool {
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
