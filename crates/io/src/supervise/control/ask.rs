//! Requests to a running instance.

use super::clients::LONGEST;
use crate::supervise::state::{may_ask, Directory, Held};
use crate::sys::link;
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Longest wait for an answer. The instance itself gives up earlier.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends `request`, a line without its end, to the instance on `dev` whose state is in this directory, and
/// returns its answer. Without `dev` the only instance in this network namespace answers. Fails if none runs,
/// or if several run and none is named.
pub fn ask(state: &Path, dev: Option<&str>, request: &str) -> io::Result<Vec<u8>> {
    within(PATIENCE, state, dev, request)
}

/// Like [`ask`]; each step may take as long as `patience`.
pub fn within(patience: Duration, state: &Path, dev: Option<&str>, request: &str) -> io::Result<Vec<u8>> {
    if request.len() >= LONGEST {
        let text =
            format!("this request has {} bytes, and {LONGEST} are the most: make several", request.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    if !state.exists() {
        may_ask()?;
        return Err(none(dev));
    }
    let directory = Directory::open(state)?;
    let (running, held) = (directory.running()?, directory.held()?);
    let links = link::all()?;
    let now = |held: &Held| links.iter().find(|link| link.index == held.interface.index);
    let name = |instance: &String| {
        let own = || held.iter().filter(|held| held.instance == *instance);
        let name = own().find_map(now).map(|link| &link.name);
        name.or(own().map(|held| &held.interface.name).next()).unwrap_or(instance).clone()
    };
    let instance = match dev {
        // The interface may have another name now, or be gone.
        Some(dev) => held
            .iter()
            .find(|held| now(held).is_some_and(|link| link.name == dev))
            .or_else(|| held.iter().find(|held| now(held).is_none() && held.interface.name == dev))
            .map(|held| held.instance.clone()),
        None if running.len() > 1 => {
            let mut names: Vec<String> = running.iter().map(&name).collect();
            names.sort();
            let message = format!("several gateways run: name one with --dev, of {}", names.join(", "));
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        None => running.first().cloned(),
    };
    let instance = instance.filter(|instance| running.contains(instance)).ok_or_else(|| none(dev))?;
    let answer =
        exchange(patience, &directory.socket(&instance), request).map_err(|error| match error.kind() {
            // The instance has ended or was killed.
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => none(dev),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                let text = format!("the gateway on {} has given no answer for {patience:?}", name(&instance));
                io::Error::new(io::ErrorKind::TimedOut, text)
            }
            _ => error,
        })?;
    match answer.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the gateway gave no answer")),
        false => Ok(answer),
    }
}

/// Sends a request to this socket, and waits for the answer.
fn exchange(patience: Duration, path: &Path, request: &str) -> io::Result<Vec<u8>> {
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    for limit in [Timeout::Recv, Timeout::Send] {
        // Connecting waits, too, if a stopped instance has a full queue.
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
        // The request was refused unread: the text before the reset is the answer.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset && !answer.is_empty() => Ok(answer),
        read => read.map(|_| answer),
    }
}

fn none(dev: Option<&str>) -> io::Error {
    let place = dev.map_or(String::new(), |dev| format!(" on {dev}"));
    io::Error::new(io::ErrorKind::NotFound, format!("no gateway runs{place} in this network namespace"))
}
