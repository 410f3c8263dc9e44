//! Verdicts of the core on flows and on counted packets, written into the maps of the programs.

use super::abi::{Counted, Flow, FlowKey, NO_TALLY};
use super::acks::Acks;
use super::failed;
use crate::sys::pod::{self, bytes_of};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::io;
use std::sync::atomic::Ordering;
use weir_core::gateway::Verdict;
use weir_core::wire::TCP;

/// Flows that one call of the kernel installs at most.
const BATCH: usize = 256;

impl Acks {
    /// Tells the kernel about flows of the first engine, in order. On an error some of it may have been done,
    /// and all of it may be repeated.
    pub fn apply(&self, verdicts: &[Verdict]) -> io::Result<()> {
        self.apply_of(0, verdicts)
    }

    /// As [`Acks::apply`], of the engine with this number, which counts its slots and tallies from 0.
    pub fn apply_of(&self, number: usize, verdicts: &[Verdict]) -> io::Result<()> {
        let same = |a: &Verdict, b: &Verdict| std::mem::discriminant(a) == std::mem::discriminant(b);
        for run in verdicts.chunk_by(same).flat_map(|run| run.chunks(BATCH)) {
            self.apply_run(number, run)?;
        }
        Ok(())
    }

    /// As [`Acks::apply_of`] for verdicts of one kind.
    fn apply_run(&self, number: usize, run: &[Verdict]) -> io::Result<()> {
        let hooks = self.hooks_of(number);
        let (generation, counting) = (hooks.generation(), hooks.counting());
        let slot_of = |slot: u32| self.part(self.slots, number).start as u32 + slot;
        let tally_of = |tally: u32| self.part(self.tallies, number).start as u32 + tally;
        let (mut keys, mut values) = (Vec::with_capacity(run.len() * size_of::<FlowKey>()), Vec::new());
        for verdict in run {
            match verdict {
                Verdict::Shape { ack_key, slot, tag } => {
                    keys.extend(bytes_of(&FlowKey::from(ack_key)));
                    values.extend(bytes_of(&Flow { slot: slot_of(*slot), tag: *tag, class: 0 }));
                }
                // Until the next generation, or until room is needed for others.
                Verdict::Pass { ack_key } => {
                    keys.extend(bytes_of(&FlowKey::from(ack_key)));
                    values.extend(generation.to_ne_bytes());
                }
                Verdict::Count { key, tally } => {
                    keys.extend(bytes_of(&FlowKey::from(key)));
                    let counted = Counted { generation: counting, tally: tally.map_or(NO_TALLY, tally_of) };
                    values.extend(bytes_of(&counted));
                    if key.protocol() == TCP && key.src_port != 0 {
                        hooks.count_tcp();
                    }
                }
                Verdict::Forget { ack_key, slot, tag } => {
                    self.forget(&ack_key.into(), slot_of(*slot), *tag)?
                }
            }
        }
        match run.first() {
            Some(Verdict::Shape { .. }) => {
                let written = self.write(&self.flows, "flow", &keys, &values, run.len());
                if written.is_ok() || self.sweep()? == 0 {
                    return written;
                }
                self.write(&self.flows, "flow", &keys, &values, run.len())
            }
            Some(Verdict::Pass { .. }) => {
                self.write(&self.passing, "passing flow", &keys, &values, run.len())
            }
            Some(Verdict::Count { .. }) => {
                self.write(&self.counted, "key that is counted", &keys, &values, run.len())
            }
            _ => Ok(()),
        }
    }

    fn write(&self, map: &MapHandle, what: &str, keys: &[u8], values: &[u8], count: usize) -> io::Result<()> {
        let none = MapFlags::ANY;
        let refused = |e: libbpf_rs::Error| failed(&format!("cannot write a {what}"), &e);
        if count > 1 && self.batches.load(Ordering::Relaxed) {
            match map.update_batch(keys, values, count as u32, none, none) {
                Ok(()) => return Ok(()),
                // An unknown command, or a kind of map without batches (LRU before 5.7?): one by one.
                Err(e) if e.kind() == libbpf_rs::ErrorKind::InvalidInput => {
                    self.batches.store(false, Ordering::Relaxed);
                }
                Err(e) => return Err(refused(e)),
            }
        }
        let values = values.chunks_exact(values.len() / count);
        for (key, value) in keys.chunks_exact(size_of::<FlowKey>()).zip(values) {
            map.update(key, value, none).map_err(refused)?;
        }
        Ok(())
    }

    /// Removes the entry of a flow unless it is of a later use.
    fn forget(&self, key: &FlowKey, slot: u32, tag: u32) -> io::Result<()> {
        let key = bytes_of(key);
        let entry = self.flows.lookup(key, MapFlags::ANY).map_err(|e| failed("cannot look up a flow", &e))?;
        let entry = entry.and_then(|entry| pod::read::<Flow>(&entry));
        if entry.is_none_or(|entry| (entry.slot, entry.tag) != (slot, tag)) {
            return Ok(());
        }
        self.flows.delete(key).map_err(|e| failed("cannot remove a flow", &e))
    }

    /// Removes the entries of flows that are gone: those of an engine that ended before it could say so. Says
    /// how many there were.
    pub fn sweep(&self) -> io::Result<usize> {
        let mut gone = 0;
        let keys: Vec<Vec<u8>> = self.flows.keys().collect();
        for key in keys {
            let entry =
                self.flows.lookup(&key, MapFlags::ANY).map_err(|e| failed("cannot look up a flow", &e))?;
            let Some(Flow { slot, tag, .. }) = entry.and_then(|entry| pod::read(&entry)) else { continue };
            let current = self.slots.get(slot as usize).map_or(0, |slot| slot.tag.load(Ordering::Acquire));
            if current != tag {
                self.flows.delete(&key).map_err(|e| failed("cannot remove a flow", &e))?;
                gone += 1;
            }
        }
        Ok(gone)
    }
}
