//! The socket and its clients: a line is asked, an answer is given, and the connection is closed.

use crate::supervise::state::Directory;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use weir_core::time::{Duration, Time};

/// Connections at once. A further one is refused, unless one of them says nothing.
pub(super) const MOST: usize = 64;
/// Connections that wait to be looked at.
const BACKLOG: i32 = 128;
/// A client that has not asked for so long makes room for another one.
const SILENT: Duration = Duration::from_millis(250);
/// No request is longer.
const LONGEST: usize = 4096;
/// How long a client may take to ask, and to read the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a client that was refused may take to notice, and how many may do so at once.
const LEAVING: Duration = Duration::from_secs(1);
const MOST_LEAVING: usize = 64;
/// How long a request may wait for those before it. Its client waits for 30 s in all.
const QUEUED: Duration = Duration::from_secs(25);

/// The socket. Its file goes with it.
#[derive(Debug)]
pub(in crate::supervise) struct Listener {
    socket: OwnedFd,
    /// Closed to take a connection where the process may have no more descriptors.
    spare: Option<OwnedFd>,
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
        net::listen(&socket, BACKLOG)?;
        let spare = Some(socket.try_clone()?);
        Ok(Listener { socket, spare, directory: Some(directory), name: name.to_owned() })
    }

    /// In a forked process: the file stays.
    pub fn leave_to_parent(&mut self) {
        self.directory = None;
    }

    /// The next connection, and whether it can be kept: without a further descriptor it cannot.
    fn accept(&mut self) -> Option<(UnixStream, bool)> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let accept = |socket| net::accept_with(socket, flags).map(UnixStream::from);
        match accept(&self.socket) {
            Err(Errno::MFILE | Errno::NFILE) => {
                self.spare = None;
                let stream = accept(&self.socket).ok();
                stream.map(|stream| (stream, false))
            }
            // One that has gone again is no loss.
            stream => {
                self.spare = self.spare.take().or_else(|| self.socket.try_clone().ok());
                Some((stream.ok()?, true))
            }
        }
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
    since: Time,
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

    /// Has it asked nothing for too long to keep others out?
    fn is_silent(&self, now: Time) -> bool {
        self.answer.is_none() && self.line().is_none() && now.since(self.since) >= SILENT
    }

    /// Sends an answer as far as there is room: the last one.
    fn refuse(&mut self, answer: Vec<u8>) {
        // A connection that is closed before the request was read resets the other end.
        let _ = self.read();
        self.answer = Some(answer.into());
        self.write();
        // If it is gone already, nobody waits for the end.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Reads and forgets what still comes; false once the other end has closed.
    fn leave(&mut self) -> bool {
        let mut part = [0; 1024];
        loop {
            match self.stream.read(&mut part) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
    }

    /// Sends what there is room for; false when all is said, or cannot be.
    fn write(&mut self) -> bool {
        let Some(answer) = &mut self.answer else { return true };
        while !answer.is_empty() {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match net::send(&self.stream, answer.as_slices().0, flags) {
                Ok(count) => drop(answer.drain(..count)),
                Err(error) => return error == Errno::AGAIN,
            }
        }
        false
    }
}

/// The connections.
#[derive(Debug, Default)]
pub(super) struct Clients {
    /// Those that are served, the oldest first.
    served: VecDeque<Client>,
    /// Those that were refused, and may still be about to send their request.
    leaving: VecDeque<Client>,
}

impl Clients {
    pub fn is_empty(&self) -> bool {
        self.served.is_empty() && self.leaving.is_empty()
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.served.len()
    }

    /// Takes whoever wants to ask. Whoever finds no place gets the answer that `busy` gives.
    pub fn accept(&mut self, listener: &mut Listener, now: Time, mut busy: impl FnMut() -> Vec<u8>) {
        for (stream, kept) in std::iter::from_fn(|| listener.accept()).take(BACKLOG as usize) {
            let mut client =
                Client { stream, since: now, until: now + PATIENCE, asked: Vec::new(), answer: None };
            if !kept {
                client.refuse(busy());
                continue;
            }
            let full = self.served.len() >= MOST;
            let silent = || self.served.iter().position(|other| other.is_silent(now));
            let refused = match full.then(silent) {
                None => None,
                Some(None) => {
                    self.refuse(client, busy(), now);
                    continue;
                }
                Some(Some(silent)) => self.served.remove(silent),
            };
            refused.into_iter().for_each(|other| self.refuse(other, busy(), now));
            self.served.push_back(client);
        }
    }

    fn refuse(&mut self, mut client: Client, answer: Vec<u8>, now: Time) {
        client.refuse(answer);
        client.until = now + LEAVING;
        self.leaving.push_back(client);
        if self.leaving.len() > MOST_LEAVING {
            self.leaving.pop_front();
        }
    }

    /// Reads and writes what can be, and forgets who is done or has taken too long. Whose turn has not come for too long gets the answer
    /// that `busy` gives.
    pub fn work(&mut self, now: Time, mut busy: impl FnMut() -> Vec<u8>) {
        let waits = |client: &Client| client.answer.is_none() && client.line().is_some();
        while let Some(late) = self.served.iter().position(|c| waits(c) && now.since(c.since) >= QUEUED) {
            self.served.remove(late).into_iter().for_each(|client| self.refuse(client, busy(), now));
        }
        self.leaving.retain_mut(|client| now < client.until && client.leave());
        self.served.retain_mut(|client| {
            let goes_on = if client.answer.is_some() { client.write() } else { client.read() };
            goes_on && (waits(client) || now < client.until)
        });
    }

    /// The next one that has asked, with its request.
    pub fn next(&mut self) -> Option<(Client, String)> {
        let asks = |client: &Client| client.answer.is_none() && client.line().is_some();
        let client = self.served.iter().position(asks).and_then(|at| self.served.remove(at))?;
        let line = String::from_utf8_lossy(client.line()?).trim().to_owned();
        Some((client, line))
    }

    /// Gives a client its answer.
    pub fn answer(&mut self, client: Client, answer: Vec<u8>, now: Time) {
        self.served.push_back(Client { answer: Some(answer.into()), until: now + PATIENCE, ..client });
    }
}
