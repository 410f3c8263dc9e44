//! The emulator between two TUN devices. It reads packets, hands them to the path, and writes each when it is
//! due.
//!
//! The core's frames begin with an Ethernet header, but packets of a TUN device have none. A header of zeros
//! is prepended to them.

use crate::experiment::config::wan::WanFile;
use crate::field::setup;
use rustix::io::{read, write, Errno};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use weir_core::frame::Frames;
use weir_core::link::{self, Path};
use weir_core::node::{Cx, Node, Port, PortSet, Transmit};
use weir_core::time::Duration;
use weir_io::port::CHUNK;
use weir_io::sys::clock;
use weir_io::sys::epoll::{Ready, Waiter};

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// Most packets read from one side before the other has its turn.
const BATCH: usize = 64;
/// Number of the descriptor that becomes readable when the program has ended.
const ENDED: u64 = 2;
/// Longest wait, so that signals are noticed.
const LONGEST: Duration = Duration::from_millis(50);

/// See the [module documentation](self).
pub(super) struct Cable {
    path: Path,
    frames: Frames,
    /// Devices by port: the near one and the far one.
    devices: [OwnedFd; 2],
    waiter: Waiter,
    ready: Vec<Ready>,
    watched: bool,
}

impl Cable {
    pub(super) fn new(wan: &WanFile, devices: [OwnedFd; 2]) -> io::Result<Cable> {
        let (epoch, seed) = (clock::now(), wan.seed);
        let out = link::Config { seed, epoch, ..wan.path.wan_out };
        let back = link::Config { seed: !seed, epoch, ..wan.path.wan_back };
        let waiter = Waiter::new()?;
        for (device, token) in devices.iter().zip(0..) {
            waiter.add(device.as_fd(), token)?;
        }
        let frames = Frames::new(setup::pool(wan).chunks, CHUNK, 0);
        Ok(Cable { path: Path::new(out, back), frames, devices, waiter, ready: Vec::new(), watched: false })
    }

    /// Carries packets that have arrived or are due, and waits for more. Returns true once `ended` is
    /// readable.
    pub(super) fn carry(&mut self, ended: BorrowedFd<'_>) -> io::Result<bool> {
        if !self.watched {
            self.waiter.add(ended, ENDED)?;
            self.watched = true;
        }
        for port in [Path::LAN, Path::WAN] {
            self.take_in(port)?;
        }
        self.send()?;
        let latest = clock::now() + LONGEST;
        let until = self.path.next_deadline(PortSet::ALL).map_or(latest, |due| due.min(latest));
        self.ready.clear();
        self.waiter.wait(until, &mut self.ready)?;
        Ok(self.ready.iter().any(|ready| ready.token == ENDED))
    }

    fn take_in(&mut self, port: Port) -> io::Result<()> {
        let mut packet = [0; CHUNK];
        for _ in 0..BATCH {
            let len = match read(&self.devices[usize::from(port.0)], &mut packet[ETHERNET..]) {
                Ok(len) => len,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(e) => return Err(e.into()),
            };
            let ether_type: u16 = if packet[ETHERNET] >> 4 == 6 { 0x86dd } else { 0x0800 };
            packet[ETHERNET - 2..ETHERNET].copy_from_slice(&ether_type.to_be_bytes());
            let (now, len) = (clock::now(), ETHERNET + len);
            // Without a free chunk the packet is lost, as in a full queue.
            if let Some(frame) = self.frames.receive_copy(&packet[..len], len, now) {
                self.path.handle_frame(&mut Cx { now, frames: &mut self.frames }, port, frame);
            }
        }
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        let mut cx = Cx { now: clock::now(), frames: &mut self.frames };
        while let Some(Transmit { port, frame, .. }) = self.path.poll_transmit(&mut cx, PortSet::ALL) {
            let packet = cx.frames.bytes(&frame).get(ETHERNET..).unwrap_or(&[]);
            let written = write(&self.devices[usize::from(port.0)], packet);
            cx.frames.transmitted(frame);
            match written {
                // A packet that a side refuses is lost: its interface is down, or a flipped bit made the
                // packet invalid.
                Ok(_) | Err(Errno::AGAIN | Errno::INTR | Errno::IO | Errno::INVAL | Errno::NOBUFS) => (),
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }
}
