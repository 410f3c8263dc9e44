//! Opening of a connection, and the options that both ends agree on.

use super::{Connection, Delivered, Life, State, DEFAULT_MSS};
use crate::tcp::config::Recovery;
use crate::tcp::receiver::{Echo, Receiver};
use crate::tcp::segment::{Segment, TIMESTAMPS_LEN};
use weir_core::time::Time;
use weir_core::wire::Flags;

impl Connection {
    /// Accepts a SYN, which will be answered.
    pub(super) fn accept(&mut self, s: &Segment, now: Time) -> Delivered {
        self.agree(s);
        let asks = s.has(Flags::ECE.with(Flags::CWR));
        self.begin(s, asks && self.wants_ecn());
        self.state = State::SynReceived;
        self.life.due = true;
        self.take_syn_data(s, now)
    }

    /// Handles the answer to the SYN. `taken` bytes that the SYN carried were accepted.
    pub(super) fn answered(&mut self, s: &Segment, taken: u32, now: Time) {
        self.agree(s);
        let agrees = s.has(Flags::ECE) && !s.has(Flags::CWR);
        self.begin(s, agrees && self.wants_ecn());
        self.ack_due = true;
        if taken > 0 {
            self.tx.sent_with_syn(taken, self.life.first_sent, now);
        }
        // The window of a SYN is not scaled (RFC 7323 §2.2).
        self.tx.edge = u64::from(taken) + u64::from(s.window);
        self.establish(now);
    }

    pub(super) fn wants_ecn(&self) -> bool {
        self.config.ecn || self.config.l4s || self.tx.cc.wants_dctcp_ecn()
    }

    /// Agrees on the options that both ends support.
    pub(super) fn agree(&mut self, s: &Segment) {
        self.timestamps &= s.timestamps.is_some();
        self.life.sack &= s.syn.sack_permitted;
        self.shifts = s.syn.window_scale.map_or((0, 0), |peer| (self.shifts.0, peer));
        let mut mss = s.syn.mss.unwrap_or(DEFAULT_MSS);
        if self.timestamps {
            mss = mss.saturating_sub(TIMESTAMPS_LEN);
        }
        let mss = u32::from(mss.clamp(1, self.config.mss));
        if mss != self.tx.window.mss {
            self.tx.window.cwnd = u64::from(self.config.initial_window) * u64::from(mss);
            self.tx.window.mss = mss;
        }
        if !self.life.sack && self.config.recovery.uses_sack() {
            self.tx.recovery = match self.config.recovery {
                Recovery::Rack => Recovery::Linux,
                _ => Recovery::NewReno,
            };
        }
    }

    pub(super) fn begin(&mut self, s: &Segment, ecn: bool) {
        self.ecn = ecn;
        self.tx.ecn = ecn;
        let echo = match (ecn, self.tx.cc.wants_dctcp_ecn()) {
            (false, _) => Echo::Off,
            (true, false) => Echo::Classic,
            (true, true) => Echo::Dctcp,
        };
        self.rx = Some(Receiver::new(&self.config, s, self.shifts.0, echo, self.life.sack));
    }

    pub(super) fn establish(&mut self, now: Time) {
        self.state = State::Established;
        let Life { first_sent, retries, asked_again, .. } = self.life;
        self.life.at = Time::MAX;
        self.life.due = false;
        // Karn: a SYN that was repeated gives no sample.
        let once = retries == 0 && !asked_again;
        let rtt = (once && first_sent < Time::MAX).then(|| now.since(first_sent));
        // RFC 6928 §2: one segment if more than one SYN was lost.
        if retries > 1 {
            self.tx.window.cwnd = u64::from(self.tx.window.mss);
        }
        match rtt {
            Some(rtt) => self.tx.rtt.sample(rtt),
            None => self.tx.rtt.fall_back(),
        }
        self.tx.cc.on_established(&mut self.tx.window, now, rtt);
    }
}
