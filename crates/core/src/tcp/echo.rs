//! Timestamps for generated ACKs: the TSecr that came with each held acknowledgement number.
//!
//! A generated ACK for `n` carries the TSecr of the first received ACK at or above `n`. The sender then
//! measures the time its data really took, the holding included (RFC 7323 §4.3). The ring is small. When it
//! is full, two neighbours are merged and keep the older TSecr.

use crate::packet::wire::Seq;

/// Entries kept per flow.
const ENTRIES: usize = 4;

/// A ring of held acknowledgement numbers with their TSecr, in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Echoes {
    acks: [Seq; ENTRIES],
    echoes: [u32; ENTRIES],
    len: u32,
}

impl Echoes {
    /// Forgets everything, once nothing is held or a loss has made the old values misleading (RFC 4015).
    pub fn clear(&mut self) {
        if self.len > 0 {
            self.echoes[0] = self.echoes[self.len as usize - 1];
        }
        self.len = 0;
    }

    /// Returns a TSecr that the receiver has sent, for an ACK that acknowledges nothing more: that of the
    /// next held number, or of the last one held.
    pub fn any(&self) -> u32 {
        self.echoes[0]
    }

    /// Notes that an ACK for `ack`, beyond all earlier ones, came with TSecr `echo`.
    #[inline(always)]
    pub fn push(&mut self, ack: Seq, echo: u32) {
        let n = self.len as usize;
        if n > 0 && self.echoes[n - 1] == echo {
            self.acks[n - 1] = ack;
            return;
        }
        if n == ENTRIES {
            self.thin(echo);
        }
        let n = self.len as usize;
        self.acks[n] = ack;
        self.echoes[n] = echo;
        self.len += 1;
    }

    /// Returns the TSecr of the first received ACK at or above `n`.
    #[inline(always)]
    pub fn echo_for(&self, n: Seq) -> Option<u32> {
        let held = self.len as usize;
        let i = self.acks[..held].iter().position(|&a| a.ahead_of(n) >= 0)?;
        Some(self.echoes[i])
    }

    /// Drops the entries up to `n`, which has been passed on.
    #[inline(always)]
    pub fn release(&mut self, n: Seq) {
        let held = self.len as usize;
        let gone = self.acks[..held].iter().take_while(|&&a| a.ahead_of(n) <= 0).count();
        if gone == held {
            return self.clear();
        }
        // Mostly one entry leaves. Moves of a length known at compile time are cheapest.
        for _ in 0..gone {
            self.acks.copy_within(1.., 0);
            self.echoes.copy_within(1.., 0);
        }
        self.len -= gone as u32;
    }

    /// Merges the two neighbours that span the least time; `next` is the TSecr about to follow.
    #[inline(never)]
    fn thin(&mut self, next: u32) {
        let end = |i: usize| if i + 2 < ENTRIES { self.echoes[i + 2] } else { next };
        let span = |i: usize| end(i).wrapping_sub(self.echoes[i]);
        let i = (0..ENTRIES - 1).min_by_key(|&i| span(i)).unwrap_or(0);
        self.acks.copy_within(i + 1.., i);
        self.echoes.copy_within(i + 2.., i + 1);
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_ack_at_or_above() {
        let mut e = Echoes::default();
        e.push(Seq(1000), 7);
        e.push(Seq(2000), 8);
        e.push(Seq(3000), 8);
        assert_eq!(e.echo_for(Seq(500)), Some(7));
        assert_eq!(e.echo_for(Seq(1000)), Some(7));
        assert_eq!(e.echo_for(Seq(1001)), Some(8));
        assert_eq!(e.echo_for(Seq(3000)), Some(8));
        assert_eq!(e.echo_for(Seq(3001)), None);
        e.release(Seq(1500));
        assert_eq!(e.echo_for(Seq(1600)), Some(8));
    }

    proptest! {
        /// Thinning may only make the TSecr older. It stays one that the receiver sent, is never newer than
        /// the right one, and never decreases as the number grows.
        #[test]
        fn never_newer_than_the_truth(start in any::<u32>(),
                                      pushes in prop::collection::vec((1u32..5000, 0u32..50, 0u32..6000), 1..60)) {
            let mut e = Echoes::default();
            let mut truth: Vec<(u32, u32)> = Vec::new();
            let (mut ack, mut echo, mut out) = (start, 100, start);
            for (bytes, time, release) in pushes {
                ack = ack.wrapping_add(bytes);
                echo += time;
                e.push(Seq(ack), echo);
                truth.push((ack, echo));
                let step = release.min(ack.wrapping_sub(out));
                if step == 0 {
                    continue; // an ACK for nothing new is never made
                }
                out = out.wrapping_add(step);
                let right = truth.iter().find(|t| t.0.wrapping_sub(out) as i32 >= 0).unwrap().1;
                let got = e.echo_for(Seq(out)).unwrap();
                prop_assert!(got <= right);
                prop_assert!(truth.iter().any(|t| t.1 == got));
                e.release(Seq(out));
            }
        }
    }
}
