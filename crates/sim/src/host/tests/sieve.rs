//! A node in front of a link that treats chosen frames as a test specifies.

use std::collections::VecDeque;
use weir_core::frame::Frame;
use weir_core::node::{Cx, Node, Port, PortSet, Transmit};
use weir_core::stats::DropReason;
use weir_core::time::{Duration, Time};
use weir_core::wire;

/// Treatment of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Lost,
    Marked,
    Late(Duration),
    Twice,
}

/// Forwards frames at once, except those with a fate. Frames are numbered from 0.
#[derive(Debug, Default)]
pub(super) struct Sieve {
    fates: Vec<(u64, Fate)>,
    /// Arrival times of the frames.
    pub(super) seen: Vec<Time>,
    waiting: VecDeque<(Time, Frame)>,
}

impl Sieve {
    pub(super) const IN: Port = Port(0);
    pub(super) const OUT: Port = Port(1);

    pub(super) fn new(frames: impl IntoIterator<Item = u64>, fate: Fate) -> Sieve {
        Sieve::default().and(frames, fate)
    }

    pub(super) fn and(mut self, frames: impl IntoIterator<Item = u64>, fate: Fate) -> Sieve {
        self.fates.extend(frames.into_iter().map(|n| (n, fate)));
        self
    }
}

impl Node for Sieve {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, _: Port, frame: Frame) {
        let n = self.seen.len() as u64;
        self.seen.push(cx.now);
        let fate = self.fates.iter().find(|(number, _)| *number == n).map(|(_, fate)| *fate);
        let mut at = cx.now;
        match fate {
            Some(Fate::Lost) => return cx.drop(frame, DropReason::RandomLoss),
            Some(Fate::Marked) => {
                // Changes ECT(0) to CE in the header behind 14 bytes of Ethernet (RFC 3168 §5). An increase
                // of a word by one decreases the checksum by one.
                let bytes = cx.frames.bytes_mut(&frame);
                bytes[15] += 1;
                let checksum = u16::from_be_bytes([bytes[24], bytes[25]]);
                let less = if checksum == 0 { 0xfffe } else { checksum - 1 };
                bytes[24..26].copy_from_slice(&less.to_be_bytes());
            }
            Some(Fate::Late(by)) => at += by,
            Some(Fate::Twice) => {
                let copy = cx.frames.copy(&frame);
                self.waiting.extend(copy.map(|copy| (at, copy)));
            }
            None => {}
        }
        debug_assert!(wire::packet(cx.frames.bytes(&frame), frame.len()).is_ok());
        let behind = self.waiting.iter().take_while(|(t, _)| *t <= at).count();
        self.waiting.insert(behind, (at, frame));
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>, _: PortSet) -> Option<Transmit> {
        self.waiting.front().filter(|(at, _)| *at <= cx.now)?;
        let (at, frame) = self.waiting.pop_front()?;
        Some(Transmit { port: Sieve::OUT, at, frame })
    }

    fn next_deadline(&self, _: PortSet) -> Option<Time> {
        self.waiting.front().map(|(at, _)| *at)
    }
}
