//! What passes of a class that ACKs cannot slow: datagrams, and whatever else is not TCP. The hooks count it, and the gateway charges
//! it to the class's rate.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What has passed of one class since its hooks began. It only goes up.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Tally {
    /// Packets; of a giant one, its segments.
    packets: AtomicU64,
    /// Bytes of these packets from their IP headers on.
    bytes: AtomicU64,
}

/// A [`Tally`] as it was at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// See [`Tally`].
    pub packets: u64,
    /// See [`Tally`].
    pub bytes: u64,
}

impl Tally {
    /// A packet of `bytes` passed.
    pub fn count(&self, bytes: u64) {
        self.packets.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// What has passed.
    pub fn counted(&self) -> Counted {
        Counted { packets: self.packets.load(Relaxed), bytes: self.bytes.load(Relaxed) }
    }
}

impl Counted {
    /// What has passed since.
    pub fn since(self, earlier: Counted) -> Counted {
        Counted {
            packets: self.packets.wrapping_sub(earlier.packets),
            bytes: self.bytes.wrapping_sub(earlier.bytes),
        }
    }
}
