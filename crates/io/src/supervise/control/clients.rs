//! The socket and its clients: a line is asked, an answer is given, and the connection is closed.

use crate::supervise::state::Directory;
use rustix::net::{self, AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use weir_core::time::{Duration, Time};

/// Connections at once; the oldest makes room for another one.
const MOST: usize = 16;
/// No request is longer.
const LONGEST: usize = 4096;
/// How long a client may take to ask, and to read the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The socket. Its file goes with it.
#[derive(Debug)]
pub(in crate::supervise) struct Listener {
    socket: OwnedFd,
    directory: Option<Directory>,
    name: String,
}

impl Listener {
    /// Opens the socket of `name`, whose holder this process is: one that is there is of nobody who lives.
    pub fn open(directory: Directory, name: &str) -> io::Result<Listener> {
        directory.remove_socket(name)?;
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let address = SocketAddrUnix::new(directory.socket(name))?;
        // Nobody else can get at it meanwhile: the directory is root's alone.
        net::bind(&socket, &address)?;
        directory.close_socket(name)?;
        net::listen(&socket, MOST as i32)?;
        Ok(Listener { socket, directory: Some(directory), name: name.to_owned() })
    }

    /// In a forked process: the file stays.
    pub fn leave_to_parent(&mut self) {
        self.directory = None;
    }

    fn accept(&self) -> Option<UnixStream> {
        // One that has gone again, or too many files: whoever asks tries again.
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        net::accept_with(&self.socket, flags).ok().map(UnixStream::from)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(directory) = &self.directory {
            // If it stays, the next start replaces it.
            let _ = directory.remove_socket(&self.name);
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Client {
    stream: UnixStream,
    until: Time,
    asked: Vec<u8>,
    /// What is left of the answer, once there is one.
    answer: Option<VecDeque<u8>>,
}

impl Client {
    /// Reads what has come of the request; false if there will be none.
    fn read(&mut self) -> bool {
        let mut part = [0; 1024];
        while self.line().is_none() {
            match self.stream.read(&mut part) {
                Ok(0) => return false,
                Ok(count) => self.asked.extend(&part[..count]),
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
            if self.asked.len() > LONGEST {
                return false;
            }
        }
        true
    }

    /// The request, if it is whole.
    fn line(&self) -> Option<&[u8]> {
        self.asked.iter().position(|&byte| byte == b'\n').map(|end| &self.asked[..end])
    }

    /// Sends what there is room for; false when all is said, or cannot be.
    fn write(&mut self) -> bool {
        let Some(answer) = &mut self.answer else { return true };
        while !answer.is_empty() {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match net::send(&self.stream, answer.as_slices().0, flags) {
                Ok(count) => drop(answer.drain(..count)),
                Err(error) => return error == rustix::io::Errno::AGAIN,
            }
        }
        false
    }
}

/// The connections, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Clients(VecDeque<Client>);

impl Clients {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes whoever wants to ask.
    pub fn accept(&mut self, listener: &Listener, now: Time) {
        for stream in std::iter::from_fn(|| listener.accept()).take(MOST) {
            if self.0.len() == MOST {
                self.0.pop_front();
            }
            let until = now + PATIENCE;
            self.0.push_back(Client { stream, until, asked: Vec::new(), answer: None });
        }
    }

    /// Reads and writes what can be, and forgets who is done or has taken too long.
    pub fn work(&mut self, now: Time) {
        self.0.retain_mut(|client| {
            now < client.until && if client.answer.is_some() { client.write() } else { client.read() }
        });
    }

    /// The next one that has asked, with its request.
    pub fn next(&mut self) -> Option<(Client, String)> {
        let asks = |client: &Client| client.answer.is_none() && client.line().is_some();
        let client = self.0.iter().position(asks).and_then(|at| self.0.remove(at))?;
        let line = String::from_utf8_lossy(client.line()?).trim().to_owned();
        Some((client, line))
    }

    /// Gives a client its answer.
    pub fn answer(&mut self, client: Client, answer: Vec<u8>, now: Time) {
        self.0.push_back(Client { answer: Some(answer.into()), until: now + PATIENCE, ..client });
    }
}
