//! Frames that came out of a middlebox, each with the frame that went in.

use crate::script::{Event, Script, Side};
use crate::seg::{after, Flow, Seg};
use crate::Verdict;
use std::collections::BTreeMap;
use weir_core::frame::Checksum;
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};
use weir_core::wire::Flags;

/// A frame that came out.
#[derive(Clone, Debug)]
pub struct Crossed {
    /// Time.
    pub at: Time,
    /// End that gets it.
    pub to: Side,
    /// The whole frame.
    pub bytes: Vec<u8>,
    /// Checksum; [`Checksum::Partial`] where a device has still to complete it.
    pub checksum: Checksum,
}

/// Traits of a middlebox beyond the laws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// Longest time that a frame which must leave at once may take.
    pub at_once: Duration,
    /// True if it keeps the ACKs themselves in order, so an ACK that tells of a loss keeps its place (`hold =
    /// "queue"`).
    pub fifo: bool,
    /// True if it may advertise less than the receiver.
    pub sizes: bool,
    /// End whose frames wait in a queue and keep their order there.
    pub queues: Option<Side>,
    /// True if it may leave out a waiting ACK for a newer one that tells as much (RFC 3449 §5.2.1).
    pub filters: bool,
    /// True if part of it is a program in the kernel that lets segments pass: it checks no checksum of data.
    pub in_kernel: bool,
    /// Rate that it limits.
    pub limit: Option<Limit>,
    /// It drops data beyond that limit: nothing but the limit is asked of it.
    pub bounded: bool,
}

/// A rate that a middlebox limits, and the bytes of a flow that it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes that the data's sender learns of for the first time.
    Acknowledged(Rate),
    /// Bytes of data that pass.
    Passed(Rate),
}

impl Traits {
    /// Traits of a cable: everything leaves at once and whole.
    pub const WIRE: Traits = Traits {
        at_once: Duration::ZERO,
        fifo: false,
        sizes: false,
        queues: None,
        filters: false,
        in_kernel: false,
        limit: None,
        bounded: false,
    };
}

/// Origin of a frame that came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The frame of this event, bit for bit.
    Same(usize),
    /// The segment of this event with other numbers in its header.
    Altered(usize),
    /// An ACK that no end sent in this form.
    Made,
    /// Explained by no frame that was sent.
    Alien,
}

/// A frame that came out, with its origin.
#[derive(Debug)]
pub struct Out {
    /// The frame.
    pub crossed: Crossed,
    /// The frame as a segment.
    pub seg: Option<Seg>,
    /// Origin of the frame.
    pub origin: Origin,
    /// True if a frame that was sent later left before it.
    pub overtaken: bool,
}

impl Out {
    /// Event of the frame, if it has one.
    pub fn event(&self) -> Option<usize> {
        match self.origin {
            Origin::Same(i) | Origin::Altered(i) => Some(i),
            _ => None,
        }
    }
    /// Returns whether the middlebox has changed its contents or its place.
    pub fn is_touched(&self) -> bool {
        !matches!(self.origin, Origin::Same(_)) || self.overtaken
    }
}

/// Result of a script.
pub struct Trace<'a> {
    /// Frames that were sent.
    pub script: &'a Script,
    /// Traits of the middlebox.
    pub traits: Traits,
    /// Frames that came out, in order.
    pub out: Vec<Out>,
    /// Segments that were sent, by event.
    pub segs: Vec<Option<Seg>>,
    /// True for each event that is a plain acknowledgement, which may be held, absorbed, and made again.
    pub plain: Vec<bool>,
    /// Index in [`Trace::out`] of each event's frame.
    pub left: Vec<Option<usize>>,
}

impl<'a> Trace<'a> {
    /// Finds the origin of each frame.
    pub fn new(script: &'a Script, traits: Traits, crossed: Vec<Crossed>) -> Trace<'a> {
        let segs: Vec<Option<Seg>> = script.events().iter().map(|e| Seg::of(&e.frame.head)).collect();
        let plain = plain(script.events(), &segs);
        let left = vec![None; segs.len()];
        let mut trace = Trace { script, traits, out: Vec::new(), segs, plain, left };
        let mut newest = BTreeMap::new();
        for crossed in crossed {
            let seg = Seg::of(&crossed.bytes);
            let behind = newest.get(&(crossed.to, seg.as_ref().map(Seg::flow))).copied();
            let origin = trace.origin(&crossed, seg.as_ref(), behind);
            let mut out = Out { crossed, seg, origin, overtaken: false };
            if let Some(i) = out.event() {
                trace.left[i] = Some(trace.out.len());
                let flow = trace.segs[i].as_ref().map(Seg::flow);
                let newest = newest.entry((out.crossed.to, flow)).or_insert(i);
                out.overtaken = flow.is_some() && i < *newest;
                *newest = i.max(*newest);
            }
            trace.out.push(out);
        }
        trace
    }

    /// Returns the origin of a frame that left behind the frame of event `behind`. Among events with equal
    /// frames it prefers one after `behind`, which has then kept its place.
    fn origin(&self, crossed: &Crossed, seg: Option<&Seg>, behind: Option<usize>) -> Origin {
        let events = self.script.events();
        let waits = |i: &usize| {
            self.left[*i].is_none() && events[*i].from == crossed.to.other() && events[*i].at <= crossed.at
        };
        let waiting = || (0..events.len()).filter(waits);
        let same = |&i: &usize| events[i].frame.head == crossed.bytes;
        let in_place = waiting().filter(same).find(|&i| behind.is_none_or(|b| i > b));
        if let Some(i) = in_place.or_else(|| waiting().find(same)) {
            return Origin::Same(i);
        }
        let Some(seg) = seg else { return Origin::Alien };
        let like = |i: &usize| {
            let sent = self.segs[*i].as_ref();
            !self.plain[*i]
                && sent.is_some_and(|s| is_like((&events[*i].frame.head, s), (&crossed.bytes, seg)))
        };
        if let Some(i) = waiting().find(like) {
            return Origin::Altered(i);
        }
        if seg.is_ack() {
            Origin::Made
        } else {
            Origin::Alien
        }
    }

    /// Events of this label.
    pub fn labelled(&self, label: &'static str) -> impl Iterator<Item = (usize, &Event)> {
        self.script.events().iter().enumerate().filter(move |(_, e)| e.label == label)
    }

    /// Segments that reach an end, with their times.
    pub fn to(&self, side: Side) -> impl Iterator<Item = (Time, &Seg)> {
        let reach = self.out.iter().filter(move |o| o.crossed.to == side);
        reach.filter_map(|o| o.seg.as_ref().map(|seg| (o.crossed.at, seg)))
    }

    /// Acknowledged bytes from the data's first byte on, for messages.
    pub fn rel(&self, ack: u32) -> i32 {
        ack.wrapping_sub(self.script.ends.seq(0)) as i32
    }

    /// Returns whether `at` is too late for a frame that must leave at once.
    pub(crate) fn is_late(&self, i: usize, at: Time) -> bool {
        let event = &self.script.events()[i];
        self.traits.queues != Some(event.from) && at > event.at + self.traits.at_once
    }

    /// Checks that every frame of this label left at once. Its ACK field and its window may have changed.
    pub fn at_once(&self, label: &'static str) -> Verdict {
        for (n, (i, event)) in self.labelled(label).enumerate() {
            let name = format!("{label} {}", n + 1);
            let Some(out) = self.left[i].map(|o| &self.out[o]) else {
                return Err(format!("{name} was lost"));
            };
            if self.is_late(i, out.crossed.at) {
                return Err(format!("{name} was delayed by {}", out.crossed.at.since(event.at)));
            }
        }
        Ok(())
    }

    /// Checks that every frame of this label left at once as it came.
    pub fn untouched(&self, label: &'static str) -> Verdict {
        self.at_once(label)?;
        for (i, _) in self.labelled(label) {
            if !matches!(self.left[i].map(|o| self.out[o].origin), Some(Origin::Same(_))) {
                return Err(format!("{label} was altered"));
            }
        }
        Ok(())
    }

    /// Checks that the sender was told the contents of each ACK of this label (its number, its SACK blocks,
    /// whether its window is closed), as often as they were sent. It must be at once or, where ACKs keep
    /// their order, by the end. For an ACK that was left out the next one must tell them.
    pub fn tells(&self, label: &'static str) -> Verdict {
        let mut from = 0;
        for (n, (i, event)) in self.labelled(label).enumerate() {
            let Some(said) = &self.segs[i] else { continue };
            let left_out = self.traits.filters && self.left[i].is_none();
            let begun = |o: &Out| o.crossed.to == event.from.other() && o.crossed.at >= event.at;
            let acks = (from..self.out.len()).filter(|&o| begun(&self.out[o]));
            let mut acks = acks.filter_map(|o| Some((o, self.out[o].seg.as_ref().filter(|s| s.is_ack())?)));
            let newer = |o: usize| self.out[o].event().is_none_or(|event| event > i);
            let found = match left_out {
                true => acks.find(|(o, _)| newer(*o)).filter(|(_, seg)| covers(seg, said)),
                false => acks.find(|(_, seg)| repeats(seg, said)),
            };
            let Some((o, _)) = found else {
                return Err(format!("{label} {}: the sender is never told", n + 1));
            };
            if !self.traits.fifo && self.is_late(i, self.out[o].crossed.at) {
                let by = self.out[o].crossed.at.since(event.at);
                return Err(format!("{label} {}: the sender is told {by} later", n + 1));
            }
            from = if left_out { o } else { o + 1 };
        }
        Ok(())
    }

    /// Checks that the sender knew all that the receiver had acknowledged before the first frame of this
    /// label, when this frame left.
    pub fn told_before(&self, label: &'static str) -> Verdict {
        let Some((i, event)) = self.labelled(label).next() else { return Err(format!("no {label}")) };
        let Some(left) = self.left[i] else { return Err(format!("{label} was lost")) };
        let Some(flow) = self.segs[i].as_ref().map(Seg::flow) else { return Ok(()) };
        // The acknowledgement of a RST is not used (RFC 9293 §3.10.7.4).
        let tells = |seg: &Seg| seg.flow() == flow && seg.has(Flags::ACK) && !seg.has(Flags::RST);
        let acked = |seg: &Seg| tells(seg).then_some(seg.tcp.ack.0);
        let newest =
            |acks: &mut dyn Iterator<Item = u32>| acks.reduce(|a, b| if after(b, a) { b } else { a });
        let events = self.script.events();
        let said = |n: &usize| events[*n].from == event.from && events[*n].believed;
        let said = newest(&mut (0..i).filter(said).filter_map(|n| acked(self.segs[n].as_ref()?)));
        let told = newest(&mut self.out[..=left].iter().filter_map(|o| acked(o.seg.as_ref()?)));
        match (said, told) {
            (Some(said), Some(told)) if after(said, told) => {
                Err(format!("{label} left with {} bytes untold", said.wrapping_sub(told)))
            }
            (Some(_), None) => Err(format!("{label} left before anything was told")),
            _ => Ok(()),
        }
    }

    /// Checks that only the receiver's own segments follow in its name after the first frame of this label
    /// has left.
    pub fn silent_after(&self, label: &'static str) -> Verdict {
        let Some((i, event)) = self.labelled(label).next() else { return Err(format!("no {label}")) };
        // The same frame may come twice, and the other one may have left.
        let behind = self.out.iter().position(|o| o.crossed.at > event.at).unwrap_or(self.out.len());
        let behind = self.left[i].map_or(behind, |left| left + 1);
        let made = |o: &&Out| o.seg.is_some() && o.is_touched();
        match self.out[behind..].iter().find(made) {
            Some(o) => Err(format!("after {label}, at {:?}, an ACK is made for nobody", o.crossed.at)),
            None => Ok(()),
        }
    }
}

fn is_open(seg: &Seg) -> bool {
    seg.tcp.window != 0
}

/// Returns whether one ACK repeats the contents of another one.
fn repeats(seg: &Seg, said: &Seg) -> bool {
    seg.tcp.ack == said.tcp.ack && seg.sack() == said.sack() && is_open(seg) == is_open(said)
}

/// Returns whether an ACK tells all blocks of another one. An ACK without blocks that is asked for is always
/// needed: its repetition is counted (RFC 5681 §3.2), or it is an answer.
fn covers(seg: &Seg, said: &Seg) -> bool {
    let told = |block: &(u32, u32)| {
        let within = |b: &(u32, u32)| !after(b.0, block.0) && !after(block.1, b.1);
        !after(block.1, seg.tcp.ack.0) || seg.sack().iter().any(within)
    };
    let blocks = said.sack();
    !blocks.is_empty() && !after(said.tcp.ack.0, seg.tcp.ack.0) && blocks.iter().all(told) && is_open(seg)
}

/// Returns for each event whether it is a plain acknowledgement that a middlebox may know. It is whole and of
/// the end itself, has a right checksum, only well-known options, and the next sequence number (others are
/// keepalives, RFC 9293 §3.8.4).
fn plain(events: &[Event], segs: &[Option<Seg>]) -> Vec<bool> {
    let mut next: BTreeMap<Flow, u32> = BTreeMap::new();
    let mut is = |(event, seg): (&Event, &Option<Seg>)| {
        let Some(seg) = seg.as_ref().filter(|_| event.believed) else { return false };
        let next = next.entry(seg.flow()).or_insert(seg.tcp.seq.0);
        let in_sequence = *next == seg.tcp.seq.0;
        if seg.has(Flags::SYN) || after(seg.end(), *next) {
            *next = seg.end();
        }
        in_sequence && seg.is_ack() && !seg.is_foreign()
    };
    events.iter().zip(segs).map(&mut is).collect()
}

/// Places of the numbers in a TCP header that a middlebox may write: ACK, window, checksum.
const NUMBERS: [std::ops::Range<usize>; 3] = [8..12, 14..16, 16..18];

/// Returns whether two frames differ only in acknowledgement, window and checksum. In a SYN only the window
/// may differ, in a RST nothing.
fn is_like((sent, a): (&[u8], &Seg), (left, b): (&[u8], &Seg)) -> bool {
    if sent.len() != left.len() || a.flow() != b.flow() || a.has(Flags::RST) {
        return false;
    }
    if a.has(Flags::SYN) && a.tcp.ack != b.tcp.ack {
        return false;
    }
    let l4 = a.packet.l4 as usize;
    let masked = |i: usize| NUMBERS.iter().any(|r| r.contains(&i.wrapping_sub(l4)));
    a.packet.l4 == b.packet.l4 && sent.iter().zip(left).enumerate().all(|(i, (x, y))| x == y || masked(i))
}
