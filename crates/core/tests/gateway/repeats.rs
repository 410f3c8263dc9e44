//! Ends that want more than their rate: a sender with as much on its way as it may have, which repeats
//! segments, and a receiver that repeats acknowledgements or tells of losses that were none. In virtual time,
//! 20 ms beyond the gateway.

use crate::support::*;
use std::collections::VecDeque;
use weir_core::ack::{AckControl, Window, PRESETS};
use weir_core::gateway::{Config, LAN, WAN};
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::Flags;
use weir_core::wire::Seq;

const RATE: Rate = Rate::mbit(5);
const MSS: u32 = 1_460;
/// Bytes that the sender has on its way.
const BUFFER: u32 = 256 << 10;
const BEGINS: u64 = 1_000;
const ENDS: u64 = 6_000;

/// Segments of the receiver beside acknowledgements of data that came, once it has got `rx` and the sender
/// has heard of `una`.
type Trick = fn(&Net, rx: u32, una: u32) -> Vec<SegmentBuilder>;

fn block(w: &Net, rx: u32, (left, right): (u32, u32)) -> Vec<SegmentBuilder> {
    vec![w.ack_segment(rx).sack(&[(w.abs(left), w.abs(right))])]
}

/// An end, and further ones behind it.
const ENDINGS: (&str, Trick) = ("ends", |w, rx, _| {
    let seq = RECEIVER_ISN.wrapping_add(1 + rx / 1_000);
    vec![w.ack_segment(rx).seq(seq).flags(Flags::FIN | Flags::ACK)]
});

const TRICKS: [(&str, Trick); 6] = [
    ("duplicates", |w, rx, _| vec![w.ack_segment(rx)]),
    ("three duplicates", |w, rx, _| (0..3).map(|_| w.ack_segment(rx)).collect()),
    ("holes", |w, rx, _| block(w, rx, (rx + MSS, rx + 2 * MSS))),
    // What answers a sender that repeats its first segment, or its last.
    ("first segment again", |w, rx, una| block(w, rx, (una, una + MSS))),
    ("last segment again", |w, rx, _| block(w, rx, (rx.saturating_sub(MSS), rx))),
    ("closed windows", |w, rx, _| vec![w.ack_segment(rx).window(0), w.ack_segment(rx)]),
];

/// A flow whose handshake was seen, and where its first window ends.
fn established(ack: AckControl, rtt: u64) -> (Net, u32) {
    let w = Net::established_over(ack, Duration::from_millis(rtt));
    let edge = w.rig.node().flows.records()[0].edge.since(Seq(w.abs(0)));
    (w, edge)
}

/// Returns a network that missed the handshake.
fn missed(ack: AckControl, rtt: u64) -> (Net, u32) {
    let config = Config { assumed_rtt: Duration::from_millis(rtt), ..config(ack) };
    let mut w = Net::with_config(config, None);
    for n in 0..4 {
        w.ack_at(ms(BEGINS - 4 + u64::from(n)), n);
    }
    w.run(ms(BEGINS - 1));
    (w, u32::from(WINDOW) << 7)
}

/// Returns when how much was acknowledged to a flow over such a round trip, where the receiver does such a
/// thing every this many milliseconds.
fn acknowledged((mut w, mut edge): (Net, u32), rtt: u64, trick: Trick, every: u64) -> Vec<(Time, u32)> {
    let (mut una, mut next, mut rx) = (0, 0, 0);
    let mut flying: VecDeque<(u64, u32)> = VecDeque::new();
    let mut told = Vec::new();
    for t in BEGINS..ENDS {
        for s in w.run(ms(t)).iter().filter(|s| s.port == LAN) {
            let ack = w.rel(s);
            edge = edge.max(ack + (u32::from(w.tcp(s).window) << 7));
            if ack > una {
                una = ack;
                told.push((s.at, una));
            }
        }
        if edge.min(una + BUFFER) > next {
            next = edge.min(una + BUFFER);
            flying.push_back((t + rtt, next));
        }
        while flying.front().is_some_and(|&(at, _)| at <= t) {
            rx = flying.pop_front().map_or(rx, |(_, n)| n);
            w.ack_at(ms(t), rx);
        }
        if t % every == 0 && rx > una {
            for segment in trick(&w, rx, una) {
                w.inject_at(ms(t), WAN, segment);
            }
        }
    }
    told
}

/// The most that was acknowledged beyond the rate in any interval.
fn excess(told: &[(Time, u32)]) -> i64 {
    let carried = |at: Time| RATE.bytes_in(at.since(ms(BEGINS))) as i64;
    let (mut least, mut most, mut before) = (i64::MAX, 0, 0);
    for &(at, number) in told {
        least = least.min(before - carried(at));
        before = i64::from(number);
        most = most.max(before - carried(at) - least);
    }
    most
}

/// Returns the most that may be acknowledged beyond the rate: where the window is kept, what the rate carries
/// in two seconds and a bucket go early; where it is sized, twice the window and a step, and for flows that
/// share a rate what their class may be ahead.
fn most(ack: &AckControl, rtt: u64) -> i64 {
    let carried = |ms| RATE.bytes_in(Duration::from_millis(ms)) as i64;
    match (ack.window, ack.release.share()) {
        (Window::Keep, _) => carried(2_000) + i64::from(ack.release.depth()).max(carried(10)),
        (_, None) => 2 * carried(rtt + 20) + 6 * i64::from(MSS),
        (_, Some(_)) => carried(rtt + 15) + 6 * i64::from(MSS),
    }
}

fn holds_to_its_rate(
    name: &str,
    ack: AckControl,
    begin: fn(AckControl, u64) -> (Net, u32),
    tricks: &[(&str, Trick)],
) {
    for &(what, trick) in tricks {
        for (rtt, every) in [(1, 1), (20, 7), (20, 50)] {
            let told = acknowledged(begin(ack, rtt), rtt, trick, every);
            let (excess, most) = (excess(&told), most(&ack, rtt));
            assert!(
                excess <= most,
                "{name}, {what} every {every} ms, {rtt} ms: {excess} bytes too many, not {most}"
            );
            // Half of what is earned repays what went early, and the step may be halved.
            let all = told.last().map_or(0, |last| u64::from(last.1));
            let least = RATE.bytes_in(ms(ENDS).since(ms(BEGINS))) / 5;
            assert!(all >= least, "{name}, {what} every {every} ms, {rtt} ms: {all} bytes in all");
        }
    }
}

#[test]
fn no_preset_gives_more_than_the_rate_for_what_is_repeated() {
    for preset in PRESETS {
        holds_to_its_rate(preset.name, (preset.policy)(RATE), established, &TRICKS);
    }
}

/// The first end passes with its acknowledgement. One behind it is none (RFC 9293 section 3.10.7.4, eighth).
#[test]
fn no_preset_gives_more_than_the_rate_to_a_receiver_that_ends_again_and_again() {
    for preset in PRESETS {
        holds_to_its_rate(preset.name, (preset.policy)(RATE), established, &[ENDINGS]);
    }
}

#[test]
fn no_window_that_is_kept_gives_more_than_the_rate_for_what_is_repeated() {
    let ack = AckControl { window: Window::Keep, ..AckControl::ack_shaper(RATE) };
    holds_to_its_rate("ack-shaper, kept", ack, established, &TRICKS);
}

#[test]
fn a_class_gives_no_more_than_its_rate_for_what_is_repeated() {
    holds_to_its_rate("a class", AckControl::ack_share(RATE), established, &TRICKS);
}

/// But for closed windows: without a scale it is unknown how far their right edge is from a number that was
/// told before.
#[test]
fn flows_whose_handshake_was_not_seen_get_no_more_for_what_is_repeated() {
    for ack in [AckControl::ack_shaper(RATE), AckControl::reconstruct(RATE), AckControl::ack_share(RATE)] {
        holds_to_its_rate(&format!("{ack:?}"), ack, missed, &TRICKS[..5]);
    }
}
