//! The flows that an ACK filter knows: a bounded table. As its rate disappears a flow is active no more; what its segments have said is known
//! until another flow needs its place.

use super::super::links::Ends;
use super::super::rounds::{TakesTurns, Turn};
use super::super::sizes::Size;
use super::growth::Growth;
use super::meter::Meter;
use crate::ack::filter::{Seen, Told};
use crate::flow::{Ages, Index, Key};
use crate::frame::Charge;
use crate::time::Time;

/// Of which something waits.
const BUSY: usize = 0;
/// Of which nothing waits, the longest since first.
const IDLE: usize = 1;
/// Those that are not active any more, the longest since first.
const SILENT: usize = 2;
/// Of no flow.
const FREE: usize = 3;

/// A flow: packets with the same addresses, ports, protocol and tags.
#[derive(Debug)]
pub(super) struct Flow {
    key: Key,
    hash: u32,
    /// Its packets, the oldest first.
    pub(super) waiting: Ends,
    pub(super) packets: u32,
    pub(super) bytes: u64,
    /// Those of its packets that are ACKs.
    pub(super) acks: u32,
    pub(super) turn: Turn,
    /// By its bytes.
    pub(super) length: Size,
    /// By the rate of its ACKs, while one waits.
    pub(super) speed: Size,
    /// What leaves of it.
    pub(super) rate: Meter,
    /// Its ACKs that leave.
    pub(super) ack_rate: Meter,
    /// Are its ACKs filtered?
    pub(super) filtered: bool,
    /// It is not active.
    silent: bool,
    pub(super) seen: Seen,
    /// What its ACKs that have left have told.
    pub(super) told: Told,
    /// Whether its sender needs every ACK.
    pub(super) growth: Growth,
    /// Its SYN waits, or is about to leave.
    pub(super) syn_waits: bool,
    /// When its SYN left, until the handshake is over.
    pub(super) opened: Option<Time>,
    /// Its FIN has come.
    pub(super) ends: bool,
    /// As its SYN said; 0 if that was not seen.
    pub(super) mss: u16,
}

impl Flow {
    fn new(key: Key, hash: u32, now: Time) -> Flow {
        Flow {
            key,
            hash,
            waiting: Ends::EMPTY,
            packets: 0,
            bytes: 0,
            acks: 0,
            turn: Turn::NONE,
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

    /// A packet of it begins to wait.
    pub(super) fn count_in(&mut self, charge: Charge, is_ack: bool) {
        self.packets += 1;
        self.bytes += charge.bytes;
        self.acks += u32::from(is_ack);
    }

    /// A packet of it no longer waits.
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
    /// The last one stands for all flows for which there is no room.
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
    /// Room for so many flows, 1 at least.
    pub(super) fn new(capacity: u32, seed: u64) -> Flows {
        let capacity = capacity.max(1);
        let mut ages = Ages::new(capacity);
        (0..capacity).rev().for_each(|i| ages.add(FREE, i));
        let table = (0..=capacity).map(|_| Flow::new(Key::default(), 0, Time::ZERO)).collect();
        Flows { table, index: Index::new(capacity), ages, seed }
    }

    /// Flows of which something waits, or has left not long ago.
    pub(super) fn active(&self) -> u32 {
        (self.table.len() as u32 - 1) - self.ages.len(FREE) - self.ages.len(SILENT)
    }

    /// The one that stands for all for which there is no room.
    pub(super) fn rest(&self) -> u32 {
        self.table.len() as u32 - 1
    }

    /// The flow of this key, which becomes active by this. Where there is no room the one that has been silent or idle for longest gives
    /// way; where none is, there is [`Flows::rest`], for all new flows until nothing waits there.
    pub(super) fn find(&mut self, key: Key, now: Time) -> u32 {
        let hash = (key.hash(self.seed) >> 32) as u32;
        if let Some(i) = self.index.find(hash, |i| self.table[i as usize].key == key) {
            self.wake(i, now);
            return i;
        }
        if self.table[self.rest() as usize].packets > 0 {
            // What waits there may be of this flow.
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

    /// Something of the flow begins to wait.
    pub(super) fn begin(&mut self, i: u32) {
        self.place(i, IDLE, BUSY);
    }

    /// Nothing of the flow waits any more.
    pub(super) fn end(&mut self, i: u32) {
        self.place(i, BUSY, IDLE);
    }

    /// A packet of an idle flow has passed.
    pub(super) fn touch(&mut self, i: u32) {
        self.place(i, IDLE, IDLE);
    }

    fn place(&mut self, i: u32, from: usize, to: usize) {
        if i != self.rest() {
            self.ages.remove(from, i);
            self.ages.add(to, i);
        }
    }

    /// The flow that has been idle for longest is active no more if it `is_over`.
    pub(super) fn expire(&mut self, is_over: impl Fn(&Flow) -> bool) {
        if let Some(i) = self.ages.oldest(IDLE).filter(|&i| is_over(&self.table[i as usize])) {
            self.table[i as usize].silent = true;
            self.place(i, IDLE, SILENT);
        }
    }

    /// A packet of a flow comes: it is active, and what is measured of it begins anew if it was not.
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
