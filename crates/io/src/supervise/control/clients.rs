//! The socket and its clients. A client sends a line and gets an answer, and the connection is closed.

use crate::supervise::handover::LeftClient;
use crate::supervise::state::Directory;
use crate::sys::clock;
use crate::sys::inherit::{adopt, Heir};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use weir_core::time::{Duration, Time};

/// Most connections at once. A further one is refused, unless one of them is silent.
pub(super) const MOST: usize = 64;
/// Most connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// Time without a request after which a client makes room for another one.
const SILENT: Duration = Duration::from_millis(250);
/// Longest request in bytes: some 2,000 settings.
pub(super) const LONGEST: usize = 65_536;
/// Longest time that a client may take to send its request, and to read the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest time that a refused client may take to notice. The next constant is the most such clients.
const LEAVING: Duration = Duration::from_secs(1);
const MOST_LEAVING: usize = 64;
/// Longest time that a request may wait for those before it. Its client waits for 30 s in all.
const QUEUED: Duration = Duration::from_secs(25);

/// The listening socket. Its file is removed with it.
#[derive(Debug)]
pub(in crate::supervise) struct Listener {
    socket: OwnedFd,
    /// Spare descriptor, closed to accept a connection where the process may have no more descriptors.
    spare: Option<OwnedFd>,
    directory: Option<Directory>,
    name: String,
}

impl Listener {
    /// Opens the socket of `name`, which this process holds. An existing socket has no living owner.
    pub fn open(directory: Directory, name: &str) -> io::Result<Listener> {
        directory.remove_socket(name)?;
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let address = SocketAddrUnix::new(directory.socket(name))?;
        // No other user reaches the socket meanwhile: the directory is root's alone.
        net::bind(&socket, &address)?;
        directory.close_socket(name)?;
        net::listen(&socket, BACKLOG)?;
        let spare = Some(socket.try_clone()?);
        Ok(Listener { socket, spare, directory: Some(directory), name: name.to_owned() })
    }

    /// Takes over the socket of the program before.
    pub fn adopt(fd: RawFd, directory: Directory, name: &str) -> io::Result<Listener> {
        let socket = adopt(fd)?;
        let spare = Some(socket.try_clone()?);
        Ok(Listener { socket, spare, directory: Some(directory), name: name.to_owned() })
    }

    /// Returns whether clients find the socket.
    pub fn is_there(&self) -> bool {
        self.directory.as_ref().is_some_and(|directory| directory.has_socket(&self.name))
    }

    /// Leaves the file to the parent, in a forked process.
    pub fn leave_to_parent(&mut self) {
        self.directory = None;
    }

    /// Accepts the next connection. False if it cannot be kept for want of a further descriptor.
    fn accept(&mut self) -> Option<(UnixStream, bool)> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let accept = |socket| net::accept_with(socket, flags).map(UnixStream::from);
        match accept(&self.socket) {
            Err(Errno::MFILE | Errno::NFILE) => {
                self.spare = None;
                let stream = accept(&self.socket).ok();
                stream.map(|stream| (stream, false))
            }
            // A client that is gone again is no loss.
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
            // A file that stays is replaced by the next start.
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
    /// Unsent part of the answer, once there is one.
    answer: Option<VecDeque<u8>>,
}

impl Client {
    /// Hands the connection over to the next program of this process.
    pub fn leave(&self, heir: &mut Heir) -> LeftClient {
        LeftClient { fd: heir.gets(&self.stream), asked: self.asked.clone() }
    }

    /// Takes over a connection of the program before.
    pub fn adopt(left: &LeftClient) -> io::Result<Client> {
        let (stream, since) = (UnixStream::from(adopt(left.fd)?), clock::now());
        Ok(Client { stream, since, until: since + PATIENCE, asked: left.asked.clone(), answer: None })
    }

    /// Reads the part of the request that has come; false if no request will follow.
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

    /// Returns the request, if it is complete.
    fn line(&self) -> Option<&[u8]> {
        self.asked.iter().position(|&byte| byte == b'\n').map(|end| &self.asked[..end])
    }

    /// Returns whether something follows the request.
    fn says_more(&self) -> bool {
        self.line().is_some_and(|line| self.asked.len() > line.len() + 1)
    }

    /// Returns whether it has been silent long enough to make room for another client.
    fn is_silent(&self, now: Time) -> bool {
        self.answer.is_none() && self.line().is_none() && now.since(self.since) >= SILENT
    }

    /// Sends a last answer as far as there is room.
    fn refuse(&mut self, answer: Vec<u8>) {
        // Closing a connection before the request is read resets the other end.
        let _ = self.read();
        self.answer = Some(answer.into());
        self.write();
        // A client that is gone does not wait for the end.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Discards further input; false once the other end has closed.
    fn goes_on(&mut self) -> bool {
        let mut part = [0; 1024];
        loop {
            match self.stream.read(&mut part) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
    }

    /// Sends what there is room for; false when all is sent or sending fails.
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

/// Connections of all clients.
#[derive(Debug, Default)]
pub(super) struct Clients {
    /// Clients that are served, the oldest first.
    served: VecDeque<Client>,
    /// Refused clients, which may still send their request.
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

    /// Hands over the clients without an answer.
    pub fn leave(&self, heir: &mut Heir) -> Vec<LeftClient> {
        let unanswered = self.served.iter().filter(|client| client.answer.is_none());
        unanswered.map(|client| client.leave(heir)).collect()
    }

    /// Takes over the clients of the program before.
    pub fn adopt(left: &[LeftClient]) -> io::Result<Clients> {
        let served = left.iter().map(Client::adopt).collect::<io::Result<_>>()?;
        Ok(Clients { served, leaving: VecDeque::new() })
    }

    /// Accepts waiting clients. A client without a place gets the answer of `busy`.
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

    /// Reads and writes without waiting, and drops clients that are done or too slow. A client whose turn
    /// comes too late gets the answer of `busy`.
    pub fn work(&mut self, now: Time, mut busy: impl FnMut() -> Vec<u8>) {
        let waits = |client: &Client| client.answer.is_none() && client.line().is_some();
        while let Some(late) = self.served.iter().position(|c| waits(c) && now.since(c.since) >= QUEUED) {
            self.served.remove(late).into_iter().for_each(|client| self.refuse(client, busy(), now));
        }
        self.leaving.retain_mut(|client| now < client.until && client.goes_on());
        self.served.retain_mut(|client| {
            let goes_on = if client.answer.is_some() { client.write() } else { client.read() };
            goes_on && (waits(client) || now < client.until)
        });
    }

    /// Takes the next client with a complete request, and the request. `None` in its place if more follows:
    /// nothing would answer the rest.
    pub fn next(&mut self) -> Option<(Client, Option<String>)> {
        let asks = |client: &Client| client.answer.is_none() && client.line().is_some();
        let client = self.served.iter().position(asks).and_then(|at| self.served.remove(at))?;
        let line = String::from_utf8_lossy(client.line()?).trim().to_owned();
        let line = (!client.says_more()).then_some(line);
        Some((client, line))
    }

    /// Gives a client its answer.
    pub fn answer(&mut self, client: Client, answer: Vec<u8>, now: Time) {
        self.served.push_back(Client { answer: Some(answer.into()), until: now + PATIENCE, ..client });
    }
}
