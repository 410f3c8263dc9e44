//! Key `ack`: a policy of ACK control, given by a preset of the core with keys laid over it.

mod check;
mod rate;
mod shared;
mod turns;

pub(super) use shared::{
    check_bounds, check_flow_min, need_rate, of_customer, policing, set_most, shared, UNRESPONSIVE,
};

use super::diag::Fault;
use super::keys::{self, set, Key};
use super::queue_limit;
use super::reader::Section;
use super::units;
use super::value::{one_of, FromValue};
use core::mem::discriminant;
use toml::de::DeValue;
use weir_core::ack::{
    AckControl, Counts, Hold, NewLaw, Preset, Release, When, Window, CLASS_PRESETS, LAWS, PRESETS,
};
use weir_core::class::Spec;
use weir_core::packet::LinkLayer;
use weir_core::queue::{self, Kind, QueueLimit};
use weir_core::rate::Rate;
use weir_core::time::Duration;

/// Refusal of choices for classes whose flows share a rate, in a policy for each flow.
fn of_classes() -> String {
    let names: Vec<_> = CLASS_PRESETS.iter().map(|preset| format!("\"{}\"", preset.name)).collect();
    let (last, others) = names.split_last().expect("presets");
    format!("it is for all flows of a class together, by a preset: {} or {last}", others.join(", "))
}

const HOLDS: [(&str, Hold); 1] = [("number", Hold::Number)];
const COUNTS: [(&str, Counts); 4] =
    [("payload", Counts::Payload), ("ip", Counts::Ip), ("frame", Counts::Frame), ("wire", Counts::Wire)];

type PolicyKey = Key<AckControl>;

/// Reason that a policy has the law of its keys: each table of keys is for one law.
const OF_ITS_LAW: &str = "keys of a law are read for policies of that law";

/// Keys of every policy for each flow that are read before the keys of its law. `preset`, `release` and
/// `flow_rate` have chosen the law.
static FIRST_KEYS: &[PolicyKey] = &[PolicyKey::new("hold", |p, v| {
    set(&mut p.hold, not_of_classes(v, &["queue"]).and_then(|()| one_of(v, &HOLDS, &[])))
})];

/// Keys of every policy for each flow that are read after the keys of its law, which sometimes set the
/// window.
static LAST_KEYS: &[PolicyKey] = &[
    PolicyKey::new("when", |p, v| {
        let when = one_of(v, &[("always", When::Always), ("congested", When::CONGESTED)], &[])?;
        if when != When::Always {
            p.window = Window::Keep;
        }
        let same = discriminant(&p.when) == discriminant(&when);
        p.when = if same { p.when } else { when };
        Ok(())
    }),
    PolicyKey::new("threshold", |p, v| match &mut p.when {
        When::Congested { above } => set(above, queue_limit::read(v)),
        When::Always => Err(Fault::new(
            "a threshold cannot be combined with when = \"always\"",
            "it is how much of the class waits with when = \"congested\"",
        )),
    })
    .words(|p| {
        threshold(p).map(|above| format!("only while more than {} wait", queue_limit::counted(above)))
    }),
    PolicyKey::new("window", |p, v| {
        let sized = if p.window == Window::Keep { Window::SIZE } else { p.window };
        set(&mut p.window, one_of(v, &[("keep", Window::Keep), ("size", sized)], &[]))
    })
    .words(|p| {
        Some(match p.window {
            Window::Keep => "window kept".to_string(),
            Window::Size { standing_delay } => format!("window sized for {standing_delay} of standing delay"),
        })
    }),
    PolicyKey::new("standing_delay", |p, v| set(&mut p.window, standing_delay(v))),
];

/// Keys of a single law, by its name. A law without keys of its own has no row.
static LAW_KEYS: &[(&str, &[PolicyKey])] = &[("rate", rate::KEYS), ("share", shared::KEYS)];

/// Reads the policy of a class, whose data may wait in a queue of this limit.
pub(super) fn policy(s: Section, queue: Option<QueueLimit>) -> Option<AckControl> {
    if let Some(preset) = turns::preset(&s) {
        turns::refuse_without_rate(s, preset);
        return None;
    }
    let preset = preset(&s);
    s.need("flow_rate", "\"10Mbit\"");
    let rate = s.value("flow_rate", flow_rate_of);
    // The other keys are read even if the rate is missing.
    let of_each = rate.unwrap_or(Rate::mbit(1));
    let mut policy = (preset.policy)(of_each);
    if let Some(law) = s.value("release", |value| {
        not_of_classes(value, &["round", "dequeue"])?;
        one_of::<NewLaw>(value, LAWS, &[])
    }) {
        policy.release = law(of_each);
    }
    for table in tables(&policy.release) {
        keys::read(table, &[&s], &mut policy);
    }
    check::keys(&s, &policy, queue);
    s.finish();
    rate.map(|_| policy)
}

/// Returns the named preset, or the first one if each choice is made by a key of its own.
fn preset(s: &Section) -> &'static Preset {
    let presets: Vec<_> = PRESETS.iter().map(|preset| (preset.name, preset)).collect();
    if s.has("preset") {
        for key in ["hold", "release"] {
            s.at_most_one(&["preset", key], "a preset makes this choice; leave one of the two out");
        }
    } else if ["hold", "release", "window"].into_iter().any(|key| s.has(key)) {
        s.need("hold", "\"number\"");
        s.need("release", "\"rate\"");
    } else {
        s.need("preset", &format!("\"{}\"", PRESETS[0].name));
    }
    let choose = |value: &DeValue| {
        let known = one_of(value, &presets, &[]);
        match String::from_value(value)?.as_str() {
            "pfq" => {
                Err(Fault::new("`pfq` holds no ACKs", "it is discipline = \"pfq\" of a class without `ack`"))
            }
            _ => known,
        }
    };
    s.value("preset", choose).unwrap_or(&PRESETS[0])
}

/// Refuses names from presets of classes whose flows share a rate.
fn not_of_classes(value: &DeValue, names: &[&str]) -> Result<(), Fault> {
    let name = String::from_value(value)?;
    match names.contains(&name.as_str()) {
        true => {
            Err(Fault::new(format!("`{name}` cannot be chosen for flows with a rate each"), of_classes()))
        }
        false => Ok(()),
    }
}

/// Refuses the guarantee of each flow of a class that does not share its rate equally among its flows: it has
/// one queue, and no policy by which their ACKs take turns.
pub(super) fn check_guarantee(s: &Section, spec: &Spec, queue: queue::Config, ack: Option<&AckControl>) {
    let per_flow = matches!(queue.kind, Kind::Pfq(_) | Kind::FqCodel { .. });
    let in_turns = ack.is_some_and(turns::takes_turns);
    if spec.flow_min.is_some() && !per_flow && !in_turns {
        let help = "give each flow a queue, discipline = \"pfq\", or turns: ack = { preset = \"postack\" }";
        s.fault("flow_min", Fault::new("nothing keeps the flows of one queue to equal shares", help));
    }
}

/// Reads the policy of a class with this queue.
pub(super) fn of_queue(s: Section, spec: &Spec, queue: queue::Config) -> Option<AckControl> {
    match turns::preset(&s) {
        Some(preset) => turns::of_queue(s, preset, spec, queue),
        None => policy(s, Some(queue.limit)),
    }
}

/// Describes a policy in words.
pub fn words(policy: &AckControl) -> String {
    if let Some(words) = turns::words(policy) {
        return words;
    }
    let law = &policy.release;
    let unworded = law.flow_rate().filter(|_| own_keys(law).is_none());
    let rate = unworded.map(|rate| format!("each flow {rate} by the law `{}`", law.name()));
    let keys = tables(law).into_iter().flat_map(|table| keys::words(table, policy));
    rate.into_iter().chain(keys).collect::<Vec<_>>().join(", ")
}

/// Returns the keys of this law alone.
fn own_keys(law: &Release) -> Option<&'static [PolicyKey]> {
    LAW_KEYS.iter().find(|(name, _)| *name == law.name()).map(|(_, keys)| *keys)
}

/// Returns the keys of policies with this law, in reading order.
fn tables(release: &Release) -> Vec<&'static [PolicyKey]> {
    let own = own_keys(release);
    if release.share().is_some() {
        return own.into_iter().collect();
    }
    [FIRST_KEYS].into_iter().chain(own).chain([LAST_KEYS]).collect()
}

/// Returns the backlog at which holding of ACKs begins, if they are not always held.
fn threshold(policy: &AckControl) -> Option<QueueLimit> {
    match policy.when {
        When::Congested { above } => Some(above),
        When::Always => None,
    }
}

/// Range of rates with exact release (no other rates are tested).
const FLOW_RATES: (u64, u64) = (8_000, 100_000_000_000);

pub(super) fn in_range(rate: Rate) -> Result<Rate, Fault> {
    if (FLOW_RATES.0..=FLOW_RATES.1).contains(&rate.bps()) {
        return Ok(rate);
    }
    Err(Fault::bare(format!("{rate} is not from 8kbit to 100Gbit")))
}

pub(super) fn flow_rate_of(value: &DeValue) -> Result<Rate, Fault> {
    Rate::from_value(value).and_then(in_range)
}

/// Parses a rate at which flows can be released, one of them or all of a line.
pub fn flow_rate(text: &str) -> Result<Rate, Fault> {
    units::rate(text).and_then(in_range)
}

fn counts_words(counts: Counts) -> &'static str {
    match counts {
        Counts::Payload => "TCP payload",
        Counts::Ip => "IP bytes",
        Counts::Frame => "Ethernet frames with FCS",
        Counts::Wire => "Ethernet frames with preamble and gap",
        Counts::Link(_) => "bytes on the link",
    }
}

/// True if a policy says itself what its rate counts.
struct SaysCounts(bool);

impl FromValue for SaysCounts {
    fn from_value(value: &DeValue) -> Result<SaysCounts, Fault> {
        Ok(SaysCounts(matches!(value, DeValue::Table(policy) if policy.contains_key("counts"))))
    }
}

/// Lets the rate of a class's policy count what the link carries, unless the policy has its own `counts`.
pub(super) fn count_on_link(class: &Section, policy: &mut AckControl, layer: LinkLayer) {
    if class.peek("ack").is_none_or(|SaysCounts(says)| !says) {
        policy.release.set_counts(Counts::Link(layer));
    }
}

/// Parses a duration, or `word`, which stands for `instead`.
fn duration_or<T>(
    value: &DeValue,
    word: &str,
    instead: T,
    make: impl FnOnce(Duration) -> Result<T, Fault>,
) -> Result<T, Fault> {
    match String::from_value(value)? {
        text if text == word => Ok(instead),
        text => units::duration(&text)
            .map_err(|f| Fault { help: f.help.map(|h| format!("\"{word}\", or a duration; {h}")), ..f })
            .and_then(make),
    }
}

fn standing_delay(value: &DeValue) -> Result<Window, Fault> {
    duration_or(value, "none", Window::Keep, |standing_delay| Ok(Window::Size { standing_delay }))
}
