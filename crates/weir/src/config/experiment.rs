//! Experiment files: [`parse`] makes a [`Plan`] of one.

use super::diag::{Diagnostic, Errors, Source};
use super::reader::{parse_toml, Only, Positive, Section, Sink, Size};
use super::units::{server_ports, Fault};
use super::{gateway, measure, path};
use crate::plan::{Arrivals, FlowGroup, Length, Metric, Path, Plan, Ports, Reference, Tcp};
use crate::result::World;
use core::ops::RangeInclusive;
use sha2::{Digest, Sha256};
use weir_core::time::Duration;

/// An experiment, not yet bound to a world.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// What it says.
    pub plan: Plan,
    source: Source,
    only: Vec<Only>,
}

impl Experiment {
    /// The worlds that can run it.
    pub fn worlds(&self) -> Vec<World> {
        let can = |w: &World| self.only.iter().all(|o| o.world == *w);
        [World::Lab, World::Sim].into_iter().filter(can).collect()
    }

    /// The plan for a world. Errors name every key that the world cannot do.
    pub fn plan_for(self, world: World) -> Result<Plan, Errors> {
        let refused: Vec<Diagnostic> = self
            .only
            .iter()
            .filter(|o| o.world != world)
            .map(|o| Diagnostic {
                span: o.span.clone(),
                message: format!("`{}` does not exist in the {} world", o.key, world.name()),
                help: Some(format!("it exists in the {} world only", o.world.name())),
            })
            .collect();
        if refused.is_empty() {
            Ok(self.plan)
        } else {
            Err(Errors::new(&self.source, refused))
        }
    }
}

/// Keys of the root that later versions will have.
const FUTURE: [(&str, &str); 5] = [
    ("sweep", "sweeps belong to the simulator, which this version does not have"),
    ("parity", "parity is between simulator and lab; this version does not have the simulator"),
    ("host", "the topology is the dumbbell of [path]"),
    ("node", "the topology is the dumbbell of [path]"),
    ("link", "the topology is the dumbbell of [path]"),
];

/// Parses an experiment. All errors of the file come at once, except that checks on results are looked
/// at when the rest is right.
pub fn parse(source: &Source) -> Result<Experiment, Errors> {
    let table = parse_toml(source)?;
    let sink = Sink::default();
    let mut root = Section::root(&table, &sink);
    root.refuse(&FUTURE);
    let plan = plan(root, source);
    sink.finish(source, plan).map(|(plan, only)| Experiment { plan, source: source.clone(), only })
}

fn plan(s: Section, source: &Source) -> Option<Plan> {
    s.need("name", "\"my-experiment\"");
    let name = s.parsed("name", gateway::name);
    let title = s.get::<String>("title").unwrap_or_default();
    s.need("duration", "\"10s\"");
    let duration = s.parsed("duration", measure::positive_milliseconds);
    let interval = s.parsed("interval", measure::positive_milliseconds);
    let seed = s.get::<u64>("seed").unwrap_or(1);
    let path = s.section("path").map_or(Path::default(), path::path);
    let mut gateway = s.section("gateway").map(gateway::gateway);
    if let Some(g) = &mut gateway {
        g.seed = seed;
    }
    s.need("flow", "[{ id = \"bulk\" }]");
    let mut groups: Vec<FlowGroup> = Vec::new();
    for (i, section) in s.sections("flow").into_iter().enumerate() {
        let Some(group) = flow(&section, i, duration) else {
            section.finish();
            continue;
        };
        check_against(&section, &group, &groups);
        section.finish();
        groups.push(group);
    }
    let (Some(name), Some(duration), false) = (name, duration, groups.is_empty()) else {
        s.has("expect");
        s.has("reference");
        s.finish();
        return None;
    };
    let interval = interval.unwrap_or(Duration::from_secs(1).min(duration));
    if interval > duration {
        s.fault("interval", Fault::bare(format!("{interval} is longer than the experiment, {duration}")));
    }
    let config_sha256 = Sha256::digest(source.text.as_bytes()).iter().map(|b| format!("{b:02x}")).collect();
    let mut plan =
        Plan { title, interval, seed, path, gateway, groups, config_sha256, ..Plan::new(&name, duration) };
    if !s.all_well() {
        // Names in checks may be those of parts that are faulty.
        s.has("expect");
        s.has("reference");
        s.finish();
        return Some(plan);
    }
    for e in s.sections("expect") {
        plan.expects.extend(measure::expect(&e, &plan));
        e.finish();
    }
    plan.reference = s.section("reference").map(|r| reference(r, &plan));
    plan.bin = bin(&plan);
    s.finish();
    Some(plan)
}

/// The longest bin of at most 10 ms that divides every time at which something is measured. All of them
/// are whole milliseconds, so there is one of at least 1 ms.
fn bin(plan: &Plan) -> Duration {
    let rows = plan.reference.iter().flat_map(|r| &r.rows).map(|r| &r.measure);
    let measures = plan.expects.iter().map(|e| &e.measure).chain(rows);
    let times = measures.flat_map(|m| {
        let length = match m.metric {
            Metric::Intervals(d) | Metric::MaxOver(d) | Metric::MinOver(d) => d,
            Metric::Goodput | Metric::Field(_) => Duration::ZERO,
        };
        [m.from, m.until.unwrap_or_default(), length]
    });
    let all = times.chain([plan.duration, plan.interval]).map(|d| d.as_nanos() / 1_000_000);
    let common = all.fold(0, gcd);
    let longest = (1..=10).rev().find(|ms| common % ms == 0).unwrap_or(1);
    Duration::from_millis(longest)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

fn flow(s: &Section, number: usize, duration: Option<Duration>) -> Option<FlowGroup> {
    s.need("id", "\"bulk\"");
    let id = s.parsed("id", gateway::name);
    let count = s.int("count", 1..=10_000).unwrap_or(1) as u32;
    let cc = s.parsed("cc", gateway::name);
    let start = s.get::<Duration>("start").unwrap_or_default();
    let stagger = s.get::<Duration>("stagger").unwrap_or_default();
    s.at_most_one(&["bytes", "duration"], "a flow ends after so many bytes or after so long, not both");
    let bytes = s.parsed("bytes", |Size(n): Size| match n {
        0 => Err(Fault::bare("a flow of no bytes")),
        n => Ok(Length::Bytes(n)),
    });
    let lasts = s.get::<Positive>("duration").map(|Positive(d)| Length::Duration(d));
    let direction = s.choice("direction", &gateway::DIRECTIONS, &[]).unwrap_or_default();
    let ports = s.parsed("port", |range: RangeInclusive<u16>| server_ports(range, count));
    // 88: Linux refuses less (TCP_MIN_MSS); 65,495: an IP packet without its two headers.
    let mss = s.int("mss", 88..=65_495).map(|m| m as u16);
    let rwnd = s.parsed("rwnd", |Size(n): Size| match n {
        2048..=1_073_725_440 => Ok(n),
        n => Err(Fault::bare(format!("a window of {n} bytes is not from 2048 to 1073725440 (RFC 7323)"))),
    });
    let delayed_ack = s.int("delayed_ack", 1..=64).map(|n| n as u32);
    let initial_window = s.int("initial_window", 1..=1000).map(|n| n as u32);
    for key in ["delayed_ack", "initial_window"] {
        s.note_only(World::Sim, key);
    }
    let last = start + stagger.saturating_mul(u64::from(count - 1));
    if let Some(end) = duration.filter(|&d| last >= d) {
        let key = if s.has("stagger") { "stagger" } else { "start" };
        let message =
            format!("flow {} of the group would start at {last}, not before the end, {end}", count - 1);
        s.fault(key, Fault::bare(message));
    }
    Some(FlowGroup {
        count,
        tcp: Tcp { cc, mss, rwnd, delayed_ack, initial_window, ..Tcp::default() },
        start,
        arrivals: Arrivals::Every(stagger),
        length: bytes.or(lasts).unwrap_or(Length::UntilEnd),
        direction,
        ports: ports.unwrap_or(Ports::Shared(FIRST_PORT.saturating_add(number as u16))),
        ..FlowGroup::new(&id?)
    })
}

/// Server port of the first group that names none; further groups take the following ports.
const FIRST_PORT: u16 = 5001;

/// Groups share neither names nor ports: results and rules must tell them apart.
fn check_against(s: &Section, group: &FlowGroup, earlier: &[FlowGroup]) {
    if earlier.iter().any(|g| g.id == group.id) {
        s.fault("id", Fault::bare(format!("a second group of flows named \"{}\"", group.id)));
    }
    let (first, last) = group.port_range();
    let clash = earlier.iter().find(|g| g.port_range().0 <= last && first <= g.port_range().1);
    if let Some(other) = clash {
        let which = if first == last { format!("{first}") } else { format!("{first}-{last}") };
        let message = format!("port {which} of \"{}\" is taken by \"{}\"", group.id, other.id);
        let help = "give each group its own `port`; without one, group n takes 5000 + n";
        s.fault("port", Fault::new(message, help));
    }
}

fn reference(s: Section, plan: &Plan) -> Reference {
    let source = s.required("source", "\"fig. 12\"").unwrap_or_default();
    let mut rows = Vec::new();
    s.need("row", "[{ name = \"average\", paper = \"10.1 Mbit/s\", what = \"flow.*.goodput_bps\" }]");
    for r in s.sections("row") {
        rows.extend(measure::row(&r, plan));
        r.finish();
    }
    s.finish();
    Reference { source, rows }
}
