//! Telling the kernel what the engine has decided.

use super::{Engine, Programs};
use crate::bpf::Change;

/// Changes told in one round.
const MOST: usize = 256;

/// Changes under way to the kernel: none is lost, and they keep their order.
#[derive(Debug)]
pub(super) struct Verdicts {
    changes: Vec<Change>,
    generation: u32,
    failed: bool,
}

impl Verdicts {
    pub fn new() -> Verdicts {
        Verdicts { changes: Vec::with_capacity(MOST), generation: 0, failed: false }
    }

    /// Tells the kernel what is new. What it refuses is told again in the next round, before anything else.
    pub fn write(&mut self, engine: &mut impl Engine, programs: &Programs) {
        let generation = engine.generation();
        if generation != self.generation {
            self.generation = generation;
            programs.hooks().next_generation();
        }
        if self.changes.is_empty() {
            engine.verdicts(&mut self.changes);
        }
        match programs.apply(&self.changes) {
            Ok(()) => {
                self.changes.clear();
                self.failed = false;
            }
            // Flows that the kernel does not know come to the engine, within limits: that is right too.
            Err(error) => {
                if !std::mem::replace(&mut self.failed, true) {
                    tracing::warn!("the kernel cannot be told of flows, trying again: {error}");
                }
            }
        }
    }
}
