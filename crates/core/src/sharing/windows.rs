//! Classes that are paced at the window of their flows over its round-trip time, so that a window's worth of packets is spread across a round trip.
//!
//! What a flow has under way is seen in the data that comes to its class and in the ACKs that pass the other way. Its window is the most of
//! that during this round trip and the one before, and at least the initial window of RFC 6928, since nobody knows how much a flow that
//! has just begun is about to send. Its round-trip time is the shortest of the last ten to twenty seconds, so that what waits here counts for
//! nothing; of a segment that was sent twice none is taken (Karn, RFC 6298 §3). The window counts the bytes that the rate counts, as they
//! come with a byte of the flow's payload.
//!
//! Numbers are believed as the [tracker](crate::track::Stream) says: what cannot be the sender's or the receiver's changes nothing.
//!
//! A class has the sum of its flows' rates; as long as none is known, the rate of its line. Flows that end, or are silent for a minute, are
//! forgotten. Each has one place, which it takes from whoever had it, so a frame costs the same however many there are.

use crate::pace::{Counts, Queued, Size, Target, FASTEST};
use crate::rate::{mul_div, Rate};
use crate::time::{Duration, Time};
use crate::track::{Acked, Data, Key, Stream};
use crate::wire::{after, Flags, Tcp};

/// Flows remembered at most: 2 MB.
const MOST: u32 = 1 << 14;
/// Segments of the initial window (RFC 6928).
const INITIAL: u64 = 10;
/// For so long at least the shortest round-trip time counts.
const ERA: Duration = Duration::from_secs(10);
/// A flow that is silent for so long is over.
const SILENT: Duration = Duration::from_secs(60);
/// Round-trip times below this are taken for it.
const SHORTEST: Duration = Duration::from_micros(1);
/// The slowest that a class is paced.
const SLOWEST: Rate = Rate::kbit(8);

/// A flow.
#[derive(Clone, Copy, Debug)]
struct Known {
    key: Key,
    /// The class's number at the pacer, or [`FREE`].
    class: u32,
    stream: Stream,
    /// It will send nothing after that.
    ends: bool,
    /// The sequence number whose acknowledgement is waited for, and since when.
    asked: Option<(u32, Time)>,
    /// The shortest round-trip times of this era and the one before, and when this one began.
    rtt: [Duration; 2],
    era: Time,
    /// The most under way in this round and the one before, in bytes of payload, and when this one began.
    windows: [u32; 2],
    round: Time,
    /// The largest payload that a packet had, and what such a packet counts.
    payload: u32,
    counted: u32,
    /// Bits per second; 0 as long as it is not known.
    rate: u64,
    seen: Time,
}

/// Nothing is known here.
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

    /// A segment comes. False if it cannot be the sender's.
    fn comes(&mut self, tcp: &Tcp, now: Time) -> bool {
        let fin = tcp.flags.contains(Flags::FIN);
        match self.stream.data(tcp) {
            Data::Disbelieved => return false,
            Data::Again => {
                self.ends |= fin;
                if tcp.payload_len > 0 || tcp.flags.intersects(Flags::SYN | Flags::FIN) {
                    // Nobody knows which of the two is acknowledged.
                    self.asked = None;
                }
                return true;
            }
            Data::Renewed => (self.asked, self.windows) = (None, [0; 2]),
            Data::New => {}
        }
        // Nothing follows a FIN, so one that something follows was none.
        self.ends = fin;
        self.asked.get_or_insert((self.stream.sent(), now));
        let under_way = self.stream.under_way();
        if now.since(self.round) >= self.rtt[0].min(self.rtt[1]) {
            (self.windows, self.round) = ([under_way, self.windows[0]], now);
        }
        self.windows[0] = self.windows[0].max(under_way);
        true
    }

    /// A segment that acknowledges comes the other way. False if it cannot be the receiver's.
    fn is_acknowledged(&mut self, tcp: &Tcp, now: Time) -> bool {
        match self.stream.ack(tcp) {
            Acked::Disbelieved => return false,
            Acked::Renewed => self.asked = None,
            Acked::Nothing | Acked::More(_) => {}
        }
        let confirmed = self.stream.confirmed();
        if let Some((_, since)) = self.asked.filter(|&(asked, _)| !after(asked, confirmed)) {
            self.asked = None;
            self.took(now.since(since), now);
        }
        true
    }

    /// A round trip took so long.
    fn took(&mut self, rtt: Duration, now: Time) {
        if now.since(self.era) >= ERA {
            (self.rtt, self.era) = ([rtt, self.rtt[0]], now);
        }
        self.rtt[0] = self.rtt[0].min(rtt);
    }

    /// Its window over its round-trip time, in bits per second; 0 as long as it is not known.
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
    /// By number at the pacer: which bytes its rate counts, if it follows windows, and the sum of its flows' rates.
    classes: Vec<Option<(Counts, u64)>>,
    /// Looked at next for flows that are silent.
    hand: usize,
    /// Segments that could not be their flows'.
    disbelieved: u64,
}

impl Windows {
    /// For the paced classes of a direction, if any follows the windows of its flows.
    pub(super) fn of(paced: &[Queued], flows: u32, seed: u64) -> Option<Box<Windows>> {
        let follows = |(class, _): &Queued| (class.target == Target::Window).then_some((class.counts, 0));
        let classes: Vec<_> = paced.iter().map(follows).collect();
        classes.iter().any(Option::is_some).then(|| {
            let count = flows.clamp(1, MOST).next_power_of_two() as usize;
            let free = Known::new(Key::default(), FREE, Stream::default(), Time::ZERO);
            Windows { known: vec![free; count].into(), seed, classes, hand: 0, disbelieved: 0 }.into()
        })
    }

    fn place(&self, key: &Key) -> usize {
        key.hash(self.seed) as usize & (self.known.len() - 1)
    }

    /// A segment comes to the class with this number at the pacer. Does its class follow windows?
    pub(super) fn comes(&mut self, class: usize, key: Key, tcp: &Tcp, size: Size, now: Time) -> bool {
        let Some(&Some((counts, _))) = self.classes.get(class) else { return false };
        self.sweep(now);
        let at = self.place(&key);
        if self.known[at].key != key || self.known[at].class != class as u32 {
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
        // RFC 5961 §3.2: a RST counts where the sender is.
        match tcp.flags.contains(Flags::RST) && tcp.seq == known.stream.sent() {
            true => self.forget(at),
            false => self.add_up(at),
        }
        true
    }

    /// What passes the other way acknowledges a flow, which is known by this key; a SYN has this `scale`. The number of its class.
    pub(super) fn is_acknowledged(
        &mut self,
        key: &Key,
        tcp: &Tcp,
        scale: Option<Option<u8>>,
        now: Time,
    ) -> Option<usize> {
        let at = self.place(key);
        let known = &mut self.known[at];
        if known.class == FREE || known.key != *key || !tcp.flags.contains(Flags::ACK) {
            return None;
        }
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

    /// The rate of the flow in this place counts for its class as it is now.
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

    /// Looks at one of the flows: is it silent?
    fn sweep(&mut self, now: Time) {
        self.hand = (self.hand + 1) & (self.known.len() - 1);
        let Known { class, seen, .. } = self.known[self.hand];
        if class != FREE && now.since(seen) >= SILENT {
            self.forget(self.hand);
        }
    }

    /// The rate of the class with this number at the pacer; `None` as long as none of its flows' is known.
    pub(super) fn rate(&self, class: usize) -> Option<Rate> {
        let (_, sum) = (*self.classes.get(class)?)?;
        (sum > 0).then(|| Rate::from_bps(sum).map_or(SLOWEST, |rate| rate.max(SLOWEST)))
    }

    /// Returns how many segments could not be their flows'.
    pub(super) fn disbelieved(&self) -> u64 {
        self.disbelieved
    }

    /// What `old` knows is known here. `is` has the number here of the class with each number there.
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
