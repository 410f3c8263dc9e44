//! Receiving half of a connection: the data that has arrived, and the times of its acknowledgement.
//!
//! Delayed ACKs follow RFC 9293 §3.8.6.3 with the ratio as a parameter. Segments out of order, segments that
//! fill a gap, duplicates and FINs are acknowledged at once (RFC 5681 §4.2). So are segments with PSH, as in
//! Linux, since the application has read them at once and the sender may have no more. Marks are echoed by
//! RFC 3168 §6.1.3; the first mark and segments with CWR are acknowledged at once, as in Linux. Or marks are
//! echoed one by one by RFC 8257 §3.2.

use super::config::TcpConfig;
use super::reassembly::Reassembly;
use super::segment::{Segment, CE};
use weir_core::time::Time;
use weir_core::wire::{Flags, SackBlocks, Seq};

/// Segments that Linux acknowledges one by one after the first mark, since the sender's window may be small.
const QUICK_AFTER_MARK: u32 = 2;

/// Echo of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// ECN was not negotiated.
    Off,
    /// Echoes until the sender reports that it has reduced its window (RFC 3168).
    Classic,
    /// Echoes the state of the last segment, and acknowledges changes at once (RFC 8257).
    Dctcp,
}

/// Result of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Payload bytes newly in order; the FIN counts as one.
    pub advanced: u64,
    /// True if the FIN has been received in order.
    pub finished: bool,
}

/// Contents of an ACK, without SACK blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Acknowledgement number.
    pub ack: u32,
    /// ACK, and ECE to echo a mark.
    pub flags: Flags,
}

/// Receiving half. See the [module documentation](self). The fields that every segment touches come first.
#[derive(Debug)]
#[repr(C)]
pub struct Receiver {
    stream: Reassembly,
    /// Stream offset of the peer's FIN; [`u64::MAX`] before it is known.
    fin: u64,
    /// RCV.NXT of the last ACK sent.
    acked: u64,
    /// Latest time of the next ACK; [`Time::MAX`] if none is owed.
    deadline: Time,
    /// The peer's initial sequence number.
    irs: u32,
    /// TSval to be echoed (RFC 7323 §4.3).
    recent: u32,
    /// Segments received since the last ACK.
    waiting: u32,
    /// Segments still to be acknowledged one by one.
    quick: u32,
    /// Window as advertised, not scaled.
    window: u16,
    echo: Echo,
    /// True if ACKs carry ECE.
    ece: bool,
    /// True if an ACK is due now.
    now: bool,
    sack: bool,
    /// Pending ACK for data that was received before the mark changed.
    early: Option<Box<Acknowledgement>>,
    /// Range received twice, to be reported first (RFC 2883).
    duplicate: Option<Box<(u64, u64)>>,
}

impl Receiver {
    /// Creates the half of a connection whose peer's SYN is `syn`. `shift` scales the advertised window.
    pub fn new(config: &TcpConfig, syn: &Segment, shift: u8, echo: Echo, sack: bool) -> Receiver {
        Receiver {
            irs: syn.seq,
            stream: Reassembly::new(),
            fin: u64::MAX,
            window: (config.receive_window >> shift).min(0xffff) as u16,
            echo,
            ece: false,
            recent: syn.timestamps.map_or(0, |t| t.value),
            acked: 0,
            waiting: 0,
            now: false,
            deadline: Time::MAX,
            quick: config.quick_acks,
            duplicate: None,
            sack,
            early: None,
        }
    }

    /// Returns RCV.NXT on the wire.
    pub fn ack(&self) -> u32 {
        self.irs.wrapping_add(1).wrapping_add(self.stream.next() as u32)
    }
    /// Returns the window to advertise.
    pub fn window(&self) -> u16 {
        self.window
    }
    /// Returns the peer's timestamp to echo.
    pub fn timestamp_to_echo(&self) -> u32 {
        self.recent
    }
    /// Returns whether the peer's FIN and all data before it have been received.
    pub fn finished(&self) -> bool {
        self.stream.next() > self.fin
    }
    /// Returns whether an ACK is due at `now`.
    pub fn owes_ack(&self, now: Time) -> bool {
        self.now || self.early.is_some() || self.deadline <= now
    }
    /// Returns the time of the delayed ACK; [`Time::MAX`] if there is none.
    pub fn deadline(&self) -> Time {
        self.deadline
    }
    /// Requests an ACK at once in any case.
    pub fn acknowledge(&mut self) {
        self.now = true;
    }

    /// Returns the stream offset of a sequence number near RCV.NXT; `None` if it is before the stream.
    fn offset(&self, seq: u32) -> Option<u64> {
        let distance = seq.wrapping_sub(self.ack()) as i32;
        self.stream.next().checked_add_signed(i64::from(distance))
    }

    /// Handles a segment with payload or FIN.
    #[inline(always)]
    pub fn on_segment(&mut self, config: &TcpConfig, s: &Segment, now: Time) -> Accepted {
        let fin = s.has(Flags::FIN);
        let len = u64::from(s.payload) + u64::from(fin);
        self.note_timestamp(s);
        let Some(start) = self.offset(s.seq) else {
            self.now = true;
            return Accepted::default();
        };
        let end = start + len;
        if fin {
            self.fin = end - 1;
        }
        if self.echo != Echo::Off {
            self.note_mark(s);
        }
        let before = self.stream.next();
        let got = self.stream.receive(start, end);
        if got.duplicate.is_some() {
            self.duplicate = got.duplicate.map(Box::new);
        }
        let pushed = s.has(Flags::PSH) && config.push_acks;
        let delayable = got.in_order && !got.filled_gap && got.duplicate.is_none() && !fin && !pushed;
        self.delay(config, delayable, now);
        Accepted { advanced: self.stream.next() - before, finished: self.finished() }
    }

    /// Records the timestamp of the segment that the next ACK is for, with payload or without (RFC 7323
    /// §4.3).
    #[inline(always)]
    pub fn note_timestamp(&mut self, s: &Segment) {
        let Some(t) = s.timestamps else { return };
        let sent = self.irs.wrapping_add(1).wrapping_add(self.acked as u32);
        if s.seq.wrapping_sub(sent) as i32 <= 0 && t.value.wrapping_sub(self.recent) as i32 >= 0 {
            self.recent = t.value;
        }
    }

    #[inline(never)]
    fn note_mark(&mut self, s: &Segment) {
        let marked = s.ecn == CE;
        match self.echo {
            Echo::Off => {}
            Echo::Classic => {
                if s.has(Flags::CWR) {
                    self.ece = false;
                    self.now |= s.payload > 0;
                }
                if marked && !self.ece {
                    self.quick = self.quick.max(QUICK_AFTER_MARK);
                }
                self.ece |= marked;
            }
            Echo::Dctcp if marked != self.ece => {
                // Waiting data was received with the other mark, and is acknowledged with it. Then the change
                // is reported at once, as in Linux (`dctcp_ece_ack_update`).
                if self.waiting > 0 {
                    self.early = Some(Box::new(self.describe()));
                    (self.waiting, self.deadline) = (0, Time::MAX);
                }
                (self.ece, self.now) = (marked, true);
            }
            Echo::Dctcp => {}
        }
    }

    fn delay(&mut self, config: &TcpConfig, delayable: bool, now: Time) {
        self.waiting += 1;
        if self.quick > 0 {
            self.quick -= 1;
            self.now = true;
        }
        if !delayable || self.waiting >= config.delayed_ack || self.stream.has_gap() {
            self.now = true;
        } else if self.deadline == Time::MAX {
            self.deadline = now + config.delayed_ack_timer;
        }
    }

    /// Takes the contents of an ACK that leaves now, and writes SACK blocks into `sack`, if there are any.
    /// The ACK taken is no longer owed.
    #[inline]
    pub fn take_ack(&mut self, timestamps: bool, sack: &mut SackBlocks) -> Acknowledgement {
        if self.early.is_some() {
            return self.take_early();
        }
        if self.sack && (self.stream.has_gap() || self.duplicate.is_some()) {
            *sack = self.blocks(timestamps);
        }
        let ack = self.describe();
        self.acked = self.stream.next();
        (self.waiting, self.now, self.deadline, self.duplicate) = (0, false, Time::MAX, None);
        ack
    }

    #[inline]
    fn describe(&self) -> Acknowledgement {
        let flags = if self.ece { Flags::ACK.with(Flags::ECE) } else { Flags::ACK };
        Acknowledgement { ack: self.ack(), flags }
    }

    fn take_early(&mut self) -> Acknowledgement {
        self.early.take().map_or_else(|| self.describe(), |early| *early)
    }

    fn blocks(&self, timestamps: bool) -> SackBlocks {
        let mut sack = SackBlocks::default();
        let most = if timestamps { 3 } else { 4 };
        let mut all = [(0, 0); 4];
        let mut count = 0;
        if let Some(duplicate) = &self.duplicate {
            all[0] = **duplicate;
            count = 1;
        }
        let mut ranges = [(0, 0); 4];
        let found = self.stream.blocks(most - count, &mut ranges);
        all[count..count + found].copy_from_slice(&ranges[..found]);
        count += found;
        let wire = |offset: u64| Seq(self.irs).plus(1).plus(offset as u32);
        for (block, (left, right)) in sack.blocks.iter_mut().zip(&all[..count]) {
            *block = (wire(*left), wire(*right));
        }
        sack.count = count as u8;
        sack
    }
}
