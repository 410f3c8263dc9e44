//! Asking an instance that runs.

use crate::supervise::state::Directory;
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long an answer may take. The instance itself gives up earlier.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the instance on `dev` answers, or the only one in this network namespace, whose state is in this directory. `request` is
/// a line without its end. Fails if none runs, or several do and none is named.
pub fn ask(state: &Path, dev: Option<&str>, request: &str) -> io::Result<Vec<u8>> {
    within(PATIENCE, state, dev, request)
}

/// As [`ask`]; each step may take as long as `patience`.
pub(super) fn within(
    patience: Duration,
    state: &Path,
    dev: Option<&str>,
    request: &str,
) -> io::Result<Vec<u8>> {
    if !state.exists() {
        return Err(none(dev));
    }
    let directory = Directory::open(state)?;
    let name = match (dev, directory.sockets()?.as_slice()) {
        (Some(dev), _) => dev.to_owned(),
        (None, [one]) => one.clone(),
        (None, []) => return Err(none(None)),
        (None, several) => {
            let message = format!("several gateways run: name one with --dev, of {}", several.join(", "));
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
    };
    let answer =
        exchange(patience, &directory.socket(&name), request).map_err(|error| match error.kind() {
            // It has ended, or was killed.
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => none(Some(&name)),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                let text = format!("the gateway on {name} has given no answer for {patience:?}");
                io::Error::new(io::ErrorKind::TimedOut, text)
            }
            _ => error,
        })?;
    match answer.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the gateway gave no answer")),
        false => Ok(answer),
    }
}

/// Asks at this socket, and waits for the answer.
fn exchange(patience: Duration, path: &Path, request: &str) -> io::Result<Vec<u8>> {
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    for limit in [Timeout::Recv, Timeout::Send] {
        // Connecting waits, too, where an instance that is stopped has a full queue.
        set_socket_timeout(&socket, limit, Some(patience))?;
    }
    net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    let mut stream = UnixStream::from(socket);
    // An instance that refuses has answered before.
    match stream.write_all(format!("{request}\n").as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
        _ => {}
    }
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        // Refused before the request was read: what was said before the connection ended is the answer.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset && !answer.is_empty() => Ok(answer),
        read => read.map(|_| answer),
    }
}

fn none(dev: Option<&str>) -> io::Error {
    let place = dev.map_or(String::new(), |dev| format!(" on {dev}"));
    io::Error::new(io::ErrorKind::NotFound, format!("no gateway runs{place} in this network namespace"))
}
