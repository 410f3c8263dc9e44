//! Held ACKs while no frame is free, a port is blocked, or an engine hangs or dies.

use crate::support::*;
use weir_core::gateway::{Accounts, ClassAccount, Gateway, Verdict, LAN, WAN};
use weir_core::node::Port;
use weir_core::rig::Rig;
use weir_core::stats::DropReason;

/// 10 Mb/s every 10 ms without detection: 12,500 bytes a step.
const STEP: u32 = 12_500;

#[test]
fn an_exhausted_pool_keeps_progress() {
    let mut w = Net::established_in(basic(), 4);
    w.ack_at(ms(1_000), 50_000);
    // Four frames of data wait for their port and take all chunks.
    w.rig.close(WAN, ms(1_001), ms(1_035));
    for _ in 0..4 {
        let data = w.data_segment(100_000).payload(100);
        w.inject_at(ms(1_002), LAN, data);
    }
    let sent = w.run(ms(1_200));
    let acks: Vec<_> = sent.iter().filter(|s| s.port == LAN).map(|s| (s.at, w.rel(s))).collect();
    // Two periods are made up for, as where the port is blocked.
    let steps = [(1_000, 1), (1_020, 2), (1_030, 3), (1_040, 4)].map(|(t, n)| (ms(t), n * STEP));
    assert_eq!(acks, steps, "nothing was lost");
    assert_eq!(w.rig.node().flows.stats().pool_exhausted, 1);
    w.finish();
}

#[test]
fn a_blocked_port_blocks_only_itself() {
    let mut w = Net::established(basic());
    w.ack_at(ms(1_000), 50_000);
    w.rig.close(LAN, ms(1_001), ms(1_045));
    let data = w.data_segment(100_000).payload(100);
    w.inject_at(ms(1_002), LAN, data);
    let sent = w.run(ms(1_100));
    assert!(sent.iter().any(|s| s.port == WAN && s.at == ms(1_002)));
    let acks: Vec<_> = sent.iter().filter(|s| s.port == LAN).map(|s| (s.at, w.rel(s))).collect();
    // Two periods are made up for, no more: nothing is earned while the port is blocked.
    let steps = [(1_000, 1), (1_030, 2), (1_040, 3), (1_050, 4)].map(|(t, n)| (ms(t), n * STEP));
    assert_eq!(acks, steps);
}

#[test]
fn after_an_absence_the_flow_goes_on_from_what_its_sender_knows() {
    let mut w = Net::established(basic());
    w.ack_at(ms(1_000), 50_000);
    w.run(ms(1_001));
    w.rig.node_mut().flows.resync();
    // Meanwhile the kernel passed ACKs up to 500,000; nothing of it is owed.
    w.kernel_passed(500_000);
    w.ack_at(ms(1_200), 560_000);
    let sent = w.run(ms(1_220));
    assert_eq!(numbers(&sent)[..2], [(ms(1_200), 500_000 + STEP), (ms(1_210), 500_000 + 2 * STEP)]);
    assert_eq!(w.debt(), 0);
}

#[test]
fn what_is_held_survives_a_hang() {
    let mut w = Net::established(basic());
    w.ack_at(ms(1_000), 50_000);
    w.run(ms(1_001));
    // The engine was away, and nothing passed: what is held goes on as before.
    w.rig.node_mut().flows.resync();
    let sent = w.run(ms(2_000));
    assert_eq!(numbers(&sent), [(ms(1_010), 2 * STEP), (ms(1_020), 3 * STEP), (ms(1_030), 50_000)]);
    w.finish();
}

#[test]
fn a_new_engine_goes_on_where_a_dead_one_ended() {
    let mut dead = Net::established(basic());
    dead.ack_at(ms(1_000), 50_000);
    dead.ack_at(ms(1_001), 60_000);
    dead.run(ms(1_002));
    let (records, slots) = dead.shared();
    let mut w = Net::with_shared(config(basic()), records, slots);
    // It is held still, and released; ACKs that come now follow it.
    w.ack_at(ms(2_001), 260_000);
    let sent = w.run(ms(2_030));
    assert_eq!(numbers(&sent)[0].1, 2 * STEP);
    let sent = w.run(ms(3_000));
    assert_eq!(numbers(&sent).last().unwrap().1, 260_000);
    assert_eq!((w.class().held_acks, w.class().held_bytes), (0, 0));
    // The kernel is told of the flow again.
    let shapes =
        w.rig.node_mut().flows.verdicts(9).filter(|v| matches!(v, Verdict::Shape { slot: 0, tag: 1, .. }));
    assert_eq!(shapes.count(), 1);
    w.finish();
}

/// A gateway that goes on with memory as an earlier one left it.
fn after(left: &Net) -> Net {
    let (records, slots) = left.shared();
    let node = left.rig.node();
    let mut classes: Vec<ClassAccount> = node.flows.accounts().collect();
    classes.resize(4, ClassAccount::default());
    let totals = Box::leak((*node.flows.stats()).into());
    let accounts = Accounts { totals, classes: Box::leak(classes.into()), frames: true };
    let mut w = Net::new(basic(), None);
    w.rig = Rig::new(Gateway::with_accounts(config(basic()), records, slots, Some(accounts)));
    w
}

#[test]
fn totals_go_on_to_the_byte_when_an_engine_dies() {
    let mut dead = after(&Net::new(basic(), None));
    dead.shake(ms(0), RECEIVER_ISN, false);
    dead.ack_at(ms(1_000), 50_000);
    dead.run(ms(1_002));
    let counted = |w: &Net| (w.class().acked_bytes, w.class().flows, w.rig.node().flows.stats().flows);
    assert_eq!(counted(&dead), (u64::from(STEP), 1, 1));
    let frames = dead.rig.node().flows.stats().ledger;
    // No engine: the kernel passes an ACK.
    dead.kernel_passed(100_000);
    let mut w = after(&dead);
    assert_eq!(counted(&w), (100_000, 1, 1));
    w.ack_at(ms(2_001), 260_000);
    w.run(ms(3_000));
    assert_eq!(counted(&w), (260_000, 1, 1));
    assert_eq!((w.class().held_bytes, w.rig.node().flows.flows().next().unwrap().acked_bytes), (0, 260_000));
    let ledger = w.rig.node().flows.stats().ledger;
    assert!(ledger.received > frames.received && ledger.made > frames.made);
    assert_eq!((frames.held(), ledger.held()), (0, 0));
}

#[test]
fn what_a_dead_engine_counted_and_could_not_send_is_counted_once() {
    let mut dead = after(&Net::new(basic(), None));
    dead.shake(ms(0), RECEIVER_ISN, false);
    dead.rig.close(LAN, ms(999), ms(5_000));
    dead.ack_at(ms(1_000), 5_000);
    dead.run(ms(1_002));
    let held = dead.rig.node().flows.stats().ledger.held();
    let mut w = after(&dead);
    let lost = w.rig.node().flows.stats().ledger.drops.get(DropReason::Shutdown);
    assert_eq!((w.rig.node().flows.stats().ledger.held(), lost), (0, held));
    w.ack_at(ms(2_001), 5_000);
    w.run(ms(3_000));
    assert_eq!(w.class().acked_bytes, 5_000);
}

#[test]
fn held_state_can_be_rescued() {
    let mut w = Net::established_with(basic(), true);
    let seg = w.ack_segment(50_000).ts(777, 333);
    w.inject_at(ms(1_000), WAN, seg);
    w.run(ms(1_001));
    let mut buf = [0; weir_core::gateway::MAX_ACK_LEN];
    let node = w.rig.node();
    let rescued: Vec<_> = node
        .flows
        .records()
        .iter()
        .zip(node.flows.slots())
        .filter_map(|(r, slot)| weir_core::gateway::rescue_ack(r, slot, &mut buf).map(|n| buf[..n].to_vec()))
        .collect();
    assert_eq!(rescued.len(), 1);
    let p = weir_core::wire::packet(&rescued[0], rescued[0].len()).unwrap();
    let t = weir_core::wire::tcp(&rescued[0], &p).unwrap();
    assert_eq!(t.ack, SENDER_ISN.wrapping_add(1 + 50_000));
    assert_eq!(
        weir_core::wire::checksum::verify(&rescued[0], rescued[0].len(), &p),
        weir_core::frame::Checksum::Valid
    );
    let _ = Port(0);
}
