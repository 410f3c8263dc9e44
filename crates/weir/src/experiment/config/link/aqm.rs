//! Active queue management: which, and its parameters.

use super::limit::{resolved, FULL_FRAME};
use super::{trillionths, Draft};
use crate::experiment::config::diag::Fault;
use crate::experiment::config::keys::Written;
use crate::experiment::config::units::Limit;
use crate::experiment::config::value::{int, one_of, within, FromValue};
use toml::de::DeValue;
use weir_core::queue::{codel, dualpi2, fq_codel, red, Aqm};
use weir_core::time::Duration;

/// By name, with the defaults of each.
fn all() -> [(&'static str, Aqm); 4] {
    [
        ("codel", Aqm::Codel(codel::Params::default())),
        ("fq-codel", Aqm::FqCodel(fq_codel::Params::default())),
        ("red", Aqm::Red(red::Params::default())),
        ("dualpi2", Aqm::DualPi2(dualpi2::Params::default())),
    ]
}

pub(super) fn read(value: &DeValue) -> Result<Aqm, Fault> {
    one_of(value, &all(), &["pie", "cake"])
}

/// Its name; `None` for none.
pub(super) fn name(aqm: &Aqm) -> Option<&'static str> {
    let same = |(_, other): &&(&str, Aqm)| core::mem::discriminant(other) == core::mem::discriminant(aqm);
    all().iter().find(same).map(|(name, _)| *name)
}

/// The key is one of other disciplines than the one that is chosen. Nothing is said where that is faulty itself.
fn foreign(draft: &Draft, whose: &str) -> Result<(), Fault> {
    match name(&draft.link.aqm) {
        None => Ok(()),
        Some(name) => Err(Fault::new(
            format!("cannot be combined with aqm = \"{name}\""),
            format!("it is a parameter of {whose}"),
        )),
    }
}

/// What CoDel is told, by itself or in each queue of many.
fn codel(draft: &mut Draft) -> Option<&mut codel::Params> {
    match &mut draft.link.aqm {
        Aqm::Codel(codel) => Some(codel),
        Aqm::FqCodel(fq) => Some(&mut fq.codel),
        _ => None,
    }
}

const MOST: Duration = Duration::from_secs(4);
const LEAST: Duration = Duration::from_micros(1);

pub(super) fn target(draft: &mut Draft, value: &DeValue) -> Result<(), Fault> {
    let target = within(value, LEAST, MOST)?;
    match &mut draft.link.aqm {
        Aqm::DualPi2(dual) => dual.target = target,
        _ => match codel(draft) {
            Some(codel) => codel.target = target,
            None => return foreign(draft, "`codel`, `fq-codel` and `dualpi2`"),
        },
    }
    Ok(())
}

pub(super) fn interval(draft: &mut Draft, value: &DeValue) -> Result<(), Fault> {
    let interval = within(value, LEAST, MOST)?;
    match codel(draft) {
        Some(codel) => codel.interval = interval,
        None => return foreign(draft, "`codel` and `fq-codel`"),
    }
    Ok(())
}

pub(super) fn ecn(draft: &mut Draft, value: &DeValue) -> Result<(), Fault> {
    let ecn = bool::from_value(value)?;
    match &mut draft.link.aqm {
        Aqm::Red(red) => red.ecn = ecn,
        Aqm::DualPi2(_) => return Err(Fault::new("`dualpi2` always marks", "leave it out")),
        _ => codel(draft).into_iter().for_each(|codel| codel.ecn = ecn),
    }
    Ok(())
}

pub(super) fn flows(draft: &mut Draft, value: &DeValue) -> Result<(), Fault> {
    let flows = int(value, 1..=65_536)? as u32;
    fq(draft, |fq| fq.flows = flows)
}

pub(super) fn quantum(draft: &mut Draft, value: &DeValue) -> Result<(), Fault> {
    let quantum = int(value, 64..=1_000_000)? as u32;
    fq(draft, |fq| fq.quantum = quantum)
}

fn fq(draft: &mut Draft, set: impl FnOnce(&mut fq_codel::Params)) -> Result<(), Fault> {
    match &mut draft.link.aqm {
        Aqm::FqCodel(fq) => set(fq),
        _ => return foreign(draft, "`fq-codel`"),
    }
    Ok(())
}

/// A threshold of RED in bytes; those given in packets are of full frames.
fn threshold(draft: &Draft, value: &DeValue) -> Result<u64, Fault> {
    let limit = resolved(Limit::from_value(value)?, draft)?;
    let bytes = draft.link.rate.map_or(0, |rate| limit.most_bytes(rate, FULL_FRAME));
    match bytes {
        0 if draft.link.rate.is_some() => Err(Fault::bare("a threshold of nothing")),
        bytes if bytes > 1 << 40 => Err(Fault::bare("more than 1 TiB")),
        bytes => Ok(bytes),
    }
}

/// The upper threshold is three times the lower one, where nothing else is said.
pub(super) fn red_min(draft: &mut Draft, value: &DeValue) -> Result<(), Fault> {
    let min = threshold(draft, value)?;
    red(draft, |red| {
        (red.min, red.max) = (min, 3 * min);
        Ok(())
    })
}

pub(super) fn red_max(draft: &mut Draft, value: &DeValue) -> Result<(), Fault> {
    let max = threshold(draft, value)?;
    red(draft, |red| {
        if max <= red.min {
            let message = format!("{max} bytes are not above the lower threshold, {} bytes", red.min);
            return Err(Fault::new(message, "`red_min` is 5 full frames by default"));
        }
        red.max = max;
        Ok(())
    })
}

pub(super) fn red_p(draft: &mut Draft, value: &DeValue) -> Result<(), Fault> {
    let max_p = super::some(value)?;
    red(draft, |red| {
        red.max_p = max_p;
        Ok(())
    })
}

pub(super) fn red_weight(draft: &mut Draft, value: &DeValue) -> Result<(), Fault> {
    let weight = int(value, 0..=24)? as u8;
    red(draft, |red| {
        red.weight = weight;
        Ok(())
    })
}

fn red(draft: &mut Draft, set: impl FnOnce(&mut red::Params) -> Result<(), Fault>) -> Result<(), Fault> {
    match &mut draft.link.aqm {
        Aqm::Red(red) => set(red),
        _ => foreign(draft, "`red`"),
    }
}

/// A step has no range.
pub(super) fn step(draft: &mut Draft, value: &DeValue) -> Result<(), Fault> {
    let step = within(value, LEAST, MOST)?;
    dualpi2(draft, |dual| (dual.step, dual.range) = (step, Duration::ZERO))
}

pub(super) fn coupling(draft: &mut Draft, value: &DeValue) -> Result<(), Fault> {
    let coupling = int(value, 1..=16)? as u8;
    dualpi2(draft, |dual| dual.coupling = coupling)
}

fn dualpi2(draft: &mut Draft, set: impl FnOnce(&mut dualpi2::Params)) -> Result<(), Fault> {
    match &mut draft.link.aqm {
        Aqm::DualPi2(dual) => set(dual),
        _ => return foreign(draft, "`dualpi2`"),
    }
    Ok(())
}

/// A parameter as a file has it, by its key; `None` where the discipline has no such thing.
pub(super) fn written(aqm: &Aqm, key: &str) -> Option<Written> {
    let bytes = |n: u64| Written::quoted(format!("{n}B"));
    Some(match (key, *aqm) {
        ("target", Aqm::Codel(codel)) => Written::quoted(codel.target),
        ("target", Aqm::FqCodel(fq)) => Written::quoted(fq.codel.target),
        ("target", Aqm::DualPi2(dual)) => Written::quoted(dual.target),
        ("interval", Aqm::Codel(codel)) => Written::quoted(codel.interval),
        ("interval", Aqm::FqCodel(fq)) => Written::quoted(fq.codel.interval),
        ("ecn", Aqm::Codel(codel)) => Written::plain(codel.ecn),
        ("ecn", Aqm::FqCodel(fq)) => Written::plain(fq.codel.ecn),
        ("ecn", Aqm::Red(red)) => Written::plain(red.ecn),
        ("flows", Aqm::FqCodel(fq)) => Written::plain(fq.flows),
        ("quantum", Aqm::FqCodel(fq)) => Written::plain(fq.quantum),
        ("red_min", Aqm::Red(red)) => bytes(red.min),
        ("red_max", Aqm::Red(red)) => bytes(red.max),
        ("red_p", Aqm::Red(red)) => Written::quoted(trillionths(red.max_p)),
        ("red_weight", Aqm::Red(red)) => Written::plain(red.weight),
        ("step", Aqm::DualPi2(dual)) if dual.range == Duration::ZERO => Written::quoted(dual.step),
        ("coupling", Aqm::DualPi2(dual)) => Written::plain(dual.coupling),
        _ => return None,
    })
}

/// The discipline in words.
pub(super) fn words(aqm: &Aqm) -> Option<String> {
    let codel = |c: &codel::Params| {
        format!("target {}, interval {}, {}", c.target, c.interval, if c.ecn { "marks" } else { "drops" })
    };
    Some(match aqm {
        Aqm::None => return None,
        Aqm::Codel(c) => format!("CoDel ({})", codel(c)),
        Aqm::FqCodel(fq) => {
            format!("FQ-CoDel ({} queues, quantum {} bytes, {})", fq.flows, fq.quantum, codel(&fq.codel))
        }
        Aqm::Red(red) => format!(
            "RED ({} to {} bytes, {}% there, weight 1/{}, {})",
            red.min,
            red.max,
            red.max_p as f64 / 1e10,
            1u32 << red.weight,
            if red.ecn { "marks" } else { "drops" }
        ),
        Aqm::DualPi2(dual) => {
            let until = dual.step + dual.range;
            format!(
                "DualPI2 (target {}, L4S from {} to {until}, coupling {})",
                dual.target, dual.step, dual.coupling
            )
        }
    })
}
