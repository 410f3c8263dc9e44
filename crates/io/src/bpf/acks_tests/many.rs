//! Connections that begin at the same moment, by the thousand.

use super::rig::*;
use crate::bpf::{AcksOptions, Fate, Hook};
use weir_core::wire::Flags;

/// As many as a server has that comes back.
const CONNECTIONS: u16 = 4_000;

#[test]
fn of_thousands_of_connections_each_handshake_is_seen() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(AcksOptions { size_in: true, ..AcksOptions::new(8) });
    let syn = |n| v4().ports(n, 80).flags(Flags::SYN).seq(5).mss(1460).window_scale(7).build();
    let answer =
        |n| v4().ports(80, n).flags(Flags::SYN | Flags::ACK).seq(9).ack(6).mss(1460).window_scale(7).build();
    let ack = |n| v4().ports(n, 80).seq(6).ack(10).pad_to(60).build();
    for n in 0..CONNECTIONS {
        assert_eq!(rig.hook(Hook::Egress, &syn(n), 0).0, PASS);
    }
    for n in 0..CONNECTIONS {
        assert_eq!(rig.hook(Hook::Ingress, &answer(n), 0).0, REDIRECT, "the {n}th is taken");
    }
    for n in 0..CONNECTIONS {
        assert_eq!(rig.hook(Hook::Egress, &ack(n), 0).0, REDIRECT, "the {n}th is taken");
    }
    let counters = rig.acks.counters().unwrap();
    assert_eq!((counters.over_budget, counters.ring_full), (0, 0));
    let records = rig.records();
    let fates = [Fate::Passed, Fate::Taken, Fate::Taken];
    let count = |i: usize| {
        records
            .chunks(CONNECTIONS.into())
            .nth(i)
            .map_or(0, |c| c.iter().filter(|r| r.fate == fates[i]).count())
    };
    assert_eq!([0, 1, 2].map(count), [usize::from(CONNECTIONS); 3]);
}
