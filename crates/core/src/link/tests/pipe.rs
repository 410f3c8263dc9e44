//! The short form of a link gives the results and counters of its separate elements.

use super::super::trace;
use super::*;
use proptest::prelude::*;

/// Returns the configuration of an equal link made of a queue, a server and a line: a rate by a trace with
/// one step.
fn in_parts(config: Config) -> Config {
    let steps: &'static [_] = Vec::leak(vec![(Duration::ZERO, config.rate)]);
    Config { trace: Some(RateTrace::Rates(trace::Rates { name: "one", steps, period: None })), ..config }
}

fn limit() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        Just(QueueLimit::Unlimited),
        (0u32..6).prop_map(QueueLimit::Packets),
        (0u64..9000).prop_map(QueueLimit::Bytes),
        (0u64..9000).prop_map(|us| QueueLimit::Bdp { rtt: Duration::from_micros(us) }),
    ]
}

#[test]
fn only_what_is_known_at_once_takes_the_short_form() {
    let short = |config: Config| matches!(Link::new(config).serializer, Serializer::Pipe(_));
    let plain = Config { delay: Duration::from_millis(3), loss: Loss::permille(5), ..ten_mbit() };
    assert!(short(plain));
    assert!(!short(in_parts(plain)));
    assert!(!short(Config { burst: 1, ..plain }));
    assert!(!short(Config { mark: Some(QueueLimit::Packets(5)), ..plain }));
    assert!(!short(Config { rate: None, ..plain }));
}

proptest! {
    #[test]
    fn times_and_counts_are_those_of_the_parts(
        gaps in prop::collection::vec((0u64..3_000_000, 60usize..1500), 1..60), bps in 1_000_000u64..40_000_000,
        queue in limit(), delay in 0u64..5_000_000, looks in 1u64..9_000_000,
        late in 0u64..3_000_000,
    ) {
        let config = Config { rate: Rate::from_bps(bps), queue, delay: Duration::from_nanos(delay), ..Config::default() };
        let late = Duration::from_nanos(late.max(1));
        for wake in [Wake::Exact, Wake::Late(late), Wake::Lazy(late)] {
            let mut rigs = [rig(config).wake(wake), rig(in_parts(config)).wake(wake)];
            let mut now = 0;
            for (tag, &(gap, ip)) in gaps.iter().enumerate() {
                now += gap;
                for r in &mut rigs {
                    r.at(ns(now)).inject(Link::IN, packet(tag as u8, ip));
                }
            }
            let mut at = 0;
            while at < now + 1_000_000_000 {
                at += looks.max(now / 20 + 1);
                let [pipe, parts] = [0, 1].map(|i| {
                    let r: &mut Rig<Link> = &mut rigs[i];
                    let sent = stamps(&r.run_until(ns(at)));
                    r.with_cx(|link, cx| link.advance(cx));
                    let link = r.node();
                    (sent, link.stats(), link.queue_packets(), link.queue_bytes(), link.ledger())
                });
                prop_assert_eq!(pipe, parts, "{:?}", wake);
            }
            rigs.iter().for_each(Rig::finish);
        }
    }
}
