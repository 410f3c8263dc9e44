//! Starts of flows over a path with a round-trip time.

use super::peer::{Path, Peer, ADDRESS, MSS, PATH};
use super::*;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn connect() -> TcpStream {
    let socket =
        rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None).unwrap();
    rustix::net::sockopt::set_tcp_congestion(&socket, "weir_chirp").unwrap();
    rustix::net::sockopt::set_tcp_nodelay(&socket, true).unwrap();
    rustix::net::connect(&socket, &ADDRESS).unwrap();
    socket.into()
}

/// Sets SO_MAX_PACING_RATE, in bytes a second.
fn limit(socket: &TcpStream, rate: u32) {
    let (value, len) = ((&raw const rate).cast(), size_of::<u32>() as libc::socklen_t);
    // SAFETY: `value` points to `len` bytes for the call.
    let set = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, value, len)
    };
    crate::sys::check(set).unwrap();
}

/// Bytes not yet acknowledged.
fn unacknowledged(socket: &TcpStream) -> i32 {
    let mut bytes = 0;
    // SAFETY: `bytes` is valid for the call.
    crate::sys::check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &mut bytes) }).unwrap();
    bytes
}

/// Sends this many segments, waits until they are acknowledged, and returns the time that this took.
fn send(socket: &mut TcpStream, segments: u32) -> Duration {
    let since = Instant::now();
    socket.write_all(&vec![7; (segments * MSS) as usize]).unwrap();
    eventually("all is acknowledged", || (unacknowledged(socket) == 0).then_some(()));
    since.elapsed()
}

/// The whole flight is lost and sent again. At that moment no packet is in flight, but that is no idle time.
/// The window grows by slow start, 1, 2, 4, … 64 segments in 7 round trips. With a window of 1, forty
/// segments would take forty.
#[test]
fn a_time_out_is_no_idle_time() {
    loaded(|| {
        let _peer = Peer::new(Path { deaf: (ms(600), ms(1100)), ..PATH });
        let mut socket = connect();
        let took = send(&mut socket, 900);
        // 900 ms of data, 500 ms of silence, the doubled time-out (RTO 240 ms: 480 ms until the second try),
        // and slow start: 2.2 s, and 1.3 s more with a window of 1. What is between them is a busy machine's.
        assert!(took < ms(3000), "{took:?}");
    });
}

/// Chirps begin again after 200 ms and a round trip (docs/paced-chirping.md).
#[test]
fn it_begins_again_after_an_idle_time() {
    loaded(|| {
        let _peer = Peer::new(PATH);
        let mut socket = connect();
        send(&mut socket, 400);
        assert_eq!(here()[0].row.phase(), "cubic", "{:?}", here());
        std::thread::sleep(ms(500));
        socket.write_all(&vec![7; 100_000]).unwrap();
        assert_eq!(here()[0].row.phase(), "chirps", "{:?}", here());
    });
}

/// Nine requests, each acknowledged before the next, do not use up the initial window (RFC 6928).
#[test]
fn small_requests_leave_the_initial_window_whole() {
    loaded(|| {
        let peer = Peer::new(PATH);
        let mut socket = connect();
        (0..9).for_each(|_| {
            send(&mut socket, 1);
        });
        let since = Instant::now();
        send(&mut socket, 20);
        let first = peer.left(since, ms(35));
        assert!(first >= 10, "{first}");
    });
}

/// RFC 6928 gives the largest initial window; a route may have a smaller one.
#[test]
fn an_initial_window_of_the_route_is_kept() {
    loaded(|| {
        let peer = Peer::new(PATH);
        run("ip route add 10.9.0.2/32 dev chirp0 initcwnd 3");
        let mut socket = connect();
        let since = Instant::now();
        send(&mut socket, 20);
        assert_eq!(peer.left(since, ms(35)), 3);
    });
}

/// SO_MAX_PACING_RATE holds among chirps and after them: 300 kB at 300 kB/s, whose first ten segments are not
/// paced.
#[test]
fn no_chirp_is_faster_than_the_application_allows() {
    loaded(|| {
        let _peer = Peer::new(PATH);
        let mut socket = connect();
        limit(&socket, 300_000);
        let took = send(&mut socket, 300);
        assert!(took > ms(900), "{took:?}");
    });
}
