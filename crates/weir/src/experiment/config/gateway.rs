//! Table `[gateway]`, the same in `gateway.toml` and in experiments.

use super::ack_filter;
use super::class;
use super::customers::sites::{self, Site};
use super::customers::{self, Customer};
use super::diag::{Diagnostic, Errors, Fault, Located, Source};
use super::engines;
use super::keys::{self, set, Key};
use super::link_layer;
use super::names::DIRECTIONS;
use super::pace;
use super::policy;
use super::ports::{self, Driving};
use super::queue_limit::FULL_FRAME;
use super::reader::{options_table, parse_toml, Section, Sink};
use super::settings::Settings;
use super::share;
use super::value::{int, one_of, FromValue, Positive};
use std::cell::Cell;
use std::path::Path;
use toml::de::DeValue;
use weir_core::ack::{AckControl, Counts, Unresponsive};
use weir_core::gateway::{ClassConfig, Config, Direction};
use weir_core::queue::ack_filter::Service;
use weir_core::queue::{self, codel};
use weir_core::rate::Rate;
use weir_core::time::Duration;

/// Contents of `gateway.toml`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct GatewayFile {
    /// Interface towards the WAN.
    pub dev: String,
    /// Driving of the engine.
    pub driving: Driving,
    /// Customers, whose classes come first: two for each.
    #[serde(skip)]
    pub customers: Vec<Customer>,
    /// Sites above the customers; their classes come after those of the customers.
    #[serde(skip)]
    pub sites: Vec<Site>,
    /// Rows of the lists that are left out, or that have another effect than written, with the reason.
    #[serde(skip)]
    pub notes: Vec<Located>,
    /// Gateway, with at least one class that controls ACKs. Its `seed` is the default; a running gateway
    /// replaces it by a random one.
    pub gateway: Config,
}

/// Parses `gateway.toml`. All errors of the file come at once; those of a list that it names come first,
/// without them.
pub fn parse(source: &Source) -> Result<GatewayFile, Errors> {
    parse_with(source, &Settings::default(), &|name| Source::read_list(name.as_ref()))
}

/// Parses `gateway.toml` with values laid over it; `read` reads the files that it names.
pub fn parse_with(source: &Source, settings: &Settings, read: Read<'_>) -> Result<GatewayFile, Errors> {
    let mut table = parse_toml(source)?;
    settings.lay_over(table.get_mut()).map_err(|fault| Errors::of(source, fault))?;
    let sink = Sink::of(source);
    let root = Section::root(&table, &sink);
    root.need("ports", "{ dev = \"eth1\" }");
    let ports = root.section("ports").and_then(ports::of_gateway);
    root.need("gateway", "{ class = [ … ] }");
    let files =
        Files { source, settings, read, inline: true, faulty: Cell::default(), notes: Cell::default() };
    let gateway = root.section("gateway").map(|s| self::gateway(s, &files));
    if let Some(errors) = files.faulty.take() {
        return Err(errors);
    }
    let (gateway, lists) = gateway.unzip();
    let Lists { customers, sites, notes, .. } = lists.unwrap_or_default();
    if let Some(fault) = gateway.as_ref().filter(|_| root.all_well()).and_then(idle) {
        root.key_fault("gateway", fault);
    }
    let engines = ports.as_ref().map_or(1, |(_, driving)| driving.engines());
    if let Some(fault) = gateway.as_ref().filter(|_| root.all_well()).and_then(|g| engines::fault(g, engines))
    {
        root.key_fault("ports", fault);
    }
    root.finish();
    let file = ports.zip(gateway).map(|((dev, driving), gateway)| GatewayFile {
        dev,
        driving,
        customers,
        sites,
        notes,
        gateway,
    });
    sink.finish(source, file).map(|(file, _)| file)
}

/// Returns the file of the short form, one line without a file: every flow of a direction has a rate of its
/// own.
pub fn short(dev: &str, out: Option<Rate>, inward: Option<Rate>, layer: Option<&str>) -> Source {
    let class = |((name, _), rate): ((&str, Direction), Option<Rate>)| {
        let ack = format!("ack = {{ preset = \"ack-shaper\", flow_rate = \"{}\" }}", rate?);
        Some(format!("\n[[gateway.class]]\nname = \"{name}\"\ndirection = \"{name}\"\n{ack}\n"))
    };
    on_command_line(dev, layer, DIRECTIONS.into_iter().zip([out, inward]).filter_map(class).collect())
}

/// Returns the file of a line with one rate or two, without a file. Uploads wait here instead of in the
/// modem, in a queue of each host and flow, with CoDel and an ACK filter, which an option names or describes,
/// and in tins. Of downloads, ACKs hold TCP to the rate. Each other flow has its fair share: what exceeds it
/// waits for its turn up to a rate of 1 Gbit/s, if flows can spill here.
pub fn line(
    dev: &str,
    [up, down]: [Option<Rate>; 2],
    filter: &str,
    tins: Option<&str>,
    layer: Option<&str>,
    can_spill: bool,
) -> Result<Source, Fault> {
    let up = up.map(|rate| upwards(rate, filter, tins)).transpose()?;
    let counts = if layer.is_none() { "ack = { counts = \"frame\" }\n" } else { "" };
    let down = down.map(|rate| {
        let others = if can_spill && rate <= SPILLS_UP_TO { "queue" } else { "fair" };
        format!(
            "\n[[gateway.class]]\nname = \"down\"\ndirection = \"in\"\nrate = \"{rate}\"\n\
             unresponsive = \"{others}\"\n{counts}"
        )
    });
    Ok(on_command_line(dev, layer, [up, down].into_iter().flatten().collect()))
}

/// Returns the class of what leaves by a line.
fn upwards(rate: Rate, filter: &str, tins: Option<&str>) -> Result<String, Fault> {
    let options = [("ack_filter", filter.to_string())];
    let table = options_table(&options);
    let sink = Sink::default();
    let read = |value: &DeValue| ack_filter::read(value, Some(rate), FULL_FRAME as u32);
    let params = Section::options(&table, &sink).value("ack_filter", read);
    if let Some(fault) = sink.into_faults().into_iter().next() {
        return Err(fault);
    }
    let in_turn = params.is_some_and(|params| params.service == Service::RoundRobin);
    let filter = match table["ack_filter"].get_ref() {
        DeValue::String(name) if in_turn => {
            let quantum = rate.bytes_in(UP_TURN).clamp(UP_QUANTUM, FULL_FRAME);
            format!("{{ policy = {}, quantum = {quantum} }}", toml::Value::from(name.as_ref()))
        }
        DeValue::String(name) => toml::Value::from(name.as_ref()).to_string(),
        _ => filter.to_string(),
    };
    let limit = rate.bytes_in(UP_WAIT).max(UP_LEAST);
    let mut keys = format!("rate = \"{rate}\"\nqueue = \"{limit}B\"\nack_filter = {filter}\n");
    if in_turn {
        let target = rate.time_for(3 * FULL_FRAME / 2).max(codel::Params::default().target);
        let target = target.as_nanos().div_ceil(1000);
        keys.push_str(&format!("hosts = true\naqm = \"codel\"\ntarget = \"{target}us\"\necn = true\n"));
    }
    keys.extend(tins.map(|tins| format!("tins = {}\n", toml::Value::from(tins))));
    Ok(format!("\n[[gateway.class]]\nname = \"up\"\n{keys}"))
}

fn on_command_line(dev: &str, layer: Option<&str>, classes: String) -> Source {
    let layer = layer.map(|layer| format!("\n[gateway]\nlink_layer = {}\n", toml::Value::from(layer)));
    let text = format!("[ports]\ndev = {}\n{}{classes}", toml::Value::from(dev), layer.unwrap_or_default());
    Source::new("command line", text)
}

/// Fastest line of which downloads spill. One processor carries what exceeds the shares.
const SPILLS_UP_TO: Rate = Rate::mbit(1_000);
/// Longest wait before a line, at its rate; the queue also has room for twenty full frames.
const UP_WAIT: Duration = Duration::from_millis(500);
const UP_LEAST: u64 = 20 * FULL_FRAME;
/// A turn before a line, as time at its rate, and the least bytes of it, as in CAKE. Where a full frame takes
/// several turns, ACKs have turns between frames.
const UP_TURN: Duration = Duration::from_micros(244);
const UP_QUANTUM: u64 = 300;

/// Builds a gateway with all flows of a direction at one rate, if that is given, and the ACK shaper's
/// defaults.
pub fn one_rate(out: Option<Rate>, inward: Option<Rate>) -> Config {
    let class = |((name, direction), rate): ((&str, Direction), Option<Rate>)| {
        let ack = Some(AckControl::ack_shaper(rate?));
        Some(ClassConfig {
            name: name.to_string(),
            direction,
            matches: Vec::new(),
            ack,
            share: None,
            nested: None,
        })
    };
    let classes = DIRECTIONS.into_iter().zip([out, inward]).filter_map(class).collect();
    Config { classes, ..Config::default() }
}

impl GatewayFile {
    /// Returns the configuration, divided among the engines of the gateway.
    pub fn split(&self) -> engines::Split {
        engines::split(&self.gateway, self.driving.engines())
    }
}

/// Returns the reason why classes whose flows spill cannot be beside others, or have a maximum rate of their
/// flows, if there is one.
fn spill_fault(config: &Config) -> Option<Fault> {
    let law = |class: &ClassConfig| class.ack.and_then(|ack| ack.release.share().copied());
    let spills = |class: &ClassConfig| law(class).is_some_and(|law| law.unresponsive == Unresponsive::Queue);
    for class in config.classes.iter().filter(|class| spills(class)) {
        let of = format!("`unresponsive = \"queue\"` of class \"{}\"", class.name);
        let queued = |other: &&ClassConfig| other.direction == class.direction && other.share.is_some();
        if let Some(other) = config.classes.iter().find(queued) {
            let message = format!("{of} cannot be combined with the queue of class \"{}\"", other.name);
            return Some(Fault::new(message, "it has the same direction; use `unresponsive = \"fair\"`"));
        }
        if law(class).is_some_and(|law| law.flow_max.is_some()) {
            let help = "use `unresponsive = \"fair\"`, which bounds each flow by its virtual queue";
            return Some(Fault::new(format!("{of} cannot be combined with `flow_max`"), help));
        }
    }
    None
}

/// Returns the reason why a gateway would have nothing to do, or cannot do it, if there is one.
pub(super) fn idle(config: &Config) -> Option<Fault> {
    if let Some(fault) = spill_fault(config) {
        return Some(fault);
    }
    if config.observe && config.classes.iter().any(|class| class.share.is_some()) {
        let help = "leave `observe` out, or the keys of queues: a frame that waits in a queue is touched";
        return Some(Fault::new("`observe` cannot be combined with queues", help));
    }
    config.classes.iter().all(|c| c.ack.is_none() && c.share.is_none()).then(|| {
        let help = "give one an `ack` policy: ack = { preset = \"ack-shaper\", flow_rate = \"10Mbit\" }";
        Fault::new("no class controls anything", help)
    })
}

type GatewayKey = Key<Config>;

/// Keys of `[gateway]` beside its classes.
static KEYS: &[GatewayKey] = &[
    GatewayKey::new("max_flows", |g, v| set(&mut g.max_flows, int(v, 1..=16_777_216).map(|n| n as u32)))
        .words(|g| Some(format!("at most {} flows", g.max_flows))),
    GatewayKey::new("idle_timeout", |g, v| set(&mut g.idle_timeout, positive(v)))
        .words(|g| Some(format!("idle ones forgotten after {}", g.idle_timeout))),
    GatewayKey::new("assumed_rtt", |g, v| set(&mut g.assumed_rtt, positive(v)))
        .words(|g| Some(format!("RTT assumed where unseen {}", g.assumed_rtt))),
    GatewayKey::new("observe", |g, v| set(&mut g.observe, bool::from_value(v)))
        .words(|g| g.observe.then(|| "observes: every frame passes as it came".to_owned())),
    GatewayKey::new("link_layer", |g, v| set(&mut g.link_layer, link_layer::read(v)))
        .words(|g| g.link_layer.map(|layer| link_layer::words(&layer))),
    pace::LINE,
    pace::FILLER,
];

fn positive(value: &DeValue) -> Result<Duration, Fault> {
    Positive::from_value(value).map(|Positive(d)| d)
}

/// Returns the keys of `[gateway]`, beside its classes, whose values differ.
pub fn differences(old: &Config, new: &Config) -> Vec<String> {
    let differs = [
        ("max_flows", old.max_flows != new.max_flows),
        ("idle_timeout", old.idle_timeout != new.idle_timeout),
        ("assumed_rtt", old.assumed_rtt != new.assumed_rtt),
        ("observe", old.observe != new.observe),
        ("link_layer", old.link_layer != new.link_layer),
        ("line", old.port.line != new.port.line),
        ("filler", old.port.filler != new.port.filler),
    ];
    differs.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key.to_owned()).collect()
}

/// Describes a gateway without its classes, in words.
pub fn words(config: &Config) -> String {
    keys::words(KEYS, config).join(", ")
}

/// Reader of a file that another one names.
pub type Read<'a> = &'a dyn Fn(&str) -> Result<Source, String>;

/// Source of the files that `[gateway]` names.
pub(super) struct Files<'a> {
    /// File that names them: their paths are relative to its own.
    pub source: &'a Source,
    /// Settings laid over them.
    pub settings: &'a Settings,
    pub read: Read<'a>,
    /// Flag: the gateway has an interface, which may report the rate of its line.
    pub inline: bool,
    /// Errors of these files. Without their classes, other errors may follow.
    pub faulty: Cell<Option<Errors>>,
    /// Rows without effect in the lists of an experiment.
    pub notes: Cell<Vec<Located>>,
}

impl<'a> Files<'a> {
    /// Returns files beside `source`, without settings.
    pub fn beside(source: &'a Source) -> Files<'a> {
        const NOTHING: &Settings = &Settings::NOTHING;
        Files {
            source,
            settings: NOTHING,
            read: &|name| Source::read_list(name.as_ref()),
            inline: false,
            faulty: Cell::default(),
            notes: Cell::default(),
        }
    }

    /// Reads the file that a key names.
    fn read(&self, s: &Section, key: &'static str) -> Result<Option<Source>, Diagnostic> {
        let Some(name) = s.get::<String>(key) else { return Ok(None) };
        let directory = Path::new(&self.source.name).parent().unwrap_or(Path::new(""));
        let path = directory.join(name).display().to_string();
        (self.read)(&path).map(Some).map_err(|why| Diagnostic {
            span: s.value_span(key),
            message: format!("`{}`: {why}", s.full(key)),
            help: Some("a path is relative to the directory of this file".to_owned()),
        })
    }

    /// Reads the files of customers and of sites. Errors are those of all that cannot be read.
    fn read_both(&self, s: &Section) -> Result<[Option<Source>; 2], Errors> {
        match ["file", "sites"].map(|key| self.read(s, key)) {
            [Ok(file), Ok(sites)] => Ok([file, sites]),
            both => Err(Errors::new(self.source, both.into_iter().filter_map(Result::err).collect())),
        }
    }

    /// Reads `[gateway.customers]`.
    fn lists(&self, s: &Section) -> Lists {
        let Some(s) = s.section("customers") else {
            let named = |(kind, id): (&str, &str)| {
                let message = format!("there is no {kind} \"{id}\"");
                s.fault_here(Fault::new(message, "there is no list of customers"));
            };
            self.settings.named().next().into_iter().for_each(named);
            return Lists::default();
        };
        s.need("file", "\"customers.csv\"");
        let sources = self.read_both(&s);
        let queues = share::of_customers(&s);
        let queued = queues.map(|queue| queue.is_some());
        let police = s.get("police").unwrap_or(false);
        let unresponsive = s.value("unresponsive", |v| one_of(v, &policy::UNRESPONSIVE, &[]));
        let unresponsive = unresponsive.unwrap_or(policy::policing(police));
        if let Some(name) = self.settings.of_sites().into_keys().next().filter(|_| !s.has("sites")) {
            s.fault_here(Fault::new(format!("there is no site \"{name}\""), "there is no list of sites"));
        }
        s.finish();
        let read = sources.and_then(|[source, sites]| {
            let mut sites = sites.map(|source| sites::read(&source, self.settings)).transpose()?;
            let list = source.map(|source| customers::read(&source, sites.as_ref(), queued, self.settings));
            let (mut customers, notes) = list.transpose()?.unwrap_or_default();
            customers.iter_mut().for_each(|customer| customer.unresponsive = unresponsive);
            let notes = [sites.as_mut().map_or(Vec::new(), |sites| sites.notes()), notes].concat();
            Ok(Lists { customers, sites: sites.unwrap_or_default().list, queues, notes })
        });
        read.unwrap_or_else(|errors| {
            self.faulty.set(Some(errors));
            Lists::default()
        })
    }
}

/// Customers and sites whose classes come before those of the file.
#[derive(Default)]
pub(super) struct Lists {
    pub customers: Vec<Customer>,
    pub sites: Vec<Site>,
    /// Queues of customers, of uploads and of downloads.
    pub queues: [Option<queue::Config>; 2],
    pub notes: Vec<Located>,
}

/// Reads `[gateway]`. The classes of its customers come first, then those of their sites. Faults go to the
/// section's sink; faulty parts are missing from the value.
pub(super) fn gateway(s: Section, files: &Files<'_>) -> (Config, Lists) {
    let mut config = Config::default();
    keys::read(KEYS, &[&s], &mut config);
    let lists = files.lists(&s);
    let mut first = customers::classes(&lists.customers, &lists.sites, lists.queues);
    share::check_customers(&s, &first);
    if let Some(layer) = config.link_layer {
        let policies = first.iter_mut().filter_map(|class| class.ack.as_mut());
        policies.for_each(|policy| policy.release.set_counts(Counts::Link(layer)));
    }
    let mut classes = class::classes(&s, &first, (config.port, files.inline), config.link_layer);
    // Parents are given by their positions.
    for class in &mut classes {
        let queued = class.share.as_mut().and_then(|share| share.parent.as_mut());
        let nested = class.nested.as_mut().and_then(|nested| nested.parent.as_mut());
        queued.into_iter().chain(nested).for_each(|parent| *parent += first.len());
    }
    config.classes = [first, classes].concat();
    s.finish();
    (config, lists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_may_have_any_rate() {
        for rate in ["8kbit", "64kbit", "1.5Mbit", "20Mbit", "1Gbit", "100Gbit"] {
            let both = [Some(policy::flow_rate(rate).unwrap()); 2];
            for filter in ["delayed-per-flow", "classical", "none"] {
                let source =
                    line("eth0", both, filter, Some("diffserv4"), Some("pppoe-llcsnap"), true).unwrap();
                parse(&source).unwrap_or_else(|errors| panic!("{rate}: {errors}"));
            }
        }
    }
}
