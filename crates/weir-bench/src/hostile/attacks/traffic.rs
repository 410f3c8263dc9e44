//! Connections beside an attack, and received bytes of connections and datagrams by time.

use super::case::{Case, Connection, Load, END};
use super::site::{Site, SERVER};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use weir::execute::lab::Namespace;
use weir_core::wire;

/// Server port of the first connection. The next connections use the ports that follow.
pub const PORT: u16 = 7_000;
/// Length of a bin in which bytes are counted.
pub const BIN: Duration = Duration::from_millis(10);
/// Interval at which a sender writes.
const STEP: Duration = Duration::from_millis(10);
const STEPS_A_SECOND: usize = 100;
/// Bytes a step in the other direction of a connection with data both ways.
const LITTLE_IN_STEP: usize = 1_000;
const PATIENCE: Duration = Duration::from_millis(50);

/// Bytes by [`BIN`].
pub struct Bins(Vec<AtomicU64>);

impl Bins {
    /// Makes empty bins up to the end of a case.
    pub fn new() -> Bins {
        Bins((0..END.as_millis() / BIN.as_millis()).map(|_| AtomicU64::new(0)).collect())
    }

    /// Adds bytes at a time since the beginning.
    fn add(&self, at: Duration, bytes: usize) {
        if let Some(bin) = self.0.get((at.as_nanos() / BIN.as_nanos()) as usize) {
            bin.fetch_add(bytes as u64, Relaxed);
        }
    }

    /// Returns the counts.
    pub fn take(self) -> Vec<u64> {
        self.0.into_iter().map(AtomicU64::into_inner).collect()
    }
}

/// Listens beyond the WAN for a connection. A client that comes earlier would be refused.
pub fn listen(site: &Site, number: u16) -> Result<TcpListener, String> {
    let bind = || TcpListener::bind((SERVER, PORT + number));
    let listener = site.servers.inside(bind).and_then(|listener| listener);
    listener
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(|e| format!("the server of connection {number}: {e}"))
}

/// Plays the end of a connection beyond the WAN, and counts bytes from the LAN.
pub fn serve(
    listener: &TcpListener,
    case: &Case,
    connection: &Connection,
    number: u16,
    epoch: Instant,
    got: &Bins,
) -> Result<(), String> {
    let fault = |e: std::io::Error| format!("the server of connection {number}: {e}");
    while epoch.elapsed() < END {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).map_err(fault)?;
                let sends = connection.load != Load::Up;
                return talk(stream, if sends { case.most / STEPS_A_SECOND } else { 0 }, epoch, got)
                    .map_err(fault);
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(1)),
            Err(e) => return Err(fault(e)),
        }
    }
    Ok(())
}

/// Plays the end of a connection on the LAN, and counts bytes from beyond the WAN.
pub fn ask(
    site: &Site,
    case: &Case,
    connection: &Connection,
    number: u16,
    epoch: Instant,
    got: &Bins,
) -> Result<(), String> {
    let fault = |e: std::io::Error| format!("the client of connection {number}: {e}");
    std::thread::sleep((connection.begins + Duration::from_millis(20)).saturating_sub(epoch.elapsed()));
    let stream = match site.clients.inside(|| connect(connection, number)).map_err(fault)? {
        Ok(stream) => stream,
        // An attack may do that: it counts as a connection without bytes.
        Err(e) if e.kind() == ErrorKind::TimedOut => return Ok(()),
        Err(e) => return Err(fault(e)),
    };
    let sends = match connection.load {
        Load::Up => case.most / STEPS_A_SECOND,
        Load::Both => LITTLE_IN_STEP,
        Load::Down => 0,
    };
    talk(stream, sends, epoch, got).map_err(fault)
}

fn connect(connection: &Connection, number: u16) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    let own = SocketAddr::V4(SocketAddrV4::new(connection.party.host(), 0));
    socket.bind(&own.into())?;
    let to = SocketAddr::V4(SocketAddrV4::new(SERVER, PORT + number));
    socket.connect_timeout(&to.into(), END.saturating_sub(connection.begins))?;
    Ok(socket.into())
}

/// Sends `step` bytes per step and counts received bytes until the case ends or the connection is reset.
fn talk(stream: TcpStream, step: usize, epoch: Instant, got: &Bins) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    std::thread::scope(|scope| {
        scope.spawn(|| drink(&stream, epoch, got));
        if step > 0 {
            pump(&stream, step, epoch);
        }
    });
    Ok(())
}

fn drink(mut stream: &TcpStream, epoch: Instant, got: &Bins) {
    let mut buffer = vec![0; 1 << 16];
    while epoch.elapsed() < END {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(bytes) => got.add(epoch.elapsed(), bytes),
            Err(e) if is_late(&e) => {}
            Err(_) => return,
        }
    }
}

fn pump(mut stream: &TcpStream, step: usize, epoch: Instant) {
    let data = vec![0x5a; step];
    let (mut next, mut left) = (epoch.elapsed(), step);
    while epoch.elapsed() < END {
        match stream.write(&data[..left]) {
            Ok(bytes) => left -= bytes,
            Err(e) if is_late(&e) => {}
            Err(_) => return,
        }
        if left == 0 || epoch.elapsed() >= next + STEP {
            next = (next + STEP).max(epoch.elapsed().saturating_sub(STEP));
            left = step;
            std::thread::sleep(next.saturating_sub(epoch.elapsed()));
        }
    }
}

fn is_late(e: &std::io::Error) -> bool {
    matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Counts the bytes of IP packets with UDP that reach the host beyond the WAN.
pub fn count_datagrams(site: &Site, epoch: Instant, got: &Bins) -> Result<(), String> {
    each_frame(&site.servers, epoch, |at, frame| got.add(at, datagram(frame).unwrap_or(0)))
}

/// Counts the payload that reaches a host, by connection, whether or not it is in order. Applications get
/// what waits behind a lost segment all at once, in a later second.
pub fn count_segments(host: &Namespace, to: Host, epoch: Instant, got: &[Bins]) -> Result<(), String> {
    each_frame(host, epoch, |at, frame| {
        if let Some((bins, bytes)) = segment(frame, to).and_then(|(n, bytes)| Some((got.get(n)?, bytes))) {
            bins.add(at, bytes);
        }
    })
}

/// Receiver of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    Client,
    Server,
}

/// Calls `see` with the beginning of each frame of a host and with its time since the beginning.
fn each_frame(host: &Namespace, epoch: Instant, mut see: impl FnMut(Duration, &[u8])) -> Result<(), String> {
    let open = || {
        let all = Protocol::from(i32::from((libc::ETH_P_ALL as u16).to_be()));
        let seen = Socket::new(Domain::PACKET, Type::RAW, Some(all))?;
        seen.set_recv_buffer_size(4 << 20)?;
        seen.set_read_timeout(Some(PATIENCE))?;
        Ok(seen)
    };
    let fault = |e: std::io::Error| format!("counting frames: {e}");
    let mut seen: Socket = host.inside(open).and_then(|s| s).map_err(fault)?;
    let mut frame = [0; 128];
    while epoch.elapsed() < END {
        match seen.read(&mut frame) {
            Ok(len) => see(epoch.elapsed(), &frame[..len]),
            Err(e) if is_late(&e) => {}
            Err(e) => return Err(fault(e)),
        }
    }
    Ok(())
}

/// Returns the number of the connection of a segment to this host, and the bytes of its payload.
fn segment(frame: &[u8], to: Host) -> Option<(usize, usize)> {
    let total = usize::from(u16::from_be_bytes([*frame.get(16)?, *frame.get(17)?])) + 14;
    let packet = wire::packet(frame, total).ok()?;
    let tcp = wire::tcp(frame, &packet).ok()?;
    let (mac, port) = match to {
        Host::Client => (Site::macs_of_clients().0, tcp.src_port),
        Host::Server => (Site::macs_of_servers().0, tcp.dst_port),
    };
    let number = port.checked_sub(PORT).filter(|_| frame.starts_with(&mac))?;
    Some((number.into(), tcp.payload_len as usize))
}

/// Returns the bytes of the packet in a frame to the server, if it carries UDP.
fn datagram(frame: &[u8]) -> Option<usize> {
    let be16 = |at: usize| Some(usize::from(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?])));
    if frame.get(..6)? != Site::macs_of_servers().0 {
        return None;
    }
    match (be16(12)?, frame.get(23)?, frame.get(20)?) {
        (0x0800, 17, _) => be16(16),
        (0x86dd, _, 17) => Some(be16(18)? + 40),
        _ => None,
    }
}
