//! Sockets of flows, with the options of each flow.

use super::spec::{FlowSpec, Role};
use super::sys;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io;
use std::os::fd::AsFd;

/// Most bytes read at once, so that a timestamp never covers more.
pub const READ_MAX: usize = 16 * 1024;
/// Unsent bytes in the kernel above which the socket takes no more. It bounds the data that a flow still has
/// to send after its time.
const UNSENT: u32 = 128 * 1024;

/// Reads up to [`READ_MAX`] bytes without copying them: with MSG_TRUNC TCP discards (tcp(7)).
pub(super) fn discard(socket: &Socket, buffer: &mut [u8; READ_MAX]) -> io::Result<usize> {
    let (_, n) = rustix::net::recv(socket, &mut buffer[..], rustix::net::RecvFlags::TRUNC)?;
    Ok(n)
}

/// Most connections of a listener that are open only for their first data (Fast Open).
const PENDING: i32 = 4096;

/// Opens and binds a socket and starts to connect. With Fast Open and a cookie, `connect` waits for the first
/// data.
pub(super) fn open(spec: &FlowSpec) -> Result<Socket, String> {
    let socket = stream(spec)?;
    socket.bind(&spec.local.into()).map_err(|e| format!("bind to {}: {e}", spec.local))?;
    if spec.fast_open {
        sys::set_option(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, 1)
            .map_err(|e| format!("TCP_FASTOPEN_CONNECT: {e}"))?;
    }
    match socket.connect(&spec.remote.into()) {
        Ok(()) => Ok(socket),
        Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket),
        Err(e) => Err(format!("connect to {}: {e}", spec.remote)),
    }
}

/// Opens a non-blocking socket with the options of `spec`.
fn stream(spec: &FlowSpec) -> Result<Socket, String> {
    let socket = Socket::new(Domain::for_address(spec.local), Type::STREAM, Some(Protocol::TCP))
        .map_err(|e| format!("socket: {e}"))?;
    let set = socket.set_nonblocking(true).and_then(|()| socket.set_reuse_address(true));
    set.map_err(|e| format!("socket: {e}"))?;
    configure(&socket, spec)?;
    Ok(socket)
}

/// Listens for the peers of `specs`, which share one local address. The handshake negotiates segment size and
/// window scale with this socket's values, so the largest of each is taken. An accepted connection then gets
/// its own values.
pub(super) fn listen(specs: &[&FlowSpec]) -> Result<Socket, String> {
    let Some(&first) = specs.first() else { return Err("no flow to listen for".into()) };
    debug_assert!(specs.iter().all(|s| s.role == Role::Listen && s.local == first.local));
    let largest = |of: fn(&FlowSpec) -> Option<u32>| {
        let all: Option<Vec<u32>> = specs.iter().map(|s| of(s)).collect();
        all.and_then(|all| all.into_iter().max())
    };
    let shared = FlowSpec {
        cc: first.cc.clone().filter(|cc| concerns_receivers(cc) && specs.iter().all(|s| s.cc == first.cc)),
        mss: largest(|s| s.mss),
        rwnd: largest(|s| s.rwnd),
        sndbuf: largest(|s| s.sndbuf),
        ..first.clone()
    };
    let socket = stream(&shared)?;
    let fault = |e| format!("listen on {}: {e}", first.local);
    socket.bind(&first.local.into()).map_err(fault)?;
    if specs.iter().any(|spec| spec.fast_open) {
        sys::set_option(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_FASTOPEN, PENDING).map_err(fault)?;
    }
    socket.listen(4096).map_err(fault)?;
    Ok(socket)
}

/// Returns whether both ends need this congestion control from the handshake on. DCTCP negotiates ECN itself,
/// and its receiver echoes each mark (RFC 8257 §3.2).
fn concerns_receivers(cc: &str) -> bool {
    ["dctcp", "weir_dctcp", "weir_chirp"].contains(&cc)
}

pub(super) fn configure(socket: &Socket, spec: &FlowSpec) -> Result<(), String> {
    if let Some(cc) = spec.cc.as_ref().filter(|cc| spec.writes() || concerns_receivers(cc)) {
        socket.set_tcp_congestion(cc.as_bytes()).map_err(|e| no_congestion_control(cc, &e))?;
    }
    let option = |what: &'static str| move |e: io::Error| format!("{what}: {e}");
    sys::set_codepoint(socket, spec.local, spec.dscp).map_err(option("DSCP"))?;
    if let Some(mss) = spec.mss {
        socket.set_tcp_mss(mss).map_err(option("TCP_MAXSEG"))?;
    }
    if let Some(rwnd) = spec.rwnd {
        limit_window(socket, rwnd).map_err(option("receive window"))?;
    }
    if let Some(bytes) = spec.sndbuf {
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        sys::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, bytes)
            .or_else(|_| socket.set_send_buffer_size(bytes as usize))
            .map_err(option("SO_SNDBUF"))?;
    }
    if spec.writes() {
        SockRef::from(socket).set_tcp_notsent_lowat(UNSENT).map_err(option("TCP_NOTSENT_LOWAT"))?;
        socket.set_tcp_nodelay(!spec.nagle).map_err(option("TCP_NODELAY"))?;
    }
    Ok(())
}

/// Limits the advertised window to `rwnd`. The clamp is exact. The buffer, which the kernel doubles and
/// charges with the true memory of segments, must not close the window earlier. It should not allow much more
/// than `rwnd` when the kernel loses the clamp.
fn limit_window(socket: &Socket, rwnd: u32) -> io::Result<()> {
    let buffer = i32::try_from(rwnd.saturating_add(rwnd / 2)).unwrap_or(i32::MAX);
    sys::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, buffer)
        .or_else(|_| socket.set_recv_buffer_size(buffer as usize))?;
    clamp_window(socket, rwnd)
}

pub(super) fn clamp_window(socket: &Socket, rwnd: u32) -> io::Result<()> {
    let clamp = i32::try_from(rwnd).unwrap_or(i32::MAX);
    sys::set_option(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, clamp)
}

fn no_congestion_control(cc: &str, e: &io::Error) -> String {
    let list = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    format!(
        "congestion control `{cc}` cannot be used ({e}); this kernel has: {} (others may be modules: `modprobe tcp_{cc}`)",
        list.as_deref().unwrap_or("?").trim()
    )
}
