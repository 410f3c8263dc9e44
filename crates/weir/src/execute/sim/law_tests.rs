//! A law for every metric of the catalogue: what it says of a subject of which nothing was seen, of what
//! comes when the subject's time is up, and of what comes twice. A metric without an answer fails here.

use super::tests::{plan, simulate};
use crate::experiment::config::{experiment, Source};
use crate::report::expect::evaluate;
use crate::result::metric::{Found, Metric, CLASS, FLOW, GATEWAY, LINK};
use crate::result::{
    Back, Bursts, ClassPace, ClassQueue, ClassResult, Exchanges, FlowResult, GatewayResult, Latency,
    LinkResult, RunResult,
};
use std::collections::BTreeMap;
use Late::{Counts, LeftOut, Whole};
use Silent::{AtLeast, Has, Nothing};
use Twice::{Each, Once};

/// Answer for a subject of which nothing was seen.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Silent {
    /// A value: a count is 0 then.
    Has,
    /// A lower bound: a check that it is at most something fails, and a mean says of how many it is.
    AtLeast,
    /// Nothing, since the subject is none that has such a value.
    Nothing,
}

/// Answer for what arrives after the subject's time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Late {
    /// It counts.
    Counts,
    /// It does not: the metric is of the subject's own time.
    LeftOut,
    /// The subject's time is all of the run.
    Whole,
    /// The metric is not about what comes.
    Apart,
}

/// Answer for what arrives twice.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Twice {
    /// Counts once.
    Once,
    /// Counts each time: frames are frames.
    Each,
    /// Changes nothing that the metric counts, or something that the law does not say.
    Apart,
}

/// Names, and what they say.
type Law = (&'static str, Silent, Late, Twice);

const FLOWS: &[Law] = &[
    ("goodput_bps", Has, LeftOut, Once),
    ("interval_bps min_bps max_bps", Nothing, LeftOut, Once),
    ("target_bps off_target back.target_bps", Nothing, Late::Apart, Twice::Apart),
    ("bytes back.bytes", Has, Counts, Once),
    ("back.goodput_bps", Has, LeftOut, Once),
    ("rtt_us.p50 rtt_us.p99 fct_s", AtLeast, Late::Apart, Twice::Apart),
    ("retransmits rtos gave_up start_s end_s", Has, Late::Apart, Twice::Apart),
    ("loss", Nothing, Late::Apart, Once),
    ("delay_us.p50 delay_us.p99 delay_us.max", Nothing, Late::Apart, Twice::Apart),
    ("exchanges.count bursts.count", Has, LeftOut, Once),
    (
        "exchanges.latency_us.p50 exchanges.latency_us.p90 exchanges.latency_us.p99",
        AtLeast,
        Late::Apart,
        Once,
    ),
    ("bursts.time_us.p50 bursts.time_us.p90 bursts.time_us.p99", AtLeast, Late::Apart, Once),
];

const LINKS: &[Law] = &[
    ("packets bytes utilization drops marks filtered fallback", Has, Whole, Each),
    ("duplicated corrupted", Has, Whole, Twice::Apart),
    ("queue_us.p50 queue_us.p99 queue_us.max", Nothing, Whole, Twice::Apart),
];

const CLASSES: &[Law] = &[
    ("bps", Has, Counts, Once),
    ("goodput_bps interval_bps min_bps max_bps", Nothing, Whole, Once),
    ("target_bps", Nothing, Late::Apart, Twice::Apart),
    ("held_ack_peak_bytes held_ack_peak_packets ack_queue_peak_bytes", Has, Whole, Twice::Apart),
    ("acks_absorbed acks_generated acks_rewritten", Has, Whole, Each),
    ("others.packets others.bytes others.dropped others.exceeded_bytes", Nothing, Whole, Each),
    ("others.spilled others.spilled_bytes others.marked", Nothing, Whole, Each),
    ("bound.held_bytes bound.free_bytes bound.dropped bound.dropped_bytes", Nothing, Whole, Each),
    ("admission.guaranteed admission.refused admission.best_effort", Nothing, Whole, Twice::Apart),
    ("scheduled_only.not_tcp scheduled_only.untouched scheduled_only.no_acks", Has, Whole, Each),
    ("queue.packets queue.bytes queue.borrowed_bytes", Has, Whole, Each),
    ("queue.marks queue.filtered queue.fallback queue.drops queue.dropped_bytes", Has, Whole, Each),
    ("queue.peak_packets queue.peak_bytes buffer_peak_bytes", Has, Whole, Twice::Apart),
    ("queue.delay_us.p50 queue.delay_us.p99 queue.delay_us.max", Nothing, Whole, Twice::Apart),
    ("pace.target_bps", Has, Late::Apart, Twice::Apart),
    ("pace.bps pace.together", AtLeast, Whole, Twice::Apart),
    ("pace.over1.min_bps pace.over1.mean_bps pace.over1.max_bps", AtLeast, Whole, Twice::Apart),
    ("pace.over2.min_bps pace.over2.mean_bps pace.over2.max_bps", AtLeast, Whole, Twice::Apart),
    ("pace.off_target pace.burst_packets", Nothing, Whole, Twice::Apart),
];

const GATEWAYS: &[Law] = &[
    ("frames.in frames.out frames.dropped user_data_bytes", Has, Whole, Each),
    ("frames.made frames.held frames.absorbed cpu_s", Has, Whole, Twice::Apart),
    ("memory_bytes", Nothing, Whole, Twice::Apart),
    (
        "steering.restarts steering.resyncs steering.passed_stale steering.passed_unknown",
        Nothing,
        Whole,
        Twice::Apart,
    ),
    (
        "steering.ring_full steering.over_budget steering.doubted steering.failed",
        Nothing,
        Whole,
        Twice::Apart,
    ),
    ("pace.fillers pace.filler_bytes pace.discarded pace.behind_bytes", Nothing, Whole, Twice::Apart),
];

/// The law of each metric of a catalogue. Panics if a metric has none, or a law no metric.
fn laws<T>(metrics: &'static [Metric<T>], table: &[Law]) -> BTreeMap<&'static str, Law> {
    let each = table.iter().flat_map(|law| law.0.split(' ').map(move |name| (name, *law)));
    let laws: BTreeMap<&str, Law> = each.collect();
    let lacking: Vec<&str> = metrics.iter().map(|m| m.name).filter(|name| !laws.contains_key(name)).collect();
    assert!(lacking.is_empty(), "metrics without a law: {lacking:?}");
    assert_eq!(laws.len(), metrics.len(), "a law is of no metric, or two are of one");
    laws
}

fn of_silence<T>(metrics: &'static [Metric<T>], table: &[Law], silent: &T) {
    for (name, law) in laws(metrics, table) {
        let metric = metrics.iter().find(|m| m.name == name).unwrap();
        let said = match metric.found(silent) {
            Some(Found::Known(_)) => Has,
            Some(Found::AtLeast(_) | Found::Between(..)) => AtLeast,
            None => Nothing,
        };
        assert_eq!(said, law.1, "{name} of a subject of which nothing was seen");
    }
}

#[test]
fn of_a_subject_of_which_nothing_was_seen() {
    let waited = Latency { p50: 5, p90: 5, p99: 5 };
    let flow = FlowResult {
        cc: "reno".into(),
        fct_at_least_s: Some(3.0),
        back: Some(Back::default()),
        exchanges: Some(Exchanges { count: 0, latency_us: waited, under_way_us: Some(5), at_most_us: None }),
        bursts: Some(Bursts { count: 0, time_us: waited, under_way_us: Some(5), at_most_us: None }),
        ..FlowResult::default()
    };
    of_silence(FLOW, FLOWS, &flow);
    of_silence(LINK, LINKS, &LinkResult::default());
    let class = ClassResult {
        pace: Some(ClassPace::default()),
        queue: Some(ClassQueue::default()),
        ..ClassResult::default()
    };
    of_silence(CLASS, CLASSES, &class);
    of_silence(GATEWAY, GATEWAYS, &GatewayResult::default());
}

/// Datagrams of half a second on a path of 400 ms, through a class with a queue, one in ten lost.
fn text(duration: &str, lan: &str, wan: &str) -> String {
    format!(
        "name = 'law'\nduration = '{duration}'\ninterval = '100ms'
        [path]
        lan = {{ {lan} }}
        [path.wan]\nrate = '10Mbit'
        out = {{ delay = '200ms', loss = 0.1, {wan} }}
        [[gateway.class]]\nname = 'q'\nrate = '5Mbit'\nqueue = '100p'\nmatch = [{{ protocol = 'udp' }}]
        [[flow]]\nid = 'u'\nprotocol = 'udp'\nrate = '1Mbit'\ndatagram = 1000\nduration = '500ms'\n"
    )
}

/// Returns the value that a check finds; `None` if the experiment has nothing of the kind.
fn found<T>(metric: &Metric<T>, subject: &str, text: &str, result: &RunResult) -> Option<f64> {
    let key = metric.over_time.and_then(|over| over.key());
    let length = key.map_or(String::new(), |key| format!("{key} = '100ms'\n"));
    let check = format!(
        "{text}[[expect]]\nwhat = '{subject}.{}'\naggregate = 'max'\n{length}op = 'at_least'\ntarget = 0\n",
        metric.name
    );
    let plan = experiment::parse(&Source::new("law.toml", check)).ok()?.plan;
    evaluate(&plan, result)[0].found
}

/// The runs that the laws compare: the base, cut at the flow's end, with copies behind the last queue, and
/// with copies in front of the gateway.
struct Runs([(String, RunResult); 4]);

impl Runs {
    fn make() -> Runs {
        let texts =
            [("2s", "", ""), ("500ms", "", ""), ("2s", "", "duplicate = 1"), ("2s", "duplicate = 1", "")];
        Runs(texts.map(|(duration, lan, wan)| {
            let text = text(duration, lan, wan);
            let result = simulate(&text);
            (text, result)
        }))
    }

    /// Holds the metrics of a subject to their laws; returns those that were compared.
    fn hold<T>(&self, metrics: &'static [Metric<T>], table: &[Law], subject: &str) -> Vec<&'static str> {
        let mut compared = Vec::new();
        for (name, (_, _, late, twice)) in laws(metrics, table) {
            let metric = metrics.iter().find(|m| m.name == name).unwrap();
            let values = self.0.each_ref().map(|(text, result)| found(metric, subject, text, result));
            let [Some(base), cut, behind, before] = values else { continue };
            if base == 0.0 {
                continue;
            }
            compared.push(name);
            let seen = format!("{name}: {base}, {cut:?} cut, {behind:?} and {before:?} with copies");
            match late {
                Counts => assert!(cut.unwrap() < base, "late: {seen}"),
                LeftOut => assert_eq!(cut, Some(base), "late: {seen}"),
                Whole | Late::Apart => (),
            }
            match twice {
                Once => assert_eq!(behind, Some(base), "twice: {seen}"),
                Each => assert!(before.unwrap() > base, "twice: {seen}"),
                Twice::Apart => (),
            }
        }
        compared
    }
}

#[test]
fn of_what_comes_late_or_twice() {
    assert_eq!(plan(&text("2s", "", "")).bin.as_micros(), 10_000);
    let runs = Runs::make();
    let flow = runs.hold(FLOW, FLOWS, "flow.u.0");
    assert!(["goodput_bps", "max_bps", "bytes", "loss"].iter().all(|name| flow.contains(name)), "{flow:?}");
    let link = runs.hold(LINK, LINKS, "link.wan.out");
    assert!(["packets", "bytes", "drops"].iter().all(|name| link.contains(name)), "{link:?}");
    let class = runs.hold(CLASS, CLASSES, "class.q");
    assert!(["bps", "goodput_bps", "queue.packets"].iter().all(|name| class.contains(name)), "{class:?}");
    let gateway = runs.hold(GATEWAY, GATEWAYS, "gateway");
    assert!(["frames.in", "frames.out"].iter().all(|name| gateway.contains(name)), "{gateway:?}");
}

/// 500 ms at 1 Mbit/s are 62,500 bytes, of which 37,500 arrive within the flow's time; with every copy, too.
#[test]
fn by_hand() {
    for (lan, wan) in [("", ""), ("duplicate = 1", ""), ("", "duplicate = 1")] {
        let text = text("2s", lan, wan).replace("loss = 0.1, ", "");
        let r = simulate(&text);
        let f = &r.flows[0];
        assert_eq!((f.bytes, f.loss, f.end_s), (63_000, Some(0.0), 0.5), "{lan}{wan}");
        // 8 ms apart, the first at 200 ms and what a packet takes: 38 by 500 ms.
        assert_eq!((f.goodput_bps, f.intervals.iter().map(|i| i.bytes).sum::<u64>()), (608_000.0, 38_000));
        assert!(f.last_s.is_some_and(|last| (0.696..0.699).contains(&last)), "{:?}", f.last_s);
        let (_, received) = r.column("u.0", "received_bytes").unwrap();
        assert_eq!(received.iter().sum::<f64>(), 63_000.0);
    }
}
