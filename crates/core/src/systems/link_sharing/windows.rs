//! Classes that are paced at the windows of their flows over the round-trip times. A window's worth of
//! packets is thus spread over a round trip.
//!
//! The bytes in flight are seen in the data that arrives in the class and in the ACKs of the opposite
//! direction. A flow's window is their maximum in this round trip and the one before. It is at least the
//! initial window of RFC 6928, since a new flow's next burst is unknown. The round-trip time is the shortest
//! of the last ten to twenty seconds, so that queueing here does not count. A segment that was sent twice
//! gives none (Karn, RFC 6298 §3). The window counts the bytes that the rate counts, in proportion to the
//! flow's payload.
//!
//! The [tracker](crate::track::Stream) decides which numbers are believed. Numbers that cannot be the
//! sender's or the receiver's change nothing.
//!
//! A class has the sum of its flows' rates, or the rate of its line as long as none is known. Flows that end,
//! or are silent for a minute, are forgotten. The table has two entries for each hash. A new flow takes a
//! free one, or that of a flow whose rate is not known, or that was silent for a second: segments of
//! connections that there never were displace none that the other end has confirmed. A flow without an entry
//! is not counted. The cost of a frame does not depend on the number of flows.

use crate::rate::{mul_div, Rate};
use crate::systems::gap_pacing::{Counts, Queued, Size, Target, FASTEST};
use crate::time::{Duration, Time};
use crate::track::{Acked, Data, Key, Stream};
use crate::wire::{Flags, Seq, Tcp};

/// Most flows remembered: 2 MB.
const MOST: u32 = 1 << 14;
/// Segments of the initial window (RFC 6928).
const INITIAL: u64 = 10;
/// Shortest time for which the minimum round-trip time counts.
const ERA: Duration = Duration::from_secs(10);
/// Silence after which a flow is over.
const SILENT: Duration = Duration::from_secs(60);
/// Silence after which a flow gives way to another.
const QUIET: Duration = Duration::from_secs(1);
/// Lower bound of round-trip times.
const SHORTEST: Duration = Duration::from_micros(1);
/// Lowest rate of a class.
const SLOWEST: Rate = Rate::kbit(8);

/// A flow.
#[derive(Clone, Copy, Debug)]
struct Known {
    key: Key,
    /// Number of its class at the pacer, or [`FREE`].
    class: u32,
    stream: Stream,
    /// The last segment had a FIN.
    ends: bool,
    /// Sequence number of the pending round-trip sample, and its start.
    asked: Option<(Seq, Time)>,
    /// Shortest round-trip times of this era and the one before, and the start of this one.
    rtt: [Duration; 2],
    era: Time,
    /// Most bytes of payload in flight in this round and the one before, and the start of this one.
    windows: [u32; 2],
    round: Time,
    /// Largest payload of a packet, and the counted bytes of such a packet.
    payload: u32,
    counted: u32,
    /// Bits per second. 0 as long as it is not known.
    rate: u64,
    seen: Time,
}

/// Class of an empty entry.
const FREE: u32 = u32::MAX;
const NEVER: Duration = Duration::MAX;

impl Known {
    fn new(key: Key, class: u32, stream: Stream, now: Time) -> Known {
        Known {
            key,
            class,
            stream,
            ends: false,
            asked: None,
            rtt: [NEVER; 2],
            era: now,
            windows: [0; 2],
            round: now,
            payload: 0,
            counted: 0,
            rate: 0,
            seen: now,
        }
    }

    /// Handles a segment of the sender. Returns false if it cannot be the sender's.
    fn comes(&mut self, tcp: &Tcp, now: Time) -> bool {
        let fin = tcp.flags.contains(Flags::FIN);
        match self.stream.data(tcp) {
            Data::Disbelieved => return false,
            Data::Again => {
                self.ends |= fin;
                if tcp.payload_len > 0 || tcp.flags.intersects(Flags::SYN | Flags::FIN) {
                    // The acknowledgement could be for either transmission.
                    self.asked = None;
                }
                return true;
            }
            Data::Renewed => (self.asked, self.windows) = (None, [0; 2]),
            Data::New => {}
        }
        // No segment follows a FIN, so one that is followed was no FIN.
        self.ends = fin;
        self.asked.get_or_insert((self.stream.sent(), now));
        let under_way = self.stream.under_way();
        if now.since(self.round) >= self.rtt[0].min(self.rtt[1]) {
            (self.windows, self.round) = ([under_way, self.windows[0]], now);
        }
        self.windows[0] = self.windows[0].max(under_way);
        true
    }

    /// Handles an acknowledgement of the opposite direction. Returns false if it cannot be the receiver's.
    fn is_acknowledged(&mut self, tcp: &Tcp, now: Time) -> bool {
        match self.stream.ack(tcp) {
            Acked::Disbelieved => return false,
            Acked::Renewed => self.asked = None,
            Acked::Nothing | Acked::More(_) => {}
        }
        let confirmed = self.stream.confirmed();
        if let Some((_, since)) = self.asked.filter(|&(asked, _)| !asked.is_after(confirmed)) {
            self.asked = None;
            self.took(now.since(since), now);
        }
        true
    }

    /// Notes a round-trip time.
    fn took(&mut self, rtt: Duration, now: Time) {
        if now.since(self.era) >= ERA {
            (self.rtt, self.era) = ([rtt, self.rtt[0]], now);
        }
        self.rtt[0] = self.rtt[0].min(rtt);
    }

    /// Returns its window over its round-trip time, in bits per second. 0 as long as it is not known.
    fn rate(&self) -> u64 {
        let rtt = self.rtt[0].min(self.rtt[1]);
        if rtt == NEVER || self.payload == 0 {
            return 0;
        }
        let [counted, payload] = [self.counted, self.payload].map(u64::from);
        let window = u64::from(self.windows[0].max(self.windows[1])).max(INITIAL * payload);
        let bits = mul_div(window, counted * 8, 0, payload).0;
        mul_div(bits, 1_000_000_000, 0, rtt.max(SHORTEST).as_nanos()).0.min(FASTEST.bps())
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Windows {
    known: Box<[Known]>,
    seed: u64,
    /// By number at the pacer: the bytes that its rate counts, if it follows windows, and the sum of its
    /// flows' rates.
    classes: Vec<Option<(Counts, u64)>>,
    /// Entry to be checked next for a silent flow.
    hand: usize,
    /// Segments that could not be their flows'.
    disbelieved: u64,
}

impl Windows {
    /// Returns the windows for the paced classes of a direction, if any of them follows windows.
    pub(super) fn of(paced: &[Queued], flows: u32, seed: u64) -> Option<Box<Windows>> {
        let follows = |(class, _): &Queued| (class.target == Target::Window).then_some((class.counts, 0));
        let classes: Vec<_> = paced.iter().map(follows).collect();
        classes.iter().any(Option::is_some).then(|| {
            let count = flows.clamp(2, MOST).next_power_of_two() as usize;
            let free = Known::new(Key::default(), FREE, Stream::default(), Time::ZERO);
            Windows { known: vec![free; count].into(), seed, classes, hand: 0, disbelieved: 0 }.into()
        })
    }

    /// Returns the entries that may be those of a flow.
    fn places(&self, key: &Key) -> [usize; 2] {
        let at = key.hash(self.seed) as usize & (self.known.len() - 1);
        [at, at ^ 1]
    }

    /// Returns the entry of a flow.
    fn find(&self, key: &Key) -> Option<usize> {
        let is = |&at: &usize| self.known[at].class != FREE && self.known[at].key == *key;
        self.places(key).into_iter().find(is)
    }

    /// Returns the entry that a new flow takes, if one may.
    fn room(&self, key: &Key, now: Time) -> Option<usize> {
        let [a, b] = self.places(key);
        let gives_way = |at: usize| {
            let Known { class, rate, seen, .. } = self.known[at];
            class == FREE || rate == 0 || now.since(seen) >= QUIET
        };
        let is_free = |at: usize| self.known[at].class == FREE;
        let older = if self.known[b].seen < self.known[a].seen { [b, a] } else { [a, b] };
        older.into_iter().find(|&at| is_free(at)).or_else(|| older.into_iter().find(|&at| gives_way(at)))
    }

    /// Handles a segment of the class with this number at the pacer. Returns whether the class follows
    /// windows.
    pub(super) fn comes(&mut self, class: usize, key: Key, tcp: &Tcp, size: Size, now: Time) -> bool {
        let Some(&Some((counts, _))) = self.classes.get(class) else { return false };
        self.sweep(now);
        let found = self.find(&key);
        let Some(at) = found.or_else(|| self.room(&key, now)) else { return true };
        if found.is_none() || self.known[at].class != class as u32 {
            self.forget(at);
            self.known[at] = Known::new(key, class as u32, Stream::of(tcp), now);
        }
        let known = &mut self.known[at];
        if !known.comes(tcp, now) {
            self.disbelieved += 1;
            return true;
        }
        known.seen = now;
        let of_one = |bytes: u64| (bytes / size.packets()) as u32;
        if of_one(tcp.payload_len.into()) > known.payload {
            known.payload = of_one(tcp.payload_len.into());
            known.counted = of_one(size.counted(counts));
        }
        // RFC 5961 §3.2: a RST counts only at the sender's next sequence number.
        match tcp.flags.contains(Flags::RST) && tcp.seq == known.stream.sent() {
            true => self.forget(at),
            false => self.add_up(at),
        }
        true
    }

    /// Handles an acknowledgement of the opposite direction, for the flow with this key. A SYN has this
    /// `scale`. Returns the number of its class.
    pub(super) fn is_acknowledged(
        &mut self,
        key: &Key,
        tcp: &Tcp,
        scale: Option<Option<u8>>,
        now: Time,
    ) -> Option<usize> {
        let at = self.find(key).filter(|_| tcp.flags.contains(Flags::ACK))?;
        let known = &mut self.known[at];
        let class = known.class as usize;
        if !known.is_acknowledged(tcp, now) {
            self.disbelieved += 1;
            return None;
        }
        scale.into_iter().for_each(|shift| known.stream.scaled(shift));
        let over = known.ends && known.stream.under_way() == 0;
        match over || tcp.flags.contains(Flags::RST) {
            true => self.forget(at),
            false => self.add_up(at),
        }
        Some(class)
    }

    /// Updates the class's sum with the current rate of the flow at this entry.
    fn add_up(&mut self, at: usize) {
        let known = &mut self.known[at];
        let rate = known.rate();
        let before = core::mem::replace(&mut known.rate, rate);
        if let Some(Some((_, sum))) = self.classes.get_mut(known.class as usize) {
            *sum = *sum - before + known.rate;
        }
    }

    fn forget(&mut self, at: usize) {
        let known = &mut self.known[at];
        if let Some(Some((_, sum))) = self.classes.get_mut(known.class as usize) {
            *sum -= known.rate;
        }
        (known.class, known.rate) = (FREE, 0);
    }

    /// Checks one of the flows for silence.
    fn sweep(&mut self, now: Time) {
        self.hand = (self.hand + 1) & (self.known.len() - 1);
        let Known { class, seen, .. } = self.known[self.hand];
        if class != FREE && now.since(seen) >= SILENT {
            self.forget(self.hand);
        }
    }

    /// Returns the rate of the class with this number at the pacer. `None` as long as no rate of its flows is
    /// known.
    pub(super) fn rate(&self, class: usize) -> Option<Rate> {
        let (_, sum) = (*self.classes.get(class)?)?;
        (sum > 0).then(|| Rate::from_bps(sum).map_or(SLOWEST, |rate| rate.max(SLOWEST)))
    }

    /// Returns the number of segments that could not be their flows'.
    pub(super) fn disbelieved(&self) -> u64 {
        self.disbelieved
    }

    /// Takes over the flows of `old`. `is` returns the number here of the class with a number there.
    pub(super) fn follow(&mut self, old: &mut Windows, is: impl Fn(usize) -> Option<usize>) {
        core::mem::swap(&mut self.known, &mut old.known);
        (self.seed, self.disbelieved) = (old.seed, old.disbelieved);
        for at in 0..self.known.len() {
            let known = &mut self.known[at];
            let class =
                is(known.class as usize).filter(|&class| matches!(self.classes.get(class), Some(Some(_))));
            (known.class, known.rate) = (class.map_or(FREE, |class| class as u32), 0);
            self.add_up(at);
        }
    }
}

#[cfg(test)]
mod tests;
