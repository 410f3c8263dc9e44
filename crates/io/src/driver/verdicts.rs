//! Telling the kernel what the engine has decided.

use super::{Engine, Part};
use crate::log::Seldom;
use crate::sys::clock;
use weir_core::gateway::Verdict;

/// Verdicts told in one round.
const MOST: usize = 256;

/// Verdicts under way to the kernel: none is lost, and they keep their order.
#[derive(Debug)]
pub(super) struct Verdicts {
    waiting: Vec<Verdict>,
    /// That the kernel refuses them.
    refused: Seldom,
}

impl Verdicts {
    pub fn new() -> Verdicts {
        Verdicts { waiting: Vec::with_capacity(MOST), refused: Seldom::new() }
    }

    /// What is under way about what passes is lost.
    pub fn forget_passing(&mut self) {
        self.waiting.retain(|verdict| !matches!(verdict, Verdict::Pass { .. } | Verdict::Count { .. }));
    }

    /// Tells the kernel what is new. What it refuses is told again in the next round, before anything else.
    pub fn write(&mut self, engine: &mut impl Engine, programs: &Part<'_>) {
        if self.waiting.is_empty() {
            engine.verdicts(&mut self.waiting);
        }
        match programs.apply(&self.waiting) {
            Ok(()) => self.waiting.clear(),
            // Flows that the kernel does not know come to the engine, within limits: that is right too.
            Err(error) => {
                if let Some(times) = self.refused.is_due(clock::now()) {
                    tracing::warn!(times, "the kernel cannot be told of flows, trying again: {error}");
                }
            }
        }
    }
}
