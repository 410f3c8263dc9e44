//! Queues of flows that ACKs cannot slow, and that exceed their fair share of their class.
//!
//! A flow below its share passes in the hooks. One that exceeds it *spills*
//! ([`FlowQueues`](crate::steer::FlowQueues)): its packets come here until its queue is empty. Queues have
//! turns of bytes (deficit round robin: Shreedhar and Varghese, 1995). Between these turns and those of flows
//! with controlled ACKs, the class divides its rate by the numbers of both.
//!
//! Hooks know a queue by its number. It is closed when it is empty, and everything that was sent to it has
//! come or is lost. A packet that passes in a hook from then on overtakes nothing.

use crate::base::linked::{by, LinkedList, Links};
use crate::flow::ClassId;
use crate::frame::{Frame, Frames, List, Waiting};
use crate::node::{Cx, Port};
use crate::steer::Spill;
use crate::time::{Duration, Time};

/// Queues at once. Packets of a flow for which there is none are dropped.
const MOST: u16 = 4_096;
/// Numbers by which hooks know queues.
const NUMBERS: usize = 1 << 16;
const NONE: u16 = u16::MAX;
/// Time after which a packet that has not come is lost.
const LOST: Duration = Duration::from_millis(100);
/// Queues looked at in one call.
const LOOKS: u32 = 32;
/// Turns by which one kind of flows may be ahead of the other.
const MOST_LEAD: i64 = 4;
/// Fraction bits of leads.
const FRACTION: u32 = 16;

/// Turns of the flows of a class that have spilled.
pub(crate) struct Spilled {
    list: LinkedList,
    /// Queues in the list: those with packets, and those that had one at their last turn.
    pub(crate) count: u32,
    /// Bytes by which an average flow with controlled ACKs is ahead of one that has spilled, in units of
    /// 2^-16.
    lead: i64,
}

impl Default for Spilled {
    fn default() -> Spilled {
        Spilled { list: LinkedList::EMPTY, count: 0, lead: 0 }
    }
}

impl Spilled {
    /// Whole bytes by which flows with controlled ACKs are ahead.
    #[cfg(test)]
    pub(super) fn lead(&self) -> i64 {
        self.lead >> FRACTION
    }

    /// Returns the queue whose turn it is. `others`: flows with controlled ACKs wait for turns, too.
    pub(crate) fn turn(&self, others: bool) -> Option<u32> {
        self.list.first().filter(|_| !others || self.lead >= 0)
    }

    /// Each of `flows` with controlled ACKs has had its part of `bytes`. Turns are of about `quantum` bytes.
    pub(crate) fn note_others(&mut self, bytes: i64, flows: u32, quantum: u32) {
        self.note((bytes << FRACTION) / i64::from(flows.max(1)), quantum);
    }

    /// Each queue has had its part of `bytes`.
    fn note_sent(&mut self, bytes: u64, quantum: u32) {
        self.note(-((bytes as i64) << FRACTION) / i64::from(self.count.max(1)), quantum);
    }

    /// A lead of more than some turns is cut: first windows make it.
    fn note(&mut self, change: i64, quantum: u32) {
        let most = (MOST_LEAD * i64::from(quantum)) << FRACTION;
        self.lead = (self.lead + change).clamp(-most, most);
    }
}

/// Queue of a flow.
struct Queue {
    list: List,
    /// Bytes in it, as the class counts them.
    bytes: u64,
    /// Bytes that it has earned in its rounds and that have not left.
    deficit: i64,
    /// Neighbours in its class's list, or among those that are empty.
    links: Links,
    class: ClassId,
    /// Port by which its packets leave.
    port: Port,
    number: u16,
    listed: bool,
    /// Packets that came and that the hooks do not know to have left.
    came: u32,
    /// Time at which the last one came.
    last: Time,
    /// Fewest packets that were missing since a time, whenever it was empty.
    missing: u32,
    since: Time,
}

/// The queues of all classes. They are allocated once.
pub(crate) struct Spills {
    queues: Vec<Queue>,
    free: Vec<u16>,
    by_number: Box<[u16]>,
    /// Queues that are empty and open.
    empty: LinkedList,
}

/// A packet whose turn it is.
pub(crate) struct Sent {
    pub(crate) waiting: Waiting,
    pub(crate) port: Port,
}

impl Default for Spills {
    fn default() -> Spills {
        let queue = |_| Queue {
            list: List::new(),
            bytes: 0,
            deficit: 0,
            links: Links::NONE,
            class: ClassId(0),
            port: Port(0),
            number: NONE,
            listed: false,
            came: 0,
            last: Time::ZERO,
            missing: u32::MAX,
            since: Time::ZERO,
        };
        Spills {
            queues: (0..MOST).map(queue).collect(),
            free: (0..MOST).rev().collect(),
            by_number: vec![NONE; NUMBERS].into(),
            empty: LinkedList::EMPTY,
        }
    }
}

impl Spills {
    /// Packets have come for the queue with this number, whose packets leave by `port`. Returns the queue.
    /// `None`: there is no room for a further one.
    pub(crate) fn open(
        &mut self,
        number: u16,
        (class, port): (ClassId, Port),
        packets: u32,
        now: Time,
    ) -> Option<u32> {
        let known = self.by_number[usize::from(number)];
        let i = if known == NONE { self.free.pop()? } else { known };
        let queue = &mut self.queues[usize::from(i)];
        if known == NONE {
            self.by_number[usize::from(number)] = i;
            (queue.number, queue.class, queue.port) = (number, class, port);
            (queue.came, queue.missing, queue.since) = (0, u32::MAX, now);
            self.empty.push(&mut by(&mut self.queues, |queue| &mut queue.links), u32::from(i));
        }
        let queue = &mut self.queues[usize::from(i)];
        queue.came = queue.came.wrapping_add(packets);
        queue.last = now;
        Some(i.into())
    }

    /// The class of a queue.
    pub(crate) fn class(&self, i: u32) -> ClassId {
        self.queues[i as usize].class
    }

    /// Bytes in a queue, as its class counts them.
    pub(crate) fn bytes(&self, i: u32) -> u64 {
        self.queues[i as usize].bytes
    }

    /// Returns whether a queue has turns.
    pub(crate) fn is_listed(&self, i: u32) -> bool {
        self.queues[i as usize].listed
    }

    /// Appends a packet.
    pub(crate) fn push(&mut self, frames: &mut Frames, i: u32, waiting: Waiting) {
        let queue = &mut self.queues[i as usize];
        queue.bytes += waiting.charge.bytes;
        queue.list.push(frames, waiting);
    }

    /// The queue, which has none, has turns from now on.
    pub(crate) fn list(&mut self, i: u32, turns: &mut Spilled) {
        let queue = &mut self.queues[i as usize];
        (queue.listed, queue.deficit) = (true, 0);
        let mut links = by(&mut self.queues, |queue| &mut queue.links);
        self.empty.remove(&mut links, i);
        turns.list.push(&mut links, i);
        turns.count += 1;
    }

    /// It is the turn of a queue. Returns the packet that leaves. Without one, the queue has earned a part of
    /// its round, or has no turns any more since it is empty.
    pub(crate) fn take(
        &mut self,
        frames: &Frames,
        i: u32,
        turns: &mut Spilled,
        quantum: u32,
    ) -> Option<Sent> {
        let queue = &mut self.queues[i as usize];
        if queue.deficit > 0 && !queue.list.is_empty() {
            let waiting = queue.list.pop(frames)?;
            let bytes = waiting.charge.bytes;
            queue.bytes -= bytes;
            queue.deficit = queue.deficit.saturating_sub_unsigned(bytes);
            turns.note_sent(bytes, quantum);
            return Some(Sent { waiting, port: queue.port });
        }
        queue.deficit += i64::from(quantum);
        let is_empty = queue.list.is_empty();
        queue.listed = !is_empty;
        let mut links = by(&mut self.queues, |queue| &mut queue.links);
        turns.list.remove(&mut links, i);
        if is_empty {
            turns.count -= 1;
            if turns.count == 0 {
                turns.lead = 0;
            }
            self.empty.push(&mut links, i);
        } else {
            turns.list.push(&mut links, i);
        }
        None
    }

    /// Removes all packets, whatever their turns.
    pub(crate) fn drain(&mut self, cx: &mut Cx<'_>, mut each: impl FnMut(&mut Cx<'_>, Port, Frame)) {
        for queue in &mut self.queues {
            while let Some(waiting) = queue.list.pop(cx.frames) {
                let frame = cx.frames.unpark(waiting.frame);
                each(cx, queue.port, frame);
            }
            queue.bytes = 0;
        }
    }

    /// Closes queues that are empty, if nothing is on its way to them: all that has left them is with the
    /// kernel by `now`.
    pub(crate) fn close(&mut self, spills: &[Spill], now: Time) {
        for _ in 0..LOOKS {
            let Some(i) = self.empty.first() else { return };
            let queue = &mut self.queues[i as usize];
            let number = usize::from(queue.number);
            let Some(spill) = spills.get(number) else { return };
            let closes = queue.settle(spill, now);
            let mut links = by(&mut self.queues, |queue| &mut queue.links);
            self.empty.remove(&mut links, i);
            if closes {
                self.by_number[number] = NONE;
                self.free.push(i as u16);
            } else {
                self.empty.push(&mut links, i);
            }
            if self.empty.first() == Some(i) {
                return;
            }
        }
    }
}

impl Queue {
    /// The queue is empty. Returns whether it is closed, of which the hooks are told.
    fn settle(&mut self, spill: &Spill, now: Time) -> bool {
        // Whoever cuts a giant packet may have counted otherwise.
        let missing = (spill.on_the_way().wrapping_sub(self.came) as i32).max(0) as u32;
        self.missing = self.missing.min(missing);
        if now.since(self.last) > LOST {
            self.missing = missing;
        } else if missing > 0 && now.since(self.since) <= LOST {
            return false;
        }
        // What was missing all the time does not come any more.
        spill.leave(self.came.wrapping_add(self.missing).min(spill.on_the_way()));
        let closes = missing == self.missing;
        (self.came, self.missing, self.since) = (0, u32::MAX, now);
        closes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Charge;
    use crate::steer::FlowQueues;

    const QUANTUM: u32 = 3_000;
    const START: Time = Time::from_secs(1);

    fn push(spills: &mut Spills, frames: &mut Frames, number: u16, bytes: u64) -> u32 {
        let i = spills.open(number, (ClassId(0), Port(0)), 1, START).unwrap();
        let frame = frames.receive_copy(&[0; 60], 60, START).unwrap();
        let frame = frames.park(frame);
        spills.push(frames, i, Waiting { frame, charge: Charge { packets: 1, bytes }, since: START });
        i
    }

    /// Three queues with packets of 1,500, 1,000 and 300 bytes have the same, within a turn.
    #[test]
    fn queues_have_turns_of_bytes() {
        let (mut spills, mut frames, mut turns) =
            (Spills::default(), Frames::growing(128), Spilled::default());
        let sizes = [1_500, 1_000, 300];
        for (number, bytes) in sizes.into_iter().enumerate() {
            let queues: Vec<u32> =
                (0..400).map(|_| push(&mut spills, &mut frames, number as u16, bytes)).collect();
            spills.list(queues[0], &mut turns);
        }
        let mut left = [0; 3];
        while left.iter().sum::<u64>() < 180_000 {
            let i = turns.turn(false).unwrap();
            if let Some(sent) = spills.take(&frames, i, &mut turns, QUANTUM) {
                left[sizes.iter().position(|bytes| *bytes == sent.waiting.charge.bytes).unwrap()] +=
                    sent.waiting.charge.bytes;
            }
        }
        assert!(left.iter().all(|bytes| bytes.abs_diff(60_000) <= 2 * u64::from(QUANTUM)), "{left:?}");
    }

    /// Two flows with controlled ACKs beside six that have spilled: a quarter of what leaves is theirs.
    #[test]
    fn both_kinds_of_flows_have_the_same() {
        let mut turns = Spilled { count: 6, ..Spilled::default() };
        turns.list.push(&mut [Links::NONE; 1][..], 0);
        let (mut others, mut sent) = (0, 0);
        for _ in 0..10_000 {
            match turns.turn(true) {
                Some(_) => {
                    turns.note_sent(1_500, QUANTUM);
                    sent += 1_500;
                }
                None => {
                    turns.note_others(2_896, 2, QUANTUM);
                    others += 2_896;
                }
            }
        }
        let part = 100 * others / (others + sent);
        assert_eq!(part, 25, "{others} of {}", others + sent);
    }

    #[test]
    fn there_are_no_more_queues_than_room() {
        let mut spills = Spills::default();
        let mut open = |number: u16| spills.open(number, (ClassId(0), Port(0)), 1, START);
        assert!((0..MOST).all(|number| open(number).is_some()));
        assert_eq!((open(MOST), open(0)), (None, Some(0)));
    }

    /// A packet on its way keeps a queue open, until it is lost.
    #[test]
    fn a_queue_closes_when_nothing_is_on_the_way() {
        let (mut spills, mut frames, mut turns) =
            (Spills::default(), Frames::growing(128), Spilled::default());
        let spill = FlowQueues::default();
        let counts = spill.spills();
        counts[7].send(3);
        let i = push(&mut spills, &mut frames, 7, 1_000);
        push(&mut spills, &mut frames, 7, 1_000);
        spills.list(i, &mut turns);
        let mut empty = |spills: &mut Spills| {
            while turns.count > 0 {
                spills.take(&frames, i, &mut turns, QUANTUM);
            }
        };
        empty(&mut spills);
        let ms = |ms| START + Duration::from_millis(ms);
        spills.close(counts, ms(1));
        assert_eq!(counts[7].on_the_way(), 3, "one has not come yet");
        spills.close(counts, ms(99));
        assert_eq!(counts[7].on_the_way(), 3);
        spills.close(counts, ms(101));
        assert_eq!((counts[7].on_the_way(), spills.free.len()), (0, usize::from(MOST)));
    }
}
