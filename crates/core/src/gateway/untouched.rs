//! Flows that pass untouched because their ACKs cannot be made, and what tells that.

use super::{Gateway, Headers, PassReason};
use crate::flow::flag;
use crate::node::Cx;
use crate::wire::TcpOptions;

impl Gateway {
    /// The flow passes untouched from here on, once what it holds has been passed on.
    pub(super) fn let_pass(&mut self, cx: &mut Cx<'_>, i: u32, reason: PassReason) {
        if !self.flush(cx, i) {
            return; // the next segment tries again
        }
        self.mark_passing(i, reason);
    }

    /// The flow passes untouched from here on.
    pub(super) fn mark_passing(&mut self, i: u32, reason: PassReason) {
        self.drop_held(i);
        let r = &mut self.table[i];
        r.flags |= flag::PASSES;
        r.pass = reason as u8;
        self.classes[r.class].flows_passed += 1;
        self.still_passes(i);
    }

    /// The kernel is told again: it asks when it has forgotten, and after a SYN, which may open a connection that
    /// does not pass.
    pub(super) fn still_passes(&mut self, i: u32) -> PassReason {
        self.hide(i);
        let r = &self.table[i];
        if self.table.find(&r.key.opening()).is_none() {
            self.verdicts.pass(r.key.reversed());
            self.count_untouched(i);
        }
        let r = &self.table[i];
        PassReason::ALL[usize::from(r.pass) % PassReason::ALL.len()]
    }
}

/// Why a flow with such a segment passes, if it does.
pub(super) fn untouchable(segment: &Headers, options: &TcpOptions) -> Option<PassReason> {
    // A giant segment with payload may have a jumbo option (RFC 2675) of its host's own.
    if segment.tcp.payload_len == 0 && segment.packet.has_options() {
        Some(PassReason::IpOptions)
    } else if options.mptcp {
        Some(PassReason::Mptcp)
    } else if options.ao {
        Some(PassReason::TcpAo)
    } else if options.md5 {
        Some(PassReason::TcpMd5)
    } else if options.unknown.is_some() {
        Some(PassReason::UnknownOption)
    } else {
        None
    }
}
