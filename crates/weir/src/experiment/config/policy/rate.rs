//! Keys of the law *rate*, which releases each flow at a rate of its own.

use super::{counts_words, duration_or, PolicyKey, COUNTS, OF_ITS_LAW};
use crate::experiment::config::diag::Fault;
use crate::experiment::config::keys::set;
use crate::experiment::config::value::{one_of, FromValue, Number, Positive, Size};
use core::mem::discriminant;
use toml::de::DeValue;
use weir_core::ack::{
    AckControl, Action, Meter, Period, RateRelease, Release, SlowStart, Unresponsive, Window,
};
use weir_core::time::Duration;

const METERS: [(&str, Meter); 2] = [("acked", Meter::Acked), ("received", Meter::Received)];
const SLOW_STARTS: [(&str, SlowStart); 3] =
    [("detect", SlowStart::DETECT), ("paper", SlowStart::PUBLISHED), ("ignore", SlowStart::Ignore)];

/// Keys of this law alone.
pub(super) static KEYS: &[PolicyKey] = &[
    PolicyKey::new("counts", |p, v| set(&mut law_mut(p).counts, one_of(v, &COUNTS, &[]))).words(|p| {
        Some(format!("each flow {} of {}{}", law(p).rate, counts_words(law(p).counts), metered(p)))
    }),
    PolicyKey::new("meter", |p, v| set(&mut law_mut(p).meter, one_of(v, &METERS, &[]))),
    PolicyKey::new("period", |p, v| {
        let now = law(p).period;
        set(&mut law_mut(p).period, period(v, now))
    })
    .words(|p| {
        let every = bounds(p).map_or_else(|d| d.to_string(), |(min, max)| format!("{min} to {max}"));
        Some(format!("ACKs released every {every}"))
    }),
    PolicyKey::new("period_min", |p, v| set(auto(p)?.0, in_bounds(v))),
    PolicyKey::new("period_max", |p, v| set(auto(p)?.1, in_bounds(v))),
    PolicyKey::new("slow_start", |p, v| set(&mut law_mut(p).slow_start, one_of(v, &SLOW_STARTS, &[])))
        .words(|p| Some(slow_start(p))),
    PolicyKey::new("slow_start_enter", |p, v| set(thresholds_mut(p)?.0, thousandths(v))),
    PolicyKey::new("slow_start_exit", |p, v| set(thresholds_mut(p)?.1, thousandths(v))),
    PolicyKey::new("catch_up", |p, v| {
        set(&mut law_mut(p).catch_up, Positive::from_value(v).map(|Positive(d)| d))
    })
    .words(|p| Some(format!("catch-up {}", law(p).catch_up))),
    PolicyKey::new("action", |p, v| {
        let action = one_of(v, &[("shape", Action::Shape), ("police", Action::POLICE)], &[])?;
        if action != Action::Shape {
            p.window = Window::Keep;
        }
        let same = discriminant(&law(p).action) == discriminant(&action);
        law_mut(p).action = if same { law(p).action } else { action };
        Ok(())
    }),
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
    .words(|p| burst(p).map(|bytes| format!("bursts of {bytes} bytes unheld"))),
    PolicyKey::new("unresponsive", |p, v| set(&mut law_mut(p).unresponsive, one_of(v, &UNRESPONSIVE, &[])))
        .words(|p| match law(p).unresponsive {
            Unresponsive::Count => Some("not bounded: what ACKs do not slow passes".to_string()),
            _ => None,
        }),
];

/// Treatments of a flow's unresponsive data, by name.
const UNRESPONSIVE: [(&str, Unresponsive); 2] =
    [("bound", Unresponsive::Bound), ("count", Unresponsive::Count)];

/// Returns the law that releases each flow at its rate.
fn law(policy: &AckControl) -> &RateRelease {
    let Release::Rate(law) = &policy.release else { unreachable!("{OF_ITS_LAW}") };
    law
}

fn law_mut(policy: &mut AckControl) -> &mut RateRelease {
    let Release::Rate(law) = &mut policy.release else { unreachable!("{OF_ITS_LAW}") };
    law
}

/// Returns the bytes that a policer lets pass unheld.
pub(super) fn burst(policy: &AckControl) -> Option<u32> {
    match policy.release {
        Release::Rate(RateRelease { action: Action::Police { burst }, .. }) => Some(burst),
        _ => None,
    }
}

/// Reads the depth of a bucket, up to the largest window (RFC 7323).
fn bytes(value: &DeValue) -> Result<u32, Fault> {
    match Size::from_value(value)? {
        Size(n @ 1..=0x4000_0000) => Ok(n as u32),
        Size(n) => Err(Fault::bare(format!("{n} bytes are not from 1 to 1 GiB"))),
    }
}

fn metered(policy: &AckControl) -> &'static str {
    match law(policy).meter {
        Meter::Acked => "",
        Meter::Received => " as it is received",
    }
}

/// Reads a period; "auto" keeps the bounds of a period that is automatic already.
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

/// Returns the bounds of an automatic period, or the fixed one.
pub(super) fn bounds(policy: &AckControl) -> Result<(Duration, Duration), Duration> {
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

/// Returns the thresholds of the detector of slow start, to enter and to exit, in thousandths.
pub(super) fn thresholds(policy: &AckControl) -> Option<(u32, u32)> {
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
