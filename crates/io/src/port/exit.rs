//! The way out of a port, over packet sockets.
//!
//! Frames leave in the order in which they were handed over, whichever of the sockets each one takes. What the
//! kernel has no room for stays at the front, and the port takes nothing more until it has left: no frame is sent
//! twice, none is lost for want of room.

use crate::bpf::{Leaving, Metadata};
use crate::sys::packet::{Sender, Vnet};
use std::collections::VecDeque;
use std::io;
use weir_core::frame::{Checksum, Frame, Frames};
use weir_core::stats::DropReason;

/// Frames that are handed over at most before the kernel has taken them.
const ROOM: usize = 256;
/// Frames that one call sends.
const BATCH: usize = 64;

/// What went out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitStats {
    /// Frames that the kernel took.
    pub sent: u64,
    /// Bytes of them.
    pub sent_bytes: u64,
    /// Checksums computed in full before a frame left.
    pub completed_checksums: u64,
    /// System calls to send.
    pub calls: u64,
    /// How often the kernel had no room.
    pub full: u64,
    /// Frames that the kernel refused: too long, or malformed.
    pub refused: u64,
}

/// Sends frames of the pool.
pub trait FrameSender {
    /// Sends frames in order and says how many left. The error is that of the first frame.
    fn send<'f>(&mut self, frames: &'f Frames, run: impl Iterator<Item = &'f Frame>) -> io::Result<usize>;
    /// Are frames sent with notes on their checksum?
    fn has_vnet(&self) -> bool;
}

impl FrameSender for Sender {
    fn send<'f>(&mut self, frames: &'f Frames, run: impl Iterator<Item = &'f Frame>) -> io::Result<usize> {
        const NOTHING: &[u8] = &[0; Vnet::LEN];
        let mut batch = self.batch();
        for frame in run {
            // What it came with lies in front of it.
            let headroom = frames.headroom(frame);
            if batch.has_vnet() {
                batch.part(headroom.last_chunk::<{ Vnet::LEN }>().map_or(NOTHING, |b| b));
            }
            // The hook finds the frame's metadata by their number.
            let number = Metadata::number_of(headroom);
            if number != 0 {
                batch.departs(number.into());
            }
            let mut parts = frames.parts(frame);
            batch.first(parts.next().unwrap_or_default());
            parts.for_each(|part| batch.part(part));
            batch.end();
        }
        batch.send()
    }
    fn has_vnet(&self) -> bool {
        Sender::has_vnet(self)
    }
}

/// The sockets of a port.
#[derive(Debug)]
pub struct ExitSockets<W = Sender> {
    /// For frames that leave as they are.
    pub plain: W,
    /// For plain ACKs that the kernel's program brings up to date ([`Frame::restamp`]); all go by `plain` without.
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

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Exit<W = Sender> {
    sockets: ExitSockets<W>,
    waiting: VecDeque<Frame>,
    blocked: bool,
    /// Frames wait for an interface that is down; without, they are lost.
    patient: bool,
    /// Where the hooks find metadata of frames.
    metadata: Option<Leaving>,
    stats: ExitStats,
}

/// What became of an attempt.
enum Refusal {
    /// There is no room now.
    Full,
    /// The interface is down or gone.
    Down,
    /// It was this frame.
    Frame(DropReason),
    /// Nothing was wrong.
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

/// The checksum of a frame with these notes is complete, right or wrong: the kernel is not asked to complete it.
fn settle(headroom: &mut [u8]) {
    let Some(notes) = headroom.last_chunk_mut() else { return };
    let vnet = Vnet::read(notes);
    if vnet.flags & Vnet::NEEDS_CHECKSUM != 0 {
        *notes = Vnet { flags: vnet.flags & !Vnet::NEEDS_CHECKSUM, ..vnet }.bytes();
    }
}

impl<W: FrameSender> Exit<W> {
    /// A way out over these sockets. Frames wait while the interface is down if `patient`.
    pub fn new(sockets: ExitSockets<W>, patient: bool) -> Exit<W> {
        let (waiting, stats) = (VecDeque::with_capacity(ROOM), ExitStats::default());
        Exit { sockets, waiting, blocked: false, patient, metadata: None, stats }
    }

    /// The same way out, where frames keep their metadata.
    pub fn with_metadata(mut self, records: Leaving) -> Exit<W> {
        self.metadata = Some(records);
        self
    }

    /// What went out so far.
    pub fn stats(&self) -> ExitStats {
        self.stats
    }

    /// May a frame be handed over?
    pub fn takes(&self) -> bool {
        !self.blocked && self.waiting.len() < ROOM
    }

    /// Hands a frame over; it leaves with the next [`Exit::flush`].
    pub fn push(&mut self, frames: &mut Frames, mut frame: Frame) {
        // A frame whose payload is elsewhere cannot leave by a real port.
        if frames.parts(&frame).map(<[u8]>::len).sum::<usize>() != frame.len() {
            return frames.drop(frame, DropReason::TooLong);
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
        self.waiting.push_back(frame);
    }

    /// Leaves a frame's metadata to the hooks, and notes by which number they are found. As many frames wait
    /// at most as there is room for before a number comes again.
    fn leave_metadata(&mut self, frames: &mut Frames, frame: &Frame) {
        let Some(metadata) = Metadata::of(frames.headroom(frame)) else { return };
        let number = self.metadata.as_mut().map_or(0, |records| records.put(metadata));
        Metadata::renumber(frames.headroom_mut(frame), number);
    }

    /// Frames that were handed over and have not left.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Sends what was handed over. True if some of it has to wait.
    pub fn flush(&mut self, frames: &mut Frames) -> bool {
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
                Err(error) => self.refused(frames, &error),
            }
            if self.blocked {
                self.stats.full += 1;
                return true;
            }
        }
        false
    }

    fn sent(&mut self, frames: &mut Frames, count: usize) {
        for frame in self.waiting.drain(..count) {
            self.stats.sent += 1;
            self.stats.sent_bytes += frame.len() as u64;
            frames.transmitted(frame);
        }
    }

    fn refused(&mut self, frames: &mut Frames, error: &io::Error) {
        let reason = match refusal(error) {
            Refusal::Again => return,
            Refusal::Full => return self.blocked = true,
            Refusal::Down if self.patient => return self.blocked = true,
            Refusal::Down => DropReason::PortDown,
            Refusal::Frame(reason) => {
                self.stats.refused += 1;
                tracing::debug!("the kernel refuses a frame: {error}");
                reason
            }
        };
        if let Some(frame) = self.waiting.pop_front() {
            frames.drop(frame, reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::time::Time;

    /// Takes so many frames, then answers with the error.
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
        assert!(exit.flush(&mut frames));
        // The second plain frame waits for room; those for the other socket in front of it have left.
        assert_eq!(numbers(&exit.sockets.plain), [1]);
        assert_eq!(numbers(exit.sockets.restamp.as_ref().unwrap()), [2, 3]);
        assert!(!exit.takes() && exit.waiting() == 1);
        exit.sockets.plain.room = 9;
        assert!(!exit.flush(&mut frames));
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
        while exit.flush(&mut frames) {
            exit.sockets.plain.room = 7;
        }
        assert_eq!(numbers(&exit.sockets.plain), (0..200).collect::<Vec<u8>>());
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
            assert_eq!(exit.flush(&mut frames), patient);
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
        assert!(!exit.flush(&mut frames));
        assert_eq!(numbers(&exit.sockets.plain), [2]);
        assert_eq!(frames.drops().get(DropReason::TooLong), 1);
        // Its payload is elsewhere.
        let frame = frames.receive_copy(&[3; 60], 1514, Time::ZERO).unwrap();
        exit.push(&mut frames, frame);
        assert_eq!((exit.waiting(), frames.free_chunks()), (0, 8));
    }
}
