//! Which window a forwarded or generated ACK advertises.

use crate::flow::{flag, Record};

/// The window field for an acknowledgement of `ack`, and the record's note of what was forwarded.
///
/// The receiver's newest window is taken, but at most `limit` bytes (rounded *up* to the flow's
/// scale: rounding down at shift 14 stalls a flow), and the right edge `ack + window` never moves left
/// of one already forwarded (RFC 9293 §3.8.6.2.1). Without both SYNs the scale is unknown and the
/// field stays what the receiver sent.
pub fn advertise(r: &mut Record, ack: u32, limit: Option<u32>) -> u16 {
    let field = field_for(r, r.window, ack, limit);
    r.window_sent = field;
    if r.has(flag::SCALE_KNOWN) {
        let edge = ack.wrapping_add(u32::from(field) << r.scale);
        if !r.has(flag::EDGE_KNOWN) || edge.wrapping_sub(r.edge) as i32 > 0 {
            r.edge = edge;
        }
        r.flags |= flag::EDGE_KNOWN;
    }
    field
}

/// [`advertise`] for a window field of the receiver's that the record has not learnt yet, without
/// taking note.
pub fn field_for(r: &Record, window: u16, ack: u32, limit: Option<u32>) -> u16 {
    if !r.has(flag::SCALE_KNOWN) || window == 0 {
        return window;
    }
    let offered = u32::from(window) << r.scale;
    let mut bytes = limit.map_or(offered, |l| offered.min(l.max(1)));
    if r.has(flag::EDGE_KNOWN) {
        let promised = r.edge.wrapping_sub(ack);
        if promised as i32 > bytes as i32 {
            bytes = promised;
        }
    }
    bytes.div_ceil(1 << r.scale).min(0xffff) as u16
}

#[cfg(test)]
#[allow(clippy::field_reassign_with_default)] // the links of a record are private
mod tests {
    use super::*;

    fn record(scale: u8, window: u16) -> Record {
        {
            let mut r = Record::default();
            (r.flags, r.scale, r.window) = (flag::SCALE_KNOWN, scale, window);
            r
        }
    }

    #[test]
    fn rounds_up_in_the_flows_own_scale() {
        let mut r = record(14, 100);
        // One byte at shift 14 is a field of 1, never 0.
        assert_eq!(advertise(&mut r, 1000, Some(1)), 1);
        let mut r = record(7, 1000);
        assert_eq!(advertise(&mut r, 0, Some(12_801)), 101); // 12,801 / 128 = 100.008
    }

    #[test]
    fn the_right_edge_stays() {
        let mut r = record(0, 10_000);
        assert_eq!(advertise(&mut r, 1_000, None), 10_000); // edge 11,000
        r.window = 4_000; // the receiver is at 7,000: its edge is still 11,000
        assert_eq!(advertise(&mut r, 2_000, None), 9_000);
        assert_eq!(advertise(&mut r, 7_000, Some(100)), 4_000);
        assert_eq!(advertise(&mut r, 11_000, Some(100)), 100);
    }

    #[test]
    fn a_closed_window_is_never_opened() {
        let mut r = record(3, 50);
        advertise(&mut r, 0, None);
        r.window = 0;
        assert_eq!(advertise(&mut r, 400, Some(500)), 0);
    }

    #[test]
    fn unknown_scale_leaves_the_field() {
        let mut r = Record::default();
        r.window = 77;
        assert_eq!(advertise(&mut r, 0, Some(1)), 77);
    }
}
