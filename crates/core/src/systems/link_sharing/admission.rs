//! Admission of connections to classes that guarantee each of their flows a rate. A SYN is refused if the
//! rate available to the class, with what it could borrow, is less than the guarantees of all its connections
//! and one more. A later fall of that rate ends no guarantee.
//!
//! Any host can ask for a guarantee, so a guarantee has to be confirmed by the other end. A connection is
//!
//! - *pending* from its SYN until the other end acknowledges data beyond the handshake, for 3 s at most. A
//!   pending connection counts, and gives way to confirmed ones. After a second it gives way to any SYN. It
//!   gives way at once to a SYN of a host with fewer unconfirmed SYNs;
//! - *confirmed* until its FIN or RST passes in the same direction, or the other end has not acknowledged
//!   anything for a minute;
//! - *best effort* if its SYN was not seen, or it gave way. It does not count. It is confirmed once the other
//!   end has acknowledged several windows of it and there is room.
//!
//! The [tracker](crate::track::Stream) decides which segments are believed. Traffic that is not TCP is
//! neither refused nor counted.

use super::classes::Tree;
use crate::classify::spec::{FlowMin, Refusal, Spec};
use crate::flow::{Ages, Index};
use crate::time::Time;
use crate::track::{Acked, Data, Key, Stream};
use crate::wire::{self, Flags, Seq, Tcp};

/// Most connections remembered.
const MOST: u32 = 1 << 20;
/// Time in milliseconds after which a silent connection loses its guarantee.
const IDLE_MS: u32 = 60_000;
/// Time after which a pending connection is forgotten unless it is confirmed.
const PENDING_MS: u32 = 3_000;
/// Age at which a pending connection gives way to any SYN. Its client would have sent its first SYN again by
/// then (RFC 6298 §2.1).
const UNANSWERED_MS: u32 = 1_000;
/// Greatest age of a connection's place in the order of activity before it is renewed.
const RENEW_MS: u32 = 1_000;
/// Most connections of each kind that are found idle at once.
const EXPIRED: usize = 8;
/// Most pending connections examined for one that gives way.
const LOOKS: usize = 16;
/// Windows of a best-effort connection that have to be acknowledged.
const ROUNDS: u8 = 3;
/// Number of counters of hosts, which are chosen by a hash.
const HOSTS: usize = 1 << 10;

/// States of a connection. Each is a list in the order of activity.
const CONFIRMED: usize = 0;
const PENDING: usize = 1;
const BEST_EFFORT: usize = 2;
const FREE: usize = 3;

/// A connection.
#[derive(Clone, Copy, Debug)]
struct Known {
    key: Key,
    hash: u32,
    /// Index of its class's guarantee in `guarantees`.
    guarantee: u32,
    seen_ms: u32,
    /// State, and so its list.
    state: u8,
    /// Acknowledged windows.
    rounds: u8,
    /// Counter of the host that opens it.
    host: u16,
    /// End of the current window.
    mark: Seq,
    stream: Stream,
}

/// A class's guarantee, and its connections.
#[derive(Clone, Copy, Debug)]
struct Guarantee {
    min: FlowMin,
    stats: AdmissionStats,
}

/// Connections of a class that guarantees them a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdmissionStats {
    /// Connections that have the guarantee now.
    pub flows: u32,
    /// SYNs refused so far. A dropped SYN may be sent again, and counts again.
    pub refused: u64,
}

/// See the [module documentation](self).
pub(super) struct Admission {
    /// By place of the class in the tree: its index in `guarantees`.
    places: Vec<Option<u32>>,
    guarantees: Vec<Guarantee>,
    known: Box<[Known]>,
    index: Index,
    ages: Ages<4>,
    /// Unconfirmed SYNs, by the host that opens. Each SYN halves one of these counters.
    unconfirmed: Box<[u16]>,
    /// Counter to be halved next.
    hand: usize,
    seed: u64,
}

impl core::fmt::Debug for Admission {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(&self.guarantees).finish()
    }
}

impl Admission {
    /// Returns the admission for the classes of a tree, if any guarantees its flows a rate.
    pub(super) fn of(specs: &[Spec], flows: u32, seed: u64) -> Option<Box<Admission>> {
        let mins = || specs.iter().map(|spec| spec.flow_min);
        let mut guarantees = Vec::new();
        let places = mins().map(|min| {
            guarantees.push(Guarantee { min: min?, stats: AdmissionStats::default() });
            Some(guarantees.len() as u32 - 1)
        });
        let places = places.collect();
        if guarantees.is_empty() {
            return None;
        }
        let capacity = flows.clamp(1, MOST);
        let free = Known {
            key: Key::default(),
            hash: 0,
            guarantee: 0,
            seen_ms: 0,
            state: FREE as u8,
            rounds: 0,
            host: 0,
            mark: Seq(0),
            stream: Stream::default(),
        };
        let mut ages = Ages::new(capacity);
        (0..capacity).rev().for_each(|i| ages.add(FREE, i));
        let (known, index) = (vec![free; capacity as usize].into(), Index::new(capacity));
        let unconfirmed = vec![0; HOSTS].into();
        Some(Admission { places, guarantees, known, index, ages, unconfirmed, hand: 0, seed }.into())
    }

    /// Returns the connections of the class at this place of the tree, if it guarantees them a rate.
    pub(super) fn stats(&self, place: usize) -> Option<AdmissionStats> {
        let guarantee = (*self.places.get(place)?)?;
        Some(self.guarantees[guarantee as usize].stats)
    }

    /// Returns how to refuse a frame that begins with these bytes, in the class at this place. `None` if it
    /// is admitted.
    pub(super) fn refusal(
        &mut self,
        tree: &Tree,
        place: usize,
        (bytes, len): (&[u8], usize),
        now: Time,
    ) -> Option<Refusal> {
        let guarantee = (*self.places.get(place)?)?;
        let packet = wire::packet(bytes, len).ok()?;
        let tcp = wire::tcp(bytes, &packet).ok()?;
        let key = Key::of_packet(bytes, &packet);
        let now_ms = millis(now);
        let ends = tcp.flags.intersects(Flags::FIN.with(Flags::RST));
        let known = self.find(&key).filter(|&i| {
            // A connection without a guarantee asks like a new one.
            let asks = tcp.flags.contains(Flags::SYN) && self.known[i as usize].state == BEST_EFFORT as u8;
            if asks {
                self.forget(i);
            }
            !asks
        });
        match known {
            Some(i) => self.goes_on(i, &tcp, ends),
            None if ends => {}
            None if tcp.flags.contains(Flags::SYN) => {
                let opener = if tcp.flags.contains(Flags::ACK) { key.dst } else { key.src };
                let host = self.host_of(opener);
                self.unconfirmed[self.hand] /= 2;
                self.hand = (self.hand + 1) % HOSTS;
                if !self.makes_room(guarantee, tree.available(place, now), Some(host), now_ms) {
                    self.guarantees[guarantee as usize].stats.refused += 1;
                    return Some(self.guarantees[guarantee as usize].min.refusal);
                }
                self.remember(key, guarantee, (PENDING, host), &tcp, now_ms);
                let count = &mut self.unconfirmed[usize::from(host)];
                *count = count.saturating_add(1);
            }
            None if tcp.payload_len > 0 => {
                self.remember(key, guarantee, (BEST_EFFORT, 0), &tcp, now_ms);
            }
            None => {}
        }
        None
    }

    /// Handles a segment of a known connection. The sender's own claims keep no guarantee alive, but a FIN or
    /// RST of it is believed.
    fn goes_on(&mut self, i: u32, tcp: &Tcp, ends: bool) {
        let known = &mut self.known[i as usize];
        match known.stream.data(tcp) {
            Data::Disbelieved if tcp.flags.contains(Flags::SYN) && known.state == PENDING as u8 => {
                // Another attempt, with another sequence number.
                known.stream = opened_by(tcp);
                known.mark = known.stream.sent();
            }
            Data::Disbelieved => {}
            Data::New | Data::Again if ends => self.forget(i),
            Data::New | Data::Again => {}
            Data::Renewed => self.lose(i),
        }
    }

    /// Handles a segment of the other end of a connection with this key. A SYN has this `scale`.
    pub(super) fn is_answered(
        &mut self,
        tree: &Tree,
        key: &Key,
        tcp: &Tcp,
        scale: Option<Option<u8>>,
        now: Time,
    ) {
        let Some(i) = self.find(key).filter(|_| tcp.flags.contains(Flags::ACK)) else { return };
        let known = &mut self.known[i as usize];
        let acked = known.stream.ack(tcp);
        match acked {
            Acked::Disbelieved => return,
            Acked::Renewed => return self.lose(i),
            Acked::Nothing | Acked::More(_) => {}
        }
        if let Some(shift) = scale {
            return known.stream.scaled(shift); // the SYN of any host is answered
        }
        let (state, more) = (usize::from(known.state), matches!(acked, Acked::More(_)));
        let reaches = !known.mark.is_after(tcp.ack);
        if state != PENDING && (more || tcp.ack == known.stream.sent()) {
            self.touch(i, millis(now));
        }
        match state {
            PENDING if reaches => {
                let count = &mut self.unconfirmed[usize::from(self.known[i as usize].host)];
                *count = count.saturating_sub(1);
                self.move_to(i, CONFIRMED);
            }
            BEST_EFFORT if more && reaches => self.has_gone_round(tree, i, now),
            _ => {}
        }
    }

    /// Notes that the other end has acknowledged a window of a best-effort connection.
    fn has_gone_round(&mut self, tree: &Tree, i: u32, now: Time) {
        let known = &mut self.known[i as usize];
        known.rounds = known.rounds.saturating_add(1);
        known.mark = known.stream.sent();
        let (asks, guarantee) = (known.rounds >= ROUNDS, known.guarantee);
        let Some(place) = self.place_of(guarantee).filter(|_| asks) else { return };
        if self.makes_room(guarantee, tree.available(place, now), None, millis(now)) {
            self.move_to(i, CONFIRMED);
        }
    }

    fn find(&self, key: &Key) -> Option<u32> {
        self.index.find(self.hash(key), |i| self.known[i as usize].key == *key)
    }

    fn hash(&self, key: &Key) -> u32 {
        (key.hash(self.seed) >> 32) as u32
    }

    /// Returns the place in the tree of the class with this guarantee.
    fn place_of(&self, guarantee: u32) -> Option<usize> {
        self.places.iter().position(|&of| of == Some(guarantee))
    }

    /// Returns the counter of a host. For IPv6, the first half of the address identifies it.
    fn host_of(&self, mut address: [u8; 16]) -> u16 {
        const V4: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
        if address[..12] != V4 {
            address[8..].fill(0);
        }
        self.hash(&Key { src: address, ..Key::default() }) as u16 % HOSTS as u16
    }

    /// Returns whether the `available` rate has room for one more connection with this guarantee. Pending
    /// connections give way to the SYN of a `host`, or to a confirmed connection.
    fn makes_room(&mut self, guarantee: u32, available: u64, host: Option<u16>, now_ms: u32) -> bool {
        self.expire(now_ms);
        let min = self.guarantees[guarantee as usize].min.rate.bps();
        loop {
            let flows = self.guarantees[guarantee as usize].stats.flows;
            if (u64::from(flows) + 1).saturating_mul(min) <= available {
                return true;
            }
            let Some(i) = self.who_gives_way(guarantee, host, now_ms) else { return false };
            self.lose(i);
        }
    }

    /// Returns the pending connection with this guarantee that gives way.
    fn who_gives_way(&self, guarantee: u32, host: Option<u16>, now_ms: u32) -> Option<u32> {
        let next = |&i: &u32| self.ages.after(i);
        let mut oldest = core::iter::successors(self.ages.oldest(PENDING), next).take(LOOKS);
        oldest.find(|&i| {
            let known = &self.known[i as usize];
            let gives_way = host.is_none_or(|host| {
                let [has, wants] = [known.host, host].map(|host| self.unconfirmed[usize::from(host)]);
                now_ms.wrapping_sub(known.seen_ms) >= UNANSWERED_MS || has > wants.saturating_add(1)
            });
            known.guarantee == guarantee && gives_way
        })
    }

    /// Remembers a connection in this state, opened by this host. Where memory is full, best-effort
    /// connections are forgotten first, then pending ones.
    fn remember(&mut self, key: Key, guarantee: u32, (state, host): (usize, u16), tcp: &Tcp, now_ms: u32) {
        if self.ages.len(FREE) == 0 {
            let victim = self.ages.oldest(BEST_EFFORT).or_else(|| self.ages.oldest(PENDING));
            let Some(i) = victim else { return };
            self.forget(i);
        }
        let Some(i) = self.ages.newest(FREE) else { return };
        let hash = self.hash(&key);
        let stream = opened_by(tcp);
        let (seen_ms, mark) = (now_ms, stream.sent());
        self.known[i as usize] =
            Known { key, hash, guarantee, seen_ms, state: FREE as u8, rounds: 0, host, mark, stream };
        self.index.insert(hash, i);
        self.move_to(i, state);
    }

    fn forget(&mut self, i: u32) {
        self.index.remove(self.known[i as usize].hash, i);
        self.move_to(i, FREE);
    }

    /// Takes the guarantee from a connection, which may get it back.
    fn lose(&mut self, i: u32) {
        let known = &mut self.known[i as usize];
        (known.rounds, known.mark) = (0, known.stream.sent());
        self.move_to(i, BEST_EFFORT);
    }

    /// Moves a connection to another list, and updates the count.
    fn move_to(&mut self, i: u32, state: usize) {
        let known = &mut self.known[i as usize];
        let was = usize::from(core::mem::replace(&mut known.state, state as u8));
        let flows = &mut self.guarantees[known.guarantee as usize].stats.flows;
        let counts = |state| u32::from(state == CONFIRMED || state == PENDING);
        *flows = *flows + counts(state) - counts(was);
        self.ages.remove(was, i);
        self.ages.add(state, i);
    }

    fn touch(&mut self, i: u32, now_ms: u32) {
        let known = &mut self.known[i as usize];
        if now_ms.wrapping_sub(known.seen_ms) >= RENEW_MS {
            known.seen_ms = now_ms;
            let state = usize::from(known.state);
            self.ages.remove(state, i);
            self.ages.add(state, i);
        }
    }

    /// Forgets some of the connections that have been silent for too long.
    fn expire(&mut self, now_ms: u32) {
        for (state, idle_ms) in [(CONFIRMED, IDLE_MS), (PENDING, PENDING_MS), (BEST_EFFORT, IDLE_MS)] {
            for _ in 0..EXPIRED {
                let idle = |i: &u32| now_ms.wrapping_sub(self.known[*i as usize].seen_ms) >= idle_ms;
                let Some(i) = self.ages.oldest(state).filter(idle) else { break };
                self.forget(i);
            }
        }
    }

    /// Takes over the connections of `old`. `was` returns the place there of the class at a place here.
    pub(super) fn follow(&mut self, old: &mut Admission, was: impl Fn(usize) -> Option<usize>) {
        core::mem::swap(&mut self.known, &mut old.known);
        core::mem::swap(&mut self.index, &mut old.index);
        core::mem::swap(&mut self.ages, &mut old.ages);
        core::mem::swap(&mut self.unconfirmed, &mut old.unconfirmed);
        self.seed = old.seed;
        let new = core::mem::replace(&mut self.guarantees, old.guarantees.clone());
        for (place, guarantee) in self.places.iter_mut().enumerate() {
            let Some(own) = guarantee else { continue };
            let min = new[*own as usize].min;
            match was(place).and_then(|was| *old.places.get(was)?) {
                Some(before) => {
                    self.guarantees[before as usize].min = min;
                    *own = before;
                }
                None => {
                    self.guarantees.push(Guarantee { min, stats: AdmissionStats::default() });
                    *own = self.guarantees.len() as u32 - 1;
                }
            }
        }
    }
}

/// Returns the stream that begins with this segment.
fn opened_by(tcp: &Tcp) -> Stream {
    let mut stream = Stream::of(tcp);
    stream.data(tcp);
    stream
}

fn millis(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}
