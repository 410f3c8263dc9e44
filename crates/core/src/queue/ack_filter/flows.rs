//! Flows of an ACK filter: a bounded table. A flow becomes inactive as its rate disappears. The state from
//! its segments is kept until another flow needs its place.

use super::super::codel::Law;
use super::super::rounds::{TakesTurns, Turn};
use super::super::sizes::Size;
use crate::base::linked::LinkedList;
use crate::flow::{Ages, Index, Key};
use crate::frame::Charge;
use crate::systems::ack_filter::redundant::{Seen, Told};
use crate::systems::ack_filter::Growth;
use crate::systems::ack_filter::Meter;
use crate::time::Time;

/// List of backlogged flows.
const BUSY: usize = 0;
/// List of active flows without a backlog, the longest idle first.
const IDLE: usize = 1;
/// List of inactive flows, the longest idle first.
const SILENT: usize = 2;
/// List of unused entries.
const FREE: usize = 3;

/// A flow: packets with the same addresses, ports, protocol and tags.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) key: Key,
    hash: u32,
    /// Queued packets, the oldest first.
    pub(super) waiting: LinkedList,
    pub(super) packets: u32,
    pub(super) bytes: u64,
    /// Queued ACKs.
    pub(super) acks: u32,
    pub(super) turn: Turn,
    /// Host that shares its turns among its flows.
    pub(super) host: u16,
    /// CoDel's state.
    pub(super) codel: Law,
    /// Position by queued bytes.
    pub(super) length: Size,
    /// Position by the rate of its ACKs, while one is queued.
    pub(super) speed: Size,
    /// Rate of its departures.
    pub(super) rate: Meter,
    /// Rate of its departing ACKs.
    pub(super) ack_rate: Meter,
    /// Filtering of its ACKs.
    pub(super) filtered: bool,
    /// Inactivity.
    silent: bool,
    pub(super) seen: Seen,
    /// News brought by its departed ACKs.
    pub(super) told: Told,
    /// Evidence whether its sender needs every ACK.
    pub(super) growth: Growth,
    /// State of its SYN: true while it waits, or is about to leave.
    pub(super) syn_waits: bool,
    /// Departure of its SYN, until the handshake is over.
    pub(super) opened: Option<Time>,
    /// Arrival of its FIN.
    pub(super) ends: bool,
    /// MSS of its SYN. 0 if that was not seen.
    pub(super) mss: u16,
}

impl Flow {
    fn new(key: Key, hash: u32, now: Time) -> Flow {
        Flow {
            key,
            hash,
            waiting: LinkedList::EMPTY,
            packets: 0,
            bytes: 0,
            acks: 0,
            turn: Turn::NONE,
            host: 0,
            codel: Law::default(),
            length: Size::NONE,
            speed: Size::NONE,
            rate: Meter::new(now),
            ack_rate: Meter::new(now),
            filtered: false,
            silent: false,
            seen: Seen::default(),
            told: Told::default(),
            growth: Growth::default(),
            syn_waits: false,
            opened: None,
            ends: false,
            mss: 0,
        }
    }

    /// Counts an enqueued packet.
    pub(super) fn count_in(&mut self, charge: Charge, is_ack: bool) {
        self.packets += 1;
        self.bytes += charge.bytes;
        self.acks += u32::from(is_ack);
    }

    /// Counts a packet that left the queue.
    pub(super) fn count_out(&mut self, charge: Charge, is_ack: bool) {
        self.packets -= 1;
        self.bytes -= charge.bytes;
        self.acks -= u32::from(is_ack);
    }
}

impl TakesTurns for Flow {
    fn turn(&mut self) -> &mut Turn {
        &mut self.turn
    }
}

/// See the [module documentation](self).
pub(super) struct Flows {
    /// Flows. The last entry is shared by all flows without an entry of their own.
    pub(super) table: Box<[Flow]>,
    index: Index,
    ages: Ages<4>,
    seed: u64,
}

impl core::fmt::Debug for Flows {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Flows").field("active", &self.active()).finish_non_exhaustive()
    }
}

impl Flows {
    /// Returns a table of `capacity` flows, at least 1.
    pub(super) fn new(capacity: u32, seed: u64) -> Flows {
        let capacity = capacity.max(1);
        let mut ages = Ages::new(capacity);
        (0..capacity).rev().for_each(|i| ages.add(FREE, i));
        let table = (0..=capacity).map(|_| Flow::new(Key::default(), 0, Time::ZERO)).collect();
        Flows { table, index: Index::new(capacity), ages, seed }
    }

    /// Returns the number of active flows: those with a backlog or recent departures.
    pub(super) fn active(&self) -> u32 {
        (self.table.len() as u32 - 1) - self.ages.len(FREE) - self.ages.len(SILENT)
    }

    /// Returns the shared entry of all flows without one of their own.
    pub(super) fn rest(&self) -> u32 {
        self.table.len() as u32 - 1
    }

    /// Returns the flow of this key, and makes it active. In a full table the longest inactive or idle flow
    /// gives way. If there is none, the flow is [`Flows::rest`], as are all new flows until that entry has no
    /// backlog.
    pub(super) fn find(&mut self, key: Key, now: Time) -> u32 {
        let hash = (key.hash(self.seed) >> 32) as u32;
        if let Some(i) = self.index.find(hash, |i| self.table[i as usize].key == key) {
            self.wake(i, now);
            return i;
        }
        if self.table[self.rest() as usize].packets > 0 {
            // Packets queued there may belong to this flow.
            return self.rest();
        }
        let oldest = self.ages.oldest(SILENT).or(self.ages.oldest(IDLE));
        if let Some(i) = oldest.filter(|_| self.ages.len(FREE) == 0) {
            self.forget(i);
        }
        let Some(i) = self.ages.newest(FREE) else { return self.rest() };
        self.ages.remove(FREE, i);
        self.ages.add(IDLE, i);
        self.index.insert(hash, i);
        self.table[i as usize] = Flow::new(key, hash, now);
        i
    }

    /// Notes that the flow is backlogged.
    pub(super) fn begin(&mut self, i: u32) {
        self.place(i, IDLE, BUSY);
    }

    /// Notes that the flow has no backlog any more.
    pub(super) fn end(&mut self, i: u32) {
        self.place(i, BUSY, IDLE);
    }

    /// Notes that a packet of an idle flow has passed.
    pub(super) fn touch(&mut self, i: u32) {
        self.place(i, IDLE, IDLE);
    }

    fn place(&mut self, i: u32, from: usize, to: usize) {
        if i != self.rest() {
            self.ages.remove(from, i);
            self.ages.add(to, i);
        }
    }

    /// Makes the longest idle flow inactive if it `is_over`.
    pub(super) fn expire(&mut self, is_over: impl Fn(&Flow) -> bool) {
        if let Some(i) = self.ages.oldest(IDLE).filter(|&i| is_over(&self.table[i as usize])) {
            self.table[i as usize].silent = true;
            self.place(i, IDLE, SILENT);
        }
    }

    /// Makes a flow active. If it was inactive, its measurements restart.
    fn wake(&mut self, i: u32, now: Time) {
        let flow = &mut self.table[i as usize];
        if core::mem::take(&mut flow.silent) {
            (flow.rate, flow.ack_rate, flow.filtered) = (Meter::new(now), Meter::new(now), false);
            self.place(i, SILENT, IDLE);
        }
    }

    fn forget(&mut self, i: u32) {
        let flow = &self.table[i as usize];
        self.index.remove(flow.hash, i);
        self.ages.remove(if flow.silent { SILENT } else { IDLE }, i);
        self.ages.add(FREE, i);
    }
}
