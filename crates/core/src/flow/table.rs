//! Records of flows, in a table that stays bounded under any traffic. Every operation is O(1), with no
//! allocation after construction. Flows with an incomplete handshake and closed flows are *transient* and
//! evicted first, so a SYN flood displaces itself and not the running flows. [`owners`](super::owners)
//! decides which flow is evicted when there are no transient ones.

use super::owners::{Kind, Owner, Owners, Silence};
use super::{flag, Ages, ClassId, FlowId, Index, Key, Record};
use crate::base::time::Time;

/// Memory of the records.
enum Slab {
    Owned(Box<[Record]>),
    Shared(&'static mut [Record]),
}

impl Slab {
    fn records(&self) -> &[Record] {
        match self {
            Slab::Owned(r) => r,
            Slab::Shared(r) => r,
        }
    }
}

/// Greatest age of a flow's place in the order of activity before it is renewed.
const RENEW_MS: u32 = 2_000;
/// Silence after which a settled flow makes room for any other.
const IDLE_MS: u32 = 60_000;

/// Lists of [`Ages`]: settled flows, transient flows, and unused records.
const SETTLED: usize = 0;
const TRANSIENT: usize = 1;
const FREE: usize = 2;

/// The table. See the module documentation.
pub struct Table {
    slab: Slab,
    index: Index,
    ages: Ages<3>,
    owners: Owners,
    seed: u64,
    epoch: u16,
}

impl Table {
    /// Returns a table of at most `capacity` flows in memory of its own.
    pub fn new(capacity: u32, seed: u64) -> Table {
        let records = vec![Record::default(); capacity.max(1) as usize].into();
        Table::build(Slab::Owned(records), seed)
    }

    /// Returns a table over shared memory. Flows found in it are continued. They have no owners until
    /// [`Table::set_class`], and no timers.
    pub fn shared(records: &'static mut [Record], seed: u64) -> Table {
        Table::build(Slab::Shared(records), seed)
    }

    fn build(slab: Slab, seed: u64) -> Table {
        let n = match &slab {
            Slab::Owned(r) => r.len(),
            Slab::Shared(r) => r.len(),
        } as u32;
        let mut table =
            Table { slab, index: Index::new(n), ages: Ages::new(n), owners: Owners::new(n), seed, epoch: 0 };
        let epoch = table.records().iter().filter(|r| r.has(flag::USED)).map(|r| r.epoch).max();
        table.epoch = epoch.map_or(0, |e| e.wrapping_add(1));
        for i in (0..n).rev().map(FlowId) {
            if table[i].has(flag::USED) {
                let turns = flag::LISTED | flag::FRESH | flag::GUARANTEED;
                table[i].set(flag::ARMED | flag::WAITING | flag::GRANTED | turns, false);
                table.index.insert(table.hash(&table[i].key), i.0);
            }
            table.ages.add(table.list(i), i.0);
        }
        table
    }

    /// The records, used or not.
    pub fn records(&self) -> &[Record] {
        self.slab.records()
    }

    fn records_mut(&mut self) -> &mut [Record] {
        match &mut self.slab {
            Slab::Owned(r) => r,
            Slab::Shared(r) => r,
        }
    }

    /// Returns the record with this number, used or not.
    pub(super) fn get_mut(&mut self, i: FlowId) -> Option<&mut Record> {
        self.records_mut().get_mut(i.index())
    }

    /// Returns the number of flows.
    pub fn len(&self) -> u32 {
        self.ages.len(SETTLED) + self.ages.len(TRANSIENT)
    }
    /// Returns true if no flow is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns the most flows at once.
    pub fn capacity(&self) -> u32 {
        self.records().len() as u32
    }
    /// Returns the numbers of all records, used or not.
    pub fn ids(&self) -> impl Iterator<Item = FlowId> + 'static {
        (0..self.capacity()).map(FlowId)
    }
    /// Returns the current epoch. Records of an earlier one are out of step with their flows.
    pub fn epoch(&self) -> u16 {
        self.epoch
    }
    /// Puts every record out of step, because the engine was stalled.
    pub fn next_epoch(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// Returns the record of `key`.
    #[inline]
    pub fn find(&self, key: &Key) -> Option<FlowId> {
        self.index.find(self.hash(key), |i| self[FlowId(i)].key == *key).map(FlowId)
    }

    /// Adds a fresh record for `key`, which is not in the table, as a transient flow of a class. `inward`
    /// tells that the data's sender is on the WAN. Returns `None` when the table is full: remove
    /// [`Table::victim`] first.
    pub fn insert(&mut self, key: Key, class: ClassId, inward: bool, now_ms: u32) -> Option<FlowId> {
        let i = FlowId(self.ages.newest(FREE)?);
        self.ages.remove(FREE, i.0);
        self[i] = Record {
            key,
            tag: self[i].tag,
            flags: flag::USED | flag::TRANSIENT | if inward { flag::INWARD } else { 0 },
            class,
            seen_ms: now_ms,
            epoch: self.epoch,
            ..Record::default()
        };
        self.index.insert(self.hash(&key), i.0);
        self.ages.add(TRANSIENT, i.0);
        self.owners.join(i.0, Kind::Transient, self.owner(&key, class, inward));
        Some(i)
    }

    /// Moves the flow to this class.
    pub fn set_class(&mut self, i: FlowId, class: ClassId) {
        self.owners.leave(i.0, self.kind(i));
        self[i].class = class;
        let r = &self[i];
        self.owners.join(i.0, self.kind(i), self.owner(&r.key, class, r.has(flag::INWARD)));
    }

    /// Returns the flow to remove when a new one of this key and class needs room. `None`: the other flows
    /// are entitled to their places.
    pub fn victim(&mut self, key: &Key, class: ClassId, inward: bool, now: Time) -> Option<FlowId> {
        let owner = self.owner(key, class, inward);
        let now_ms = (now.as_nanos() / 1_000_000) as u32;
        let Table { slab, owners, .. } = self;
        let records = slab.records();
        let silence = |i: u32| records[i as usize].silence(now, now_ms);
        let idle = |i: &u32| silence(*i) >= IDLE_MS;
        owners.victim(owner, silence).or_else(|| self.ages.oldest(SETTLED).filter(idle)).map(FlowId)
    }

    /// Returns the owner of a flow: its class, and within it the address on the LAN's side. For IPv6 it is
    /// the /64 network.
    fn owner(&self, key: &Key, class: ClassId, inward: bool) -> Owner {
        let mut src = if inward { key.dst } else { key.src };
        if !key.src_ip().is_ipv4() {
            src[8..].fill(0);
        }
        let [a, b] = [class.0 as u16, (class.0 >> 16) as u16];
        let source = Key { src, dst: [0; 16], src_port: a, dst_port: b, tags: [0; 2] };
        Owner { class, source: source.tagged([key.vlan(), key.inner_vlan()]).hash(self.seed) }
    }

    fn kind(&self, i: FlowId) -> Kind {
        if self[i].has(flag::TRANSIENT) {
            Kind::Transient
        } else {
            Kind::Settled
        }
    }

    /// Returns the transient or settled flow that has been silent longest.
    pub fn longest_silent(&self, transient: bool) -> Option<FlowId> {
        self.ages.oldest(if transient { TRANSIENT } else { SETTLED }).map(FlowId)
    }

    /// Returns the flows that were active in the last `within_ms`, and some that were up to two seconds
    /// before. Settled ones come first, each kind from the latest on.
    pub fn active(&self, now_ms: u32, within_ms: u32) -> impl Iterator<Item = FlowId> + '_ {
        let within_ms = within_ms.saturating_add(RENEW_MS);
        let recent = move |&i: &u32| now_ms.wrapping_sub(self[FlowId(i)].seen_ms) <= within_ms;
        let next = move |&i: &u32| self.ages.before(i).filter(recent);
        let of = move |list| core::iter::successors(self.ages.newest(list).filter(recent), next);
        of(SETTLED).chain(of(TRANSIENT)).map(FlowId)
    }

    /// Forgets a flow. Its timer must not be armed.
    pub fn remove(&mut self, i: FlowId) {
        debug_assert!(self[i].has(flag::USED) && !self[i].has(flag::ARMED));
        self.owners.leave(i.0, self.kind(i));
        self.ages.remove(self.list(i), i.0);
        self.index.remove(self.hash(&self[i].key), i.0);
        self[i].flags = 0;
        self.ages.add(FREE, i.0);
    }

    /// Notes activity of a flow.
    #[inline]
    pub fn touch(&mut self, i: FlowId, now_ms: u32) {
        if self[i].is_stale(now_ms) {
            self.renew(i, now_ms);
        }
    }

    /// Makes the flow the one that was active last.
    #[cold]
    fn renew(&mut self, i: FlowId, now_ms: u32) {
        self[i].seen_ms = now_ms;
        self.ages.remove(self.list(i), i.0);
        self.ages.add(self.list(i), i.0);
    }

    /// Prefetches the entries of other flows that [`Table::touch`] changes, if it changes any. The caller is
    /// expected to touch the flow soon.
    #[inline]
    pub fn load_order(&self, i: FlowId, now_ms: u32) {
        if self[i].is_stale(now_ms) {
            self.ages.load(i.0);
        }
    }

    /// Moves a flow between the transient and the settled.
    pub fn set_transient(&mut self, i: FlowId, transient: bool) {
        if self[i].has(flag::TRANSIENT) != transient {
            self.ages.remove(self.list(i), i.0);
            self.owners.leave(i.0, self.kind(i));
            self[i].set(flag::TRANSIENT, transient);
            self.ages.add(self.list(i), i.0);
            let r = &self[i];
            self.owners.join(i.0, self.kind(i), self.owner(&r.key, r.class, r.has(flag::INWARD)));
        }
    }

    /// Prefetches the entries for [`Table::guess`].
    #[inline]
    pub fn load(&self, hash: u32) {
        self.index.load(hash);
    }

    /// Returns the record that a key with this [hash](Table::hash) most likely has, without reading the
    /// record.
    pub fn guess(&self, hash: u32) -> Option<FlowId> {
        self.index.find(hash, |_| true).map(FlowId)
    }

    /// Returns the part of the hash that the index keeps.
    #[inline]
    pub fn hash(&self, key: &Key) -> u32 {
        (key.hash(self.seed) >> 32) as u32
    }

    fn list(&self, i: FlowId) -> usize {
        match self[i].flags & (flag::USED | flag::TRANSIENT) {
            flag::USED => SETTLED,
            0 | flag::TRANSIENT => FREE,
            _ => TRANSIENT,
        }
    }
}

impl Record {
    /// Returns whether its place in the order of activity is too old. [`Table::touch`] then renews it.
    #[inline]
    pub fn is_stale(&self, now_ms: u32) -> bool {
        now_ms.wrapping_sub(self.seen_ms) >= RENEW_MS
    }

    /// Returns the time since it was active. For a flow in step with its receiver, that is the time since the
    /// last acknowledgement.
    fn silence(&self, now: Time, now_ms: u32) -> Silence {
        let long = now_ms.wrapping_sub(self.seen_ms);
        if self.has(flag::CLOSED) {
            Silence::MAX
        } else if self.holds() {
            0
        } else if self.has(flag::SYNCED) && long < IDLE_MS {
            long.min(self.doubt.silence_ms(now))
        } else {
            long
        }
    }
}

impl core::ops::Index<FlowId> for Table {
    type Output = Record;
    fn index(&self, i: FlowId) -> &Record {
        &self.records()[i.index()]
    }
}

impl core::ops::IndexMut<FlowId> for Table {
    fn index_mut(&mut self, i: FlowId) -> &mut Record {
        &mut self.records_mut()[i.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(n: u16) -> Key {
        Key { src_port: n, ..Key::default() }
    }

    /// Returns the flow that gives way to one of its class from another address.
    fn victim(t: &mut Table, now_ms: u32) -> Option<FlowId> {
        t.victim(&Key { src: [1; 16], ..Key::default() }, ClassId(0), false, Time::from_millis(now_ms.into()))
    }

    #[test]
    fn the_active_flows_are_those_touched_lately() {
        let mut t = Table::new(8, 1);
        let active = |t: &Table, now| t.active(now, 10_000).map(|i| t[i].key.src_port).collect::<Vec<u16>>();
        assert_eq!(active(&t, 0), [] as [u16; 0]);
        for (n, at) in [(1, 0), (2, 1_000), (3, 2_000)] {
            let i = t.insert(key(n), ClassId(0), false, at).unwrap();
            t.set_transient(i, n == 2);
        }
        assert_eq!(active(&t, 2_000), [3, 1, 2]);
        let first = t.find(&key(1)).unwrap();
        t.touch(first, 10_500);
        assert_eq!(active(&t, 13_500), [1, 3]);
        assert_eq!(active(&t, 60_000), [] as [u16; 0]);
    }

    #[test]
    fn a_syn_flood_displaces_itself() {
        let mut t = Table::new(8, 1);
        for n in 0..4 {
            let i = t.insert(key(n), ClassId(0), false, 0).unwrap();
            t.set_transient(i, false);
        }
        for n in 100..200 {
            if t.insert(key(n), ClassId(0), false, 1).is_none() {
                let v = victim(&mut t, 1).unwrap();
                assert!(t[FlowId(v.0)].has(flag::TRANSIENT));
                t.remove(FlowId(v.0));
                t.insert(key(n), ClassId(0), false, 1).unwrap();
            }
        }
        assert!((0..4).all(|n| t.find(&key(n)).is_some()));
    }

    #[test]
    fn the_least_recently_active_goes_first() {
        let mut t = Table::new(3, 1);
        for n in 0..3 {
            let i = t.insert(key(n), ClassId(0), false, 0).unwrap();
            t.set_transient(i, false);
        }
        let first = t.find(&key(0)).unwrap();
        assert_eq!(victim(&mut t, 499), None, "all are active");
        t.touch(first, RENEW_MS);
        let v = victim(&mut t, IDLE_MS).unwrap();
        assert_eq!(t[FlowId(v.0)].key, key(1));
    }

    /// A flow that was active until nine seconds ago, whenever its place was renewed.
    #[test]
    fn a_flow_that_fell_silent_lately_is_listed() {
        let mut t = Table::new(3, 1);
        let flow = t.insert(key(1), ClassId(0), false, 0).unwrap();
        for last in (0..25_000).step_by(700) {
            t.touch(flow, last);
            assert_eq!(t.active(last + 9_000, 10_000).count(), 1, "active until {last} ms");
            assert_eq!(t.active(last + 12_001, 10_000).count(), 0, "active until {last} ms");
        }
    }

    #[test]
    fn shared_records_are_taken_up_again() {
        let records: &'static mut [Record] = Box::leak(vec![Record::default(); 4].into());
        {
            let mut t = Table::new(4, 7);
            let i = t.insert(key(9), ClassId(0), false, 5).unwrap();
            t[i].set(flag::SYNCED | flag::SCALE_KNOWN, true);
            t[i].scale = 7;
            records.copy_from_slice(t.records());
        }
        let t = Table::shared(records, 8);
        let r = &t[t.find(&key(9)).unwrap()];
        assert!(r.has(flag::SCALE_KNOWN | flag::SYNCED));
        assert_eq!((r.scale, t.len()), (7, 1));
        assert_ne!(r.epoch, t.epoch());
    }

    proptest! {
        /// Compares with a plain vector: same members, same order of eviction.
        #[test]
        fn like_a_list(ops in prop::collection::vec((0u8..4, 0u16..12), 1..300)) {
            let mut t = Table::new(6, 3);
            let mut model: Vec<u16> = Vec::new(); // least recently active first
            let mut now = 0;
            for (op, n) in ops {
                now += IDLE_MS;
                match (op, t.find(&key(n))) {
                    (0 | 1, None) => {
                        if model.len() == 6 {
                            let v = victim(&mut t, now).unwrap();
                            prop_assert_eq!(t[FlowId(v.0)].key.src_port, model.remove(0));
                            t.remove(FlowId(v.0));
                        }
                        let i = t.insert(key(n), ClassId(0), false, now).unwrap();
                        t.set_transient(i, false);
                        model.push(n);
                    }
                    (0..=2, Some(i)) => {
                        t.touch(i, now);
                        model.retain(|&m| m != n);
                        model.push(n);
                    }
                    (3, Some(i)) => {
                        t.remove(i);
                        model.retain(|&m| m != n);
                    }
                    _ => {}
                }
                prop_assert_eq!(t.len() as usize, model.len());
                for m in 0..12 {
                    prop_assert_eq!(t.find(&key(m)).is_some(), model.contains(&m));
                }
            }
        }
    }
}
