//! What runs on the client and the server: this program again, in their namespaces.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

const ECHO: u16 = 7000;
const SINK: u16 = 7001;

pub fn main(args: &[String]) {
    let number = |i: usize| args[i].parse::<u64>().unwrap();
    match args[0].as_str() {
        "serve" => serve(),
        "ping" => println!("{}", ping(&args[1], number(2), Duration::from_millis(number(3)))),
        "send" => println!("{}", send(&args[1], number(2) as u16, Duration::from_millis(number(3)))),
        other => panic!("{other}"),
    }
}

/// Echoes datagrams, and reads whatever connections send.
fn serve() {
    let echo = UdpSocket::bind(("0.0.0.0", ECHO)).unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((len, from)) = echo.recv_from(&mut buffer) {
            let _ = echo.send_to(&buffer[..len], from);
        }
    });
    for stream in TcpListener::bind(("0.0.0.0", SINK)).unwrap().incoming() {
        let mut stream = stream.unwrap();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 17];
            while stream.read(&mut buffer).is_ok_and(|len| len > 0) {}
        });
    }
}

/// Sends `count` numbered datagrams, and prints how many came back and the longest run of those
/// that did not.
fn ping(server: &str, count: u64, interval: Duration) -> String {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect((server, ECHO)).unwrap();
    let back = socket.try_clone().unwrap();
    back.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let counter = std::thread::spawn(move || {
        let mut buffer = [0; 64];
        let mut seen = vec![false; count as usize];
        // A refusal from a port that is not open yet is an error here, once.
        while seen.contains(&false) && back.recv(&mut buffer).is_ok() {
            seen[u64::from_ne_bytes(buffer[..8].try_into().unwrap()) as usize] = true;
        }
        seen
    });
    let started = Instant::now();
    for i in 0..count {
        std::thread::sleep((interval * i as u32).saturating_sub(started.elapsed()));
        let _ = socket.send(&i.to_ne_bytes());
    }
    let seen = counter.join().unwrap();
    let longest = seen.split(|seen| *seen).map(<[bool]>::len).max().unwrap();
    format!("{} {longest}", seen.iter().filter(|seen| **seen).count())
}

/// Sends from `port` for so long and says how many bytes a second went out.
fn send(server: &str, port: u16, time: Duration) -> u64 {
    let mut stream = connect(server, port);
    let started = Instant::now();
    let mut sent = 0u64;
    let data = vec![0; 1 << 17];
    while started.elapsed() < time {
        stream.write_all(&data).unwrap();
        sent += data.len() as u64;
    }
    sent * 1000 / started.elapsed().as_millis() as u64
}

/// A connection from a port of our choice, which the standard library does not offer.
fn connect(server: &str, port: u16) -> TcpStream {
    use std::os::fd::FromRawFd;
    let address = |addr: std::net::Ipv4Addr, port: u16| libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(addr.octets()) },
        sin_zero: [0; 8],
    };
    let len = size_of::<libc::sockaddr_in>() as u32;
    let (from, to) = (address([0; 4].into(), port), address(server.parse().unwrap(), SINK));
    // SAFETY: a new descriptor, owned by the stream; the addresses are valid for reads of `len`.
    unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        let stream = TcpStream::from_raw_fd(fd);
        assert_eq!(libc::bind(fd, (&raw const from).cast(), len), 0);
        assert_eq!(libc::connect(fd, (&raw const to).cast(), len), 0);
        stream
    }
}
