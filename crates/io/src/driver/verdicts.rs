//! Verdicts of the engine on their way to the kernel.

use super::{Engine, Part};
use crate::log::Seldom;
use crate::sys::clock;
use weir_core::gateway::Verdict;

/// Most verdicts told in one round.
const MOST: usize = 256;

/// Verdicts not yet told to the kernel: none is lost, and they keep their order.
#[derive(Debug)]
pub(super) struct Verdicts {
    waiting: Vec<Verdict>,
    /// Message that the kernel refuses verdicts.
    refused: Seldom,
}

impl Verdicts {
    pub fn new() -> Verdicts {
        Verdicts { waiting: Vec::with_capacity(MOST), refused: Seldom::new() }
    }

    /// Discards verdicts not yet told about passing flows.
    pub fn forget_passing(&mut self) {
        self.waiting.retain(|verdict| !matches!(verdict, Verdict::Pass { .. } | Verdict::Count { .. }));
    }

    /// Tells the kernel the new verdicts. Refused ones are told again in the next round, before all others.
    pub fn write(&mut self, engine: &mut impl Engine, programs: &Part<'_>) {
        if self.waiting.is_empty() {
            engine.verdicts(&mut self.waiting);
        }
        match programs.apply(&self.waiting) {
            Ok(()) => self.waiting.clear(),
            // Flows that the kernel does not know come to the engine, within limits. That is correct, too.
            Err(error) => {
                if let Some(times) = self.refused.is_due(clock::now()) {
                    tracing::warn!(times, "the kernel cannot be told of flows, trying again: {error}");
                }
            }
        }
    }
}
