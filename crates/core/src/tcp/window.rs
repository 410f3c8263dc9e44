//! Window fields.

/// Returns the window field for the edge `goal` with an acknowledgement of `ack`. It is rounded *up* to units
/// of `1 << scale` (rounding down stalls a flow at shift 14), but not beyond the receiver's `own` edge.
#[inline]
pub fn fit(ack: u32, scale: u32, goal: u32, own: u32) -> u16 {
    let ahead = |edge: u32| (edge.wrapping_sub(ack) as i32).max(0) as u32;
    ahead(goal).div_ceil(1 << scale).min(ahead(own) >> scale).min(0xffff) as u16
}
