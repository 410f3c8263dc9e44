//! Virtual queues of flows that ACKs do not slow, in fair classes, and in those that give each flow a rate.
//!
//! A flow's queue is what it would have waiting if it alone were served at its [fair share](FairShare) of the
//! class (phantom queues: Alizadeh et al., 2012; core-stateless fair queueing: Stoica et al., 1998). All that
//! is kept of it is the time at which it is empty. A packet that finds no room is dropped, and no packet is
//! ever delayed. Before that its sender is [told](super::congestion) of congestion. A flow below its share
//! always finds its queue empty. Where each flow has a rate, its share is that rate.
//!
//! Classes share a table of fixed size. A flow has its place in one of the four entries of a line of memory,
//! by a hash that outsiders cannot compute. It takes an entry whose queue is empty, the one that has been so
//! for longest: who sends more than its share keeps its entry, whatever new flows come.
//!
//! In a class whose flows *spill*, a packet that finds no room goes to a queue of its flow in the engine, and
//! so do all packets behind it until that queue is empty: none overtakes another. A hook counts what it sends
//! there, and the engine says how much of it has left or was lost ([`Spill`]).

use super::congestion::{Found, Told};
use super::due::{charge, SPREAD};
use super::fair::{FairShare, Service};
use super::strangers::Young;
use crate::base::time::Time;
use core::cell::OnceCell;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Lines of the table. A flow may be in any of the entries of its line.
const LINES: usize = 16_384;
const WAYS: usize = 4;
/// Time after which nothing of a flow is on its way through the engine, in nanoseconds.
const LONGEST: u64 = 1_000_000_000;

/// Virtual queue of a flow.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Entry {
    /// Time at which it is empty, in nanoseconds of the hooks' clock.
    due: AtomicU64,
    /// Low half of the flow's hash.
    tag: AtomicU32,
    told: Told,
}

impl Entry {
    /// Returns the state that a packet of so many bytes finds at `now`.
    fn found(&self, share: &FairShare, bytes: u64, service: Service, now: u64) -> Found {
        let wait = self.due.load(Relaxed).saturating_sub(now);
        Found { wait, time: service.time(bytes), start: share.start(service) }
    }
}

#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Line([Entry; WAYS]);

const _: () = assert!(core::mem::size_of::<Line>() == 64);

/// Packets of a flow that go by its queue in the engine. Each word has one writer.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Spill {
    /// Packets that were sent to the engine. The hooks write it.
    sent: AtomicU32,
    /// Packets among them that have left the engine, or were lost on the way. The engine writes it.
    left: AtomicU32,
}

const _: () = assert!(core::mem::size_of::<Spill>() == 8);

impl Spill {
    /// Packets that were sent to the engine and have not left it.
    pub fn on_the_way(&self) -> u32 {
        self.sent.load(Relaxed).wrapping_sub(self.left.load(Relaxed))
    }

    /// Counts packets that are sent to the engine.
    pub(crate) fn send(&self, packets: u32) {
        self.sent.fetch_add(packets, Relaxed);
    }

    /// Counts packets that have left the engine, or were lost.
    pub fn leave(&self, packets: u32) {
        self.left.store(self.left.load(Relaxed).wrapping_add(packets), Relaxed);
    }
}

/// Number of the entry whose flow never spills: the [hint](crate::frame::Frame::hint) of a frame that has
/// none.
const NEVER: u32 = FlowQueues::MOST - 1;

/// See the module documentation. It has room for 65,536 flows in 1 MiB, and in half as much for what they
/// spill.
#[derive(Debug)]
pub struct FlowQueues {
    lines: Box<[Line]>,
    young: Young,
    spills: OnceCell<Box<[Spill]>>,
}

/// Queue that a packet goes to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Queue<'a> {
    /// Queue of its flow, and its number.
    Own(&'a Entry, u32),
    /// Queue of newcomers.
    New,
}

/// Fate of packets that do not pass ahead of their flow's share.
#[derive(Clone, Copy, Debug)]
pub(super) enum Excess {
    /// They go to the queue of their flow in the engine. It has this number.
    Spills(u16),
    /// They tell their sender that it is ahead.
    Dropped,
}

impl Default for FlowQueues {
    fn default() -> FlowQueues {
        let lines = (0..LINES).map(|_| Line::default()).collect();
        FlowQueues { lines, young: Young::default(), spills: OnceCell::new() }
    }
}

impl FlowQueues {
    /// Flows that have queues at once.
    pub const MOST: u32 = (LINES * WAYS) as u32;

    /// Returns the queue of a packet at `now`, of the flow with this hash in the class at a place, which has
    /// this fair share and serves its flows' queues so.
    pub(super) fn of(
        &self,
        hash: u64,
        place: u32,
        share: &FairShare,
        service: Service,
        now: u64,
    ) -> Queue<'_> {
        let hash = hash ^ u64::from(place).wrapping_mul(SPREAD);
        let tag = hash as u32 | 1;
        let number = (hash >> 32) as usize % LINES;
        let line = &self.lines[number].0;
        let own = |n: usize| Queue::Own(&line[n], (number * WAYS + n) as u32);
        if let Some(n) = line.iter().position(|entry| entry.tag.load(Relaxed) == tag) {
            return own(n);
        }
        if !self.young.lasts(hash, Time::from_nanos(now)) {
            return Queue::New;
        }
        let dues = [0, 1, 2, 3].map(|n| self.due_of(&line[n], number * WAYS + n, share, now));
        let first = (1..WAYS).fold(0, |first, n| if dues[n] < dues[first] { n } else { first });
        if dues[first] > now {
            return Queue::New;
        }
        let Some(due) = share.enter(service, now) else { return Queue::New };
        line[first].due.store(due, Relaxed);
        line[first].tag.store(tag, Relaxed);
        line[first].told.begin();
        own(first)
    }

    /// Time at which an entry with this number is empty. It is not while some of what its flow has spilled is
    /// on the way, but for at most a second after its last packet.
    fn due_of(&self, entry: &Entry, number: usize, share: &FairShare, now: u64) -> u64 {
        let due = entry.due.load(Relaxed);
        let spills = share.spills() && due.saturating_add(LONGEST) > now;
        match spills && self.spills()[number].on_the_way() > 0 {
            true => u64::MAX,
            false => due,
        }
    }

    /// Counts of what spills from each queue, by its number.
    pub fn spills(&self) -> &[Spill] {
        self.spills.get_or_init(|| (0..LINES * WAYS).map(|_| Spill::default()).collect())
    }

    /// Returns what becomes of packets that come as one, with this ECN field, and take `time` at their share,
    /// if they find no room or packets before them are on their way through the engine. Those that spill are
    /// counted.
    pub(super) fn spill(
        &self,
        queue: Queue<'_>,
        share: &FairShare,
        (ecn, packets): (u8, u64),
        time: u64,
        now: u64,
    ) -> Option<Excess> {
        let Queue::Own(Entry { due, told, .. }, number) = queue else { return None };
        if number == NEVER {
            return None;
        }
        let spill = self.spills().get(number as usize)?;
        let before = spill.on_the_way();
        if before == 0 && share.has_room_ahead(due, time, now) {
            return None;
        }
        if told.drops(ecn, before, packets, time, now) {
            return Some(Excess::Dropped);
        }
        spill.send(packets as u32);
        Some(Excess::Spills(number as u16))
    }
}

impl Queue<'_> {
    /// Returns whether packets with this ECN field pass at `now`: so many bytes, served so.
    pub(super) fn lets(self, share: &FairShare, ecn: u8, bytes: u64, service: Service, now: u64) -> bool {
        match self {
            Queue::Own(entry, _) => {
                let found = entry.found(share, bytes, service, now);
                let has_room = share.has_room(&entry.due, found.time, now);
                entry.told.lets(ecn, found, has_room, now)
            }
            Queue::New => share.has_room_for_new(bytes, now),
        }
    }

    /// Returns whether a packet with this ECN field that passes at `now` tells its sender of congestion.
    #[inline(never)]
    pub(super) fn marks(self, share: &FairShare, ecn: u8, bytes: u64, service: Service, now: u64) -> bool {
        let Queue::Own(entry, _) = self else { return false };
        let due = entry.due.load(Relaxed);
        entry.told.marks(ecn, entry.found(share, bytes, service, now), share.depth(), due, now)
    }

    /// Charges it with what passes.
    pub(super) fn charge(self, share: &FairShare, bytes: u64, service: Service, now: u64) {
        match self {
            Queue::Own(entry, _) => charge(&entry.due, service.time(bytes), now),
            Queue::New => share.charge_new(bytes, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rate::Rate;
    use crate::base::time::Duration;
    use crate::steer::{
        admits, judge, Bound, FairLimit, FlowBound, FlowLimit, Judgement, Kind, Limit, Load, Records, Share,
        Tally,
    };

    /// A byte a microsecond.
    const RATE: Rate = Rate::mbit(8);
    const ONE: u64 = 1 << 16;

    struct Class {
        bounds: [Bound; 1],
        tallies: [Tally; 1],
        queues: FlowQueues,
    }

    impl Class {
        /// A fair class in which on average so many TCP flows wait for turns.
        fn new(waiting: u64, most: Option<Rate>) -> Class {
            let class = Class {
                bounds: [Bound::default()],
                tallies: [Tally::default()],
                queues: FlowQueues::default(),
            };
            let fair = Some(FairLimit {
                depth: Duration::from_millis(100),
                spills: None,
                share: Share::Fair { most },
            });
            class.bounds[0].set(Some(Limit { most: Some(RATE), fair, ..Limit::NONE }));
            class.bounds[0].fair().tell(RATE, waiting * ONE);
            class
        }

        /// Returns whether a datagram of 1,000 bytes passes, of a flow by its number.
        fn passes(&self, flow: u64, now: Time) -> bool {
            let load = Load { packets: 1, bytes: 1_000, payload: 0, ecn: 0, kind: Kind::Counted };
            let hash = flow.wrapping_mul(SPREAD);
            let of = Records { queues: Some((&self.queues, hash ^ hash >> 29)), ..Records::default() };
            admits(&self.bounds, &self.tallies, 0, of, &load, now)
        }

        /// Lets a segment of TCP pass that waited for its turn.
        fn passes_tcp(&self, now: Time) {
            let load = Load { packets: 1, bytes: 1_000, payload: 960, ecn: 0, kind: Kind::Held };
            assert!(admits(&self.bounds, &self.tallies, 0, Records::default(), &load, now));
        }
    }

    /// Bytes per second of flows that send 1,000 bytes each so many microseconds, in 20 seconds from the
    /// fifth on, beside TCP that takes its share of the rate. `flood`: new flows, a packet each.
    fn shares(waiting: u64, gaps: &[u64], flood: Option<u64>) -> Vec<u64> {
        let class = Class::new(waiting, None);
        let mut passed = vec![0; gaps.len()];
        let mut tcp = 0;
        for us in (0..25_000_000).step_by(50) {
            let now = Time::from_micros(1_000_000 + us);
            for (flow, _) in gaps.iter().enumerate().filter(|(_, gap)| us % **gap == 0) {
                let passes = class.passes(flow as u64 + 1, now);
                passed[flow] += if passes && us >= 5_000_000 { 50 } else { 0 };
            }
            if flood.is_some_and(|gap| us % gap == 0) {
                class.passes(1 << 32 | us, now);
            }
            tcp += waiting * class.bounds[0].fair().bps();
            if tcp >= 8_000 * 20_000 {
                tcp -= 8_000 * 20_000;
                class.passes_tcp(now);
            }
        }
        passed
    }

    #[test]
    fn each_flow_has_its_share_whatever_it_sends() {
        // Two, three and twenty times the rate.
        for waiting in [0, 1, 5] {
            let each = 1_000_000 / (waiting + 3);
            let shares = shares(waiting, &[500, 350, 50], None);
            assert!(shares.iter().all(|share| share.abs_diff(each) <= each / 25), "{waiting}: {shares:?}");
        }
    }

    #[test]
    fn a_flow_below_its_share_loses_nothing() {
        // 50 kB/s of a share of 250 kB/s.
        let shares = shares(2, &[20_000, 100], None);
        assert_eq!(shares[0], 50_000);
        assert!(shares[1].abs_diff(316_667) <= 15_000, "1,000,000 less 50,000, by three: {shares:?}");
    }

    #[test]
    fn a_flood_of_new_flows_takes_no_more_than_a_twentieth() {
        for (waiting, gaps) in [(2, &[400, 400][..]), (0, &[400; 3][..]), (1, &[20_000, 500][..])] {
            let [without, with] = [None, Some(50)].map(|flood| shares(waiting, gaps, flood));
            for (without, with) in without.iter().zip(&with) {
                assert!(with.abs_diff(*without) <= without / 20, "{waiting}, {gaps:?}: {without}, {with}");
            }
        }
    }

    #[test]
    fn datagrams_of_many_flows_may_have_all_of_an_idle_class() {
        // Half of the rate, each of another flow.
        let class = Class::new(0, None);
        let times = (0..10_000_000).step_by(2_000).map(|us| Time::from_micros(1_000_000 + us));
        assert!(times.enumerate().all(|(n, now)| class.passes(n as u64, now)));
    }

    #[test]
    fn many_flows_of_a_few_packets_are_worth_a_flow() {
        // Twenty times the rate, eight packets of each flow, beside one that takes its share.
        let class = Class::new(0, None);
        let (mut one, mut many) = (0, 0);
        for us in (0..20_000_000u64).step_by(50) {
            let now = Time::from_micros(1_000_000 + us);
            many += u64::from(class.passes(us / 400 + 2, now));
            one += u64::from(us % 500 == 0 && class.passes(1, now));
        }
        assert!(one >= 9_000 && many <= 11_000, "of 20 MB: {one}, {many}");
    }

    #[test]
    fn no_flow_has_more_than_its_most() {
        let class = Class::new(0, Some(Rate::mbit(1)));
        let passed = (0..10_000_000)
            .step_by(500)
            .filter(|&us| class.passes(1, Time::from_micros(1_000_000 + us)))
            .count();
        // 125 kB/s, and half of a depth of 100 ms.
        assert!((1_240..=1_275).contains(&passed), "{passed}");
    }

    /// Each flow has 1 Mbit/s, in a class without a rate of its own.
    #[test]
    fn flows_that_have_a_rate_each_keep_to_it_and_new_ones_share_one_per_source() {
        let each = Rate::mbit(1);
        let flow = Some(FlowLimit { rate: each, ahead: Duration::ZERO, burst: 0 });
        let share = Share::Each(each);
        let fair = Some(FairLimit { depth: Duration::from_millis(100), spills: None, share });
        let class = Class::new(0, None);
        class.bounds[0].set(Some(Limit { flow, fair, ..Limit::NONE }));
        let sources = [FlowBound::default(), FlowBound::default()];
        let passes = |source: usize, flow: u64, us: u64| {
            let load = Load { packets: 1, bytes: 1_000, payload: 0, ecn: 0, kind: Kind::Counted };
            let hash = flow.wrapping_mul(SPREAD);
            let queues = Some((&class.queues, hash ^ hash >> 29));
            let of = Records { source: Some(&sources[source]), queues, ..Records::default() };
            admits(&class.bounds, &class.tallies, 0, of, &load, Time::from_micros(1_000_000 + us))
        };
        let (mut own, mut slow, mut new, mut other) = ([0; 10], 0, [0; 10], 0);
        for us in (0..10_000_000).step_by(100) {
            let second = us as usize / 1_000_000;
            // Of one source a flow of 80 Mbit/s, one of 800 kbit/s, and a new one for each packet.
            own[second] += usize::from(passes(0, 1, us));
            slow += usize::from(us % 10_000 == 0 && passes(0, 2, us));
            new[second] += usize::from(passes(0, 1 << 32 | us, us));
            // Of another source new flows of 800 kbit/s.
            other += usize::from(us % 10_000 == 0 && passes(1, 1 << 33 | us, us));
        }
        // 125 kB, and a second burst of half of 100 ms in the first.
        assert!(own.iter().all(|passed| (123..=134).contains(passed)), "{own:?}");
        // 1.15 times that and 64 kB.
        assert!(new.iter().all(|passed| (125..=207).contains(passed)), "{new:?}");
        assert_eq!((slow, other), (1_000, 1_000));
    }

    #[test]
    fn flows_with_something_in_their_queues_keep_their_entries() {
        let (queues, share) = (FlowQueues::default(), FairShare::default());
        share.set(None, Duration::from_millis(100), None);
        let second = 1 << 30;
        // All in one line; the fifth finds no room.
        let of = |flow: u64, now| {
            let found =
                (0..3u64).map(|n| queues.of(1 << 32 | flow << 1, 0, &share, share.shared(), now + n)).last();
            matches!(found, Some(Queue::Own(..)))
        };
        assert_eq!([1, 2, 3, 4, 5].map(|flow| of(flow, 5 * second)), [true, true, true, true, false]);
        // Half of the depth is waiting in each of the four for 50 ms.
        assert!(!of(5, 5 * second + 40_000_000) && of(5, 5 * second + 60_000_000));
        // The one that has been empty for longest has made room.
        let found = queues.of(1 << 32 | 1 << 1, 0, &share, share.shared(), 5 * second + 61_000_000);
        assert!(matches!(found, Queue::New), "{found:?}");
    }

    /// At a share of 1 MB/s a packet of 1,000 bytes takes 1 ms. Half of 5 ms is free when a flow begins.
    #[test]
    fn what_exceeds_a_share_spills_until_nothing_is_on_the_way() {
        let class = Class::new(0, None);
        let (depth, spills) = (Duration::from_millis(50), Some(Duration::from_millis(5)));
        let fair = Some(FairLimit { depth, spills, share: Share::Fair { most: None } });
        class.bounds[0].set(Some(Limit { most: Some(RATE), fair, ..Limit::NONE }));
        class.bounds[0].fair().tell(RATE, 0);
        let load = Load { packets: 1, bytes: 1_000, payload: 0, ecn: 0, kind: Kind::Counted };
        let judge = |us: u64| {
            let queues = Some((&class.queues, SPREAD));
            let of = Records { queues, spills: true, ..Records::default() };
            judge(&class.bounds, &class.tallies, 0, of, &load, Time::from_micros(1_000_000 + us))
        };
        let first: Vec<_> = (0..8).map(|us| judge(10 * us)).collect();
        let Judgement::Spills(number) = first[7] else { panic!("{first:?}") };
        // Two newcomers, two and a half of 5 ms, and the four that fit any queue.
        assert!(first[..4].iter().all(|judgement| *judgement == Judgement::Passes), "{first:?}");
        let spill = &class.queues.spills()[usize::from(number)];
        // Its virtual queue is empty, and those before it are still there.
        assert_eq!(judge(20_000), Judgement::Spills(number));
        spill.leave(spill.on_the_way());
        assert_eq!(judge(20_001), Judgement::Passes);
    }
}
