//! Linux's TCP: at the far end of every connection, and as a stack under test.

use crate::path::{FAR, PORT};
use crate::{Role, BEGINS, ENDS};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// A connection that makes no progress for so long is given up.
const PATIENCE: Duration = Duration::from_secs(5);

fn address() -> SocketAddr {
    SocketAddr::new(Ipv4Addr::from(FAR).into(), PORT)
}

/// The far end of a connection in this role, which says when it is there.
pub fn listen(role: Role, control: &str) -> io::Result<u64> {
    let socket = TcpListener::bind(address())?;
    println!("ready");
    talk(socket.accept()?.0, role, control)
}

/// The near end.
pub fn connect(role: Role, control: &str) -> io::Result<u64> {
    talk(TcpStream::connect_timeout(&address(), PATIENCE)?, role, control)
}

fn talk(stream: TcpStream, role: Role, control: &str) -> io::Result<u64> {
    match role {
        Role::Sender => pour(stream, control),
        Role::Receiver => drain(stream),
    }
}

/// Counts what arrives in the time that is measured.
fn drain(mut stream: TcpStream) -> io::Result<u64> {
    let (started, mut bytes, mut buffer) = (Instant::now(), 0, vec![0; 1 << 16]);
    stream.set_read_timeout(Some(PATIENCE))?;
    while started.elapsed() < ENDS {
        let got = stream.read(&mut buffer)?;
        if got == 0 {
            break;
        }
        if (BEGINS..ENDS).contains(&started.elapsed()) {
            bytes += got as u64;
        }
    }
    Ok(bytes)
}

/// Sends until the other end has measured and closes.
fn pour(mut stream: TcpStream, control: &str) -> io::Result<u64> {
    socket2::SockRef::from(&stream).set_tcp_congestion(control.as_bytes())?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (started, block) = (Instant::now(), [7; 1 << 14]);
    while started.elapsed() < ENDS + PATIENCE && stream.write(&block).is_ok() {}
    Ok(0)
}
