//! Measures and expectations, evaluated over a result. Everything about rates over time is computed
//! from the bins of received bytes in `series`, so that any beginning, interval or window can be asked
//! for afterwards.

use crate::plan::{Aggregate, Expect, Measure, Metric, Op, Plan, Subject, Target, Tolerance};
use crate::result::{ExpectResult, FlowResult, RunResult, Status};
use serde_json::Value;
use weir_core::time::Duration;

/// Does `name` match `pattern`, in which `*` is any run of characters, dots included?
pub fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => name
            .strip_prefix(head)
            .is_some_and(|rest| (0..=rest.len()).any(|i| rest.get(i..).is_some_and(|r| matches(tail, r)))),
    }
}

/// A value that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The value in the unit of its metric (bits per second, microseconds, …).
    pub value: f64,
    /// What it belongs to: a flow, with the time if there are several of one flow.
    pub at: String,
    /// What the gateway is set to for the flow, in bits per second.
    pub flow_rate: Option<u64>,
    /// How much it counts in a mean: how long a value of a series held, in seconds; 1 for all else.
    pub weight: f64,
}

impl Sample {
    fn new(value: f64, at: String) -> Sample {
        Sample { value, at, flow_rate: None, weight: 1.0 }
    }
}

/// Measures. An empty answer means that there was nothing to measure: no such flow, a flow too short, a
/// value that is `null`.
pub fn measure(m: &Measure, bin: Duration, result: &RunResult) -> Vec<Sample> {
    match (&m.subject, &m.metric) {
        (Subject::Flow(pattern), metric) => {
            let flows = result.flows.iter().filter(|f| matches(pattern, &f.id));
            flows.flat_map(|f| flow(m, metric, bin, result, f)).collect()
        }
        (Subject::Link(pattern), Metric::Field(path)) => {
            fields(result.links.iter().map(|l| (l.name.as_str(), l)), pattern, path)
        }
        (Subject::Class(pattern), Metric::Field(path)) => {
            fields(result.classes.iter().map(|c| (c.name.as_str(), c)), pattern, path)
        }
        (Subject::Gateway, Metric::Field(path)) => {
            fields(result.gateway.iter().map(|g| ("gateway", g)), "*", path)
        }
        (Subject::Link(pattern), Metric::Series { column, at }) => {
            let links = result.links.iter().filter(|l| matches(pattern, &l.name));
            links.flat_map(|l| series(m, column, *at, result, &l.name)).collect()
        }
        // Rates over time are those of flows; the parser makes no such measure.
        _ => Vec::new(),
    }
}

fn fields<'a, T: serde::Serialize + 'a>(
    objects: impl Iterator<Item = (&'a str, &'a T)>,
    pattern: &str,
    path: &[String],
) -> Vec<Sample> {
    objects
        .filter(|(name, _)| matches(pattern, name))
        .filter_map(|(name, o)| Some(Sample::new(field(o, path)?, name.to_string())))
        .collect()
}

/// A field by its path in the object as it is written. Counts by name mean their sum; a name that did
/// not occur counts 0.
fn field(object: &impl serde::Serialize, path: &[String]) -> Option<f64> {
    let root = serde_json::to_value(object).ok()?;
    let mut at = &root;
    for (i, key) in path.iter().enumerate() {
        match at.get(key) {
            Some(v) => at = v,
            None if i > 0 && matches!(path[i - 1].as_str(), "drops" | "dropped") => return Some(0.0),
            None => return None,
        }
    }
    match at {
        // The sum of nothing is -0.0 in floating point.
        Value::Object(counts) => counts.values().try_fold(0.0, |sum, v| Some(sum + v.as_f64()?)),
        v => v.as_f64(),
    }
}

/// Samples of one flow.
fn flow(m: &Measure, metric: &Metric, bin: Duration, result: &RunResult, f: &FlowResult) -> Vec<Sample> {
    let sample = |value, at| Sample { flow_rate: f.target_bps, ..Sample::new(value, at) };
    let span = |(from, to): (usize, usize)| {
        let t = |i: usize| bin.saturating_mul(i as u64).as_secs_f64();
        format!("{}, {:.3} to {:.3} s", f.id, t(from), t(to))
    };
    if let Metric::Field(path) = metric {
        return field(f, path).map(|v| sample(v, f.id.clone())).into_iter().collect();
    }
    if let Metric::Series { column, at } = metric {
        return series(m, column, *at, result, &f.id);
    }
    let Some(bins) = Bins::of(m, bin, result, f) else {
        return Vec::new();
    };
    let one = |found: Option<(f64, (usize, usize))>| {
        found.map(|(bps, at)| sample(bps, span(at))).into_iter().collect()
    };
    match metric {
        Metric::Goodput => {
            bins.rate(bins.first, bins.last).map(|v| sample(v, f.id.clone())).into_iter().collect()
        }
        Metric::Intervals(len) => {
            let n = bins.count(*len);
            let starts = (bins.first..).step_by(n).take_while(|s| s + n <= bins.last);
            starts.filter_map(|s| Some(sample(bins.rate(s, s + n)?, span((s, s + n))))).collect()
        }
        Metric::MaxOver(len) => one(bins.extreme(*len, |a, b| a > b)),
        Metric::MinOver(len) => one(bins.extreme(*len, |a, b| a < b)),
        Metric::Field(_) | Metric::Series { .. } => unreachable!("handled above"),
    }
}

/// Samples of a column of the series called `name`, whose values hold until the next: the one `at` a time,
/// or all that hold between `from` and `until`, the first of them maybe since before `from`.
fn series(m: &Measure, column: &str, at: Option<Duration>, result: &RunResult, name: &str) -> Vec<Sample> {
    let Some((t_s, values)) = result.column(name, column) else { return Vec::new() };
    let nanos = |s: f64| (s * 1e9).round().max(0.0) as u64;
    let (from, until) = match at {
        Some(at) => (at.as_nanos(), at.as_nanos() + 1),
        None => {
            let end = m.until.map_or(u64::MAX, Duration::as_nanos);
            (m.from.as_nanos(), end.min(nanos(result.duration_s)))
        }
    };
    let times: Vec<u64> = t_s.iter().map(|&t| nanos(t)).collect();
    let first = times.partition_point(|&t| t <= from).saturating_sub(1);
    let mut out = Vec::new();
    for (i, (&t, &value)) in times.iter().zip(values).enumerate().skip(first) {
        if t >= until {
            break;
        }
        let next = times.get(i + 1).copied().unwrap_or(until).min(until);
        let begin = t.max(from);
        if next > begin {
            let shown = at.unwrap_or(Duration::from_nanos(begin)).as_secs_f64();
            let weight = (next - begin) as f64 / 1e9;
            out.push(Sample { weight, ..Sample::new(value, format!("{name} at {shown:.6} s")) });
        }
    }
    out
}

/// The bins of a flow that lie wholly inside the measured time and the flow's own life.
struct Bins {
    /// Sum of the bytes before each bin from `offset` on.
    before: Vec<f64>,
    offset: usize,
    first: usize,
    last: usize,
    bin: Duration,
}

impl Bins {
    fn of(m: &Measure, bin: Duration, result: &RunResult, f: &FlowResult) -> Option<Bins> {
        let (offset, received) = result.received(f, bin)?;
        let mut before = Vec::with_capacity(received.len() + 1);
        before.push(0.0);
        for bytes in received {
            before.push(before[before.len() - 1] + bytes);
        }
        let width = bin.as_nanos().max(1);
        let nanos = |s: f64| (s * 1e9).round().max(0.0) as u64;
        let from = m.from.as_nanos().max(nanos(f.start_s));
        let until =
            m.until.map_or(u64::MAX, Duration::as_nanos).min(nanos(f.end_s)).min(nanos(result.duration_s));
        let first = (from.div_ceil(width) as usize).max(offset);
        let last = ((until / width) as usize).min(offset + received.len());
        (first < last).then_some(Bins { before, offset, first, last, bin })
    }

    fn count(&self, len: Duration) -> usize {
        (len.as_nanos() / self.bin.as_nanos().max(1)).max(1) as usize
    }

    /// Bits per second from bin `from` up to bin `to`.
    fn rate(&self, from: usize, to: usize) -> Option<f64> {
        let before = |bin: usize| self.before.get(bin.checked_sub(self.offset)?);
        let bytes = before(to)? - before(from)?;
        (to > from).then(|| bytes * 8.0 / self.bin.saturating_mul((to - from) as u64).as_secs_f64())
    }

    /// The window of length `len`, at every bin, whose rate is ahead of all others.
    fn extreme(&self, len: Duration, ahead: impl Fn(f64, f64) -> bool) -> Option<(f64, (usize, usize))> {
        let n = self.count(len);
        let mut best = None;
        for from in self.first..=self.last.checked_sub(n)? {
            let rate = self.rate(from, from + n)?;
            if best.is_none_or(|(b, _)| ahead(rate, b)) {
                best = Some((rate, (from, from + n)));
            }
        }
        best
    }
}

/// Evaluates every expectation of a plan.
pub fn evaluate(plan: &Plan, result: &RunResult) -> Vec<ExpectResult> {
    plan.expects.iter().map(|e| check(e, plan.bin, result)).collect()
}

/// Evaluates the expectations into `result.expects`, unless the run was interrupted; one that does not
/// hold makes it a failed one.
pub fn conclude(plan: &Plan, result: &mut RunResult) {
    if result.status == Status::Interrupted {
        return;
    }
    result.expects = evaluate(plan, result);
    if result.expects.iter().any(|e| !e.ok) {
        result.status = Status::Failed;
    }
}

/// Evaluates one expectation: it holds if there is something to measure and every value is right.
pub fn check(e: &Expect, bin: Duration, result: &RunResult) -> ExpectResult {
    let samples = aggregated(e.aggregate, measure(&e.measure, bin, result));
    let judged = samples.into_iter().map(|s| judge(e, s));
    let worst = judged.min_by(|a, b| a.margin.total_cmp(&b.margin));
    let what = describe(e);
    match worst {
        Some(j) => ExpectResult { what, found: Some(j.found), bound: j.bound, ok: j.margin >= 0.0, at: j.at },
        None => {
            let bound = match e.target {
                Target::Value(v) => v,
                Target::FlowRate => 0.0,
            };
            ExpectResult { what, found: None, bound, ok: false, at: "nothing to measure".to_string() }
        }
    }
}

fn aggregated(how: Option<Aggregate>, samples: Vec<Sample>) -> Vec<Sample> {
    let Some(how) = how else { return samples };
    if samples.is_empty() {
        return samples;
    }
    let values = samples.iter().map(|s| s.value);
    let n = samples.len() as f64;
    let (value, name) = match how {
        Aggregate::Sum => (values.sum(), "sum"),
        Aggregate::Mean => (mean(&samples), "mean"),
        Aggregate::Min => (values.fold(f64::INFINITY, f64::min), "min"),
        Aggregate::Max => (values.fold(f64::NEG_INFINITY, f64::max), "max"),
    };
    vec![Sample::new(value, format!("{name} of {n}"))]
}

fn mean(samples: &[Sample]) -> f64 {
    let weight: f64 = samples.iter().map(|s| s.weight).sum();
    samples.iter().map(|s| s.value * s.weight).sum::<f64>() / weight
}

/// A value against its bound.
struct Judged {
    found: f64,
    bound: f64,
    at: String,
    /// How far on the right side, as a fraction of the target where it has one; negative is wrong.
    margin: f64,
}

fn judge(e: &Expect, s: Sample) -> Judged {
    let target = match (e.target, s.flow_rate) {
        (Target::Value(v), _) => v,
        (Target::FlowRate, Some(bps)) => bps as f64,
        (Target::FlowRate, None) => {
            // A flow without a setting cannot keep to it.
            let at = format!("{}: the gateway sets no rate for it", s.at);
            return Judged { found: s.value, bound: 0.0, at, margin: f64::NEG_INFINITY };
        }
    };
    let slack = match e.tolerance {
        Tolerance::Absolute(a) => a,
        Tolerance::Relative(r) => r * target.abs(),
    };
    let (low, high) = (target - slack, target + slack);
    let (below, above) = (s.value - low, high - s.value);
    let (margin, bound) = match e.op {
        Op::AtMost => (above, high),
        Op::AtLeast => (below, low),
        Op::Within if below < above => (below, low),
        Op::Within => (above, high),
    };
    let scale = if target == 0.0 { 1.0 } else { target.abs() };
    let margin = if margin.is_nan() { f64::NEG_INFINITY } else { margin / scale };
    Judged { found: s.value, bound, at: s.at, margin }
}

/// An expectation in words, for results and tables.
pub fn describe(e: &Expect) -> String {
    let over = match e.aggregate {
        None => "",
        Some(Aggregate::Sum) => "sum of ",
        Some(Aggregate::Mean) => "mean of ",
        Some(Aggregate::Min) => "min of ",
        Some(Aggregate::Max) => "max of ",
    };
    let rates = is_rate(&e.measure.metric);
    let value = |v: f64| match weir_core::rate::Rate::from_bps(v as u64).filter(|_| rates && v.fract() == 0.0)
    {
        Some(rate) => rate.to_string(),
        None => v.to_string(),
    };
    let target = match e.target {
        Target::Value(v) => value(v),
        Target::FlowRate => "flow_rate".to_string(),
    };
    let slack = match e.tolerance {
        Tolerance::Absolute(0.0) => String::new(),
        Tolerance::Absolute(a) => value(a),
        Tolerance::Relative(r) => format!("{}%", (r * 1e8).round() / 1e6),
    };
    let bound = match (e.op, slack.is_empty()) {
        (Op::Within, true) => format!("= {target}"),
        (Op::Within, false) => format!("within {slack} of {target}"),
        (Op::AtMost, true) => format!("<= {target}"),
        (Op::AtMost, false) => format!("<= {target} + {slack}"),
        (Op::AtLeast, true) => format!(">= {target}"),
        (Op::AtLeast, false) => format!(">= {target} - {slack}"),
    };
    format!("{over}{} {bound}", describe_measure(&e.measure))
}

/// Is it in bits per second?
fn is_rate(metric: &Metric) -> bool {
    match metric {
        Metric::Field(path) => path.last().is_some_and(|p| p == "bps" || p.ends_with("_bps")),
        Metric::Series { .. } => false,
        _ => true,
    }
}

/// A measure in words.
pub fn describe_measure(m: &Measure) -> String {
    let when = match m.metric {
        Metric::Intervals(d) => format!(" every {d}"),
        Metric::MaxOver(d) | Metric::MinOver(d) => format!(" over any {d}"),
        Metric::Series { at: Some(at), .. } => format!(" at {at}"),
        Metric::Goodput | Metric::Field(_) | Metric::Series { at: None, .. } => String::new(),
    };
    let from = if m.from == Duration::ZERO { String::new() } else { format!(" from {}", m.from) };
    let until = m.until.map_or(String::new(), |u| format!(" until {u}"));
    format!("{}{when}{from}{until}", m.what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{experiment, Source};
    use crate::result::{ClassResult, Column, GatewayResult, LinkResult, MadeBy, Series, World};
    use std::collections::BTreeMap;

    const HEAD: &str = r#"
        name = "t"
        duration = "4s"
        path.wan = { rate = "100Mbit", loss = 0.01 }
        gateway.class = [{ name = "ten", ack = { preset = "ack-shaper", flow_rate = "10Mbit" } }]
        flow = [{ id = "ten", count = 2 }, { id = "other", start = "1s", bytes = "1GB" }]
    "#;

    fn plan(expect: &str) -> Plan {
        let text = format!("{HEAD}\n[[expect]]\n{expect}\n");
        experiment::parse(&Source::new("t.toml", text)).unwrap_or_else(|e| panic!("{e}")).plan
    }

    /// Bytes in a bin of 10 ms at 10 Mbit/s.
    const FULL: u64 = 12_500;

    /// `ten.0` and `ten.1` on their rate, but `ten.1` with one bin of 20 ms' worth at 2.5 s and none
    /// in the bin after it; `other.0` without a setting at half of it from 1 s on.
    fn result() -> RunResult {
        let even = vec![FULL; 400];
        let mut uneven = even.clone();
        uneven[250] = 2 * FULL;
        uneven[251] = 0;
        let mut other = vec![FULL / 2; 400];
        other[..100].fill(0);
        let bin = Duration::from_millis(10);
        let flow = |id: &str, start_s: f64, target_bps, bytes: &[u64]| FlowResult {
            id: id.into(),
            target_bps,
            start_s,
            end_s: 4.0,
            bytes: bytes.iter().sum(),
            fct_s: None,
            rtos: 1,
            ..Default::default()
        };
        let flows = vec![
            flow("ten.0", 0.0, Some(10_000_000), &even),
            flow("ten.1", 0.0, Some(10_000_000), &uneven),
            flow("other.0", 1.0, None, &other),
        ];
        let drops = BTreeMap::from([("queue_full".to_string(), 3), ("random_loss".to_string(), 4)]);
        RunResult {
            schema: crate::result::SCHEMA,
            experiment: "t".into(),
            world: World::Lab,
            status: Status::Ok,
            seed: 1,
            duration_s: 4.0,
            wall_s: 5.0,
            packets: 0,
            made_by: MadeBy::default(),
            expects: vec![],
            gateway: Some(GatewayResult::default()),
            flows,
            classes: vec![ClassResult {
                name: "ten".into(),
                held_ack_peak_bytes: 1000,
                ..Default::default()
            }],
            links: vec![LinkResult { name: "wan.out".into(), drops, ..Default::default() }],
            series: BTreeMap::from([
                ("ten.0".into(), Series::received(bin, &even)),
                ("ten.1".into(), Series::received(bin, &uneven)),
                ("other.0".into(), Series::received(bin, &other)),
            ]),
            ..RunResult::default()
        }
    }

    fn check_one(expect: &str) -> ExpectResult {
        let plan = plan(expect);
        assert_eq!(plan.bin, Duration::from_millis(10));
        evaluate(&plan, &result()).remove(0)
    }

    /// Holds with `good` in place of `@` and fails with `bad`: every check can fail.
    fn turns(expect: &str, good: &str, bad: &str) {
        for (value, ok) in [(good, true), (bad, false)] {
            let got = check_one(&expect.replace('@', value));
            assert_eq!(got.ok, ok, "{value}: {got:?}");
        }
    }

    #[test]
    fn averages() {
        let e =
            "what = 'flow.ten.*.goodput_bps'\nfrom = '2s'\nop = 'within'\ntarget = '@'\ntolerance = '0.5%'";
        turns(e, "10Mbit", "9.9Mbit");
        turns(e, "10.04Mbit", "10.06Mbit");
        turns(e, "flow_rate", "5Mbit");
        // A flow that starts late is averaged over its own life.
        turns("what = 'flow.other.0.goodput_bps'\nop = 'equals'\ntarget = '@'", "5Mbit", "3.75Mbit");
        let until =
            "what = 'flow.ten.1.goodput_bps'\nfrom = '2500ms'\nuntil = '2510ms'\nop = 'equals'\ntarget = '@'";
        turns(until, "20Mbit", "10Mbit");
    }

    #[test]
    fn intervals() {
        // 2.5 to 2.51 s holds twice the rate; a second around it does not.
        let e = "what = 'flow.ten.*.interval_bps'\nfrom = '2s'\nop = 'within'\ntarget = 'flow_rate'\ntolerance = '3%'\nevery = '@'";
        turns(e, "1s", "10ms");
        let found = check_one(&e.replace('@', "10ms"));
        assert_eq!(found.at, "ten.1, 2.500 to 2.510 s");
        assert_eq!((found.found, found.bound), (Some(20_000_000.0), 10_300_000.0));
    }

    #[test]
    fn windows() {
        let e = "what = 'flow.ten.1.max_bps'\nwindow = '@'\nfrom = '1s'\nop = 'at_most'\ntarget = 'flow_rate'\ntolerance = '5%'";
        turns(e, "400ms", "100ms");
        turns(
            "what = 'flow.ten.1.min_bps'\nwindow = '400ms'\nop = 'at_least'\ntarget = '@'",
            "9.75Mbit",
            "9.76Mbit",
        );
    }

    #[test]
    fn fields_and_aggregates() {
        turns("what = 'link.wan.out.drops'\nop = 'equals'\ntarget = @", "7", "0");
        turns("what = 'link.wan.out.drops.queue_full'\nop = 'at_most'\ntarget = @", "3", "2");
        turns("what = 'link.*.drops.shutdown'\nop = 'equals'\ntarget = @", "0", "1");
        turns("what = 'class.ten.held_ack_peak_bytes'\nop = 'at_most'\ntarget = '@'", "1kB", "999B");
        turns("what = 'gateway.frames.held'\nop = 'at_least'\ntarget = @", "0", "1");
        turns("what = 'flow.*.rtos'\naggregate = 'sum'\nop = 'at_most'\ntarget = @", "3", "2");
        turns(
            "what = 'flow.*.goodput_bps'\naggregate = 'sum'\nfrom = '1s'\nop = 'equals'\ntarget = '@'",
            "25Mbit",
            "24Mbit",
        );
        turns(
            "what = 'flow.*.goodput_bps'\naggregate = 'min'\nop = 'at_least'\ntarget = '@'",
            "5Mbit",
            "6Mbit",
        );
    }

    /// `ten.0` has acknowledged 100 bytes from 0.5 s and 300 from 1 s on, `ten.1` 1000 from 3 s on; a queue
    /// holds 4 packets for 1 s, then 1 for 3 s.
    fn with_series(expect: &str) -> ExpectResult {
        let text = format!("series = ['acked', 'queue']\n{HEAD}\n[[expect]]\n{expect}\n");
        let parsed = experiment::parse(&Source::new("t.toml", text)).unwrap_or_else(|e| panic!("{e}"));
        let mut run = result();
        let series = |name: &str, t_s: &[f64], values: &[f64]| Series {
            t_s: t_s.to_vec(),
            columns: BTreeMap::from([(name.to_string(), Column(values.to_vec()))]),
        };
        run.series.insert("ten.0".into(), series("acked_bytes", &[0.5, 1.0], &[100.0, 300.0]));
        run.series.insert("ten.1".into(), series("acked_bytes", &[3.0], &[1000.0]));
        run.series.insert("wan.out".into(), series("queue_packets", &[0.0, 1.0], &[4.0, 1.0]));
        evaluate(&parsed.plan, &run).remove(0)
    }

    #[test]
    fn series_at_a_time() {
        let found = |what: &str, at: &str| {
            with_series(&format!("what = '{what}'\nat = '{at}'\nop = 'at_least'\ntarget = 0")).found
        };
        for (at, value) in [("500ms", 100.0), ("999999999ns", 100.0), ("1s", 300.0), ("4s", 300.0)] {
            assert_eq!(found("flow.ten.0.acked_bytes", at), Some(value), "{at}");
        }
        // Before the first row there is nothing, which fails.
        assert_eq!(found("flow.ten.0.acked_bytes", "499ms"), None);
        assert_eq!(found("link.wan.out.queue_packets", "0s"), Some(4.0));
        let sum = with_series(
            "what = 'flow.ten.*.acked_bytes'\nat = '3s'\naggregate = 'sum'\nop = 'equals'\ntarget = 1300",
        );
        assert!(sum.ok, "{sum:?}");
        assert_eq!(sum.what, "sum of flow.ten.*.acked_bytes at 3s = 1300");
    }

    #[test]
    fn series_over_time() {
        let found = |how: &str, when: &str| {
            let what = "what = 'link.wan.out.queue_packets'\nop = 'at_most'\ntarget = 100";
            with_series(&format!("{what}\naggregate = '{how}'\n{when}")).found
        };
        assert_eq!(found("max", ""), Some(4.0));
        // What holds at `from` counts; what begins at `until` does not.
        assert_eq!(found("max", "from = '500ms'"), Some(4.0));
        assert_eq!(found("max", "from = '1s'"), Some(1.0));
        assert_eq!(found("min", "until = '1s'"), Some(4.0));
        // (1 s × 4 + 3 s × 1) / 4 s
        assert_eq!(found("mean", ""), Some(1.75));
        let each = with_series("what = 'link.wan.out.queue_packets'\nop = 'at_most'\ntarget = 3");
        assert_eq!((each.ok, each.at.as_str()), (false, "wan.out at 0.000000 s"));
    }

    #[test]
    fn nothing_to_measure_fails() {
        let missing = check_one("what = 'flow.other.0.fct_s'\nop = 'at_most'\ntarget = '1000s'");
        assert_eq!((missing.ok, missing.found), (false, None));
        let unset = check_one(
            "what = 'flow.other.*.goodput_bps'\nop = 'within'\ntarget = 'flow_rate'\ntolerance = '100%'",
        );
        assert!(!unset.ok && unset.at.contains("sets no rate"), "{unset:?}");
        let plan = plan("what = 'flow.ten.*.goodput_bps'\nop = 'at_least'\ntarget = '1bit'");
        let mut without = result();
        without.series.clear();
        assert!(!evaluate(&plan, &without)[0].ok);
        without.status = Status::Interrupted;
        conclude(&plan, &mut without);
        assert_eq!((without.status, without.expects.len()), (Status::Interrupted, 0));
    }

    #[test]
    fn a_failed_check_is_a_failed_run() {
        let plan = plan("what = 'flow.ten.0.rtos'\nop = 'equals'\ntarget = 0");
        let mut run = result();
        conclude(&plan, &mut run);
        assert_eq!(run.status, Status::Failed);
        assert_eq!(run.expects[0].what, "flow.ten.0.rtos = 0");
        let drops = check_one("what = 'link.*.drops.shutdown'\nop = 'equals'\ntarget = 0");
        assert!(drops.found.is_some_and(|v| v.is_sign_positive()), "-0 reads as an error");
    }

    #[test]
    fn in_words() {
        let said = |e: &str| describe(&plan(e).expects[0]);
        assert_eq!(
            said("what = 'flow.*.max_bps'\nwindow = '400ms'\nfrom = '1s'\nop = 'at_most'\ntarget = '10Mbit'\ntolerance = '5%'"),
            "flow.*.max_bps over any 400ms from 1s <= 10Mbit + 5%"
        );
        assert_eq!(
            said("what = 'class.ten.bps'\nop = 'within'\ntarget = '20Mbit'\ntolerance = '100kbit'"),
            "class.ten.bps within 100kbit of 20Mbit"
        );
        assert_eq!(
            said("what = 'flow.ten.*.rtos'\naggregate = 'sum'\nop = 'at_most'\ntarget = 3"),
            "sum of flow.ten.*.rtos <= 3"
        );
    }

    #[test]
    fn patterns() {
        assert!(
            matches("ten.*", "ten.11")
                && matches("*", "")
                && matches("*.1", "a.b.1")
                && matches("a*c", "abc")
        );
        assert!(!matches("ten.*", "tend") && !matches("ten", "ten.0") && !matches("a*c", "ab"));
    }
}
