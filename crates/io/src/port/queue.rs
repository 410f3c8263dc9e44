//! One socket on one queue of a device, and its four rings.

use super::ring::{Consumer, Producer};
use super::HEADROOM;
use crate::bpf::{Stamp, STAMP_MAGIC};
use crate::sys::pod;
use crate::sys::xsk::{Desc, Losses, Socket, Which};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use weir_core::frame::{Frame, Frames};
use weir_core::stats::DropReason;
use weir_core::time::Time;

/// How asking the kernel to send ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kick {
    /// All is sent or being sent.
    Done,
    /// The device takes no more for now.
    Later,
    /// The device is down or gone.
    Down,
}

#[derive(Debug)]
pub(super) struct Queue {
    socket: Socket,
    fill: Producer<u64>,
    completion: Consumer<u64>,
    receive: Option<Consumer<Desc>>,
    transmit: Option<Producer<Desc>>,
    chunk_size: usize,
    /// Chunks that the kernel should have to receive into.
    fill_target: u32,
    /// Stamp of the newest frame: order on a queue is never changed by stamps.
    latest: Time,
}

impl Queue {
    /// A socket with its rings, not bound yet. `transmit` is given to the first queue of a port.
    pub fn new(
        socket: Socket,
        ring: u32,
        chunk_size: usize,
        fill_target: Option<u32>,
        transmit: bool,
    ) -> io::Result<Queue> {
        let (map, layout) = socket.ring(Which::Fill, ring)?;
        let fill = Producer::new(map, layout, ring);
        let (map, layout) = socket.ring(Which::Completion, ring)?;
        let completion = Consumer::new(map, layout, ring);
        let make = |which| socket.ring(which, ring);
        let receive = fill_target.map(|_| make(Which::Receive)).transpose()?;
        let receive = receive.map(|(map, layout)| Consumer::new(map, layout, ring));
        let transmit = transmit.then(|| make(Which::Transmit)).transpose()?;
        let transmit = transmit.map(|(map, layout)| Producer::new(map, layout, ring));
        let fill_target = fill_target.unwrap_or(0).min(ring);
        Ok(Queue { socket, fill, completion, receive, transmit, chunk_size, fill_target, latest: Time::ZERO })
    }

    pub fn socket(&self) -> &Socket {
        &self.socket
    }
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
    pub fn receives(&self) -> bool {
        self.receive.is_some()
    }
    pub fn losses(&self) -> Losses {
        self.socket.losses().unwrap_or_default()
    }

    /// Takes at most `limit` frames, and says how many of them had no stamp.
    pub fn receive(&mut self, frames: &mut Frames, limit: usize, now: Time, out: &mut Vec<Frame>) -> u64 {
        let Some(ring) = &mut self.receive else { return 0 };
        let mut unstamped = 0;
        for _ in 0..limit {
            let Some(desc) = ring.pop() else { break };
            let (chunk, offset) =
                (desc.addr as usize / self.chunk_size, desc.addr as usize % self.chunk_size);
            let stamp = take_stamp(frames, chunk as u32, offset);
            unstamped += u64::from(stamp.is_none());
            self.latest = self.latest.max(stamp.unwrap_or(now));
            out.push(frames.received(
                chunk as u32,
                offset,
                desc.len as usize,
                desc.len as usize,
                self.latest,
            ));
        }
        ring.release();
        unstamped
    }

    /// Gives the kernel chunks to receive into.
    pub fn refill(&mut self, frames: &mut Frames) {
        let missing = self.fill_target.saturating_sub(self.fill.pending());
        // In batches: the index is shared with the CPU that receives.
        if missing < 32.min(self.fill_target) {
            return;
        }
        for _ in 0..missing {
            let Some(chunk) = frames.take_chunk() else { break };
            if !self.fill.push((chunk as usize * self.chunk_size) as u64) {
                frames.put_chunk(chunk);
                break;
            }
        }
        self.fill.publish();
        if self.fill.needs_wakeup() {
            // What goes wrong here shows on the next receive or transmit.
            let _ = self.socket.wake_receive();
        }
    }

    pub fn room(&mut self) -> usize {
        self.transmit.as_mut().map_or(0, |ring| ring.room() as usize)
    }

    pub fn push(&mut self, addr: u64, len: u32) -> bool {
        self.transmit.as_mut().is_some_and(|ring| ring.push(Desc { addr, len, options: 0 }))
    }

    pub fn has_pending(&mut self) -> bool {
        self.transmit.as_mut().is_some_and(|ring| ring.pending() > 0)
    }

    /// Takes back the chunks that the kernel has transmitted.
    pub fn reclaim(&mut self, frames: &mut Frames) {
        while let Some(addr) = self.completion.pop() {
            frames.put_chunk((addr as usize / self.chunk_size) as u32);
        }
        self.completion.release();
    }

    /// Has the kernel send what is in the ring. In copy mode one call sends 32 frames before Linux
    /// 6.18 and then says EAGAIN.
    pub fn kick(&mut self, frames: &mut Frames, kicks: &mut u64) -> Kick {
        let Some(ring) = &mut self.transmit else { return Kick::Done };
        ring.publish();
        if !ring.needs_wakeup() {
            return Kick::Done;
        }
        let mut before = ring.pending();
        loop {
            *kicks += 1;
            let kick = kick_of(self.socket.kick());
            self.reclaim(frames);
            let left = self.transmit.as_mut().map_or(0, Producer::pending);
            // Without progress the device is full: a later round tries again.
            if kick != Kick::Later || left == 0 || left == before {
                return kick;
            }
            before = left;
        }
    }

    /// Asks whether the device takes frames, without sending one.
    pub fn probe(&self) -> Kick {
        kick_of(self.socket.kick())
    }

    /// Drops what the kernel has not sent, and says how many frames and bytes that was. In copy
    /// mode only: the kernel reads the ring while a call of ours runs, and at no other time.
    pub fn take_back(&mut self, frames: &mut Frames, chunk_size: usize) -> (u64, u64) {
        let mut unsent = (0, 0);
        while let Some(desc) = self.transmit.as_mut().and_then(Producer::take_back) {
            let (chunk, offset) = (desc.addr as usize / chunk_size, desc.addr as usize % chunk_size);
            let len = desc.len as usize;
            let frame = frames.received(chunk as u32, offset, len, len, self.latest);
            frames.drop(frame, DropReason::PortDown);
            unsent = (unsent.0 + 1, unsent.1 + u64::from(desc.len));
        }
        unsent
    }
}

fn kick_of(result: io::Result<()>) -> Kick {
    let Err(error) = result else { return Kick::Done };
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR | libc::ENOMEM) => Kick::Later,
        _ => Kick::Down,
    }
}

/// The stamp that the XDP program put in front of the frame, removed from there so that the next
/// frame in this chunk does not seem to have it.
fn take_stamp(frames: &mut Frames, chunk: u32, offset: usize) -> Option<Time> {
    let size = size_of::<Stamp>();
    if offset < size.max(HEADROOM) {
        return None;
    }
    let head = frames.received(chunk, offset - size, size, size, Time::ZERO);
    let bytes = frames.bytes_mut(&head);
    let stamp: Stamp = pod::read(bytes)?;
    if stamp.magic != STAMP_MAGIC {
        return None;
    }
    bytes.fill(0);
    Some(Time::from_nanos(stamp.time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_taken_once() {
        let mut frames = Frames::new(2, 2048, 0);
        let chunk = frames.take_chunk().unwrap();
        let stamp = Stamp { time: 42, magic: STAMP_MAGIC };
        let head = frames.received(chunk, HEADROOM - 16, 16, 16, Time::ZERO);
        frames.bytes_mut(&head).copy_from_slice(pod::bytes_of(&stamp));
        assert_eq!(take_stamp(&mut frames, chunk, HEADROOM), Some(Time::from_nanos(42)));
        assert_eq!(take_stamp(&mut frames, chunk, HEADROOM), None);
        assert_eq!(take_stamp(&mut frames, chunk, 8), None);
        frames.transmitted(head);
    }

    #[test]
    fn errors_of_a_kick() {
        let of = |code| kick_of(Err(io::Error::from_raw_os_error(code)));
        assert_eq!(kick_of(Ok(())), Kick::Done);
        assert_eq!([of(libc::EAGAIN), of(libc::ENOBUFS)], [Kick::Later; 2]);
        assert_eq!([of(libc::ENETDOWN), of(libc::ENXIO)], [Kick::Down; 2]);
    }
}
