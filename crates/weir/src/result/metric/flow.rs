//! Metrics of flows.

use super::Needs::{BothWays, Gateway, LastByte, Nothing, Pauses, Requests, Tcp, Udp};
use super::{measured, whole, Metric, OverTime, Tables, Total};
use crate::result::unit::Unit;
use crate::result::{joint_rate, joint_target, FlowResult, Latency, Most};

type Flow = Metric<FlowResult>;

/// Metrics of flows, in the order of tables.
pub static FLOW: &[Flow] = &[
    Flow::new(
        "goodput_bps",
        Unit::Rate,
        Total::Mean,
        Nothing,
        "payload received per second, within the flow's own life",
    )
    .number(|f| Some(f.goodput_bps))
    .jointly(|flows| joint_rate(flows.iter().map(|f| (f.bytes, f.start_s, f.until_s()))))
    .over_time(OverTime::Average)
    .column("goodput", Tables::All)
    .judged_as("goodput"),
    Flow::new("interval_bps", Unit::Rate, Total::Mean, Nothing, "the same in each whole interval")
        .over_time(OverTime::Intervals),
    Flow::new(
        "target_bps",
        Unit::Rate,
        Total::Same,
        Gateway,
        "the rate that the gateway is set to for the flow",
    )
    .number(|f| f.target_bps.map(|bps| bps as f64))
    .jointly(|flows| {
        let set = flows.iter().filter_map(|f| Some((f.target_bps?, f.start_s, f.end_s)));
        joint_target(set).map(|bps| bps as f64)
    })
    .column("target", Tables::Run),
    Flow::new(
        "off_target",
        Unit::Deviation,
        Total::Furthest,
        Gateway,
        "how far the goodput is from the target",
    )
    .number(off_target)
    .column("off", Tables::Run)
    .unchecked(),
    Flow::new(
        "min_bps",
        Unit::Rate,
        Total::Least,
        Nothing,
        "the lowest goodput of any window; in tables, of any whole interval",
    )
    .over_time(OverTime::Lowest)
    .column("min", Tables::Run),
    Flow::new("max_bps", Unit::Rate, Total::Most, Nothing, "the highest, likewise")
        .over_time(OverTime::Highest)
        .column("max", Tables::Run),
    Flow::new(
        "bytes",
        Unit::Bytes,
        Total::Sum,
        Nothing,
        "payload that the receiving application got, after the flow's end too",
    )
    .number(|f| whole(f.bytes)),
    Flow::new(
        "rtt_us.p50",
        Unit::Micros,
        Total::Mean,
        Tcp,
        "median of the round-trip times that the sender measured",
    )
    .number(|f| measured(f.rtt_us.p50))
    .at_least(no_round_trip)
    .column("rtt p50", Tables::All),
    Flow::new("rtt_us.p99", Unit::Micros, Total::Mean, Tcp, "their 99th percentile")
        .number(|f| measured(f.rtt_us.p99))
        .at_least(no_round_trip)
        .column("rtt p99", Tables::Comparisons),
    Flow::new("retransmits", Unit::Count, Total::Sum, Tcp, "segments sent again")
        .number(|f| whole(f.retransmits))
        .column("retr", Tables::All),
    Flow::new("rtos", Unit::Count, Total::Sum, Tcp, "retransmission time-outs")
        .number(|f| whole(f.rtos))
        .column("rto", Tables::All),
    Flow::new(
        "gave_up",
        Unit::Count,
        Total::Sum,
        Tcp,
        "connections given up after time-outs without an answer",
    )
    .number(|f| whole(f.gave_up)),
    Flow::new(
        "fct_s",
        Unit::Seconds,
        Total::Mean,
        LastByte,
        "flow completion time: from the start until the last byte was received",
    )
    .number(|f| f.fct_s)
    .at_least(|f| f.fct_at_least_s)
    .column("fct", Tables::All)
    .judged_as("fct"),
    Flow::new("start_s", Unit::Seconds, Total::Mean, Nothing, "when the flow started")
        .number(|f| Some(f.start_s)),
    Flow::new("end_s", Unit::Seconds, Total::Mean, Nothing, "when it ended").number(|f| Some(f.end_s)),
    Flow::new(
        "loss",
        Unit::Share,
        Total::Mean,
        Udp,
        "share of the datagrams that did not arrive, each counted once",
    )
    .number(|f| f.loss)
    .at_least(|f| (f.cc == "udp").then_some(0.0)),
    Flow::new(
        "delay_us.p50",
        Unit::Micros,
        Total::Mean,
        Udp,
        "median one-way delay of the datagrams that arrived",
    )
    .number(|f| whole(f.delay_us?.p50))
    .at_least(no_delay),
    Flow::new("delay_us.p99", Unit::Micros, Total::Mean, Udp, "its 99th percentile")
        .number(|f| whole(f.delay_us?.p99))
        .at_least(no_delay),
    Flow::new("delay_us.max", Unit::Micros, Total::Most, Udp, "the longest")
        .number(|f| whole(f.delay_us?.max))
        .at_least(no_delay),
    Flow::new("back.bytes", Unit::Bytes, Total::Sum, BothWays, "payload received in the other direction")
        .number(|f| whole(f.back.as_ref()?.bytes)),
    Flow::new("back.goodput_bps", Unit::Rate, Total::Mean, BothWays, "goodput of the other direction")
        .number(|f| Some(f.back.as_ref()?.goodput_bps))
        .jointly(|flows| {
            let part = |f: &&FlowResult| {
                let back = f.back.as_ref()?;
                Some((back.bytes, f.start_s, back.last_s.map_or(f.end_s, |last| last.max(f.end_s))))
            };
            joint_rate(flows.iter().filter_map(part))
        }),
    Flow::new(
        "back.target_bps",
        Unit::Rate,
        Total::Same,
        BothWays,
        "the rate that the gateway is set to for it",
    )
    .number(|f| f.back.as_ref()?.target_bps.map(|bps| bps as f64))
    .jointly(|flows| {
        let set = flows.iter().filter_map(|f| Some((f.back.as_ref()?.target_bps?, f.start_s, f.end_s)));
        joint_target(set).map(|bps| bps as f64)
    }),
    Flow::new("exchanges.count", Unit::Count, Total::Sum, Requests, "requests that were answered")
        .number(|f| whole(f.exchanges?.count)),
    Flow::new(
        "exchanges.latency_us.p50",
        Unit::Micros,
        Total::Mean,
        Requests,
        "median time from a request written to its response read",
    )
    .number(|f| exchanged(f).p50.known())
    .at_least(|f| exchanged(f).p50.least())
    .at_most(|f| exchanged(f).p50.most()),
    Flow::new("exchanges.latency_us.p90", Unit::Micros, Total::Mean, Requests, "its 90th percentile")
        .number(|f| exchanged(f).p90.known())
        .at_least(|f| exchanged(f).p90.least())
        .at_most(|f| exchanged(f).p90.most()),
    Flow::new("exchanges.latency_us.p99", Unit::Micros, Total::Mean, Requests, "its 99th percentile")
        .number(|f| exchanged(f).p99.known())
        .at_least(|f| exchanged(f).p99.least())
        .at_most(|f| exchanged(f).p99.most()),
    Flow::new("bursts.count", Unit::Count, Total::Sum, Pauses, "bursts that were acknowledged")
        .number(|f| whole(f.bursts?.count)),
    Flow::new(
        "bursts.time_us.p50",
        Unit::Micros,
        Total::Mean,
        Pauses,
        "median time from a burst written until all of it was acknowledged",
    )
    .number(|f| burst(f).p50.known())
    .at_least(|f| burst(f).p50.least())
    .at_most(|f| burst(f).p50.most()),
    Flow::new("bursts.time_us.p90", Unit::Micros, Total::Mean, Pauses, "its 90th percentile")
        .number(|f| burst(f).p90.known())
        .at_least(|f| burst(f).p90.least())
        .at_most(|f| burst(f).p90.most()),
    Flow::new("bursts.time_us.p99", Unit::Micros, Total::Mean, Pauses, "its 99th percentile")
        .number(|f| burst(f).p99.known())
        .at_least(|f| burst(f).p99.least())
        .at_most(|f| burst(f).p99.most()),
];

/// Returns a lower bound of 0 for a TCP flow whose sender had no sample of the round-trip time.
fn no_round_trip(f: &FlowResult) -> Option<f64> {
    (f.cc != "udp" && f.rtt_us.p50 == 0).then_some(0.0)
}

/// Returns a lower bound of 0 for a flow of datagrams of which none tells its delay.
fn no_delay(f: &FlowResult) -> Option<f64> {
    (f.cc == "udp" && f.delay_us.is_none()).then_some(0.0)
}

/// Quantile of latencies, of which one may belong to something that is still under way.
#[derive(Clone, Copy, Default)]
struct Waited {
    /// Quantile, the time under way so far included.
    low: Option<u64>,
    /// Quantile if what is under way never ends.
    high: Option<u64>,
}

impl Waited {
    fn known(self) -> Option<f64> {
        self.low.filter(|_| self.low == self.high).and_then(whole)
    }

    fn least(self) -> Option<f64> {
        self.low.and_then(whole)
    }

    fn most(self) -> Option<f64> {
        self.high.and_then(whole)
    }
}

/// Three quantiles of latencies.
#[derive(Clone, Copy, Default)]
struct Three {
    p50: Waited,
    p90: Waited,
    p99: Waited,
}

/// Returns the quantiles of `count` latencies and of one `under_way`, if there is one. Without either the
/// first has not begun, and no bound but 0 is known.
fn three(count: u64, low: Latency, under_way: Option<u64>, most: Option<Most>) -> Three {
    let of = |low: u64, most: Option<u64>| {
        let high = match under_way {
            None => (count > 0).then_some(low),
            // Whatever it takes, it stays above what is below it now.
            Some(so_far) => most.or((low < so_far).then_some(low)),
        };
        Waited { low: Some(low), high }
    };
    let most = most.unwrap_or_default();
    Three { p50: of(low.p50, most.p50), p90: of(low.p90, most.p90), p99: of(low.p99, most.p99) }
}

fn exchanged(f: &FlowResult) -> Three {
    f.exchanges.map_or(Three::default(), |e| three(e.count, e.latency_us, e.under_way_us, e.at_most_us))
}

fn burst(f: &FlowResult) -> Three {
    f.bursts.map_or(Three::default(), |b| three(b.count, b.time_us, b.under_way_us, b.at_most_us))
}

/// Returns the deviation of the goodput from the target, as a fraction of the target.
fn off_target(f: &FlowResult) -> Option<f64> {
    let target = f.target_bps.filter(|&t| t > 0)? as f64;
    Some((f.goodput_bps - target) / target)
}
