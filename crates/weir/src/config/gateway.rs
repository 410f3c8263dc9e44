//! The `[gateway]` table, the same in `gateway.toml` and in experiments.

use super::diag::{Errors, Source};
use super::ports::{self, Driving};
use super::reader::{parse_toml, Number, Positive, Section, Sink};
use super::units::{self, Decimal, Fault};
use core::ops::RangeInclusive;
use std::collections::BTreeMap;
use weir_core::ack::{AckControl, Counts, Hold, Meter, Period, RateRelease, Release, SlowStart, Window};
use weir_core::gateway::{ClassConfig, Config, Direction, Match, Prefix};
use weir_core::rate::Rate;
use weir_core::time::Duration;

/// What `gateway.toml` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayFile {
    /// The interface towards the WAN.
    pub dev: String,
    /// How the engine is driven.
    pub driving: Driving,
    /// The gateway; at least one of its classes controls ACKs. Its `seed` is the default; a running gateway
    /// replaces it by a random one.
    pub gateway: Config,
}

/// Parses `gateway.toml`. All errors of the file come at once.
pub fn parse(source: &Source) -> Result<GatewayFile, Errors> {
    let table = parse_toml(source)?;
    let sink = Sink::default();
    let root = Section::root(&table, &sink);
    root.need("ports", "{ dev = \"eth1\" }");
    let ports = root.section("ports").and_then(ports::of_gateway);
    root.need("gateway", "{ class = [ … ] }");
    let gateway = root.section("gateway").map(self::gateway);
    if let Some(fault) = gateway.as_ref().filter(|_| root.all_well()).and_then(idle) {
        root.key_fault("gateway", fault);
    }
    root.finish();
    let file = ports.zip(gateway).map(|((dev, driving), gateway)| GatewayFile { dev, driving, gateway });
    sink.finish(source, file).map(|(file, _)| file)
}

/// The gateway of the short form, one line without a file: every flow of a direction at a rate of its own.
/// It is parsed as the file would be, so that the two cannot differ.
pub fn short(dev: &str, out: Option<Rate>, inward: Option<Rate>) -> Result<GatewayFile, Errors> {
    let (dev, classes) = (toml::Value::from(dev), short_classes(out, inward));
    parse(&Source::new("command line", format!("[ports]\ndev = {dev}\n\n{classes}")))
}

/// The classes of the short form, as a file would have them.
pub fn short_classes(out: Option<Rate>, inward: Option<Rate>) -> String {
    let class = |(name, rate): (&str, Option<Rate>)| {
        let rate = rate?;
        Some(format!(
            "[[gateway.class]]\nname = \"{name}\"\ndirection = \"{name}\"\n\
             ack = {{ preset = \"ack-shaper\", flow_rate = \"{rate}\" }}\n"
        ))
    };
    [("out", out), ("in", inward)].into_iter().filter_map(class).collect()
}

/// Why a gateway would have nothing to do, if it would.
pub(super) fn idle(config: &Config) -> Option<Fault> {
    config.classes.iter().all(|c| c.ack.is_none()).then(|| {
        let help = "give one an `ack` policy: ack = { preset = \"ack-shaper\", flow_rate = \"10Mbit\" }";
        Fault::new("no class controls anything", help)
    })
}

/// Reads `[gateway]`. Faults go to the section's sink; what is faulty is missing from the value.
pub(super) fn gateway(s: Section) -> Config {
    let mut config = Config::default();
    if let Some(n) = s.int("max_flows", 1..=16_777_216) {
        config.max_flows = n as u32;
    }
    if let Some(Positive(d)) = s.get("assumed_rtt") {
        config.assumed_rtt = d;
    }
    if let Some(Positive(d)) = s.get("idle_timeout") {
        config.idle_timeout = d;
    }
    let mut names = BTreeMap::new();
    let mut takes_all: Vec<(Direction, String)> = Vec::new();
    for c in s.sections("class") {
        let class = self::class(&c);
        c.check_done();
        let Some(class) = class else { continue };
        if names.insert(class.name.clone(), ()).is_some() {
            c.fault("name", Fault::bare(format!("a second class named \"{}\"", class.name)));
        }
        if let Some((_, first)) = takes_all.iter().find(|(d, _)| *d == class.direction) {
            c.fault_here(Fault::new(
                format!("class \"{}\" can never take a flow", class.name),
                format!("\"{first}\" before it has no `match` and takes every flow of the direction; the first class that matches takes a flow"),
            ));
        }
        if class.matches.is_empty() && !c.has("match") {
            takes_all.push((class.direction, class.name.clone()));
        }
        config.classes.push(class);
    }
    s.finish();
    config
}

/// Names that can stand in paths of results: letters, digits, `-`, `_`.
pub(super) fn name(text: String) -> Result<String, Fault> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if text.is_empty() || text.len() > 64 || !text.chars().all(good) {
        return Err(Fault::new(
            format!("\"{text}\" is not a name"),
            "names are 1 to 64 letters, digits, `-` and `_`",
        ));
    }
    Ok(text)
}

/// Names of directions.
pub(super) const DIRECTIONS: [(&str, Direction); 2] = [("out", Direction::Out), ("in", Direction::In)];

fn class(s: &Section) -> Option<ClassConfig> {
    s.need("name", "\"uploads\"");
    let name = s.parsed("name", self::name);
    let direction = s.choice("direction", &DIRECTIONS, &[]).unwrap_or_default();
    let matches = s.sections("match").into_iter().map(rule).collect();
    let ack = s.section("ack").and_then(ack);
    Some(ClassConfig { name: name?, direction, matches, ack })
}

fn rule(s: Section) -> Match {
    let m = Match {
        src: s.get::<Prefix>("src"),
        dst: s.get::<Prefix>("dst"),
        src_port: s.get::<RangeInclusive<u16>>("src_port"),
        dst_port: s.get::<RangeInclusive<u16>>("dst_port"),
        vlan: s.int("vlan", 0..=4094).map(|v| v as u16),
    };
    if s.is_empty() {
        s.fault_here(Fault::new(
            "a rule that names nothing",
            "leave `match` out of a class that takes every flow of its direction",
        ));
    }
    s.finish();
    m
}

/// Presets, holds, releases and windows that are known from the literature and not built yet.
const FUTURE_PRESETS: [&str; 5] = ["pfq", "tcr", "postack", "postack-pfq", "postack-number"];

fn ack(s: Section) -> Option<AckControl> {
    let choices = ["hold", "release", "window"];
    if s.has("preset") {
        s.choice("preset", &[("ack-shaper", ())], &FUTURE_PRESETS);
        for key in ["hold", "release"] {
            if s.has(key) {
                s.at_most_one(&["preset", key], "a preset makes this choice; leave one of the two out");
            }
        }
    } else if choices.iter().any(|k| s.has(k)) {
        s.need("hold", "\"number\"");
        s.need("release", "\"rate\"");
    } else {
        s.need("preset", "\"ack-shaper\"");
    }
    let hold = s.choice("hold", &[("number", Hold::Number)], &["queue"]).unwrap_or(Hold::Number);
    s.choice("release", &[("rate", ())], &["round", "dequeue"]);
    let window = window(&s);
    let release = release(&s);
    s.finish();
    Some(AckControl { hold, release: Release::Rate(release?), window })
}

/// `window` and `standing_delay`: a bound sizes the window, "none" keeps it. Each says it alone; both may not
/// contradict each other.
fn window(s: &Section) -> Window {
    let sized = s.choice("window", &[("keep", false), ("size", true)], &[]);
    let bound = s.parsed("standing_delay", |text: String| match text.as_str() {
        "none" => Ok(Window::Keep),
        t => units::duration(t)
            .map_err(|f| Fault { help: f.help.map(|h| format!("\"none\", or a duration; {h}")), ..f })
            .map(|standing_delay| Window::Size { standing_delay }),
    });
    let contradiction = |window: &str, bound: &str, help: &str| {
        let text = format!("{bound} cannot be combined with window = \"{window}\"");
        s.fault("standing_delay", Fault::new(text, help));
    };
    match (sized, bound) {
        (Some(false), Some(Window::Size { .. })) => {
            contradiction("keep", "a bound", "leave one of the two out");
        }
        (Some(true), Some(Window::Keep)) => {
            contradiction("size", "`standing_delay` = \"none\"", "leave one of the two out");
        }
        _ => {}
    }
    match sized {
        Some(false) => Window::Keep,
        _ => bound.unwrap_or(Window::SIZE),
    }
}

/// The rates at which release is exact (no other rates are tested).
const FLOW_RATES: (u64, u64) = (8_000, 100_000_000_000);

fn in_range(rate: Rate) -> Result<Rate, Fault> {
    if (FLOW_RATES.0..=FLOW_RATES.1).contains(&rate.bps()) {
        return Ok(rate);
    }
    Err(Fault::bare(format!("{rate} is not from 8kbit to 100Gbit")))
}

/// A rate that flows can be released at.
pub fn flow_rate(text: &str) -> Result<Rate, Fault> {
    units::rate(text).and_then(in_range)
}

fn release(s: &Section) -> Option<RateRelease> {
    s.need("flow_rate", "\"10Mbit\"");
    let rate = s.parsed("flow_rate", in_range);
    let counts =
        [("payload", Counts::Payload), ("ip", Counts::Ip), ("frame", Counts::Frame), ("wire", Counts::Wire)];
    let counts = s.choice("counts", &counts, &[]).unwrap_or_default();
    let meters = [("acked", Meter::Acked), ("received", Meter::Received)];
    let meter = s.choice("meter", &meters, &[]).unwrap_or_default();
    let period = period(s);
    let slow_start = slow_start(s);
    let catch_up = s.get::<Positive>("catch_up").map_or(Duration::from_millis(100), |Positive(d)| d);
    Some(RateRelease { rate: rate?, counts, meter, period, slow_start, catch_up })
}

/// `period`, `period_min` and `period_max`.
fn period(s: &Section) -> Period {
    let bounded = |d: Duration| {
        if (Duration::from_micros(1)..=Duration::from_secs(1)).contains(&d) {
            Ok(d)
        } else {
            Err(Fault::bare(format!("{d} is not from 1us to 1s")))
        }
    };
    let fixed = s.parsed("period", |text: String| match text.as_str() {
        "auto" => Ok(None),
        t => units::duration(t)
            .map_err(|f| Fault { help: f.help.map(|h| format!("\"auto\", or a duration; {h}")), ..f })
            .and_then(bounded)
            .map(Some),
    });
    let Period::Auto { min, max } = Period::AUTO else { unreachable!("AUTO is automatic") };
    let (given_min, given_max) = (s.parsed("period_min", bounded), s.parsed("period_max", bounded));
    if let Some(Some(fixed)) = fixed {
        for key in ["period_min", "period_max"] {
            if s.has(key) {
                s.fault(
                    key,
                    Fault::new(
                        format!("`{key}` together with a fixed period of {fixed}"),
                        "bounds are for period = \"auto\"",
                    ),
                );
            }
        }
        return Period::Fixed(fixed);
    }
    let (min, max) = (given_min.unwrap_or(min), given_max.unwrap_or(max));
    if min > max {
        let key = if s.has("period_min") { "period_min" } else { "period_max" };
        s.fault(key, Fault::bare(format!("the shortest period, {min}, is longer than the longest, {max}")));
    }
    Period::Auto { min, max }
}

/// `slow_start` and its thresholds.
fn slow_start(s: &Section) -> SlowStart {
    const PAPER: SlowStart = SlowStart::Detect { enter_milli: 2000, exit_milli: 500, gated: false };
    let modes = [("detect", SlowStart::DETECT), ("paper", PAPER), ("ignore", SlowStart::Ignore)];
    let mode = s.choice("slow_start", &modes, &[]).unwrap_or(SlowStart::DETECT);
    let milli = |key| {
        s.parsed(key, |Number(n): Number| {
            let out_of_range = || Fault::bare("not from 0.001 to 100, in steps of 0.001");
            match Decimal::times(n, 1000) {
                Ok(m @ 1..=100_000) => Ok(m as u32),
                _ => Err(out_of_range()),
            }
        })
    };
    let (enter, exit) = (milli("slow_start_enter"), milli("slow_start_exit"));
    if mode == SlowStart::Ignore {
        for key in ["slow_start_enter", "slow_start_exit"] {
            if s.has(key) {
                let help = "thresholds are for \"detect\" and \"paper\"";
                s.fault(key, Fault::new(format!("`{key}` together with slow_start = \"ignore\""), help));
            }
        }
    }
    let SlowStart::Detect { enter_milli, exit_milli, gated } = mode else {
        return mode;
    };
    let (enter_milli, exit_milli) = (enter.unwrap_or(enter_milli), exit.unwrap_or(exit_milli));
    if exit_milli >= enter_milli {
        let key = if s.has("slow_start_exit") { "slow_start_exit" } else { "slow_start_enter" };
        s.fault(
            key,
            Fault::bare("`slow_start_exit` must be below `slow_start_enter`, or the state would flap"),
        );
    }
    SlowStart::Detect { enter_milli, exit_milli, gated }
}
