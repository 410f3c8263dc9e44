//! Law of form: ACKs that were made or rewritten are well-formed and carry only options of their end.

use super::ledger::Account;
use crate::seg::{after, Seg};
use crate::trace::{Origin, Out, Trace};
use crate::Verdict;
use weir_core::frame::Checksum;
use weir_core::wire::checksum;

/// Holds a segment to the law.
pub fn check(trace: &Trace, out: &Out, seg: &Seg, said: &Account, told: &Account) -> Verdict {
    let sum = checksum::verify(&out.crossed.bytes, out.crossed.bytes.len(), &seg.packet);
    let completes = sum == Checksum::Partial && out.crossed.checksum == Checksum::Partial;
    let broken = |i: usize| {
        trace.script.events()[i].frame.checksum == Checksum::Unknown && !trace.script.events()[i].believed
    };
    if sum != Checksum::Valid && !completes && !out.event().is_some_and(broken) {
        return Err(format!("a segment leaves with a checksum that is {sum:?}"));
    }
    if !header_sum_holds(&out.crossed.bytes, seg) {
        return Err("a packet leaves with a wrong checksum of its IPv4 header".into());
    }
    if out.origin != Origin::Made && !out.overtaken {
        return Ok(());
    }
    if !said.has_link_of(seg) {
        return Err("an ACK is made with other VLAN tags or in another session than its end's".into());
    }
    if seg.is_foreign() {
        return Err("an ACK is made with options that only its end can make".into());
    }
    if let Some(block) = seg.sack().into_iter().find(|b| !said.sack.contains(b)) {
        let (left, right) = (trace.rel(block.0), trace.rel(block.1));
        return Err(format!("a SACK block {left} to {right} is invented (RFC 2018)"));
    }
    stamps(seg, said, told)
}

/// Checks that timestamps are some that the end sent, and that the other end does not take them for older
/// than its newest (PAWS, RFC 7323 §5).
fn stamps(seg: &Seg, said: &Account, told: &Account) -> Verdict {
    let Some((value, echo)) = seg.stamps() else {
        return match said.stamp {
            Some(_) => Err("an ACK lacks the timestamps of its connection (RFC 7323 §3.2)".into()),
            None => Ok(()),
        };
    };
    if !said.stamps.iter().any(|s| s.0 == value) || !said.stamps.iter().any(|s| s.1 == echo) {
        return Err(format!("timestamps {value}, {echo} are invented"));
    }
    match told.stamp.filter(|&newest| after(newest, value)) {
        Some(newest) => {
            Err(format!("TSval goes back from {newest} to {value}: PAWS drops it (RFC 7323 §5.2)"))
        }
        None => Ok(()),
    }
}

/// Returns whether the checksum of an IPv4 header is right: the sum over the header is that of zeros (RFC 791
/// §3.1).
fn header_sum_holds(bytes: &[u8], seg: &Seg) -> bool {
    let (l3, l4) = (seg.packet.l3 as usize, seg.packet.l4 as usize);
    seg.packet.version != 4
        || bytes.get(l3..l4).is_some_and(|header| {
            let words = header.chunks_exact(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
            let sum: u32 = words.sum();
            (sum & 0xffff) + (sum >> 16) == 0xffff
        })
}
