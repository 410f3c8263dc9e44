//! Proportional rate reduction: moves the window from its value at the loss to the slow-start threshold
//! within one round trip, clocked by deliveries (RFC 6937). The slow-start reduction bound is that of Linux
//! and RFC 9937: it applies only while the cumulative ACK advances and nothing more is lost.

/// State of one recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prr {
    /// FlightSize when recovery began (RecoverFS).
    recover_fs: u64,
    /// Bytes delivered since then.
    delivered: u64,
    /// Bytes sent since then.
    out: u64,
}

impl Prr {
    /// Begins recovery with this many bytes in flight.
    pub const fn begin(in_flight: u64) -> Prr {
        let recover_fs = if in_flight > 0 { in_flight } else { 1 };
        Prr { recover_fs, delivered: 0, out: 0 }
    }

    /// Records bytes that left the sender.
    pub fn sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// Returns the window after an ACK that delivered `delivered` bytes and left `pipe` in flight. `advanced`
    /// is true if the cumulative ACK advanced and nothing more was found lost.
    pub fn window(&mut self, delivered: u64, pipe: u64, ssthresh: u64, mss: u64, advanced: bool) -> u64 {
        self.delivered += delivered;
        let allowed = if pipe > ssthresh {
            let share = u128::from(self.delivered) * u128::from(ssthresh);
            (share.div_ceil(u128::from(self.recover_fs)) as u64).saturating_sub(self.out)
        } else {
            let conserved = self.delivered.saturating_sub(self.out);
            let bound = if advanced { conserved.max(delivered) + mss } else { conserved };
            bound.min(ssthresh - pipe)
        };
        // The fast retransmit itself always leaves.
        let allowed = if self.out == 0 { allowed.max(mss) } else { allowed };
        pipe + allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6937 §3.2, figure 2 as text: 20 segments in flight, the first one lost, ssthresh 10. The 19 ACKs
    /// that follow send one segment for every two delivered.
    #[test]
    fn one_of_twenty_segments_lost() {
        let mut prr = Prr::begin(20);
        let mut pipe: u64 = 20 - 3 - 1; // three SACKed, one lost
        let mut sent = Vec::new();
        for ack in 3..=19u64 {
            let delivered = if ack == 3 { 3 } else { 1 };
            pipe -= u64::from(ack > 3);
            let window = prr.window(delivered, pipe, 10, 1, false);
            let n = window - pipe;
            prr.sent(n);
            pipe += n;
            sent.push(n);
        }
        // ceil(3 x 10 / 20) = 2 leave at once, then one for every other ACK, until pipe has come down to
        // ssthresh. From there on one leaves for each. The total is ceil(19 x 10 / 20) = 10.
        assert_eq!(sent[..14], [2, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]);
        assert_eq!((sent.iter().sum::<u64>(), pipe), (10, 10));
    }

    /// §3.2's second example: the application stalled or 16 of 20 were lost, so pipe is below ssthresh. One
    /// segment more leaves than is delivered, as in slow start.
    #[test]
    fn below_the_threshold_it_grows_as_in_slow_start() {
        let mut prr = Prr::begin(20);
        assert_eq!(prr.window(1, 3, 10, 1, true), 3 + 2);
        prr.sent(2);
        assert_eq!(prr.window(1, 4, 10, 1, true), 4 + 2);
        // Without progress, packets are conserved: 3 delivered, 2 sent.
        assert_eq!(prr.window(1, 4, 10, 1, false), 4 + 1);
        // The window never exceeds the threshold.
        assert_eq!(prr.window(9, 9, 10, 1, true), 10);
    }
}
