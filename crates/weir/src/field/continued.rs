//! Counters of the driver and of queues that continue across restarts of an engine. They live in memory that
//! outlives engines and are updated with each report: ten times a second, or once where more than a thousand
//! classes have queues. Counts since the last report of a killed engine are lost.

use super::shifts::identities;
use crate::result::running::{GatewayClass, SteeringReport};
use crate::result::traffic::{Carried, Place, GROWING};
use crate::result::{ClassQueue, Frames, GatewayResult};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use weir_core::stats::DropReason;
use weir_io::supervise::{Records, Supervisor};

const DROPS: usize = DropReason::ALL.len();
/// Number of counters of an engine: processor time in nanoseconds, resyncs, received, lost, sent and refused
/// of two ports each, then frames and drops.
const OF_ENGINE: usize = 10 + 4 + DROPS;
/// Number of fields of a class: its identity, then the counters of [`of_queue`].
const OF_CLASS: usize = 1 + 7 + DROPS;

/// Totals, and the counters of the current or last engine that they include.
type Engine = [[u64; OF_ENGINE]; 2];
type Class = [[u64; OF_CLASS]; 2];

/// A row's identity, and the amounts that it carries over, as two's complement.
type Row = [u64; 1 + GROWING];
/// Rows beyond the number of classes that there is room for.
const MORE_ROWS: usize = 1024;

/// The memory of all engines.
pub(super) struct Memory {
    engines: Records<Engine>,
    classes: Records<Class>,
    rows: Records<Row>,
    each: usize,
    each_rows: usize,
}

impl Memory {
    /// Returns the memory of a supervisor's engines, each with `classes` or more that have queues. About
    /// `rows` rows of reports may carry counters over.
    pub(super) fn of(supervisor: &mut Supervisor, classes: usize, rows: usize) -> std::io::Result<Memory> {
        let engines = supervisor.engines();
        let each_engine = supervisor.records("counters of engines", engines)?;
        let classes: Records<Class> =
            supervisor.records("counters of queues, with drops", engines * classes)?;
        let rows: Records<Row> = supervisor.records("counters of rows", engines * (rows + MORE_ROWS))?;
        let (each, each_rows) = (classes.count() / engines, rows.count() / engines);
        Ok(Memory { engines: each_engine, classes, rows, each, each_rows })
    }

    /// Allocates the memory for `engines`, each with `classes` that have queues.
    #[cfg(test)]
    fn alloc(engines: usize, classes: usize) -> std::io::Result<Memory> {
        let rows = Records::alloc(engines * 2)?;
        let (engines, classes, each) =
            (Records::alloc(engines)?, Records::alloc(engines * classes)?, classes);
        Ok(Memory { engines, classes, rows, each, each_rows: 2 })
    }

    /// Returns the memory of each engine that starts, once in each process.
    pub(super) fn take(&self) -> Option<Vec<Continued>> {
        let (engines, classes, rows) = (self.engines.take()?, self.classes.take()?, self.rows.take()?);
        let mut classes = classes.chunks_mut(self.each.max(1));
        let mut rows = rows.chunks_mut(self.each_rows.max(1));
        let begin = |engine: &'static mut Engine| {
            engine[1].fill(0);
            let classes = classes.next().unwrap_or_default();
            classes.iter_mut().for_each(|class| class[1].fill(0));
            let place =
                |(place, class): (usize, &mut Class)| Some((class[0][0], place)).filter(|(id, _)| *id != 0);
            let places = classes.iter_mut().enumerate().filter_map(place).collect();
            Continued { engine, classes, places, rows: rows.next().unwrap_or_default() }
        };
        Some(engines.iter_mut().map(begin).collect())
    }
}

/// Counters of a running engine.
pub(super) struct Continued {
    engine: &'static mut Engine,
    classes: &'static mut [Class],
    /// Indices of classes that have counters.
    places: HashMap<u64, usize>,
    /// Rows that carry something over, and then empty ones.
    rows: &'static mut [Row],
}

impl Continued {
    /// Replaces the engine's counters of its driver by totals. Replaces its counters of frames too if
    /// `frames`; otherwise they are totals already.
    pub(super) fn driver(
        &mut self,
        gateway: &mut GatewayResult,
        steering: &mut SteeringReport,
        frames: bool,
    ) {
        let mut own = vec![(gateway.cpu_s * 1e9) as u64, steering.resyncs];
        for ports in [&steering.received, &steering.lost, &steering.sent, &steering.refused] {
            own.extend((0..2).map(|port| ports.get(port).copied().unwrap_or(0)));
        }
        let Frames { received, made, sent, absorbed, dropped, .. } = &gateway.frames;
        own.extend([received, made, sent, absorbed]);
        own.extend(DropReason::ALL.map(|reason| dropped.get(reason.name()).copied().unwrap_or(0)));
        let all = go_on(self.engine, &own);
        gateway.cpu_s = all[0] as f64 / 1e9;
        steering.resyncs = all[1];
        let ports = [&mut steering.received, &mut steering.lost, &mut steering.sent, &mut steering.refused];
        for (ports, all) in ports.into_iter().zip(all[2..].chunks(2)) {
            ports.iter_mut().zip(all).for_each(|(port, n)| *port = *n);
        }
        if frames {
            let to = &mut gateway.frames;
            (to.received, to.made, to.sent, to.absorbed) = (all[10], all[11], all[12], all[13]);
            to.dropped = named(&all[14..]);
        }
    }

    /// Returns the rows of these places that carry something over, by index, and what.
    pub(super) fn carried(&self, places: &[Place]) -> Vec<(usize, Carried)> {
        let rows: HashMap<u64, &Row> = self.used_rows().map(|row| (row[0], row)).collect();
        if rows.is_empty() {
            return Vec::new();
        }
        let of_row = |row: &Row| core::array::from_fn(|i| row[1 + i] as i64);
        identities(places).enumerate().filter_map(|(i, id)| Some((i, of_row(rows.get(&id)?)))).collect()
    }

    fn used_rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().take_while(|row| row[0] != 0)
    }

    /// Adds to what rows carry over, by their identities. Without room, their counters go back.
    pub(super) fn carry(&mut self, more: &[(u64, Carried)]) {
        let mut known: HashMap<u64, usize> = self.used_rows().map(|row| row[0]).zip(0..).collect();
        for (id, carried) in more.iter().filter(|(_, carried)| carried.iter().any(|n| *n != 0)) {
            let next = known.len();
            let Some(row) = self.rows.get_mut(*known.entry(*id).or_insert(next)) else { continue };
            row[0] = *id;
            row[1..].iter_mut().zip(carried).for_each(|(n, more)| *n = n.wrapping_add_signed(*more));
        }
    }

    /// Replaces the engine's counters of queues by totals.
    pub(super) fn queues(&mut self, classes: &mut [GatewayClass]) {
        for class in classes {
            let Some(queue) = &mut class.class.queue else { continue };
            let mut hasher = DefaultHasher::new();
            class.class.name.hash(&mut hasher);
            let id = hasher.finish().max(1);
            let next = self.places.len();
            let place = *self.places.entry(id).or_insert(next);
            let Some(account) = self.classes.get_mut(place) else { continue };
            // The identity is counted once, from 0 to its value.
            let known = account[0][0] == id;
            account[1][0] = if known { id } else { 0 };
            let all = go_on(account, &[&[id][..], &of_queue(queue)].concat());
            (queue.packets, queue.bytes, queue.borrowed_bytes) = (all[1], all[2], all[3]);
            (queue.marks, queue.filtered, queue.fallback) = (all[4], all[5], all[6]);
            queue.dropped_bytes = all[7];
            queue.drops = named(&all[8..]);
            class.bytes = queue.bytes;
        }
    }
}

/// Adds the counts since the last call. A counter that decreased has restarted from 0.
fn go_on<const N: usize>([total, last]: &mut [[u64; N]; 2], own: &[u64]) -> [u64; N] {
    for ((total, last), own) in total.iter_mut().zip(last).zip(own) {
        *total += if own >= last { own - *last } else { *own };
        *last = *own;
    }
    *total
}

fn of_queue(queue: &ClassQueue) -> Vec<u64> {
    let ClassQueue { packets, bytes, borrowed_bytes, marks, filtered, fallback, dropped_bytes, .. } = queue;
    let drops = DropReason::ALL.map(|reason| queue.drops.get(reason.name()).copied().unwrap_or(0));
    let own = [*packets, *bytes, *borrowed_bytes, *marks, *filtered, *fallback, *dropped_bytes];
    [&own[..], &drops].concat()
}

fn named(drops: &[u64]) -> crate::result::Counts {
    let named = DropReason::ALL.iter().zip(drops).filter(|(_, n)| **n > 0);
    named.map(|(reason, n)| (reason.name().to_string(), *n)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::ClassResult;

    /// Returns the totals after an engine reported these counters of its driver and one queue.
    fn said(next: &mut Continued, sent: u64, bytes: u64, drops: u64) -> (u64, u64, u64, u64) {
        let mut steering = SteeringReport { sent: vec![sent, 1], ..SteeringReport::default() };
        let mut gateway = GatewayResult { cpu_s: 0.5, ..GatewayResult::default() };
        gateway.frames.sent = sent;
        next.driver(&mut gateway, &mut steering, true);
        let mut queue = ClassQueue { bytes, ..ClassQueue::default() };
        queue.drops.insert("aqm".into(), drops);
        let class = ClassResult { name: "a".into(), queue: Some(queue), ..ClassResult::default() };
        let mut classes = [GatewayClass { class, ..GatewayClass::default() }];
        next.queues(&mut classes);
        let queue = classes[0].class.queue.as_ref().unwrap();
        assert_eq!((steering.sent[0], classes[0].bytes), (gateway.frames.sent, queue.bytes));
        (steering.sent[0], queue.bytes, queue.drops["aqm"], (gateway.cpu_s * 10.0) as u64)
    }

    /// Returns the next process's view of the memory that this one left.
    fn next_of(left: &Continued) -> Continued {
        let engine: &'static mut Engine = Box::leak(Box::new(*left.engine));
        engine[1].fill(0);
        let classes: &'static mut [Class] = Box::leak(left.classes.to_vec().into());
        classes.iter_mut().for_each(|class| class[1].fill(0));
        let rows: &'static mut [Row] = Box::leak(left.rows.to_vec().into());
        Continued { engine, classes, places: left.places.clone(), rows }
    }

    #[test]
    fn counters_go_on_with_the_next_engine_and_never_back() {
        let memory = Memory::alloc(1, 2).unwrap();
        let mut first = memory.take().unwrap().remove(0);
        assert_eq!(said(&mut first, 10, 1_000, 1), (10, 1_000, 1, 5));
        assert_eq!(said(&mut first, 15, 1_500, 1), (15, 1_500, 1, 5));
        let mut second = next_of(&first);
        assert_eq!(said(&mut second, 2, 100, 2), (17, 1_600, 3, 10));
        assert_eq!(said(&mut second, 3, 100, 2), (18, 1_600, 3, 10));
        assert!(memory.take().is_none());
    }

    #[test]
    fn what_rows_carry_over_goes_on_with_the_next_engine() {
        let memory = Memory::alloc(1, 0).unwrap();
        let mut first = memory.take().unwrap().remove(0);
        let place = |name: &str| Place { name: name.into(), direction: "in", ..Place::default() };
        let places = ["a", "b", "c"].map(place);
        assert_eq!(first.carried(&places), []);
        let amount = |n: i64| core::array::from_fn(|i| if i == 0 { n } else { 0 });
        // There is room for two rows. Rows 3 and 4 are the link.
        let ids: Vec<u64> = identities(&places).collect();
        first.carry(&[(ids[1], amount(700)), (ids[0], amount(0)), (ids[4], amount(-5)), (ids[2], amount(9))]);
        first.carry(&[(ids[1], amount(-100))]);
        assert_eq!(first.carried(&places), [(1, amount(600)), (4, amount(-5))]);
        let second = next_of(&first);
        assert_eq!(second.carried(&places[1..]), [(0, amount(600)), (3, amount(-5))]);
    }
}
