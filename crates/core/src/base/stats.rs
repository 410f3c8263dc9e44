//! Counters: reasons of drops, and the conservation law `in + made = out + held + dropped + absorbed` that
//! every node keeps.

mod histogram;

pub use histogram::{nearest_rank, quantile, Histogram};

/// Reason of a drop. Every loss has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum DropReason {
    /// The queue's limit was reached (drop tail).
    QueueFull,
    /// Active queue management dropped it, although there was room.
    Aqm,
    /// Random loss of the emulator.
    RandomLoss,
    /// Periodic loss of the emulator.
    PeriodicLoss,
    /// Loss in bursts of the emulator.
    BurstLoss,
    /// Loss of the emulator by a trace.
    TraceLoss,
    /// The frame exceeded the rate of its class, which is policed.
    Policed,
    /// The frame would open a connection for which its class has too little rate left.
    Refused,
    /// The receiving host found its checksum wrong.
    Corrupt,
    /// The transmitting port is down or gone.
    PortDown,
    /// The frame is too long for the transmitting port.
    TooLong,
    /// No node is wired to the port that the frame was for.
    NotWired,
    /// The run ended with the frame still held.
    Shutdown,
}

impl DropReason {
    /// Every reason, in the order of their numbers.
    pub const ALL: [DropReason; 13] = [
        DropReason::QueueFull,
        DropReason::Aqm,
        DropReason::RandomLoss,
        DropReason::PeriodicLoss,
        DropReason::BurstLoss,
        DropReason::TraceLoss,
        DropReason::Policed,
        DropReason::Refused,
        DropReason::Corrupt,
        DropReason::PortDown,
        DropReason::TooLong,
        DropReason::NotWired,
        DropReason::Shutdown,
    ];

    /// The name used in results.
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::QueueFull => "queue_full",
            DropReason::Aqm => "aqm",
            DropReason::RandomLoss => "random_loss",
            DropReason::PeriodicLoss => "periodic_loss",
            DropReason::BurstLoss => "burst_loss",
            DropReason::TraceLoss => "trace_loss",
            DropReason::Policed => "policed",
            DropReason::Refused => "refused",
            DropReason::Corrupt => "corrupt",
            DropReason::PortDown => "port_down",
            DropReason::TooLong => "too_long",
            DropReason::NotWired => "not_wired",
            DropReason::Shutdown => "shutdown",
        }
    }
}

/// Drops by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Drops([u64; DropReason::ALL.len()]);

impl Drops {
    /// Counts one more.
    pub fn count(&mut self, reason: DropReason) {
        self.0[reason as usize] += 1;
    }
    /// Counts `n` more.
    pub fn add(&mut self, reason: DropReason, n: u64) {
        self.0[reason as usize] += n;
    }
    /// Returns the sum of these and the others.
    #[must_use]
    pub fn with(&self, others: &Drops) -> Drops {
        let mut sum = *self;
        sum.0.iter_mut().zip(others.0).for_each(|(n, more)| *n += more);
        sum
    }
    /// Returns the count of this reason.
    pub fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }
    /// Returns the sum of all counts.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
    /// Reasons that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.into_iter().map(|r| (r, self.get(r))).filter(|&(_, n)| n > 0)
    }
}

/// A node's own account of its frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Ledger {
    /// Frames handed in.
    pub received: u64,
    /// Frames made here.
    pub made: u64,
    /// Frames given out.
    pub sent: u64,
    /// Frames ended here with their information kept.
    pub absorbed: u64,
    /// Frames dropped here.
    pub drops: Drops,
}

impl Ledger {
    /// Returns the frames that must still be inside: `in + made - out - dropped - absorbed`.
    pub fn held(&self) -> u64 {
        // A process that is killed may leave an account half written.
        let gone = self.sent.wrapping_add(self.drops.total()).wrapping_add(self.absorbed);
        self.received.wrapping_add(self.made).saturating_sub(gone)
    }
}
