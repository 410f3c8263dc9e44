//! Flows between hosts whose handshake the gateway missed, because the engine starts during them. Their
//! windows cannot be sized, and losses must not release them from control.

use super::tests_with_hosts::{Rig, MS};
use weir_core::ack::{AckControl, Release, Unresponsive};
use weir_core::flow::{flag, Record};
use weir_core::link::Loss;
use weir_core::rate::Rate;

/// Rate in Mb/s.
const RATE: u64 = 10;
/// Times in milliseconds of the engine's start, and of the start of the measurement.
const COMES: u64 = 60;
const FROM: u64 = 8_000;
const UNTIL: u64 = 18_000;

/// Returns a flow's rate in thousandths of the setting, and the expirations of its retransmission timer, at a
/// loss in thousandths. `out` is true if the client sends.
fn run(cc: &str, rtt_ms: u64, policy: AckControl, out: bool, permille: u32) -> (u64, u64) {
    let policies = if out { [Some(policy), None] } else { [None, Some(policy)] };
    let mut rig = Rig::over(cc, MS(rtt_ms), policies, Loss::permille(permille));
    rig.gateway().hang();
    rig.run(COMES);
    rig.gateway().come_back();
    let rates = rig.rates(FROM, UNTIL);
    let gateway = rig.gateway().gateway();
    let held =
        |r: &&Record| r.has(flag::USED | flag::SYNCED) && r.flags & (flag::SCALE_KNOWN | flag::PASSES) == 0;
    assert_eq!(gateway.flows.records().iter().filter(held).count(), 1, "{cc}: it is held without a scale");
    let sender = usize::from(!out);
    let rtos = rig.report(sender).rtos;
    (rates[sender] / RATE, rtos)
}

#[test]
fn losses_let_no_flow_go_whose_handshake_was_missed() {
    let shaper = AckControl::ack_shaper(Rate::mbit(RATE));
    let share = AckControl::ack_share(Rate::mbit(RATE));
    for (name, policy) in [("shaper", shaper), ("share", share)] {
        for (cc, rtt, out) in [("cubic", 4, true), ("cubic", 20, false), ("bbr", 4, false), ("bbr", 20, true)]
        {
            for permille in [1, 10] {
                let (rate, rtos) = run(cc, rtt, policy, out, permille);
                // CUBIC reaches half of 10 Mb/s at 1 % and 20 ms in either direction (RFC 9438 section 5.2).
                assert!((500..=1_010).contains(&rate), "{name} {cc} {rtt} ms {permille}: {rate} thousandths");
                // Classes and flows have a bound: what is found under way beyond the rate is lost at once, as
                // behind any limiter.
                assert!(rtos <= 2, "{name} {cc} {rtt} ms {permille}: {rtos} time-outs");
            }
        }
    }
}

/// Returns the highest rate of either direction in any second after the third one, in kb/s, of a connection
/// with data both ways whose handshake was missed. What an engine finds under way is spared for half a
/// second, and comes in order with what is sent again in the next two.
fn busiest_both_ways(policy: AckControl) -> u64 {
    let mut rig = Rig::over("cubic", MS(20), [Some(policy); 2], Loss::None);
    rig.gateway().hang();
    rig.run(COMES);
    rig.gateway().come_back();
    (3..8).flat_map(|second| rig.rates(1_000 * second, 1_000 * (second + 1))).max().unwrap()
}

/// Verifies that data both ways without a known scale is bounded: its ACKs cannot be set back, and passing
/// for that reason frees no connection.
#[test]
fn data_both_ways_keeps_to_its_rate_where_the_handshake_was_missed() {
    // Of the rate; and 64 kB, and as much that comes in order with a segment that was sent again.
    let most = 1_150 * RATE + 2 * 512;
    for mut policy in [AckControl::ack_shaper(Rate::mbit(RATE)), AckControl::ack_share(Rate::mbit(RATE))] {
        let busiest = busiest_both_ways(policy);
        assert!((RATE * 300..=most).contains(&busiest), "{busiest} kb/s");
        match &mut policy.release {
            Release::Rate(law) => law.unresponsive = Unresponsive::Count,
            Release::Share(law) => law.unresponsive = Unresponsive::Count,
        }
        assert!(busiest_both_ways(policy) > most, "nothing else bounds it");
    }
}
