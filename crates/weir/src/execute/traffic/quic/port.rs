//! A UDP socket with the connections that it carries.

use super::super::sys::set_option;
use bytes::BytesMut;
use quinn_proto::{
    ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, Incoming, Transmit,
};
use quinn_udp::{RecvMeta, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Instant;

/// Size of a socket's buffers in bytes, so that only the path loses packets.
const BUFFER: i32 = 4 << 20;
/// Datagrams, or trains of them, read by one system call.
const BATCH: usize = 8;
/// Longest train of datagrams that one read returns.
const LONGEST: usize = 65_535;
/// Most reads before another socket has its turn.
const TURN: usize = 8;
/// Most datagrams handed to the kernel at once, as the library `quinn` has it.
const MOST_AT_ONCE: usize = 10;

/// Buffers of one read, which all sockets share.
pub(super) struct Buffers(Vec<Vec<u8>>);

impl Buffers {
    /// Returns empty buffers.
    pub fn new() -> Buffers {
        Buffers((0..BATCH).map(|_| vec![0; LONGEST]).collect())
    }
}

/// A packet, or a train of them, that the socket had no room for.
struct Waiting {
    transmit: Transmit,
    contents: Vec<u8>,
}

/// News of a turn of reading.
#[derive(Default)]
pub(super) struct Arrived {
    /// Events of connections that exist.
    pub events: Vec<(ConnectionHandle, quinn_proto::ConnectionEvent)>,
    /// Connections that peers open.
    pub incoming: Vec<Incoming>,
    /// True if the socket may hold more.
    pub more: bool,
}

/// A socket, and the state of QUIC behind it.
pub(super) struct Port {
    socket: Socket,
    state: UdpSocketState,
    /// Connections and their identifiers.
    pub endpoint: Endpoint,
    /// Number of the end that has a connection.
    pub ends: HashMap<ConnectionHandle, usize>,
    /// Number of the end that each expected peer belongs to.
    pub expected: HashMap<SocketAddr, usize>,
    waiting: VecDeque<Waiting>,
}

impl Port {
    /// Opens a socket at an address. `server` is the settings of its connections, if peers open them.
    pub fn open(local: SocketAddr, server: Option<Arc<quinn_proto::ServerConfig>>) -> Result<Port, String> {
        let fault = |e: io::Error| format!("QUIC at {local}: {e}");
        let domain = Domain::for_address(local);
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP)).map_err(fault)?;
        socket.bind(&local.into()).map_err(fault)?;
        let state = UdpSocketState::new((&socket).into()).map_err(fault)?;
        for option in [libc::SO_RCVBUFFORCE, libc::SO_SNDBUFFORCE] {
            // With a smaller buffer, packets are lost only while the loop is busy.
            let _ = set_option(socket.as_fd(), libc::SOL_SOCKET, option, BUFFER);
        }
        Ok(Port {
            socket,
            state,
            endpoint: Endpoint::new(Arc::new(EndpointConfig::default()), server, true, None),
            ends: HashMap::new(),
            expected: HashMap::new(),
            waiting: VecDeque::new(),
        })
    }

    /// Returns the socket's descriptor.
    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Returns the most datagrams that one transmission may hold.
    pub fn most_at_once(&self) -> usize {
        self.state.max_gso_segments().min(MOST_AT_ONCE)
    }

    /// Returns whether packets wait for room.
    pub fn is_full(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Sends a packet or a train of them, which waits if the socket has no room.
    pub fn send(&mut self, transmit: Transmit, contents: &[u8]) {
        if self.is_full() || !self.sent(&transmit, contents) {
            self.waiting.push_back(Waiting { transmit, contents: contents[..].to_vec() });
        }
    }

    /// Sends what waits, as far as there is room.
    pub fn flush(&mut self) {
        while let Some(first) = self.waiting.pop_front() {
            if !self.sent(&first.transmit, &first.contents) {
                return self.waiting.push_front(first);
            }
        }
    }

    /// Returns whether the socket took a transmission. Errors other than a lack of room lose the packets, as
    /// a path does.
    fn sent(&self, transmit: &Transmit, contents: &[u8]) -> bool {
        let packets = quinn_udp::Transmit {
            destination: transmit.destination,
            ecn: transmit.ecn.and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8)),
            contents: &contents[..transmit.size],
            segment_size: transmit.segment_size,
            src_ip: transmit.src_ip,
        };
        match self.state.try_send((&self.socket).into(), &packets) {
            Err(e) => e.kind() != ErrorKind::WouldBlock,
            Ok(()) => true,
        }
    }

    /// Reads what arrived, in one turn.
    pub fn receive(&mut self, buffers: &mut Buffers) -> Arrived {
        let mut arrived = Arrived::default();
        let mut answer = Vec::new();
        for _ in 0..TURN {
            let mut meta = [RecvMeta::default(); BATCH];
            let mut slices: Vec<IoSliceMut<'_>> = buffers.0.iter_mut().map(|b| IoSliceMut::new(b)).collect();
            let n = match self.state.recv((&self.socket).into(), &mut slices, &mut meta) {
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return arrived,
                // ICMP errors of earlier packets; the connections time out.
                Err(_) => continue,
            };
            let now = Instant::now();
            for (buffer, meta) in buffers.0.iter().zip(&meta[..n]) {
                let ecn = meta.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8));
                for datagram in buffer[..meta.len].chunks(meta.stride.max(1)) {
                    let data = BytesMut::from(datagram);
                    answer.clear();
                    match self.endpoint.handle(now, meta.addr, None, ecn, data, &mut answer) {
                        Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                            arrived.events.push((handle, event));
                        }
                        Some(DatagramEvent::NewConnection(incoming)) => arrived.incoming.push(incoming),
                        Some(DatagramEvent::Response(transmit)) => self.send(transmit, &answer),
                        None => {}
                    }
                }
            }
        }
        arrived.more = true;
        arrived
    }
}
