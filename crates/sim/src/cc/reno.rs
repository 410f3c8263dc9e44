//! Reno (RFC 5681): slow start, additive increase, halving.
//!
//! Two choices follow Linux (`tcp_cong.c`) where RFC 5681 says otherwise:
//!
//! - ssthresh is half of cwnd, not half of FlightSize (equation 4). They are the same for a sender
//!   limited by its window. They differ for one limited by its application or by the receiver,
//!   whose window may stand above what is in flight (by at most twice, since windows that are not
//!   used do not grow); Linux takes such a window for valid, RFC 5681 does not.
//! - No limit on the growth by one ACK (RFC 3465 has L = 2), unless [`Options::abc_limit`] sets one.

use super::increase::Increase;
use super::{Ack, Congestion, CongestionControl, Options, Phase, Window};
use weir_core::time::Time;

/// Reno.
#[derive(Clone, Copy, Debug)]
pub struct Reno {
    increase: Increase,
}

impl Reno {
    /// Reno with these options.
    pub fn new(options: &Options) -> Reno {
        Reno { increase: Increase::new(options) }
    }

    /// For [`super::CONTROLS`].
    pub(super) fn make(options: &Options) -> Box<dyn CongestionControl> {
        Box::new(Reno::new(options))
    }
}

/// Half the window, at least two segments (RFC 5681 equation 4).
pub(super) fn half(w: &Window) -> u64 {
    (w.cwnd / 2).max(2 * u64::from(w.mss))
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, w: &mut Window, ack: &Ack) {
        // A window that is not used says nothing about the path (RFC 7661 §3, RFC 2861).
        if ack.phase != Phase::Recovery && ack.cwnd_limited {
            self.increase.on_ack(w, ack);
        }
    }

    fn on_congestion(&mut self, w: &mut Window, _now: Time, _in_flight: u64, _congestion: Congestion) {
        w.ssthresh = half(w);
        self.increase.reset();
    }
}
