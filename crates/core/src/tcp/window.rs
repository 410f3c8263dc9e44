//! Window fields.

use crate::packet::wire::Seq;

/// Returns the window field for the edge `goal` with an acknowledgement of `ack`. It is rounded *up* to units
/// of `1 << scale` (rounding down stalls a flow at shift 14), but not beyond the receiver's `own` edge.
#[inline]
pub fn fit(ack: Seq, scale: u32, goal: Seq, own: Seq) -> u16 {
    let ahead = |edge: Seq| edge.beyond(ack);
    ahead(goal).div_ceil(1 << scale).min(ahead(own) >> scale).min(0xffff) as u16
}
