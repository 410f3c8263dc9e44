//! Exit of a port, over packet sockets.
//!
//! Frames leave in the order in which they were handed over, whichever socket each one takes. A frame that
//! the kernel has no room for stays at the front, and the port takes no more frames until it has left. No
//! frame is sent twice, and none is lost for want of room.
//!
//! A frame that the kernel refuses as too long leaves without its outer tag, which the hook at the interface
//! puts back (`metadata.h`).

use crate::bpf::{Leaving, Metadata};
use crate::log::Seldom;
use crate::sys::packet::{PacketSender, Vnet};
use std::collections::VecDeque;
use std::io;
use weir_core::frame::{Checksum, Frame, Frames};
use weir_core::stats::{DropReason, Drops};
use weir_core::time::{Duration, Time};

/// Most frames handed over and not yet taken by the kernel.
const ROOM: usize = 256;
/// Most frames that one call sends.
const BATCH: usize = 64;

/// Counters of an exit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitStats {
    /// Frames that the kernel took.
    pub sent: u64,
    /// Bytes of these frames.
    pub sent_bytes: u64,
    /// Checksums computed in full before a frame left.
    pub completed_checksums: u64,
    /// System calls for sending.
    pub calls: u64,
    /// Times that the kernel had no room.
    pub full: u64,
    /// Frames that the kernel refused as too long or malformed.
    pub refused: u64,
    /// Frames that did not leave, those refused among them.
    pub drops: Drops,
    /// Frames that the interface's hook should have seen: those sent, and those without room behind the hook.
    pub offered: u64,
}

/// First and longest pause after an attempt without room. Each pause is twice as long as the one before.
const PAUSES: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(2)];

/// Probe: a frame that does no harm, because it is consumed where it arrives. Its protocol is one of those
/// left to local experiments, and its addresses are zero.
const PROBE: [u8; 60] = {
    let mut frame = [0; 60];
    (frame[12], frame[13]) = (0x88, 0xb6); // ETH_P_PROBE
    frame
};

/// Reason why no frame leaves by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Time of the first failed attempt.
    pub since: Time,
    /// Error of the kernel.
    pub errno: i32,
}

/// Sender of the pool's frames.
pub trait FrameSender {
    /// Sends frames in order and returns the number that left. The error is that of the first frame.
    fn send<'f>(&mut self, frames: &'f Frames, run: impl Iterator<Item = &'f Frame>) -> io::Result<usize>;
    /// Returns whether frames are sent with notes on their checksum.
    fn has_vnet(&self) -> bool;
    /// Sends a frame made of these bytes.
    fn send_bytes(&mut self, frame: &[u8]) -> io::Result<()>;
}

/// Bytes of an Ethernet header's addresses, and of a tag behind them.
const ADDRESSES: usize = 12;
const TAG: usize = 4;

/// Returns the protocol and the value of the outer tag of a frame that begins with these bytes.
fn outer_tag(bytes: &[u8]) -> Option<(u16, u16)> {
    let [a, b, c, d] = *bytes.get(ADDRESSES..)?.first_chunk()?;
    let protocol = u16::from_be_bytes([a, b]);
    matches!(protocol, 0x8100 | 0x88a8).then_some((protocol, u16::from_be_bytes([c, d])))
}

impl FrameSender for PacketSender {
    fn send<'f>(&mut self, frames: &'f Frames, run: impl Iterator<Item = &'f Frame>) -> io::Result<usize> {
        const NOTHING: &[u8] = &[0; Vnet::LEN];
        let mut batch = self.batch();
        for frame in run {
            // The notes that the frame came with lie in front of it.
            let headroom = frames.headroom(frame);
            if batch.has_vnet() {
                batch.part(headroom.last_chunk::<{ Vnet::LEN }>().map_or(NOTHING, |b| b));
            }
            // The hook finds the frame's metadata by their number.
            let number = Metadata::number_of(headroom);
            if number != 0 {
                batch.departs((number & !Metadata::UNTAGGED).into());
            }
            let mut parts = frames.parts(frame);
            let first = parts.next().unwrap_or_default();
            if number & Metadata::UNTAGGED == 0 {
                batch.first(first);
            } else {
                batch.first(&first[..ADDRESSES]);
                batch.part(&first[ADDRESSES + TAG..]);
            }
            parts.for_each(|part| batch.part(part));
            batch.end();
        }
        batch.send()
    }
    fn has_vnet(&self) -> bool {
        PacketSender::has_vnet(self)
    }
    fn send_bytes(&mut self, frame: &[u8]) -> io::Result<()> {
        PacketSender::send(self, &[frame]).map(drop)
    }
}

/// Sockets of a port.
#[derive(Debug)]
pub struct ExitSockets<W = PacketSender> {
    /// Socket for frames that leave as they are.
    pub plain: W,
    /// Socket for plain ACKs that the kernel's program brings up to date ([`Frame::restamp`]). Without it
    /// they take `plain`.
    pub restamp: Option<W>,
}

impl<W> ExitSockets<W> {
    fn of(&mut self, frame: &Frame) -> &mut W {
        match &mut self.restamp {
            Some(restamp) if frame.restamp => restamp,
            _ => &mut self.plain,
        }
    }
    fn is_restamp(&self, frame: &Frame) -> bool {
        self.restamp.is_some() && frame.restamp
    }
}

/// Exit of a port; see the module documentation.
#[derive(Debug)]
pub struct Exit<W = PacketSender> {
    sockets: ExitSockets<W>,
    waiting: VecDeque<Frame>,
    blocked: bool,
    /// Set while no frame has left since an attempt failed.
    stuck: Option<Stuck>,
    /// Time of the next attempt, and the pause before it.
    again: Time,
    pause: Duration,
    /// True while only [attempts](Exit::attempt) send.
    held: bool,
    /// True if frames wait for an interface that is down; otherwise they are lost.
    patient: bool,
    /// Place where the hooks find metadata of frames.
    metadata: Option<Leaving>,
    /// Length from which frames leave without their outer tag: the kernel has refused one of it.
    too_long: usize,
    /// Message that the kernel refuses frames.
    refusals: Seldom,
    stats: ExitStats,
}

/// Reasons why a frame did not leave.
enum Refusal {
    /// The kernel has no room now.
    Full,
    /// The interface is down or missing.
    Down,
    /// The kernel refuses this frame.
    Frame(DropReason),
    /// The call was interrupted.
    Again,
}

fn refusal(error: &io::Error) -> Refusal {
    match error.raw_os_error() {
        Some(libc::EINTR) => Refusal::Again,
        Some(libc::ENOBUFS | libc::EAGAIN | libc::ENOMEM) => Refusal::Full,
        Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => Refusal::Down,
        Some(libc::EMSGSIZE) => Refusal::Frame(DropReason::TooLong),
        _ => Refusal::Frame(DropReason::NotWired),
    }
}

/// Marks the checksum as complete, right or wrong, so that the kernel does not complete it.
fn settle(headroom: &mut [u8]) {
    let Some(notes) = headroom.last_chunk_mut() else { return };
    let vnet = Vnet::read(notes);
    if vnet.flags & Vnet::NEEDS_CHECKSUM != 0 {
        *notes = Vnet { flags: vnet.flags & !Vnet::NEEDS_CHECKSUM, ..vnet }.bytes();
    }
}

impl<W: FrameSender> Exit<W> {
    /// Creates an exit over these sockets. If `patient`, frames wait while the interface is down.
    pub fn new(sockets: ExitSockets<W>, patient: bool) -> Exit<W> {
        let (waiting, stats) = (VecDeque::with_capacity(ROOM), ExitStats::default());
        let (stuck, again, pause) = (None, Time::ZERO, Duration::ZERO);
        let (blocked, held, metadata, too_long) = (false, false, None, usize::MAX);
        let refusals = Seldom::new();
        Exit {
            sockets,
            waiting,
            blocked,
            stuck,
            again,
            pause,
            held,
            patient,
            metadata,
            too_long,
            refusals,
            stats,
        }
    }

    /// Adds the place for metadata of frames, which the hooks at the exit read.
    pub fn with_metadata(mut self, records: Leaving) -> Exit<W> {
        self.metadata = Some(records);
        self
    }

    /// Counters since the start.
    pub fn stats(&self) -> ExitStats {
        self.stats
    }

    /// Returns whether a frame may be handed over.
    pub fn takes(&self) -> bool {
        !self.blocked && !self.held && self.waiting.len() < ROOM
    }

    /// Hands a frame over; it leaves with the next [`Exit::flush`].
    pub fn push(&mut self, frames: &mut Frames, mut frame: Frame) {
        // A frame whose payload is absent cannot leave by a real port.
        if frames.parts(&frame).map(<[u8]>::len).sum::<usize>() != frame.len() {
            return self.lose(frames, frame, DropReason::TooLong);
        }
        let noted = self.sockets.of(&frame).has_vnet() && frames.headroom(&frame).len() >= Vnet::LEN;
        if frame.checksum == Checksum::Partial && !noted {
            let done = weir_core::wire::checksum::complete_frame(frames, &frame);
            self.stats.completed_checksums += u64::from(done);
            frame.checksum = Checksum::Valid;
        }
        if noted && frame.checksum != Checksum::Partial {
            settle(frames.headroom_mut(&frame));
        }
        self.leave_metadata(frames, &frame);
        if frame.len() >= self.too_long && frame.gso_size == 0 {
            self.take_tag_off(frames, &frame);
        }
        self.waiting.push_back(frame);
    }

    fn lose(&mut self, frames: &mut Frames, frame: Frame, reason: DropReason) {
        self.stats.drops.count(reason);
        frames.drop(frame, reason);
    }

    /// Leaves a frame's metadata to the hooks, and notes the number by which they are found. The place has
    /// room for all waiting frames, so no number comes again while its frame waits.
    fn leave_metadata(&mut self, frames: &mut Frames, frame: &Frame) {
        let Some(metadata) = Metadata::of(frames.headroom(frame)) else { return };
        let number = self.metadata.as_mut().map_or(0, |records| records.put(metadata, None));
        Metadata::renumber(frames.headroom_mut(frame), number);
    }

    /// Notes that a frame leaves without its outer tag, which the hooks put back. Returns whether it has one
    /// that can be taken off.
    fn take_tag_off(&mut self, frames: &mut Frames, frame: &Frame) -> bool {
        let (headroom, tag) = (frames.headroom(frame), outer_tag(frames.bytes(frame)));
        let before = Metadata::of(headroom).unwrap_or_default();
        let has_room = headroom.len() >= Metadata::LEN + Vnet::LEN;
        let (Some(records), Some(tag)) = (&mut self.metadata, tag.filter(|_| has_room)) else { return false };
        if before.number & Metadata::UNTAGGED != 0 {
            return false;
        }
        let number = records.put(before, Some(tag)) | Metadata::UNTAGGED;
        let headroom = frames.headroom_mut(frame);
        Metadata::renumber(headroom, number);
        if let Some(notes) = headroom.last_chunk_mut() {
            *notes = Vnet::read(notes).moved(-(TAG as i16)).bytes();
        }
        true
    }

    /// Returns whether the first waiting frame leaves without its outer tag.
    fn is_untagged(&self, frames: &Frames) -> bool {
        let number = |frame| Metadata::number_of(frames.headroom(frame));
        self.waiting.front().is_some_and(|frame| number(frame) & Metadata::UNTAGGED != 0)
    }

    /// Frames handed over that have not left.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Reason why no frame leaves, if none does.
    pub fn stuck(&self) -> Option<Stuck> {
        self.stuck
    }

    /// Holds or releases the exit. A held exit sends only [attempts](Exit::attempt), and loses all waiting
    /// frames but the first.
    pub fn hold(&mut self, frames: &mut Frames, held: bool) {
        self.held = held;
        (self.blocked, self.again, self.pause) = (false, Time::ZERO, Duration::ZERO);
        while held && self.waiting.len() > 1 {
            if let Some(frame) = self.waiting.pop_back() {
                self.lose(frames, frame, DropReason::PortDown);
            }
        }
    }

    /// Tries the way with the first waiting frame, or with a probe. The counts at the destination show
    /// whether it arrives. Without a hook, a frame without its outer tag would leave in another network.
    pub fn attempt(&mut self, frames: &mut Frames, now: Time) {
        self.stats.calls += 1;
        if self.waiting.is_empty() || self.is_untagged(frames) {
            match self.sockets.plain.send_bytes(&PROBE) {
                Ok(()) => {
                    self.stats.offered += 1;
                    self.stuck = None;
                }
                Err(error) => self.note(&error, now),
            }
            return;
        }
        match self.sockets.of(&self.waiting[0]).send(frames, self.waiting.iter().take(1)) {
            Ok(0) => {}
            Ok(count) => self.sent(frames, count),
            Err(error) => self.refused(frames, &error, now),
        }
    }

    /// Sends the frames handed over. Returns the time of the next attempt if some have to wait.
    pub fn flush(&mut self, frames: &mut Frames, now: Time) -> Option<Time> {
        if self.held {
            return None;
        }
        if self.blocked && now < self.again {
            return Some(self.again);
        }
        self.blocked = false;
        while let Some(first) = self.waiting.front() {
            let restamp = self.sockets.is_restamp(first);
            let run = self.waiting.iter().take(BATCH);
            let len = run.take_while(|frame| self.sockets.is_restamp(frame) == restamp).count();
            self.stats.calls += 1;
            let sent = self.sockets.of(&self.waiting[0]).send(frames, self.waiting.iter().take(len));
            match sent {
                Ok(0) => self.blocked = true,
                Ok(count) => self.sent(frames, count),
                Err(error) => self.refused(frames, &error, now),
            }
            if self.blocked {
                self.stats.full += 1;
                self.pause = self.pause.saturating_mul(2).clamp(PAUSES[0], PAUSES[1]);
                self.again = now + self.pause;
                return Some(self.again);
            }
        }
        None
    }

    fn sent(&mut self, frames: &mut Frames, count: usize) {
        (self.stuck, self.pause) = (None, Duration::ZERO);
        for frame in self.waiting.drain(..count) {
            self.stats.sent += 1;
            self.stats.offered += 1;
            self.stats.sent_bytes += frame.len() as u64;
            frames.transmitted(frame);
        }
    }

    fn note(&mut self, error: &io::Error, now: Time) {
        let errno = error.raw_os_error().unwrap_or_default();
        // `ENOBUFS` comes from behind the hook, which has counted the frame, or from a filter that drops.
        self.stats.offered += u64::from(errno == libc::ENOBUFS);
        let since = self.stuck.map_or(now, |stuck| stuck.since);
        self.stuck = Some(Stuck { since, errno });
    }

    fn refused(&mut self, frames: &mut Frames, error: &io::Error, now: Time) {
        let reason = match refusal(error) {
            Refusal::Again => return,
            Refusal::Full => {
                self.note(error, now);
                return self.blocked = true;
            }
            Refusal::Down if self.patient => {
                self.note(error, now);
                return self.blocked = true;
            }
            Refusal::Down => {
                self.note(error, now);
                DropReason::PortDown
            }
            Refusal::Frame(reason) => {
                if reason == DropReason::TooLong && self.shorten_first(frames) {
                    return;
                }
                self.stats.refused += 1;
                if let Some(times) = self.refusals.is_due(now) {
                    tracing::warn!(times, "the kernel refuses frames, which are lost: {error}");
                }
                reason
            }
        };
        if let Some(frame) = self.waiting.pop_front() {
            self.lose(frames, frame, reason);
        }
    }

    /// Lets the first frame, and others as long as it, leave without their outer tags. Returns whether it has
    /// one.
    fn shorten_first(&mut self, frames: &mut Frames) -> bool {
        let Some(frame) = self.waiting.pop_front() else { return false };
        let shortens = self.take_tag_off(frames, &frame);
        if shortens {
            self.too_long = self.too_long.min(frame.len());
        }
        self.waiting.push_front(frame);
        shortens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wire that takes `room` frames, then answers with the error.
    #[derive(Default)]
    struct Wire {
        sent: Vec<Vec<u8>>,
        room: usize,
        error: i32,
    }

    impl FrameSender for Wire {
        fn send<'f>(
            &mut self,
            frames: &'f Frames,
            run: impl Iterator<Item = &'f Frame>,
        ) -> io::Result<usize> {
            let before = self.sent.len();
            self.sent
                .extend(run.take(self.room).map(|frame| frames.parts(frame).flatten().copied().collect()));
            self.room -= self.sent.len() - before;
            match self.sent.len() - before {
                0 => Err(io::Error::from_raw_os_error(self.error)),
                sent => Ok(sent),
            }
        }
        fn has_vnet(&self) -> bool {
            false
        }
        fn send_bytes(&mut self, frame: &[u8]) -> io::Result<()> {
            if self.room == 0 {
                return Err(io::Error::from_raw_os_error(self.error));
            }
            self.room -= 1;
            self.sent.push(frame.to_vec());
            Ok(())
        }
    }

    const fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn exit(patient: bool) -> Exit<Wire> {
        let wire = || Wire { room: 100, ..Wire::default() };
        Exit::new(ExitSockets { plain: wire(), restamp: Some(wire()) }, patient)
    }

    fn push(exit: &mut Exit<Wire>, frames: &mut Frames, number: u8, restamp: bool) {
        let mut frame = frames.receive_copy(&[number; 60], 60, Time::ZERO).unwrap();
        frame.restamp = restamp;
        exit.push(frames, frame);
    }

    fn numbers(wire: &Wire) -> Vec<u8> {
        wire.sent.iter().map(|frame| frame[0]).collect()
    }

    #[test]
    fn frames_keep_their_order_between_sockets() {
        let (mut exit, mut frames) = (exit(true), Frames::new(8, 128, 0));
        for (number, restamp) in [(1, false), (2, true), (3, true), (4, false)] {
            push(&mut exit, &mut frames, number, restamp);
        }
        exit.sockets.plain.room = 1;
        exit.sockets.plain.error = libc::ENOBUFS;
        assert!(exit.flush(&mut frames, ms(0)).is_some());
        // The second plain frame waits for room. The frames for the other socket in front of it have left.
        assert_eq!(numbers(&exit.sockets.plain), [1]);
        assert_eq!(numbers(exit.sockets.restamp.as_ref().unwrap()), [2, 3]);
        assert!(!exit.takes() && exit.waiting() == 1);
        exit.sockets.plain.room = 9;
        assert_eq!(exit.flush(&mut frames, ms(1)), None);
        assert_eq!(numbers(&exit.sockets.plain), [1, 4]);
        assert_eq!((exit.stats().calls, exit.stats().sent, exit.stats().full), (4, 4, 1));
        assert_eq!((frames.free_chunks(), frames.drops().total()), (8, 0));
    }

    #[test]
    fn a_full_device_gets_each_frame_once() {
        let (mut exit, mut frames) = (exit(true), Frames::new(300, 128, 0));
        for number in 0..200 {
            push(&mut exit, &mut frames, number, false);
        }
        (exit.sockets.plain.room, exit.sockets.plain.error) = (0, libc::EAGAIN);
        let mut now = ms(0);
        while let Some(again) = exit.flush(&mut frames, now) {
            exit.sockets.plain.room = 7;
            now = again;
        }
        assert_eq!(numbers(&exit.sockets.plain), (0..200).collect::<Vec<u8>>());
    }

    /// Attempts in a second for a frame without room: after 50, 100, ..., 1,600 us, and every 2 ms from then
    /// on.
    #[test]
    fn a_port_without_room_is_tried_less_and_less_often() {
        let (mut exit, mut frames) = (exit(true), Frames::new(8, 128, 0));
        push(&mut exit, &mut frames, 1, false);
        (exit.sockets.plain.room, exit.sockets.plain.error) = (0, libc::ENOBUFS);
        let mut now = ms(0);
        while now < ms(1000) {
            now = exit.flush(&mut frames, now).unwrap();
        }
        assert_eq!(exit.stats().calls, 505);
        // A filter in front of the hook refuses in the same way, so the hook may have seen all attempts.
        assert_eq!((exit.stats().offered, exit.stats().sent), (505, 0));
        assert_eq!(exit.stuck(), Some(Stuck { since: ms(0), errno: libc::ENOBUFS }));
        exit.sockets.plain.room = 1;
        assert_eq!((exit.flush(&mut frames, now), exit.stuck()), (None, None));
    }

    #[test]
    fn a_port_that_is_held_sends_what_it_is_tried_with() {
        let (mut exit, mut frames) = (exit(true), Frames::new(8, 128, 0));
        (exit.sockets.plain.room, exit.sockets.plain.error) = (0, libc::ENOBUFS);
        (1..=3).for_each(|number| push(&mut exit, &mut frames, number, false));
        exit.flush(&mut frames, ms(0));
        exit.hold(&mut frames, true);
        assert_eq!((exit.waiting(), frames.drops().get(DropReason::PortDown)), (1, 2));
        assert!(!exit.takes() && exit.flush(&mut frames, ms(1)).is_none());
        exit.sockets.plain.room = 9;
        assert_eq!(exit.flush(&mut frames, ms(2)), None);
        assert_eq!(numbers(&exit.sockets.plain), [0; 0]);
        exit.attempt(&mut frames, ms(3));
        exit.attempt(&mut frames, ms(4));
        assert_eq!(exit.sockets.plain.sent, [vec![1; 60], PROBE.to_vec()]);
        exit.hold(&mut frames, false);
        assert!(exit.takes());
    }

    #[test]
    fn a_checksum_that_has_been_completed_is_not_completed_again() {
        let vnet = Vnet {
            flags: Vnet::NEEDS_CHECKSUM | 2,
            gso_type: 0,
            header: 54,
            checksum_start: 34,
            ..Vnet::default()
        };
        let mut headroom = [&[7; 14][..], &vnet.bytes()].concat();
        settle(&mut headroom);
        assert_eq!(headroom[..14], [7; 14]);
        assert_eq!(headroom[14..], Vnet { flags: 2, ..vnet }.bytes());
        settle(&mut []);
    }

    #[test]
    fn an_interface_that_is_down_keeps_frames_or_loses_them() {
        for patient in [true, false] {
            let (mut exit, mut frames) = (exit(patient), Frames::new(8, 128, 0));
            (exit.sockets.plain.room, exit.sockets.plain.error) = (0, libc::ENETDOWN);
            push(&mut exit, &mut frames, 1, false);
            push(&mut exit, &mut frames, 2, false);
            assert_eq!(exit.flush(&mut frames, ms(0)).is_some(), patient);
            assert_eq!(exit.stuck(), Some(Stuck { since: ms(0), errno: libc::ENETDOWN }));
            assert_eq!(exit.stats().offered, 0);
            assert_eq!(frames.drops().get(DropReason::PortDown), if patient { 0 } else { 2 });
        }
    }

    #[test]
    fn a_frame_that_is_refused_holds_nobody_up() {
        let (mut exit, mut frames) = (exit(true), Frames::new(8, 128, 0));
        push(&mut exit, &mut frames, 1, true);
        push(&mut exit, &mut frames, 2, false);
        (exit.sockets.restamp.as_mut().unwrap().room, exit.sockets.restamp.as_mut().unwrap().error) =
            (0, libc::EMSGSIZE);
        assert_eq!(exit.flush(&mut frames, ms(0)), None);
        assert_eq!(numbers(&exit.sockets.plain), [2]);
        assert_eq!(frames.drops().get(DropReason::TooLong), 1);
        // A frame whose payload is absent.
        let frame = frames.receive_copy(&[3; 60], 1514, Time::ZERO).unwrap();
        exit.push(&mut frames, frame);
        assert_eq!((exit.waiting(), frames.free_chunks()), (0, 8));
    }
}
