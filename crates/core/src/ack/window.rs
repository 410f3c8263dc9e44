//! The window that a forwarded or generated ACK advertises.
//!
//! Two right edges are kept apart. The receiver's own edge is the largest `ack + window` that it has sent.
//! The forwarded edge is the largest that has gone to the sender. An advertised window never passes the
//! receiver's own edge, however the field is rounded, and never moves the forwarded edge back.
//!
//! Both cannot hold if the sender knows the receiver's own edge and that is not a whole number of units from
//! the acknowledgement. A number for which it is whole is then acknowledged ([`on_grid`]). If there is none,
//! the field is rounded down, less than a unit to the left, which every sender must tolerate (RFC 7323 §2.4).

use crate::flow::{flag, Record};
use crate::packet::wire::Seq;
pub use crate::tcp::window::fit;

/// Returns the window field for an acknowledgement of `ack`, and notes the edge as forwarded.
#[inline]
pub fn advertise(r: &mut Record, ack: Seq, limit: Option<u32>) -> u16 {
    let field = field_for(r, ack, limit);
    forwarded(r, ack, field);
    field
}

/// Returns the field for the receiver's newest window with an acknowledgement of `ack`: at most `limit`
/// bytes, or more if the sender was told more. Without both SYNs the scale is unknown and the field stays as
/// the receiver sent it. A closed window stays closed.
///
/// A sender that was told far more and has sent all of it is silent until that is acknowledged. Where more
/// than `limit` is held and hardly anything is on its way, the edge moves by half of what `ack` acknowledges.
#[inline(always)]
pub fn field_for(r: &Record, ack: Seq, limit: Option<u32>) -> u16 {
    if !r.has(flag::SCALE_KNOWN) || r.window == 0 {
        return closed_or_unscaled(r, ack);
    }
    let offered = u32::from(r.window) << r.scale;
    let mut goal = ack.plus(limit.unwrap_or(offered).min(offered).max(1));
    if r.has(flag::EDGE_KNOWN) && r.edge.is_after(goal) {
        goal = if is_silent(r, ack, limit) { half_on(r, ack) } else { r.edge };
    }
    fit(ack, u32::from(r.scale), goal, r.right)
}

/// Returns whether the sender of a flow with a rate of its own has used up a window far beyond `limit`.
#[inline]
fn is_silent(r: &Record, ack: Seq, limit: Option<u32>) -> bool {
    limit.is_some_and(|limit| r.rx.beyond(ack) > limit && r.edge.beyond(r.rx) <= limit / 2)
        && !r.has(flag::SHARED)
}

/// Returns the edge moved by half of what `ack` acknowledges, rounded down to a whole window. Rounded up, a
/// large unit would let it move by all of that.
#[cold]
fn half_on(r: &Record, ack: Seq) -> Seq {
    let half = r.edge.plus(ack.beyond(r.tx) / 2);
    let whole = ack.plus(half.beyond(ack) >> r.scale << r.scale);
    if whole.is_after(r.edge) {
        whole
    } else {
        r.edge
    }
}

/// Returns the field for a closed window or an unknown scale. Up to the number with which the window was
/// closed, the sender keeps the edge that it knows.
#[cold]
fn closed_or_unscaled(r: &Record, ack: Seq) -> u16 {
    if !r.has(flag::SCALE_KNOWN | flag::EDGE_KNOWN) || !r.rx.is_after(ack) {
        return unscaled(r, ack);
    }
    fit(ack, u32::from(r.scale), r.edge, r.right)
}

/// Returns the field for `ack` where the scale is unknown: the receiver's last, or a larger one that came
/// with this number or a later one ([`flag::PEAK`]).
fn unscaled(r: &Record, ack: Seq) -> u16 {
    if r.has(flag::PEAK) && r.window != 0 && !ack.is_after(r.edge) {
        r.right.0 as u16
    } else {
        r.window
    }
}

/// Returns the number to acknowledge instead of `to`, at most a unit before it. The edge that the sender
/// knows is a whole number of units away from it, where the receiver's own edge leaves no room to round up.
/// Numbers that the receiver itself has acknowledged are kept. The window field of `to` ([`field_for`]) is
/// returned with it, where it was computed and `to` stands.
///
/// Without a scale, the shift of the edge that a smaller field causes is unknown. There is none with a number
/// that the receiver sent with that field. The number is therefore that of the last larger field
/// ([`flag::PEAK`]), or beyond that all that is held, which is after `to`.
#[inline(always)]
pub fn on_grid(r: &Record, to: Seq, limit: Option<u32>) -> (Seq, Option<u16>) {
    if !r.has(flag::SCALE_KNOWN | flag::EDGE_KNOWN) || to == r.rx || r.window == 0 {
        return (if r.has(flag::PEAK) { beside_peak(r, to) } else { to }, None);
    }
    let field = field_for(r, to, limit);
    let missing = r.edge.since(to.plus(u32::from(field) << r.scale));
    if missing as i32 <= 0 || field == 0xffff {
        return (to, Some(field));
    }
    // The edge lies this far right of a whole number of units. From that much earlier, one unit more is
    // whole.
    let earlier = to.minus((1 << r.scale) - missing % (1 << r.scale));
    if earlier.is_after(r.tx) {
        (earlier, None)
    } else {
        (to, Some(field))
    }
}

/// Returns the number of [`on_grid`], for a flow with a [`flag::PEAK`].
#[cold]
fn beside_peak(r: &Record, to: Seq) -> Seq {
    if to == r.rx || !to.is_after(r.edge) {
        to
    } else if r.edge.is_after(r.tx) {
        r.edge
    } else {
        r.rx
    }
}

/// Notes that the receiver has sent `window` with an acknowledgement of `ack`, in a segment that is not old.
/// Progress of that segment is not yet in the record.
#[inline(always)]
pub fn received(r: &mut Record, ack: Seq, window: u16) {
    if !r.has(flag::SCALE_KNOWN) {
        return received_unscaled(r, window);
    }
    r.window = window;
    let own = ack.plus(u32::from(window) << r.scale);
    if own.is_after(r.right) {
        r.right = own;
    }
}

/// Notes a window whose scale is unknown. If the field is smaller than the one before, the larger one still
/// counts up to the number that it came with. No number between that one and the next is acknowledged with
/// the smaller field.
fn received_unscaled(r: &mut Record, window: u16) {
    if r.has(flag::PEAK) {
        r.set(flag::PEAK, window != 0 && u32::from(window) < r.right.0);
    } else if window < r.window && window != 0 {
        (r.edge, r.right) = (r.rx, Seq(u32::from(r.window)));
        r.flags |= flag::PEAK;
    }
    r.window = window;
}

/// Notes that this window has gone to the sender.
#[inline]
pub fn forwarded(r: &mut Record, ack: Seq, window: u16) {
    if !r.has(flag::SCALE_KNOWN) {
        return;
    }
    let edge = ack.plus(u32::from(window) << r.scale);
    if !r.has(flag::EDGE_KNOWN) || edge.is_after(r.edge) {
        r.edge = edge;
    }
    r.flags |= flag::EDGE_KNOWN;
}

/// Returns whether the receiver's `window`, which comes without progress, is news to the sender. If it is
/// not, an ACK that carried it would be a duplicate of the last.
pub fn is_news(r: &Record, window: u16, limit: Option<u32>) -> bool {
    if !r.has(flag::SCALE_KNOWN) {
        return window > unscaled(r, r.tx) || r.held() == 0 && window != r.window;
    }
    if !r.has(flag::EDGE_KNOWN) {
        return window != r.window;
    }
    let mut after = *r;
    received(&mut after, r.rx, window);
    let field = field_for(&after, r.tx, limit);
    r.tx.plus(u32::from(field) << r.scale).is_after(r.edge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A record whose receiver is at `ack` and has sent `window`.
    fn record(scale: u8, ack: u32, window: u16) -> Record {
        let mut r = Record::default();
        (r.flags, r.scale) = (flag::SCALE_KNOWN, scale);
        (r.rx, r.tx, r.right) = (Seq(ack), Seq(ack), Seq(ack));
        received(&mut r, Seq(ack), window);
        r
    }

    #[test]
    fn rounds_up_in_the_flows_own_scale() {
        let mut r = record(14, 1000, 100);
        // One byte at shift 14 is a field of 1, never 0.
        assert_eq!(advertise(&mut r, Seq(1000), Some(1)), 1);
        let mut r = record(7, 0, 1000);
        assert_eq!(advertise(&mut r, Seq(0), Some(12_801)), 101); // 12,801 / 128 = 100.008
    }

    #[test]
    fn the_right_edge_stays() {
        let mut r = record(0, 1_000, 10_000);
        assert_eq!(advertise(&mut r, Seq(1_000), None), 10_000); // edge 11,000
        received(&mut r, Seq(7_000), 4_000); // its edge is still 11,000
        assert_eq!(advertise(&mut r, Seq(2_000), None), 9_000);
        assert_eq!(advertise(&mut r, Seq(7_000), Some(100)), 4_000);
        received(&mut r, Seq(11_000), 5_000);
        assert_eq!(advertise(&mut r, Seq(11_000), Some(100)), 100);
    }

    #[test]
    fn rounding_does_not_pass_the_receivers_own_edge() {
        // The receiver's edge is 1000 + 10 × 128 = 2280. Sized to 500 bytes: 3.9 units, rounded up. Sized to
        // 1,270: 9.92 units, and the remaining 0.08 belong to the receiver.
        assert_eq!(field_for(&record(7, 1_000, 10), Seq(1_000), Some(500)), 4);
        assert_eq!(field_for(&record(7, 1_000, 10), Seq(1_000), Some(1_270)), 10);
        // Once the sender knows that edge, 990 is 1,290 bytes or 10.08 units away from it.
        let mut r = record(7, 1_000, 10);
        (r.tx, r.rx) = (Seq(700), Seq(1_100));
        advertise(&mut r, Seq(1_000), None);
        assert_eq!(field_for(&r, Seq(990), None), 10);
        // 872 is 11 units away.
        assert_eq!((on_grid(&r, Seq(990), None), field_for(&r, Seq(872), None)), ((Seq(872), None), 11));
        r.tx = Seq(980);
        assert_eq!(on_grid(&r, Seq(990), None), (Seq(990), Some(10)));
    }

    #[test]
    fn a_closed_window_is_never_opened() {
        let mut r = record(3, 0, 50);
        advertise(&mut r, Seq(0), None);
        received(&mut r, Seq(400), 0);
        assert_eq!(advertise(&mut r, Seq(400), Some(500)), 0);
    }

    #[test]
    fn unknown_scale_leaves_the_field() {
        let mut r = Record { window: 77, ..Record::default() };
        assert_eq!(advertise(&mut r, Seq(0), Some(1)), 77);
    }

    #[test]
    fn a_sized_window_has_no_news_of_the_receivers() {
        let mut r = record(7, 10_000, 1_000);
        advertise(&mut r, Seq(10_000), Some(12_800));
        assert!(!is_news(&r, 1_001, Some(12_800)) && !is_news(&r, 999, Some(12_800)));
        assert!(is_news(&r, 1_001, Some(12_900)));
        assert!(is_news(&r, 1_001, None));
    }

    /// A sender that uses up all that it is told comes down to the limit, where more than a unit of its
    /// window is acknowledged at once.
    #[test]
    fn a_window_far_too_large_shrinks() {
        for (scale, step) in [(7, 1_448), (9, 1_448), (9, 2_896), (11, 2_896), (11, 12_500)] {
            let mut r = record(scale, 0, (512_000u32 >> scale) as u16);
            r.flags |= flag::SYNCED;
            advertise(&mut r, Seq(0), None);
            for _ in 0..4_000 {
                r.rx = r.edge;
                let (rx, window) = (r.rx, r.window);
                received(&mut r, rx, window);
                let (to, _) = on_grid(&r, r.tx.plus(step.min(r.held())), Some(51_200));
                advertise(&mut r, to, Some(51_200));
                r.tx = to;
            }
            assert_eq!(r.edge.since(r.tx), 51_200, "{scale} {step}");
        }
    }

    proptest! {
        /// For any acknowledgements and windows, the edge is never beyond the receiver's own. It is left of
        /// the forwarded one only if less than a unit is acknowledged.
        #[test]
        fn both_edges_are_kept(scale in 0u8..15, limit in prop::option::of(1u32..200_000), start in any::<u32>(),
                               steps in prop::collection::vec((0u32..20_000, 0u32..40_000, 0u32..20_000), 1..100)) {
            let unit = 1u32 << scale;
            let mut r = record(scale, start, 1 + (100_000 >> scale) as u16);
            advertise(&mut r, Seq(start), limit);
            for (bytes, read, released) in steps {
                // A receiver's window is a whole number of units, and its edge does not go left (RFC 7323
                // §2.4).
                let room = r.right.since(r.rx);
                r.rx = r.rx.plus(bytes.min(room.saturating_sub(unit)));
                let field = r.right.plus(read / unit * unit).since(r.rx).div_ceil(unit);
                let ack = r.rx;
                received(&mut r, ack, field.min(0xffff) as u16);
                let wanted = r.tx.plus(released.min(r.rx.since(r.tx)));
                let (to, known) = on_grid(&r, wanted, limit);
                prop_assert!(known.is_none_or(|field| to == wanted && field == field_for(&r, to, limit)));
                prop_assert!(to == wanted || to.is_after(r.tx) && wanted.since(to) < unit);
                let before = r.edge;
                let field = advertise(&mut r, to, limit);
                let edge = to.plus(u32::from(field) << scale);
                prop_assert!(!edge.is_after(r.right), "beyond");
                let left = before.is_after(edge) && field < 0xffff;
                prop_assert!(!left || before.since(edge) < unit && to.since(r.tx) < unit, "left");
                r.tx = to;
            }
        }
    }
}
