//! The end of a flow: a RST suspends it until its receiver goes on, acknowledged FINs end it. A flow that is
//! over is kept for a moment, since segments of it are still on their way, and then forgotten.

use super::{after, Gateway, Headers};
use crate::flow::{flag, Record};
use crate::node::Cx;
use crate::time::{Duration, Time};

/// Time for which a flow that is over is remembered. A lost FIN comes again after a retransmission timeout,
/// which starts at 1 s (RFC 6298 §2).
pub(super) const LINGER: Duration = Duration::from_secs(2);

impl Gateway {
    /// A RST of the data's receiver: the sender accepts it at its RCV.NXT alone (RFC 5961 §3.2). It may be
    /// forged all the same, so the next believed ACK revives the flow. What is held goes before one that is
    /// `here`.
    pub(super) fn on_receiver_reset(
        &mut self,
        cx: &mut Cx<'_>,
        i: u32,
        segment: &Headers,
        here: bool,
    ) -> bool {
        if segment.tcp.seq != self.table[i].seq {
            return false;
        }
        if here && !self.table[i].doubt.has_retracted() {
            self.flush(cx, i);
        }
        self.stats.reset += 1;
        self.close(i, cx.now);
        true
    }

    /// The connection is over once both FINs were seen and all data is acknowledged.
    #[inline]
    pub(super) fn close_if_done(&mut self, i: u32, now: Time) {
        let r = &self.table[i];
        if r.is_done() && r.held() == 0 && !r.has(flag::CLOSED) {
            self.close(i, now);
        }
    }

    /// Nothing is said in the flow's name any more, and it is forgotten after [`LINGER`].
    pub(super) fn close(&mut self, i: u32, now: Time) {
        self.disarm(i, now);
        self.unlist(i, now);
        self.give_back(i, 0, now);
        self.give_up_least(i);
        self.table[i].flags |= flag::CLOSED;
        self.table.set_transient(i, true);
        self.start_timer(i, now + LINGER);
    }

    /// The connection goes on after a RST that its end did not accept, or after a FIN that was none.
    pub(super) fn revive(&mut self, i: u32, now: Time) {
        self.disarm(i, now);
        let r = &mut self.table[i];
        r.set(flag::CLOSED, false);
        r.doubt.retracted();
        self.wait(i, now);
    }
}

impl Record {
    /// The sender says that it sends nothing at or behind `end`. That is a claim of the end that is limited:
    /// it counts once in a connection, up to `end`, and is void when it says something else, or when the
    /// receiver acknowledges more.
    pub(super) fn claim_end(&mut self, end: u32) {
        if self.has(flag::SENDER_FIN) && self.fin != end {
            self.doubt.retracted();
        }
        self.fin = end;
        self.flags |= flag::SENDER_FIN;
        self.check_end();
    }

    /// Nothing follows a FIN (RFC 9293 §3.10.7.4), so an acknowledgement behind it shows that it was none.
    #[inline]
    pub(super) fn check_end(&mut self) {
        if self.has(flag::SENDER_FIN) && after(self.rx, self.fin) {
            self.flags &= !flag::SENDER_FIN;
            self.doubt.retracted();
        }
    }

    /// Has the sender nothing more to send, as far as it may be believed? Acknowledgements that it gets let
    /// it send nothing then.
    #[inline]
    pub(in crate::gateway) fn is_ending(&self) -> bool {
        self.has(flag::SENDER_FIN) && !self.doubt.has_retracted()
    }

    /// Both sides have sent all they have, and the receiver has acknowledged it.
    pub(super) fn is_done(&self) -> bool {
        self.has(flag::SENDER_FIN | flag::RECEIVER_FIN | flag::SYNCED) && !after(self.fin, self.rx)
    }
}
