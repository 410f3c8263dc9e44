//! Active queue management of links and of classes with queues: the discipline and its parameters.

use super::diag::Fault;
use super::value::{above_zero, int, one_of, some, within, FromValue};
use toml::de::DeValue;
use weir_core::queue::own::{self, Own};
use weir_core::queue::{codel, dualpi2, fq_codel, red, Aqm};
use weir_core::time::Duration;

/// Returns all disciplines by name, with their defaults.
fn all() -> [(&'static str, Aqm); 4] {
    [
        ("codel", Aqm::Codel(codel::Params::default())),
        ("fq-codel", Aqm::FqCodel(fq_codel::Params::default())),
        ("red", Aqm::Red(red::Params::default())),
        ("dualpi2", Aqm::DualPi2(dualpi2::Params::default())),
    ]
}

/// Disciplines from the literature that are not built yet.
const FUTURE: [&str; 2] = ["pie", "cake"];

/// Reads the name of a discipline, one of Weir's or one that the program has added.
pub(super) fn read(value: &DeValue) -> Result<Aqm, Fault> {
    let added = own::names().into_iter().filter_map(|name| Some((name, Aqm::Own(Own::by_name(name)?))));
    let all: Vec<_> = all().into_iter().chain(added).collect();
    one_of(value, &all, &FUTURE)
}

/// Reads the name of a discipline as [`read`] does, for a queue that does not tell flows apart.
pub(super) fn read_of_one_queue(value: &DeValue) -> Result<Aqm, Fault> {
    let one_queue: Vec<(&str, Aqm)> =
        all().into_iter().filter(|(_, aqm)| !matches!(aqm, Aqm::FqCodel(_))).collect();
    one_of(value, &one_queue, &FUTURE)
}

/// Returns the name of a discipline; `None` for none.
pub(super) fn name(aqm: &Aqm) -> Option<&'static str> {
    match aqm {
        Aqm::Own(own) => return Some(own.name()),
        Aqm::AckFilter(filter) => return filter.codel.map(|_| "codel"),
        _ => {}
    }
    let same = |(_, other): &&(&str, Aqm)| core::mem::discriminant(other) == core::mem::discriminant(aqm);
    all().iter().find(same).map(|(name, _)| *name)
}

/// Returns the fault of a key that belongs to other disciplines than the chosen one. It is silent where the
/// choice itself is faulty.
fn foreign(aqm: &Aqm, whose: &str) -> Result<(), Fault> {
    match name(aqm) {
        None => Ok(()),
        Some(name) => Err(Fault::new(
            format!("cannot be combined with aqm = \"{name}\""),
            format!("it is a parameter of {whose}"),
        )),
    }
}

/// Returns the parameters of CoDel, whether for one queue or for many.
fn codel(aqm: &mut Aqm) -> Option<&mut codel::Params> {
    match aqm {
        Aqm::Codel(codel) => Some(codel),
        Aqm::FqCodel(fq) => Some(&mut fq.codel),
        Aqm::AckFilter(filter) => filter.codel.as_mut(),
        _ => None,
    }
}

const MOST: Duration = Duration::from_secs(4);
const LEAST: Duration = Duration::from_micros(1);

pub(super) fn target(aqm: &mut Aqm, value: &DeValue) -> Result<(), Fault> {
    let target = within(value, LEAST, MOST)?;
    match aqm {
        Aqm::DualPi2(dual) => dual.target = target,
        _ => match codel(aqm) {
            Some(codel) => codel.target = target,
            None => return foreign(aqm, "`codel`, `fq-codel` and `dualpi2`"),
        },
    }
    Ok(())
}

pub(super) fn interval(aqm: &mut Aqm, value: &DeValue) -> Result<(), Fault> {
    let interval = within(value, LEAST, MOST)?;
    match codel(aqm) {
        Some(codel) => codel.interval = interval,
        None => return foreign(aqm, "`codel` and `fq-codel`"),
    }
    Ok(())
}

pub(super) fn ecn(aqm: &mut Aqm, value: &DeValue) -> Result<(), Fault> {
    let ecn = bool::from_value(value)?;
    match aqm {
        Aqm::Red(red) => red.ecn = ecn,
        Aqm::DualPi2(_) => return Err(Fault::new("`dualpi2` always marks", "leave it out")),
        Aqm::Own(_) => return foreign(aqm, "`codel`, `fq-codel` and `red`"),
        _ => codel(aqm).into_iter().for_each(|codel| codel.ecn = ecn),
    }
    Ok(())
}

pub(super) fn flows(aqm: &mut Aqm, value: &DeValue) -> Result<(), Fault> {
    let flows = int(value, 1..=65_536)? as u32;
    fq(aqm, |fq| fq.flows = flows)
}

pub(super) fn quantum(aqm: &mut Aqm, value: &DeValue) -> Result<(), Fault> {
    let quantum = int(value, 64..=1_000_000)? as u32;
    fq(aqm, |fq| fq.quantum = quantum)
}

fn fq(aqm: &mut Aqm, set: impl FnOnce(&mut fq_codel::Params)) -> Result<(), Fault> {
    match aqm {
        Aqm::FqCodel(fq) => set(fq),
        _ => return foreign(aqm, "`fq-codel`"),
    }
    Ok(())
}

/// Returns a threshold of RED in bytes.
pub(super) fn threshold(bytes: u64) -> Result<u64, Fault> {
    match above_zero(bytes)? {
        bytes if bytes > 1 << 40 => Err(Fault::bare("more than 1 TiB")),
        bytes => Ok(bytes),
    }
}

/// Sets the lower threshold. The upper one is three times as high by default.
pub(super) fn red_min(aqm: &mut Aqm, min: u64) -> Result<(), Fault> {
    red(aqm, |red| {
        (red.min, red.max) = (min, 3 * min);
        Ok(())
    })
}

pub(super) fn red_max(aqm: &mut Aqm, max: u64) -> Result<(), Fault> {
    red(aqm, |red| {
        if max <= red.min {
            let message = format!("{max} bytes are not above the lower threshold, {} bytes", red.min);
            return Err(Fault::new(message, "`red_min` is 5 full frames by default"));
        }
        red.max = max;
        Ok(())
    })
}

pub(super) fn red_p(aqm: &mut Aqm, value: &DeValue) -> Result<(), Fault> {
    let max_p = some(value)?;
    red(aqm, |red| {
        red.max_p = max_p;
        Ok(())
    })
}

pub(super) fn red_weight(aqm: &mut Aqm, value: &DeValue) -> Result<(), Fault> {
    let weight = int(value, 0..=24)? as u8;
    red(aqm, |red| {
        red.weight = weight;
        Ok(())
    })
}

fn red(aqm: &mut Aqm, set: impl FnOnce(&mut red::Params) -> Result<(), Fault>) -> Result<(), Fault> {
    match aqm {
        Aqm::Red(red) => set(red),
        _ => foreign(aqm, "`red`"),
    }
}

/// Reads a step, which has no range.
pub(super) fn step(aqm: &mut Aqm, value: &DeValue) -> Result<(), Fault> {
    let step = within(value, LEAST, MOST)?;
    dualpi2(aqm, |dual| (dual.step, dual.range) = (step, Duration::ZERO))
}

pub(super) fn coupling(aqm: &mut Aqm, value: &DeValue) -> Result<(), Fault> {
    let coupling = int(value, 1..=16)? as u8;
    dualpi2(aqm, |dual| dual.coupling = coupling)
}

fn dualpi2(aqm: &mut Aqm, set: impl FnOnce(&mut dualpi2::Params)) -> Result<(), Fault> {
    match aqm {
        Aqm::DualPi2(dual) => set(dual),
        _ => return foreign(aqm, "`dualpi2`"),
    }
    Ok(())
}

/// Describes the discipline in words.
pub(super) fn words(aqm: &Aqm) -> Option<String> {
    let codel = |c: &codel::Params| {
        format!("target {}, interval {}, {}", c.target, c.interval, if c.ecn { "marks" } else { "drops" })
    };
    Some(match aqm {
        Aqm::None => return None,
        Aqm::AckFilter(filter) => return filter.codel.map(|c| format!("CoDel ({})", codel(&c))),
        Aqm::Own(own) => own.name().to_string(),
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
