//! Fast Open (RFC 7413): data in the SYN, from the second connection to a server on.
//!
//! A client without a cookie of the server asks for one, and opens as usual. With a cookie, its SYN carries
//! the first bytes of the stream. A server that gave this cookie hands them to its application at once, and
//! acknowledges them with the SYN. Otherwise they leave after the handshake. They also do so if the SYN is
//! retransmitted, since the second SYN is a plain one, as in Linux.
//!
//! Left out: data that a server sends before the handshake is over (§4.2.2), the peer's segment size kept
//! with a cookie (§4.1.3; the own one counts), and the limit on connections that are not open yet (§5.1).

use super::{Connection, Delivered};
use crate::tcp::segment::{Cookie, FastOpen, Segment};
use weir_core::time::Time;

/// Room for options that a SYN with data leaves (Linux: MAX_TCP_OPTION_SPACE in `tcp_send_syn_data`).
const OPTIONS: u16 = 40;

/// Fast Open state of one end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FastOpening {
    /// Cookie that the peer must show, for an end that listens.
    expects: Option<Cookie>,
    /// Fast Open option of its first SYN.
    says: Option<FastOpen>,
    /// Bytes that this SYN carries.
    data: u32,
}

impl Connection {
    fn fast(&self) -> FastOpening {
        self.life.fast.as_deref().copied().unwrap_or_default()
    }

    fn fast_mut(&mut self) -> &mut FastOpening {
        self.life.fast.get_or_insert_default()
    }

    /// Opens the connection with a cookie of the server's, or asks for one. The application has `written`
    /// bytes; those that fit leave with the SYN.
    pub fn open_fast(&mut self, cookie: Option<Cookie>, written: u64) {
        let room = self.offered_mss().saturating_sub(OPTIONS);
        let fast = self.fast_mut();
        fast.says = Some(cookie.map_or(FastOpen::Ask, FastOpen::Cookie));
        fast.data = if cookie.is_some() { written.min(room.into()) as u32 } else { 0 };
        self.open();
    }

    /// Makes a listening end accept data in the SYN of a client that shows this cookie. A client that asks
    /// gets the cookie.
    pub fn accept_fast(&mut self, cookie: Cookie) {
        self.fast_mut().expects = Some(cookie);
    }

    /// Returns the Fast Open option of the SYN that leaves, and the number of bytes that it carries.
    pub(super) fn fast_open(&self) -> (Option<FastOpen>, u32) {
        let fast = self.fast();
        match (fast.expects, self.life.retries) {
            (None, 1..) => (None, 0),
            _ => (fast.says, fast.data),
        }
    }

    /// Returns the number of SYN bytes that an acknowledgement of the SYN accepts; `None` for any other ACK.
    pub(super) fn taken_of_syn(&self, ack: u32) -> Option<u32> {
        let taken = ack.wrapping_sub(self.iss.wrapping_add(1));
        (taken == 0 || taken == self.fast().data).then_some(taken)
    }

    /// Accepts the data of a SYN with the right cookie. A client without it gets the right one in the answer.
    pub(super) fn take_syn_data(&mut self, s: &Segment, now: Time) -> Delivered {
        let (Some(cookie), Some(shown), Some(rx)) = (self.fast().expects, s.syn.fast_open, &mut self.rx)
        else {
            return Delivered::default();
        };
        if shown != FastOpen::Cookie(cookie) {
            self.fast_mut().says = Some(FastOpen::Cookie(cookie));
            return Delivered::default();
        }
        let mut delivered = Delivered::default();
        if s.payload > 0 {
            let data = Segment { seq: s.seq.wrapping_add(1), ..*s };
            delivered.bytes = rx.on_segment(&self.config, &data, now).advanced;
        }
        delivered
    }
}
