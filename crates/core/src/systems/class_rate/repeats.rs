//! Data of a class that its senders repeat although it has arrived: probes for lost tails, and time-outs,
//! while ACKs wait. It takes the rate of new data, and no progress tells of it.
//!
//! Receivers tell of such data by duplicate SACKs (RFC 2883), but may tell more than is true. They are
//! believed up to what has passed of the class, by its [bound](crate::steer::Bound), beyond what receivers
//! have got: that is what was repeated and what is under way.

/// Bytes of a class, as its rate counts them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Repeats {
    /// Bytes that receivers have got.
    received: i64,
    /// Bytes that they have told of twice.
    told: u64,
    /// Bytes of these that were charged.
    charged: u64,
    /// Bytes that had passed beyond those received, at the first look.
    first: Option<i64>,
}

impl Repeats {
    /// Receivers have got `bytes` more.
    pub(crate) fn received(&mut self, bytes: u64) {
        self.received = self.received.wrapping_add_unsigned(bytes);
    }

    /// A receiver tells of `bytes` that have arrived twice.
    pub(crate) fn arrived_twice(&mut self, bytes: u64) {
        self.told = self.told.saturating_add(bytes);
    }

    /// Begins anew with the next look: data has passed that nobody has counted.
    pub(crate) fn restart(&mut self) {
        (self.told, self.charged, self.first) = (0, 0, None);
    }

    /// Returns the repeated bytes to charge, if `passed` have passed in total.
    pub(crate) fn look(&mut self, passed: u64) -> u64 {
        let beyond = (passed as i64).wrapping_sub(self.received);
        let first = *self.first.get_or_insert(beyond);
        // Whoever tells of it has got it, so it has passed by now.
        self.told = self.told.min(beyond.wrapping_sub(first).max(0) as u64).max(self.charged);
        self.told - core::mem::replace(&mut self.charged, self.told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_arrived_twice_is_repeated() {
        let mut repeats = Repeats::default();
        assert_eq!(repeats.look(7_000), 0);
        // 3,000 bytes pass, and 1,000 of them again.
        assert_eq!(repeats.look(11_000), 0);
        repeats.received(3_000);
        repeats.arrived_twice(1_000);
        assert_eq!((repeats.look(11_000), repeats.look(11_000)), (1_000, 0));
    }

    #[test]
    fn no_more_is_believed_than_has_passed() {
        let mut repeats = Repeats::default();
        repeats.look(0);
        repeats.arrived_twice(1 << 40);
        assert_eq!(repeats.look(5_000), 5_000);
        repeats.received(5_000);
        repeats.arrived_twice(1 << 40);
        // Nor later: what is told of has passed before.
        assert_eq!((repeats.look(5_000), repeats.look(6_000), repeats.look(11_000)), (0, 0, 0));
    }

    #[test]
    fn what_passes_while_nobody_counts_is_not_repeated() {
        let mut repeats = Repeats::default();
        repeats.look(0);
        repeats.restart();
        repeats.arrived_twice(1_000);
        assert_eq!((repeats.look(5_000), repeats.look(5_100)), (0, 0));
    }
}
