//! `ack`: a policy of ACK control, which is a preset of the core with keys laid over it.

mod check;

use super::diag::Fault;
use super::keys::{self, put, set, Key, Written};
use super::reader::Section;
use super::share;
use super::units;
use super::value::{one_of, FromValue, Number, Positive, Size};
use core::mem::discriminant;
use toml::de::DeValue;
use weir_core::ack::{
    AckControl, Action, Counts, Hold, Meter, Period, Preset, RateRelease, Release, ShareRelease, SlowStart,
    When, Window, PRESETS,
};
use weir_core::queue::QueueLimit;
use weir_core::rate::Rate;
use weir_core::time::Duration;

/// Presets, holds and releases that are known from the literature and not built yet.
const FUTURE_PRESETS: [&str; 5] = ["pfq", "tcr", "postack", "postack-pfq", "postack-number"];
const FUTURE_HOLDS: [&str; 1] = ["queue"];
const FUTURE_RELEASES: [&str; 2] = ["round", "dequeue"];

const HOLDS: [(&str, Hold); 1] = [("number", Hold::Number)];
const COUNTS: [(&str, Counts); 4] =
    [("payload", Counts::Payload), ("ip", Counts::Ip), ("frame", Counts::Frame), ("wire", Counts::Wire)];
const METERS: [(&str, Meter); 2] = [("acked", Meter::Acked), ("received", Meter::Received)];
const SLOW_STARTS: [(&str, SlowStart); 3] =
    [("detect", SlowStart::DETECT), ("paper", SlowStart::PUBLISHED), ("ignore", SlowStart::Ignore)];

type PolicyKey = Key<AckControl>;

/// Every key but `preset` of a policy that releases each flow at a rate.
static RATE_KEYS: &[PolicyKey] = &[
    PolicyKey::new("hold", |p, v| set(&mut p.hold, one_of(v, &HOLDS, &FUTURE_HOLDS)))
        .write(|p| named(&HOLDS, p.hold)),
    PolicyKey::new("release", |_, v| one_of(v, &[("rate", ())], &FUTURE_RELEASES)),
    PolicyKey::new("flow_rate", |p, v| set(&mut law_mut(p).rate, flow_rate_of(v)))
        .write(|p| Some(Written::quoted(law(p).rate)))
        .words(|p| Some(format!("each flow {} of {}{}", law(p).rate, counted(p), metered(p)))),
    PolicyKey::new("counts", |p, v| set(&mut law_mut(p).counts, one_of(v, &COUNTS, &[])))
        .write(|p| named(&COUNTS, law(p).counts)),
    PolicyKey::new("meter", |p, v| set(&mut law_mut(p).meter, one_of(v, &METERS, &[])))
        .write(|p| named(&METERS, law(p).meter)),
    PolicyKey::new("period", |p, v| {
        let now = law(p).period;
        set(&mut law_mut(p).period, period(v, now))
    })
    .write(|p| Some(bounds(p).map_or_else(Written::quoted, |_| Written::quoted("auto"))))
    .words(|p| {
        let every = bounds(p).map_or_else(|d| d.to_string(), |(min, max)| format!("{min} to {max}"));
        Some(format!("ACKs released every {every}"))
    }),
    PolicyKey::new("period_min", |p, v| set(auto(p)?.0, in_bounds(v)))
        .write(|p| bounds(p).ok().map(|(min, _)| Written::quoted(min))),
    PolicyKey::new("period_max", |p, v| set(auto(p)?.1, in_bounds(v)))
        .write(|p| bounds(p).ok().map(|(_, max)| Written::quoted(max))),
    PolicyKey::new("slow_start", |p, v| set(&mut law_mut(p).slow_start, one_of(v, &SLOW_STARTS, &[])))
        .write(|p| Some(Written::quoted(detector(p))))
        .words(|p| Some(slow_start(p))),
    PolicyKey::new("slow_start_enter", |p, v| set(thresholds_mut(p)?.0, thousandths(v)))
        .write(|p| thresholds(p).map(|(enter, _)| decimal(enter))),
    PolicyKey::new("slow_start_exit", |p, v| set(thresholds_mut(p)?.1, thousandths(v)))
        .write(|p| thresholds(p).map(|(_, exit)| decimal(exit))),
    PolicyKey::new("catch_up", |p, v| {
        set(&mut law_mut(p).catch_up, Positive::from_value(v).map(|Positive(d)| d))
    })
    .write(|p| Some(Written::quoted(law(p).catch_up)))
    .words(|p| Some(format!("catch-up {}", law(p).catch_up))),
    PolicyKey::new("action", |p, v| {
        let action = one_of(v, &[("shape", Action::Shape), ("police", Action::POLICE)], &[])?;
        if action != Action::Shape {
            p.window = Window::Keep;
        }
        let same = discriminant(&law(p).action) == discriminant(&action);
        law_mut(p).action = if same { law(p).action } else { action };
        Ok(())
    })
    .write(|p| Some(Written::quoted(burst(p).map_or("shape", |_| "police")))),
    PolicyKey::new("burst", |p, v| {
        let bytes = bytes(v)?;
        match &mut law_mut(p).action {
            Action::Police { burst } => set(burst, Ok(bytes)),
            Action::Shape => Err(Fault::new(
                "a burst cannot be combined with action = \"shape\"",
                "bursts pass unheld with action = \"police\"",
            )),
        }
    })
    .write(|p| burst(p).map(|bytes| Written::quoted(format!("{bytes}B"))))
    .words(|p| burst(p).map(|bytes| format!("bursts of {bytes} bytes unheld"))),
    PolicyKey::new("when", |p, v| {
        let when = one_of(v, &[("always", When::Always), ("congested", When::CONGESTED)], &[])?;
        if when != When::Always {
            p.window = Window::Keep;
        }
        let same = discriminant(&p.when) == discriminant(&when);
        p.when = if same { p.when } else { when };
        Ok(())
    })
    .write(|p| Some(Written::quoted(threshold(p).map_or("always", |_| "congested")))),
    PolicyKey::new("threshold", |p, v| match &mut p.when {
        When::Congested { above } => set(above, share::limit(v)),
        When::Always => Err(Fault::new(
            "a threshold cannot be combined with when = \"always\"",
            "it is how much of the class waits with when = \"congested\"",
        )),
    })
    .write(|p| threshold(p).map(|above| Written::quoted(share::written(above))))
    .words(|p| threshold(p).map(|above| format!("only while more than {} wait", share::counted(above)))),
    PolicyKey::new("window", |p, v| {
        let sized = if p.window == Window::Keep { Window::SIZE } else { p.window };
        set(&mut p.window, one_of(v, &[("keep", Window::Keep), ("size", sized)], &[]))
    })
    .write(|p| Some(Written::quoted(if p.window == Window::Keep { "keep" } else { "size" })))
    .words(|p| {
        Some(match p.window {
            Window::Keep => "window kept".to_string(),
            Window::Size { standing_delay } => format!("window sized for {standing_delay} of standing delay"),
        })
    }),
    PolicyKey::new("standing_delay", |p, v| set(&mut p.window, standing_delay(v))).write(|p| {
        match p.window {
            Window::Keep => None,
            Window::Size { standing_delay } => Some(Written::quoted(standing_delay)),
        }
    }),
];

/// Keys of a class whose flows share its rate, beside the rate.
static BESIDE_RATE: &[PolicyKey] = &[
    PolicyKey::new("police", |p, v| set(&mut share_mut(p).police, bool::from_value(v)))
        .write(|p| Some(Written::plain(share(p).police))),
    PolicyKey::new("flow_max", |p, v| put(&mut share_mut(p).flow_max, flow_rate_of(v)))
        .write(|p| share(p).flow_max.map(Written::quoted)),
];

/// Every key of the policy of a class whose flows share its rate.
static SHARE_KEYS: &[PolicyKey] = &[
    PolicyKey::new("counts", |p, v| set(&mut share_mut(p).counts, one_of(v, &COUNTS, &[])))
        .write(|p| named(&COUNTS, share(p).counts))
        .words(|p| {
            let (rate, counts) = (share(p).rate, counts_words(share(p).counts));
            let police = if share(p).police { ", what ACKs cannot slow policed" } else { "" };
            let each = share(p).flow_max.map_or(String::new(), |most| format!(", each at most {most}"));
            Some(format!("all flows together {rate} of {counts}, shared in turns{each}{police}"))
        }),
    PolicyKey::new("standing_delay", |p, v| {
        let positive = Positive::from_value(v).map(|Positive(standing_delay)| standing_delay);
        set(&mut p.window, positive.map(|standing_delay| Window::Size { standing_delay }))
    })
    .write(|p| match p.window {
        Window::Keep => None,
        Window::Size { standing_delay } => Some(Written::quoted(standing_delay)),
    })
    .words(|p| match p.window {
        Window::Keep => None,
        Window::Size { standing_delay } => {
            Some(format!("windows sized for {standing_delay} of standing delay"))
        }
    }),
];

/// The policy of a class whose flows share `rate`, which is policed or not.
pub(super) fn policed(rate: Rate, police: bool) -> AckControl {
    let mut policy = AckControl::ack_share(rate);
    share_mut(&mut policy).police = police;
    policy
}

/// The policy of a class whose flows share `rate`, with what it says beside that and in its `ack`.
pub(super) fn shared(rate: Rate, class: &Section) -> AckControl {
    let mut policy = AckControl::ack_share(rate);
    keys::read(BESIDE_RATE, &[class], &mut policy);
    let Some(s) = class.section("ack") else { return policy };
    for key in ["preset", "flow_rate", "hold", "release", "action", "burst", "when", "threshold"] {
        if s.has(key) {
            let help = "flows of a class with a `rate` share it; leave one of the two out";
            s.fault(
                key,
                Fault::new(format!("`{key}` cannot be combined with the `rate` of the class"), help),
            );
        }
    }
    keys::read(SHARE_KEYS, &[&s], &mut policy);
    s.finish();
    policy
}

/// The flows of a class that share a rate have at most this together.
pub(super) fn set_most(policy: &mut AckControl, most: Rate) {
    if let Release::Share(law) = &mut policy.release {
        law.rate = most;
    }
}

/// Keys that have a meaning beside the `rate` of a class alone are faulty in one that has none.
pub(super) fn need_rate(s: &Section) {
    for key in BESIDE_RATE.iter().map(|key| key.name).filter(|&key| s.has(key)) {
        let message =
            format!("`{key}` cannot be combined with a class that has no `rate` of all its flows together");
        s.fault(key, Fault::new(message, "give the class a `rate`"));
    }
}

/// A flow has no more than its class: is that said?
pub(super) fn check_flow_max(s: &Section, policy: &AckControl) {
    let law = policy.release.share();
    if let Some((most, rate)) =
        law.and_then(|law| Some((law.flow_max?, law.rate))).filter(|(most, rate)| most > rate)
    {
        let message = format!("a flow cannot get {most}: all of the class together have {rate}");
        s.fault("flow_max", Fault::new(message, "leave `flow_max` out: without, a flow may have all of it"));
    }
}

/// The assignments of a class whose flows share a rate, beside the rate.
pub(super) fn beside_rate(policy: &AckControl) -> Vec<String> {
    keys::assignments(BESIDE_RATE, policy, &AckControl::ack_share(policy.release.rate()))
}

/// The assignments of the `ack` of a class whose flows share a rate.
pub(super) fn shared_assignments(policy: &AckControl) -> Vec<String> {
    keys::assignments(SHARE_KEYS, policy, &AckControl::ack_share(policy.release.rate()))
}

/// Reads the policy of a class whose data waits in a queue of this limit, if it has one.
pub(super) fn policy(s: Section, queue: Option<QueueLimit>) -> Option<AckControl> {
    let preset = preset(&s);
    s.need("flow_rate", "\"10Mbit\"");
    let rate = s.value("flow_rate", flow_rate_of);
    // The other keys are looked at even if the rate is missing.
    let mut policy = (preset.policy)(rate.unwrap_or(Rate::mbit(1)));
    keys::read(keys_of(&policy.release), &[&s], &mut policy);
    check::keys(&s, &policy, queue);
    s.finish();
    rate.map(|_| policy)
}

/// The preset that is named; the first one if each choice is made by a key of its own.
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
    s.choice("preset", &presets, &FUTURE_PRESETS).unwrap_or(&PRESETS[0])
}

/// The assignments that say this policy: the preset that is nearest to it, and what is different.
pub(super) fn assignments(policy: &AckControl) -> Vec<String> {
    let rate = policy.release.rate();
    let same_law = |from: &AckControl| discriminant(&from.release) == discriminant(&policy.release);
    let said = |preset: &Preset| {
        let from = Some((preset.policy)(rate)).filter(same_law)?;
        let first = [format!("preset = \"{}\"", preset.name), format!("flow_rate = \"{rate}\"")];
        Some([first.to_vec(), keys::assignments(keys_of(&policy.release), policy, &from)].concat())
    };
    PRESETS.iter().filter_map(said).min_by_key(Vec::len).unwrap_or_default()
}

/// A policy in words.
pub fn words(policy: &AckControl) -> String {
    keys::words(keys_of(&policy.release), policy).join(", ")
}

/// The keys of a law.
fn keys_of(release: &Release) -> &'static [PolicyKey] {
    match release {
        Release::Rate(_) => RATE_KEYS,
        Release::Share(_) => SHARE_KEYS,
    }
}

/// The bytes that a policer lets pass unheld.
fn burst(policy: &AckControl) -> Option<u32> {
    match law(policy).action {
        Action::Police { burst } => Some(burst),
        Action::Shape => None,
    }
}

/// How much must wait before ACKs are held, if not always.
fn threshold(policy: &AckControl) -> Option<QueueLimit> {
    match policy.when {
        When::Congested { above } => Some(above),
        When::Always => None,
    }
}

/// The depth of a bucket, up to the largest window there is (RFC 7323).
fn bytes(value: &DeValue) -> Result<u32, Fault> {
    match Size::from_value(value)? {
        Size(n @ 1..=0x4000_0000) => Ok(n as u32),
        Size(n) => Err(Fault::bare(format!("{n} bytes are not from 1 to 1 GiB"))),
    }
}

/// Why a policy has the law that its keys are of: each table of keys is for one law.
const ONE_LAW: &str = "keys of a law are read for policies of that law";

/// The law by which each flow is released at its rate.
fn law(policy: &AckControl) -> &RateRelease {
    let Release::Rate(law) = &policy.release else { unreachable!("{ONE_LAW}") };
    law
}

fn law_mut(policy: &mut AckControl) -> &mut RateRelease {
    let Release::Rate(law) = &mut policy.release else { unreachable!("{ONE_LAW}") };
    law
}

/// The law by which flows share the rate of their class.
fn share(policy: &AckControl) -> &ShareRelease {
    let Release::Share(law) = &policy.release else { unreachable!("{ONE_LAW}") };
    law
}

fn share_mut(policy: &mut AckControl) -> &mut ShareRelease {
    let Release::Share(law) = &mut policy.release else { unreachable!("{ONE_LAW}") };
    law
}

/// The rates at which release is exact (no other rates are tested).
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

/// A rate that flows can be released at.
pub fn flow_rate(text: &str) -> Result<Rate, Fault> {
    units::rate(text).and_then(in_range)
}

fn counted(policy: &AckControl) -> &'static str {
    counts_words(law(policy).counts)
}

fn counts_words(counts: Counts) -> &'static str {
    match counts {
        Counts::Payload => "TCP payload",
        Counts::Ip => "IP bytes",
        Counts::Frame => "Ethernet frames with FCS",
        Counts::Wire => "Ethernet frames with preamble and gap",
    }
}

fn metered(policy: &AckControl) -> &'static str {
    match law(policy).meter {
        Meter::Acked => "",
        Meter::Received => " as it is received",
    }
}

/// A duration, or `word`, which stands for `instead`.
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

/// "auto" keeps the bounds of a period that is automatic already.
fn period(value: &DeValue, now: Period) -> Result<Period, Fault> {
    let auto = if matches!(now, Period::Auto { .. }) { now } else { Period::AUTO };
    duration_or(value, "auto", auto, |d| bounded(d).map(Period::Fixed))
}

fn bounded(d: Duration) -> Result<Duration, Fault> {
    if (Duration::from_micros(1)..=Duration::from_secs(1)).contains(&d) {
        Ok(d)
    } else {
        Err(Fault::bare(format!("{d} is not from 1us to 1s")))
    }
}

fn in_bounds(value: &DeValue) -> Result<Duration, Fault> {
    Duration::from_value(value).and_then(bounded)
}

/// The bounds of an automatic period, or the fixed one.
fn bounds(policy: &AckControl) -> Result<(Duration, Duration), Duration> {
    match law(policy).period {
        Period::Auto { min, max } => Ok((min, max)),
        Period::Fixed(d) => Err(d),
    }
}

fn auto(policy: &mut AckControl) -> Result<(&mut Duration, &mut Duration), Fault> {
    match &mut law_mut(policy).period {
        Period::Auto { min, max } => Ok((min, max)),
        Period::Fixed(d) => Err(Fault::new(
            format!("a bound cannot be combined with a fixed period of {d}"),
            "bounds are for period = \"auto\"",
        )),
    }
}

/// The thresholds of the detector of slow start, to enter and to exit, in thousandths.
fn thresholds(policy: &AckControl) -> Option<(u32, u32)> {
    match law(policy).slow_start {
        SlowStart::Detect { enter_milli, exit_milli, .. } => Some((enter_milli, exit_milli)),
        SlowStart::Ignore => None,
    }
}

fn thresholds_mut(policy: &mut AckControl) -> Result<(&mut u32, &mut u32), Fault> {
    match &mut law_mut(policy).slow_start {
        SlowStart::Detect { enter_milli, exit_milli, .. } => Ok((enter_milli, exit_milli)),
        SlowStart::Ignore => Err(Fault::new(
            "a threshold cannot be combined with slow_start = \"ignore\"",
            "thresholds are for \"detect\" and \"paper\"",
        )),
    }
}

/// The name of the detector; its thresholds are keys of their own.
fn detector(policy: &AckControl) -> &'static str {
    match law(policy).slow_start {
        SlowStart::Ignore => "ignore",
        SlowStart::Detect { gated: true, .. } => "detect",
        SlowStart::Detect { gated: false, .. } => "paper",
    }
}

fn slow_start(policy: &AckControl) -> String {
    match law(policy).slow_start {
        SlowStart::Ignore => "slow start ignored".to_string(),
        SlowStart::Detect { enter_milli, exit_milli, gated } => format!(
            "slow start between {} and {}{}",
            f64::from(enter_milli) / 1e3,
            f64::from(exit_milli) / 1e3,
            if gated { "" } else { ", ungated" }
        ),
    }
}

fn thousandths(value: &DeValue) -> Result<u32, Fault> {
    let Number(n) = Number::from_value(value)?;
    match n.times(1000) {
        Ok(m @ 1..=100_000) => Ok(m as u32),
        _ => Err(Fault::bare("not from 0.001 to 100, in steps of 0.001")),
    }
}

fn decimal(thousandths: u32) -> Written {
    Written::plain(format!("{}.{:03}", thousandths / 1000, thousandths % 1000))
}

fn named<T: PartialEq>(names: &[(&'static str, T)], value: T) -> Option<Written> {
    names.iter().find(|(_, v)| *v == value).map(|(name, _)| Written::quoted(name))
}
