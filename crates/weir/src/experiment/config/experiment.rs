//! Experiment files: [`parse`] makes a [`Plan`] of one.

use super::diag::{Diagnostic, Errors, Fault, Located, Source};
use super::gateway::Files;
use super::reader::{FromValue, Only, Positive, Refused, Scalar, Section, Sink};
use super::units;
use super::value::choice;
use super::{baseline, bins, changes, flow, gateway, graph, host, lab, measure, names, path, tcp};
use crate::experiment::plan::{Baseline, Lab, Path, Plan, Reference, SeriesKind, Tcp};
use crate::result::{Backend, Parity};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use toml::de::DeTable;
use weir_core::link::TRILLION;
use weir_core::time::Duration;

pub use super::sweep::{runs, runs_with, Run};

/// Experiment that is not yet bound to a world.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Plan of the experiment.
    pub plan: Plan,
    /// Rows of its lists that are left out, or that have another effect than written.
    pub notes: Vec<Located>,
    /// The file, which all runs of a sweep share.
    source: Arc<Source>,
    only: Vec<Only>,
}

impl Experiment {
    /// Returns the worlds that can run it.
    pub fn worlds(&self) -> Vec<Backend> {
        let can = |w: &Backend| self.only.iter().all(|o| o.world == *w);
        [Backend::Lab, Backend::Sim].into_iter().filter(can).collect()
    }

    /// Returns the reason why the simulator would never get past one instant, if there is one.
    pub fn endless_at_once(&self) -> Option<&str> {
        self.endless().next().map(|o| o.refusal.message.as_str())
    }

    fn endless(&self) -> impl Iterator<Item = &Only> {
        self.only.iter().filter(|o| o.refusal.message == flow::ENDLESS_AT_ONCE)
    }

    /// Shares the file with the other runs of a sweep.
    pub(super) fn share(&mut self, source: &Arc<Source>) {
        self.source = Arc::clone(source);
    }

    /// Returns the plan for a world. Errors name every key that the world cannot apply.
    pub fn plan_for(self, world: Backend) -> Result<Plan, Errors> {
        let refused: Vec<Diagnostic> =
            self.only.iter().filter(|o| o.world != world).map(|o| o.refusal.clone()).collect();
        if refused.is_empty() {
            Ok(self.plan)
        } else {
            Err(Errors::new(&self.source, refused))
        }
    }
}

/// Key of other files that is refused here.
const REFUSED: [Refused; 1] = [(
    "ports",
    "names interfaces of this host, which an experiment does not use",
    "an experiment brings its own network, [path]; [ports] is for `weir run` and `weir wan`",
)];

/// Parses a single experiment; [`runs`] takes sweeps too. All errors of the file come at once; those of a
/// list that it names come first, without them. Checks on results are read only if the rest is right.
pub fn parse(source: &Source) -> Result<Experiment, Errors> {
    parse_with(source, "")
}

/// Parses a single experiment with changes, see [`changes`].
pub fn parse_with(source: &Source, changes: &str) -> Result<Experiment, Errors> {
    changes::read(source, changes, |source, table| from_table(&table, source))
}

/// Reads an experiment from the root table of its file. Faults of its baselines are reported once the rest is
/// right.
pub(super) fn from_table(table: &toml::Spanned<DeTable>, source: &Source) -> Result<Experiment, Errors> {
    let Some((table, variants)) = baseline::split(table, source)? else {
        return alone(table, source, Vec::new());
    };
    let (mut baselines, mut only, mut faulty) = (Vec::new(), Vec::new(), None);
    for baseline::Variant { name, settings, table } in variants {
        let plan = match alone(&table, source, Vec::new()) {
            Ok(variant) => {
                only.extend(variant.only);
                variant.plan
            }
            Err(errors) => {
                faulty.get_or_insert(errors);
                Plan::new(&name, Duration::ZERO)
            }
        };
        baselines.push(Baseline { name, settings, plan });
    }
    let mut experiment = alone(&table, source, baselines)?;
    bins::shared(&mut experiment.plan);
    experiment.only.extend(only.into_iter().filter(|o| !experiment.only.contains(o)).collect::<Vec<_>>());
    faulty.map_or(Ok(experiment), Err)
}

/// Reads an experiment from the root table of its file without `[baseline]`.
fn alone(
    table: &toml::Spanned<DeTable>,
    source: &Source,
    baselines: Vec<Baseline>,
) -> Result<Experiment, Errors> {
    let sink = Sink::of(source);
    let mut root = Section::root(table, &sink);
    root.refuse(&REFUSED);
    let files = Files::beside(source);
    let plan = plan(root, source, &files, baselines);
    if let Some(errors) = files.faulty.take() {
        return Err(errors);
    }
    let notes = files.notes.take();
    let (plan, only) = sink.finish(source, plan)?;
    let experiment = Experiment { plan, source: Arc::new(source.clone()), only, notes };
    // The experiment needs the simulator, which would never get past one instant of it: no world can run it.
    let endless: Vec<Diagnostic> = experiment.endless().map(|o| o.refusal.clone()).collect();
    match experiment.worlds().is_empty() && !endless.is_empty() {
        true => Err(Errors::new(source, endless)),
        false => Ok(experiment),
    }
}

fn plan(s: Section, source: &Source, files: &Files<'_>, baselines: Vec<Baseline>) -> Option<Plan> {
    s.has("baseline");
    s.need("name", "\"my-experiment\"");
    let name = s.parsed("name", names::name);
    let title = s.get::<String>("title").unwrap_or_default();
    s.need("duration", "\"10s\"");
    let duration = bins::positive_time(&s, "duration");
    s.lasts(duration);
    let interval = bins::positive_time(&s, "interval");
    let longest_bin = bins::longest_bin(&s);
    let seed = s.get::<u64>("seed").unwrap_or(1);
    let path = s.section("path").map_or(Path::default(), path::path);
    let graph = graph::graph(&s);
    let lab = s.section("lab").map_or(Lab::default(), |l| lab::lab(l, &path));
    let (mut gateway, lists) = s.section("gateway").map(|g| gateway::gateway(g, files)).unzip();
    files.notes.set(lists.map_or(Vec::new(), |lists| lists.notes));
    if let Some(g) = &mut gateway {
        g.seed = seed;
        if let Some(fault) = gateway::idle(g).filter(|_| s.all_well()) {
            s.key_fault("gateway", fault);
        }
    }
    s.need("flow", "[{ id = \"bulk\" }]");
    let defaults = s.section("tcp").map_or(Tcp::default(), tcp::defaults);
    let hosts = host::groups(&s, path.rtt(), graph.as_ref());
    let groups = flow::groups(&s, &defaults, &hosts, graph.is_some(), duration);
    flow::not_behind_nat(&s, &groups, &lab);
    flow::fit_ipv6(&s, &groups, &lab);
    host::have_ipv4(&s, &hosts, &lab);
    let series = series(&s, gateway.is_some());
    let sample = s.get::<Positive>("sample").map(|Positive(d)| d);
    let parity = s.section("parity").map(parity);
    if s.has("sweep") {
        let help = "`weir sim` runs sweeps; the lab world runs one experiment at a time";
        s.key_fault("sweep", Fault::new("`sweep` makes several experiments of this file", help));
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
    if let Some(sample) = sample {
        bins::not_too_many_rows(&s, sample, duration);
    }
    let config_sha256 = Sha256::digest(source.text.as_bytes()).iter().map(|b| format!("{b:02x}")).collect();
    let plan =
        Plan { title, interval, seed, path, lab, gateway, groups, series, ..Plan::new(&name, duration) };
    let mut plan = Plan { graph, hosts, sample, parity, baselines, config_sha256, ..plan };
    if s.all_well() {
        flow::not_too_many(&s, &plan);
        flow::not_too_many_in_all(&s, &plan);
        host::not_too_many(&s, &plan.hosts);
    }
    if s.all_well() {
        flow::takes_time(&s, &plan);
    }
    if !s.all_well() {
        // Names in checks may be those of faulty parts.
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
    plan.bin = bins::bin(&s, plan.duration, plan.interval, longest_bin);
    if s.all_well() {
        bins::not_too_many_in_all(&s, &plan, longest_bin);
    }
    s.finish();
    Some(plan)
}

/// Reads `series` and `sample`.
fn series(s: &Section, gateway: bool) -> Vec<SeriesKind> {
    s.note_only(Backend::Sim, "series");
    s.note_only(Backend::Sim, "sample");
    if s.has("sample") && !s.has("series") {
        let help = "`sample` is how often `series` is recorded: series = [\"cwnd\"]";
        s.key_fault("sample", Fault::new("`sample` needs `series`", help));
    }
    let mut kinds = s.list("series", "[\"cwnd\", \"acked\"]", |v| {
        let name = String::from_value(v)?;
        match choice(&name, "series", &SeriesKind::ALL, &[])? {
            SeriesKind::Held if !gateway => {
                Err(Fault::bare("only a gateway holds ACKs, and there is no [gateway]"))
            }
            kind => Ok(kind),
        }
    });
    if let Some(kinds) = &mut kinds {
        kinds.sort();
        kinds.dedup();
    }
    kinds.unwrap_or_default()
}

/// Reads `[parity]`: fractions, as numbers or percentages.
fn parity(s: Section) -> Parity {
    let fraction = |key, default| {
        let parsed =
            s.parsed(key, |(Scalar::Text(text) | Scalar::Number(text))| match units::probability(&text) {
                Ok(p) => Ok(p.trillionths() as f64 / TRILLION as f64),
                Err(_) => Err(Fault::new(format!("{text} is not a fraction from 0 to 1"), "0.05 or \"5%\"")),
            });
        parsed.unwrap_or(default)
    };
    let parity = Parity { goodput: fraction("goodput", 0.05), fct: fraction("fct", 0.1) };
    s.finish();
    parity
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
