//! Packets of flows that have spilled, as they come from the hooks.

use crate::support::*;
use weir_core::ack::{AckControl, Unresponsive};
use weir_core::gateway::{Config, LAN, LAN_WHOLE};
use weir_core::rate::Rate;
use weir_core::wire::build::SegmentBuilder;

fn spilling() -> Config {
    let mut ack = AckControl::ack_share(Rate::mbit(8));
    ack.release.set_unresponsive(Unresponsive::Queue);
    config(ack)
}

/// A queue cannot be told, or there is no room for one: nothing leaves that no clock is charged for.
#[test]
fn a_packet_without_a_queue_is_dropped_and_counted() {
    let mut w = Net::with_config(spilling(), None);
    for n in 0..100 {
        let datagram =
            SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).ports(5_000, 443).udp().payload(1_000);
        w.inject_at(ms(1_000 + n), if n == 0 { LAN } else { LAN_WHOLE }, datagram);
    }
    assert_eq!(w.run(ms(2_000)).len(), 1, "the first has not spilled");
    assert_eq!((w.class().spill_dropped, w.class().spilled_packets), (99, 0));
    w.finish();
}
