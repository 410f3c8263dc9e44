//! Losses in bursts, and probabilities of frames.

use super::Draft;
use crate::experiment::config::diag::Fault;
use crate::experiment::config::units::Probability;
use crate::experiment::config::value::FromValue;
use toml::de::DeValue;
use weir_core::link::{Burst, Loss};

/// Reads a probability in 10^-12.
pub(super) fn chance(value: &DeValue) -> Result<u64, Fault> {
    Probability::from_value(value).map(Probability::trillionths)
}

/// Returns the model being read, one key after the other.
pub(super) fn burst(draft: &mut Draft) -> &mut Burst {
    if !matches!(draft.link.loss, Loss::Burst(_)) {
        draft.link.loss = Loss::Burst(Burst::GILBERT);
    }
    match &mut draft.link.loss {
        Loss::Burst(burst) => burst,
        _ => unreachable!("it was made one"),
    }
}

/// Describes the model in words.
pub(super) fn burst_words(draft: &Draft) -> Option<String> {
    let Loss::Burst(burst) = draft.link.loss else { return None };
    let [p, r, bad, good] = [burst.enter, burst.leave, burst.bad, burst.good].map(percent);
    Some(format!(
        "Gilbert-Elliott loss of {} (p {p}, r {r}; {bad} in the bad state, {good} in the good one)",
        percent(burst.mean())
    ))
}

/// Describes the treatment of a share of frames, in words.
pub(super) fn share(trillionths: u64, what: &str) -> Option<String> {
    (trillionths > 0).then(|| format!("{} {what}", percent(trillionths)))
}

fn percent(trillionths: u64) -> String {
    format!("{}%", trillionths as f64 / 1e10)
}
