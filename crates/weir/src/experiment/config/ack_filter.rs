//! Key `ack_filter` of links and of classes with queues: the name of a policy, or a table of its keys.

use super::diag::Fault;
use super::keys::{self, set, Key};
use super::learnt::{self, Kind};
use super::reader::{Section, Sink};
use super::units::Probability;
use super::value::{above_zero, found, int, one_of, FromValue, Positive};
use core::mem::discriminant;
use toml::de::{DeTable, DeValue};
use weir_core::queue::ack_filter::{Drop, Measure, Params, Policy, Rule, Service, Threshold};
use weir_core::rate::Rate;

/// Policies by name, with their default parameters.
const POLICIES: [(&str, Policy); 5] = [
    ("none", Policy::None),
    ("static", Policy::Static(Threshold::Auto)),
    ("classical", Policy::Classical),
    ("delayed", Policy::Delayed),
    ("delayed-per-flow", Policy::DelayedPerFlow),
];
const SERVICES: [(&str, Service); 2] = [("fifo", Service::Fifo), ("rr", Service::RoundRobin)];
const RULES: [(&str, Rule); 2] = [("adapted", Rule::Adapted), ("published", Rule::Published)];
const DROPS: [(&str, Drop); 3] =
    [("tail", Drop::Tail), ("longest", Drop::Longest), ("fastest", Drop::Fastest)];
const MEASURES: [(&str, Measure); 2] = [("rate", Measure::Rate), ("presence", Measure::Presence)];
/// Most ACKs that may wait: the range of a queue's counter.
const MOST_ACKS: u64 = 1_000_000;
/// Size of the shortest ACK in bytes.
const ACK: u64 = 40;
/// Number of trillionths in a millionth.
const MILLIONTH: u64 = 1_000_000;

type FilterKey = Key<Params>;

const MEASURED: &str = "it is of policies that measure: \"delayed\" and \"delayed-per-flow\"";

/// Keys of the table.
static KEYS: &[FilterKey] = &[
    FilterKey::new("policy", |p, v| {
        *p = of(one_of(v, &POLICIES, &[])?);
        Ok(())
    })
    .words(|p| Some(name(p.policy).to_string())),
    FilterKey::new("threshold", |p, v| match p.policy {
        Policy::Static(_) => set(&mut p.policy, threshold(v).map(Policy::Static)),
        _ => Err(foreign(p, "it is how many ACKs of a flow may wait with policy = \"static\"")),
    })
    .words(|p| match p.policy {
        Policy::Static(Threshold::Acks(n)) => Some(format!("{n} ACKs of a flow may wait")),
        Policy::Static(Threshold::Auto) => {
            Some("as many ACKs of a flow may wait as the path's rate and RTT allow".into())
        }
        _ => None,
    }),
    FilterKey::new("service", |p, v| match (one_of(v, &SERVICES, &[])?, p.policy) {
        (Service::RoundRobin, policy) if policy != Policy::DelayedPerFlow => {
            let message = format!("policy = \"{}\" serves in the order of arrival", name(policy));
            Err(Fault::new(
                message,
                "only \"delayed-per-flow\" tells flows apart so that they can take turns",
            ))
        }
        (service, _) => set(&mut p.service, Ok(service)),
    })
    .words(|p| (p.service == Service::RoundRobin).then(|| "flows in turn".to_string())),
    FilterKey::new("rule", |p, v| {
        let rule = one_of(v, &RULES, &[])?;
        if p.policy != Policy::DelayedPerFlow {
            return Err(foreign(p, "it says when \"delayed-per-flow\" filters a flow"));
        }
        if rule == Rule::Published {
            // Section 4.1 has no thresholds: a flow is filtered above its share.
            (p.on, p.off) = (1_000_000, 1_000_000);
        }
        set(&mut p.rule, Ok(rule))
    })
    .words(|p| (p.rule == Rule::Published).then(|| "flows filtered by the published rule".to_string())),
    FilterKey::new("drop", |p, v| {
        p.drop = Some(one_of(v, &DROPS, &[])?);
        Ok(())
    })
    .words(|p| {
        let (name, _) = DROPS.iter().find(|(_, drop)| Some(*drop) == p.drop)?;
        Some(format!("full queues drop by \"{name}\""))
    }),
    FilterKey::new("measure", |p, v| {
        measured(p)?;
        p.measure = one_of(v, &MEASURES, &[])?;
        p.off = off(p.measure);
        Ok(())
    })
    .words(|p| (p.measure == Measure::Presence).then(|| "by how often ACKs wait".to_string())),
    FilterKey::new("on", |p, v| {
        measured(p)?;
        p.on = share(v)?;
        p.off = p.off.min(p.on);
        Ok(())
    })
    .words(|p| measured(p).ok().map(|()| format!("from {} of use on", percent(p.on)))),
    FilterKey::new("off", |p, v| {
        measured(p)?;
        let off = share(v)?;
        if off > p.on {
            let message = format!("{} is above `on`, {}", percent(off), percent(p.on));
            return Err(Fault::new(message, "filtering ends below the use at which it begins"));
        }
        set(&mut p.off, Ok(off))
    })
    .words(|p| measured(p).ok().map(|()| format!("until below {}", percent(p.off)))),
    FilterKey::new("window", |p, v| {
        measured(p)?;
        p.window = Some(Positive::from_value(v)?.0);
        Ok(())
    })
    .words(|p| p.window.map(|window| format!("over {window}"))),
    FilterKey::new("flows", |p, v| {
        measured(p)?;
        set(&mut p.flows, int(v, 1..=1 << 20).map(|n| n as u32))
    })
    .words(|p| measured(p).ok().map(|()| format!("{} flows, beyond that classical", p.flows))),
    FilterKey::new("quantum", |p, v| match p.service {
        Service::RoundRobin => set(&mut p.quantum, int(v, 64..=65_536).map(|n| n as u32)),
        Service::Fifo => {
            Err(Fault::new("service = \"fifo\" has no turns", "it is what a flow may send in its turn"))
        }
    }),
];

/// Returns a policy with its default parameters.
fn of(policy: Policy) -> Params {
    let service = if policy == Policy::DelayedPerFlow { Service::RoundRobin } else { Service::Fifo };
    Params { policy, service, ..Params::default() }
}

fn name(policy: Policy) -> &'static str {
    let named = POLICIES.iter().find(|(_, known)| discriminant(known) == discriminant(&policy));
    named.map_or("none", |(name, _)| name)
}

/// Returns the default threshold at which filtering ends. An ACK that waits alone is present only for a part
/// of the time.
fn off(measure: Measure) -> u32 {
    match measure {
        Measure::Rate => Params::default().off,
        Measure::Presence => 500_000,
    }
}

fn foreign(params: &Params, why: &'static str) -> Fault {
    Fault::new(format!("cannot be combined with policy = \"{}\"", name(params.policy)), why)
}

fn measured(params: &Params) -> Result<(), Fault> {
    match params.policy.measures() {
        true => Ok(()),
        false => Err(foreign(params, MEASURED)),
    }
}

fn threshold(value: &DeValue) -> Result<Threshold, Fault> {
    const HELP: &str = "a whole number from 1 on, or \"auto\"; 1 lets one ACK of a flow wait";
    learnt::kind(|| Kind::Names(vec!["auto".to_string()]));
    learnt::kind(|| Kind::Whole(1, MOST_ACKS));
    match value {
        DeValue::String(text) if text == "auto" => Ok(Threshold::Auto),
        DeValue::Integer(_) => match int(value, 1..=MOST_ACKS) {
            Ok(n) => Ok(Threshold::Acks(n as u32)),
            Err(fault) => Err(Fault::new(fault.message, HELP)),
        },
        other => Err(Fault::new(format!("expected a number of ACKs, found {}", found(other)), HELP)),
    }
}

/// Parses a share above zero, in millionths.
fn share(value: &DeValue) -> Result<u32, Fault> {
    match above_zero(Probability::from_value(value)?.trillionths())? {
        n if n % MILLIONTH != 0 => Err(Fault::bare("finer than millionths")),
        n => Ok((n / MILLIONTH) as u32),
    }
}

fn percent(millionths: u32) -> String {
    format!("{}%", f64::from(millionths) / 1e4)
}

/// Reads a filter in front of this rate, if the rate is known.
pub(super) fn read(value: &DeValue, rate: Option<Rate>, full_frame: u32) -> Result<Params, Fault> {
    learnt::kind(|| Kind::Names(POLICIES.iter().map(|(name, _)| (*name).to_string()).collect()));
    learnt::kind(|| Kind::Switch);
    let mut params = match value {
        DeValue::Boolean(true) => Params::default(),
        DeValue::String(_) => of(one_of(value, &POLICIES, &[])?),
        DeValue::Table(table) => read_table(table)?,
        other => {
            let message = format!("expected a policy or a table, found {}", found(other));
            return Err(Fault::new(
                message,
                "write \"delayed-per-flow\" or { policy = \"static\", threshold = 30 }",
            ));
        }
    };
    let said = matches!(value, DeValue::Table(table) if table.contains_key("quantum"));
    if params.service == Service::RoundRobin && !said {
        params.quantum = full_frame;
    }
    match (params.window, rate.map(|rate| rate.time_for(ACK))) {
        (Some(window), Some(packet)) if window < packet => Err(Fault::new(
            format!("`window`: {window} is shorter than an ACK takes at this rate, {packet}"),
            "the round-trip time of the path is what it should be",
        )),
        _ => Ok(params),
    }
}

fn read_table(table: &DeTable) -> Result<Params, Fault> {
    let sink = Sink::default();
    let s = Section::inline(table, "ack_filter", &sink);
    let mut params = Params::default();
    keys::read(KEYS, &[&s], &mut params);
    s.finish();
    sink.into_faults().into_iter().next().map_or(Ok(params), Err)
}

/// Describes the filter in words.
pub(super) fn words(params: &Params) -> String {
    format!("ACK filter ({})", keys::words(KEYS, params).join(", "))
}
