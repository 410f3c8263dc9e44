use super::*;
use crate::result::{
    Back, Bandwidth, Bursts, ClassAdmission, ClassAlone, ClassBound, ClassOthers, ClassPace, ClassQueue,
    ClassResult, Exchanges, Frames, GatewayResult, Latency, LinkResult, Most, PortPace, Quantiles,
    QuantilesMax, Steering,
};
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeSet;

fn counts() -> Counts {
    [("queue_full".to_string(), 3), ("shutdown".to_string(), 4)].into()
}

fn flow() -> FlowResult {
    FlowResult {
        target_bps: Some(1),
        start_s: 2.0,
        end_s: 3.0,
        bytes: 4,
        goodput_bps: 5.0,
        fct_s: Some(6.0),
        retransmits: 7,
        rtos: 8,
        gave_up: 19,
        loss: Some(0.9),
        delay_us: Some(QuantilesMax { p50: 1, p99: 2, max: 3 }),
        rtt_us: Quantiles { p50: 10, p99: 11 },
        back: Some(Back { target_bps: Some(12), bytes: 13, goodput_bps: 14.0, ..Back::default() }),
        exchanges: Some(Exchanges {
            count: 15,
            latency_us: Latency { p50: 16, p90: 17, p99: 18 },
            under_way_us: None,
            at_most_us: None,
        }),
        bursts: Some(Bursts {
            count: 19,
            time_us: Latency { p50: 20, p90: 21, p99: 22 },
            under_way_us: None,
            at_most_us: None,
        }),
        ..FlowResult::default()
    }
}

/// Asserts that each metric's name is the path of its value in the JSON, and that names are unique.
fn are_paths<T: Serialize>(metrics: &[Metric<T>], of: &T) {
    let json = serde_json::to_value(of).unwrap();
    let mut names = BTreeSet::new();
    for m in metrics {
        assert!(names.insert(m.name), "two metrics are called {}", m.name);
        if m.value.is_none() || !m.checked {
            continue;
        }
        let there = m.name.split('.').try_fold(&json, |at, key| at.get(key));
        let written = match there.unwrap_or_else(|| panic!("no {} in {json}", m.name)) {
            Json::Object(counts) => counts.values().map(|v| v.as_f64().unwrap()).sum(),
            number => number.as_f64().unwrap(),
        };
        assert_eq!(m.of(of), Some(written), "{}", m.name);
    }
}

#[test]
fn names_are_paths_of_the_result() {
    are_paths(FLOW, &flow());
    let queue_us = QuantilesMax { p50: 1, p99: 2, max: 3 };
    let link = LinkResult {
        packets: 4,
        bytes: 5,
        utilization: 0.6,
        queue_us,
        marks: 7,
        filtered: 8,
        fallback: 9,
        ..Default::default()
    };
    are_paths(LINK, &LinkResult { drops: counts(), ..link });
    let class = ClassResult {
        name: "a".into(),
        parent: None,
        target_bps: 1,
        bps: 2.0,
        held_ack_peak_packets: 3,
        held_ack_peak_bytes: 4,
        ack_queue_peak_bytes: 24,
        buffer_peak_bytes: 25,
        scheduled_only: ClassAlone { not_tcp: 26, untouched: 27, no_acks: 28 },
        acks_absorbed: 5,
        acks_generated: 6,
        acks_rewritten: 7,
        others: Some(ClassOthers {
            packets: 8,
            bytes: 9,
            spilled: 29,
            spilled_bytes: 30,
            marked: 31,
            dropped: 10,
            exceeded_bytes: 20,
        }),
        bound: Some(ClassBound { held_bytes: 24, free_bytes: 25, dropped: 26, dropped_bytes: 27 }),
        admission: Some(ClassAdmission { guaranteed: 21, refused: 22, best_effort: 23 }),
        queue: Some(ClassQueue {
            packets: 11,
            bytes: 12,
            borrowed_bytes: 13,
            peak_packets: 14,
            peak_bytes: 15,
            delay_us: QuantilesMax { p50: 16, p99: 17, max: 18 },
            marks: 19,
            filtered: 24,
            fallback: 25,
            drops: counts(),
            dropped_bytes: 26,
        }),
        pace: Some(ClassPace {
            by: "gap".into(),
            target_bps: 24,
            bps: Some(25.5),
            off_target: Some(0.01),
            over1: Some(Bandwidth { min_bps: 26, mean_bps: 27, max_bps: 28 }),
            over2: Some(Bandwidth { min_bps: 29, mean_bps: 30, max_bps: 31 }),
            burst_packets: Some(1.5),
            together: Some(2),
        }),
    };
    are_paths(CLASS, &class);
    let frames = Frames { received: 1, made: 2, sent: 3, held: 4, absorbed: 5, dropped: counts() };
    let steering = Some(Steering {
        restarts: 1,
        resyncs: 2,
        passed_stale: 3,
        passed_unknown: 4,
        ring_full: 5,
        over_budget: 6,
        doubted: 7,
        failed: 8,
    });
    let pace = Some(PortPace { fillers: 1, filler_bytes: 2, discarded: 3, behind_bytes: 4 });
    let whole =
        GatewayResult { cpu_s: 0.5, memory_bytes: Some(10), user_data_bytes: 9, steering, frames, pace };
    are_paths(GATEWAY, &whole);
}

#[test]
fn counts_by_name() {
    let drops = LINK.iter().find(|m| m.name == "drops").unwrap();
    let link = LinkResult { drops: counts(), ..LinkResult::default() };
    let of = |name| drops.count_of(&link, name);
    assert_eq!((drops.of(&link), of("queue_full"), of("random_loss")), (Some(7.0), Some(3.0), Some(0.0)));
    assert_eq!(LINK[0].count_of(&link, "queue_full"), None);
    let none = drops.of(&LinkResult::default());
    assert!(none.is_some_and(|v| v == 0.0 && v.is_sign_positive()), "-0 reads as an error");
}

#[test]
fn what_was_not_measured_is_nothing() {
    let nothing = FlowResult::default();
    for name in ["target_bps", "off_target", "rtt_us.p50", "fct_s", "loss", "back.bytes", "exchanges.count"] {
        let metric = FLOW.iter().find(|m| m.name == name).unwrap();
        assert_eq!((metric.of(&nothing), metric.of(&flow()).is_some()), (None, true), "{name}");
    }
}

/// Ten requests answered after 1 to 10 ms, and one that has waited for 3. Whatever it takes, the median of
/// the eleven is the fifth or sixth of the ten, and only their 99th percentile has no upper bound. A request
/// that was never sent has neither.
#[test]
fn a_request_under_way_leaves_quantiles_between_bounds() {
    let found = |count, low: [u64; 3], under_way_us, at_most_us| {
        let [p50, p90, p99] = low;
        let latency_us = Latency { p50, p90, p99 };
        let exchanges = Some(Exchanges { count, latency_us, under_way_us, at_most_us });
        let f = FlowResult { exchanges, ..FlowResult::default() };
        ["p50", "p90", "p99"].map(|q| {
            let name = format!("exchanges.latency_us.{q}");
            FLOW.iter().find(|m| m.name == name).unwrap().found(&f)
        })
    };
    let most = Most { p50: Some(6000), p90: Some(10_000), p99: None };
    let of_eleven = found(10, [5000, 9000, 10_000], Some(3000), Some(most));
    let between = [Found::Between(5e3, 6e3), Found::Between(9e3, 1e4), Found::AtLeast(1e4)].map(Some);
    assert_eq!(of_eleven, between);
    let slower = Most { p50: Some(6000), p90: Some(10_000), p99: None };
    let of_slow = found(10, [6000, 10_000, 12_000], Some(12_000), Some(slower));
    assert_eq!(of_slow, [Found::Known(6e3), Found::Known(1e4), Found::AtLeast(12e3)].map(Some));
    assert_eq!(found(0, [0; 3], None, None), [Some(Found::AtLeast(0.0)); 3]);
    let answered = found(2, [1, 2, 2], None, None);
    assert_eq!(answered, [Found::Known(1.0), Found::Known(2.0), Found::Known(2.0)].map(Some));
}

#[test]
fn totals_by_hand() {
    let values = [2.0, -9.0, 4.0];
    let found = |total: Total| total.of(&values);
    assert_eq!((found(Total::Sum), found(Total::Mean)), (Some(-3.0), Some(-1.0)));
    assert_eq!((found(Total::Least), found(Total::Most)), (Some(-9.0), Some(4.0)));
    assert_eq!(found(Total::Furthest), Some(-9.0));
    assert_eq!((found(Total::Same), Total::Same.of(&[5.0, 5.0])), (None, Some(5.0)));
    let of_nothing = [Total::Sum, Total::Mean, Total::Least, Total::Most, Total::Furthest, Total::Same];
    assert_eq!(of_nothing.map(|t| t.of(&[])), [Some(0.0), None, None, None, None, None]);
}

/// Flows that follow each other on a link of 8 Mbit/s have 8 Mbit/s each, and 8 together, not 16.
#[test]
fn flows_that_share_something_have_their_bytes_over_the_time_of_all() {
    let flow = |start_s, end_s, bytes| FlowResult {
        start_s,
        end_s,
        bytes,
        goodput_bps: bytes as f64 * 8.0 / (end_s - start_s),
        retransmits: 3,
        ..FlowResult::default()
    };
    let (a, b) = (flow(1.0, 2.0, 1_000_000), flow(2.0, 4.0, 2_000_000));
    let of = |name: &str| FLOW.iter().find(|m| m.name == name).unwrap();
    let goodput = of("goodput_bps");
    assert_eq!((goodput.total_of(&[&a, &b]), goodput.together(&[&a, &b])), (Some(8e6), Some(8e6)));
    // Flows that overlap share the link.
    let (a, b) = (flow(1.0, 4.0, 1_000_000), flow(1.0, 4.0, 2_000_000));
    assert_eq!((goodput.total_of(&[&a, &b]), goodput.together(&[&a, &b])), (Some(4e6), Some(8e6)));
    assert_eq!((goodput.together(&[]), of("retransmits").together(&[&a, &b])), (None, Some(6.0)));
    assert_eq!(of("back.goodput_bps").together(&[&a, &b]), None);
}

/// Three flows set to 10 Mbit/s each, of which two overlap, are never set to 30.
#[test]
fn targets_add_up_at_the_same_time_only() {
    let flow = |start_s, end_s| FlowResult { start_s, end_s, target_bps: Some(10), ..FlowResult::default() };
    let flows = [flow(0.0, 4.0), flow(2.0, 6.0), flow(6.0, 8.0)];
    let target = FLOW.iter().find(|m| m.name == "target_bps").unwrap();
    assert_eq!(target.together(&flows.each_ref()), Some(20.0));
    assert_eq!(target.together(&[&flows[0], &flows[2]]), Some(10.0));
}

#[test]
fn judged_metrics_come_first_and_parts_are_objects() {
    let names: Vec<&str> = of_several(Tables::Comparisons).map(|m| m.name).collect();
    assert_eq!(names, ["goodput_bps", "fct_s", "rtt_us.p50", "rtt_us.p99", "retransmits", "rtos"]);
    let values = Values::of(|m| (m.name != "fct_s").then_some(m.name.len()));
    let written = serde_json::to_string(&values).unwrap();
    assert_eq!(written, r#"{"goodput_bps":11,"rtt_us":{"p50":10,"p99":10},"retransmits":11,"rtos":4}"#);
    assert_eq!((values.get("rtt_us.p99"), values.get("fct_s"), values.get("bytes")), (Some(10), None, None));
}

/// The manual's word for a unit.
fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Rate => "bit/s",
        Unit::Micros => "us",
        Unit::Seconds => "s",
        Unit::Bytes => "bytes",
        Unit::Share | Unit::Deviation => "share",
        Unit::Count => "count",
    }
}

/// The manual's word for a total.
fn total(total: Total) -> &'static str {
    match total {
        Total::Sum => "sum",
        Total::Mean => "mean",
        Total::Least => "smallest",
        Total::Most => "largest",
        Total::Furthest => "furthest from 0",
        Total::Same => "one value if all are the same",
    }
}

/// Each metric that checks can name has its line in the manual: `| name | unit | total | what it is |`.
#[test]
fn the_manual_has_a_line_for_each() {
    fn lines<T>(metrics: &[Metric<T>]) -> Vec<String> {
        let line = |m: &Metric<T>| {
            let joint = match (m.jointly.is_some(), m.name.ends_with("target_bps")) {
                (true, true) => "; of a class or a run, the most at any time",
                (true, false) => "; of a class or a run, all bytes over the time of all",
                (false, _) => "",
            };
            format!("| `{}` | {} | {}{joint} | {} |", m.name, unit(m.unit), total(m.total), m.about)
        };
        metrics.iter().filter(|m| m.checked).map(line).collect()
    }
    let manual = include_str!("../../../../../docs/results.md");
    let recorded = SERIES.iter().map(|c| format!("| `{}` | {} | {} |", c.name, unit(c.unit), c.kind.name()));
    let wanted = [lines(FLOW), lines(LINK), lines(CLASS), lines(GATEWAY), recorded.collect()].concat();
    let missing: Vec<String> = wanted.into_iter().filter(|l| !manual.contains(l.as_str())).collect();
    assert!(missing.is_empty(), "docs/results.md lacks\n{}", missing.join("\n"));
}
