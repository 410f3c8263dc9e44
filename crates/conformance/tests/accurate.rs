//! Marks that a sender counts by Accurate ECN through every middlebox (RFC 9768).

use std::env;
use weir_conformance::accurate::{self, Receiver};
use weir_conformance::script::{Opening, BACKLOG, MSS};
use weir_conformance::{play, subjects, Script, Side};
use weir_core::rng::Rng;
use weir_core::wire::Flags;

/// Packets whose ACKs come at once. At the rate of the suite they are released within half a second.
const BATCH: u32 = BACKLOG / MSS;

/// A connection of so many packets, of which `permille` are marked, and whose ACKs have the option.
fn connection(packets: u32, permille: u64, option: bool) -> (Script, Receiver) {
    let (mut s, mut receiver, mut rng) = (Script::new(0), Receiver::default(), Rng::new(permille));
    s.always(Flags::of_ace(5));
    s.open(Opening { flags: (Flags::of_ace(7), Flags::of_ace(2)), ..Opening::default() });
    for batch in 1..=packets / BATCH {
        s.send(batch * BACKLOG).wait_ms(20);
        for n in 0..BATCH {
            receiver.packet(rng.below(1_000) < permille);
            if n % 2 == 1 {
                let backwards = rng.below(2) == 0;
                let ack = if option { receiver.ack(&s, backwards) } else { receiver.bare_ack(&s) };
                s.wait_us(20).put(Side::Receiver, ack);
            }
        }
        s.wait_ms(600);
    }
    (s, receiver)
}

/// `ACCECN_PACKETS=1000000` passes as many packets at each share of marks through each form of each
/// middlebox.
#[test]
#[allow(clippy::disallowed_methods)] // how long a test runs is nothing of the core's
fn a_sender_counts_the_marks_that_its_receiver_got() {
    let packets = env::var("ACCECN_PACKETS").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let mut wrong = Vec::new();
    for (permille, option) in [0, 10, 100].into_iter().flat_map(|n| [(n, true), (n, false)]) {
        let (script, receiver) = connection(packets, permille, option);
        for subject in subjects() {
            for form in subject.forms.iter().filter(|form| !form.traits.bounded) {
                let crossed = play(&script, form.node(), form.sender);
                if let Err(why) = accurate::check(&script, crossed.iter(), &receiver) {
                    wrong.push(format!(
                        "{}, {}, {permille} of 1000, option {option}: {why}",
                        subject.name, form.name
                    ));
                }
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}
