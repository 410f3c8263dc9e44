//! Law of windows: the right edge, `ack + window`, of segments that were made or rewritten.

use super::ledger::Account;
use crate::seg::{after, Seg};
use crate::Verdict;
use weir_core::wire::Flags;

/// Holds a segment with a window of this shift to the law.
///
/// A right edge never moves back (RFC 9293 §3.8.6), except by less than a unit, which scaling itself may cost
/// (RFC 7323 §2.4). No edge is beyond the end's own offers. Only the end closes a window.
pub fn check(seg: &Seg, shift: u8, said: &Account, told: &Account) -> Verdict {
    if !seg.has(Flags::ACK) || seg.has(Flags::RST) {
        return Ok(());
    }
    let (edge, unit) = (seg.edge(shift), 1u32 << shift);
    // A segment before the first of its end needs no offer.
    let (Some(offered), Some(window)) = (said.edge, said.window) else { return Ok(()) };
    if after(edge, offered) {
        return Err(format!("the window reaches {} bytes beyond the receiver's", edge.wrapping_sub(offered)));
    }
    if let Some(left) = told.edge.map(|t| t.wrapping_sub(edge) as i32).filter(|&left| left >= unit as i32) {
        return Err(format!("the right edge moves {left} bytes to the left"));
    }
    if seg.tcp.window == 0 && window != 0 {
        return Err("a window is closed that the receiver has open".into());
    }
    Ok(())
}
