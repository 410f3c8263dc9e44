//! Sending in batches.

use super::{address, bind, bound_to, open, set, Device, Vnet};
use crate::sys::check;
use rustix::net::sockopt;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Bytes that may wait in the queueing discipline and the device, as the kernel counts them.
const SEND_BUFFER: usize = 4 << 20;
const ETHERNET: usize = 14;

/// Sender of frames on one interface. They pass its queueing discipline and its egress hook.
#[derive(Debug)]
pub struct PacketSender {
    socket: OwnedFd,
    device: Device,
    vnet: bool,
    // Arrays of one call, kept for their memory.
    parts: Vec<libc::iovec>,
    ends: Vec<usize>,
    addresses: Vec<libc::sockaddr_ll>,
    departures: Vec<Departure>,
    messages: Vec<libc::mmsghdr>,
}

/// Control message with a frame's departure time.
#[derive(Debug)]
#[repr(C)]
struct Departure {
    head: libc::cmsghdr,
    time: u64,
    /// Number of the frame in its batch. The kernel does not read it.
    frame: usize,
}

impl Departure {
    /// Bytes that the kernel reads.
    const LEN: usize = size_of::<libc::cmsghdr>() + size_of::<u64>();

    fn new(frame: usize, time: u64) -> Departure {
        // SAFETY: zero is a valid head.
        let mut head: libc::cmsghdr = unsafe { std::mem::zeroed() };
        head.cmsg_len = Departure::LEN as _;
        (head.cmsg_level, head.cmsg_type) = (libc::SOL_SOCKET, libc::SCM_TXTIME);
        Departure { head, time, frame }
    }
}

// SAFETY: the pointers in the arrays are not followed between calls.
unsafe impl Send for PacketSender {}

/// Frames collected for one call.
#[derive(Debug)]
pub struct Sending<'s, 'f> {
    sender: &'s mut PacketSender,
    frames: PhantomData<&'f [u8]>,
}

impl PacketSender {
    /// Opens a sender on an interface. With `vnet` every frame is preceded by a [`Vnet`] header. It receives
    /// no frames.
    pub fn open(device: Device, vnet: bool) -> io::Result<PacketSender> {
        let socket = open(device.ethernet)?;
        bind(&socket, device.ifindex, 0)?;
        if vnet {
            set(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1i32)?;
        }
        // The forced size may exceed the system's limit, with the privilege.
        sockopt::set_socket_send_buffer_size_force(&socket, SEND_BUFFER)
            .or_else(|_| sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER))?;
        let (parts, ends, addresses, messages) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Ok(PacketSender { socket, device, vnet, parts, ends, addresses, departures: Vec::new(), messages })
    }

    /// Returns whether the socket still sends on its interface: one that has left this network namespace, or
    /// has been removed, takes its sockets along, and they stay useless when it is back.
    pub fn is_bound(&self) -> bool {
        bound_to(&self.socket).ok().flatten() == Some(self.device.ifindex)
    }

    /// Permits departure times of frames from now on.
    pub fn take_departures(&self) -> io::Result<()> {
        let clock = libc::sock_txtime { clockid: libc::CLOCK_MONOTONIC, flags: 0 };
        set(self.socket.as_fd(), libc::SOL_SOCKET, libc::SO_TXTIME, &clock)
    }

    /// Returns whether frames are preceded by a [`Vnet`] header.
    pub fn has_vnet(&self) -> bool {
        self.vnet
    }

    /// Sets an option of the socket.
    #[cfg(test)]
    pub fn set<T>(&self, option: i32, value: &T) -> io::Result<()> {
        set(self.socket.as_fd(), libc::SOL_SOCKET, option, value)
    }

    /// Number by which the kernel's programs know the socket.
    pub fn cookie(&self) -> io::Result<u64> {
        Ok(sockopt::socket_cookie(&self.socket)?)
    }

    /// Begins a batch.
    pub fn batch<'f>(&mut self) -> Sending<'_, 'f> {
        self.parts.clear();
        self.ends.clear();
        self.addresses.clear();
        self.departures.clear();
        Sending { sender: self, frames: PhantomData }
    }

    /// Sends frames that need no [`Vnet`] header, in order. Returns the number that left; see
    /// [`Sending::send`].
    pub fn send<B: AsRef<[u8]>>(&mut self, frames: &[B]) -> io::Result<usize> {
        let mut batch = self.batch();
        for frame in frames {
            if batch.has_vnet() {
                batch.part(&[0; Vnet::LEN]);
            }
            batch.frame(frame.as_ref());
        }
        batch.send()
    }

    fn address_of(&self, frame: &[u8]) -> libc::sockaddr_ll {
        // The network protocol is at the end of the Ethernet header.
        let protocol = frame.get(12..ETHERNET).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]));
        address(self.device.ifindex, protocol)
    }
}

impl<'f> Sending<'_, 'f> {
    /// Returns whether frames must be preceded by a [`Vnet`] header.
    pub fn has_vnet(&self) -> bool {
        self.sender.vnet
    }

    /// Frames in the batch.
    pub fn len(&self) -> usize {
        self.sender.ends.len()
    }
    /// Returns whether the batch has no frame yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a part to the current frame.
    pub fn part(&mut self, bytes: &'f [u8]) {
        let part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        self.sender.parts.push(part);
    }

    /// Adds `bytes` to the current frame, from the Ethernet header on. More parts may follow.
    pub fn first(&mut self, bytes: &'f [u8]) {
        if !self.sender.device.ethernet {
            self.sender.addresses.push(self.sender.address_of(bytes));
            return self.part(bytes.get(ETHERNET..).unwrap_or_default());
        }
        self.part(bytes);
    }

    /// Sets the departure time of the current frame, in nanoseconds of CLOCK_MONOTONIC. The kernel refuses
    /// the frame unless the sender takes departures.
    pub fn departs(&mut self, time: u64) {
        let frame = self.len();
        self.sender.departures.push(Departure::new(frame, time));
    }

    /// Ends the current frame.
    pub fn end(&mut self) {
        self.sender.ends.push(self.sender.parts.len());
    }

    /// Adds a frame of one part.
    pub fn frame(&mut self, bytes: &'f [u8]) {
        self.first(bytes);
        self.end();
    }

    /// Sends the frames in order and returns the number that left. An error is that of the first frame; the
    /// others have not been tried then.
    pub fn send(self) -> io::Result<usize> {
        let PacketSender { socket, parts, ends, addresses, departures, messages, .. } = self.sender;
        messages.clear();
        let mut start = 0;
        for (i, &end) in ends.iter().enumerate() {
            // SAFETY: zero is a valid header: no address, no control data.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_iov = parts[start..end].as_mut_ptr();
            message.msg_hdr.msg_iovlen = end - start;
            if let Some(address) = addresses.get_mut(i) {
                message.msg_hdr.msg_namelen = size_of_val(address) as libc::socklen_t;
                message.msg_hdr.msg_name = (address as *mut libc::sockaddr_ll).cast();
            }
            messages.push(message);
            start = end;
        }
        if messages.is_empty() {
            return Ok(0);
        }
        for departure in departures.iter_mut() {
            let Some(message) = messages.get_mut(departure.frame) else { continue };
            message.msg_hdr.msg_controllen = Departure::LEN as _;
            message.msg_hdr.msg_control = (&raw mut departure.head).cast();
        }
        let count = messages.len() as libc::c_uint;
        // SAFETY: `messages` is valid for `count` entries. Each points to entries of `parts`, `addresses` and
        // `departures`, which are not touched until the call is over. The parts point to frames that are
        // borrowed for `'f`, and sending only reads them.
        let sent = check(unsafe {
            libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), count, libc::MSG_DONTWAIT)
        })?;
        Ok(sent as usize)
    }
}
