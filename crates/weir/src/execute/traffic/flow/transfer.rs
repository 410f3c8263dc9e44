//! Transfer of a flow's bytes, in turns.

use super::super::socket::{clamp_window, discard, READ_MAX};
use super::super::spec::Amount;
use super::{Flow, State, Turn, TURN, WRITE_MAX};
use std::io;
use std::net::Shutdown;

/// Data written before a connection is open, longer than a SYN can carry.
static FIRST: [u8; 2048] = [0; 2048];

impl Flow {
    /// Transfers as much as the socket allows within one turn. `clock` timestamps every read.
    pub fn turn(&mut self, clock: &impl Fn() -> u64, buffer: &mut [u8; READ_MAX], zeroes: &[u8]) -> Turn {
        if self.state == State::Connecting && !self.connected(clock()) {
            return Turn::Idle;
        }
        let both = self.sender.is_some() && self.intake.is_some();
        let turn = match (self.state, self.spec.sends) {
            (State::Open | State::Draining, _) if both => self.both(clock, buffer, zeroes),
            (State::Open, true) => self.write(clock, zeroes),
            (State::Open, false) => self.read(clock, buffer),
            (State::Draining, _) => self.drain(clock, buffer),
            _ => Turn::Idle,
        };
        self.hold_window();
        turn
    }

    /// Writes the data of the SYN. Without a cookie, `connect` has sent a SYN already, and the write waits
    /// for the answer.
    pub(super) fn write_first(&mut self, now: u64) {
        let (Some(socket), Some(sender)) = (&self.socket, &mut self.sender) else { return };
        match socket.send(&FIRST[..sender.wants(FIRST.len())]) {
            Ok(n) => sender.wrote(n),
            Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(e) => {
                self.stopped(now, &e, "write");
            }
        }
    }

    /// Reads and writes. Reading comes first because in a conversation it determines the next write.
    fn both(&mut self, clock: &impl Fn() -> u64, buffer: &mut [u8; READ_MAX], zeroes: &[u8]) -> Turn {
        let read = if self.heard_all { Turn::Idle } else { self.read(clock, buffer) };
        let wrote = if self.state == State::Open { self.write(clock, zeroes) } else { Turn::Idle };
        if self.state == State::Draining && self.heard_all {
            self.sample(clock());
            self.close();
        }
        match self.state {
            State::Done => Turn::Idle,
            _ if read == Turn::More || wrote == Turn::More => Turn::More,
            _ => Turn::Idle,
        }
    }

    /// Sets the window clamp again. The kernel resets it when the size of arriving segments changes its
    /// estimate of a buffer's capacity (`tcp_measure_rcv_mss`, Linux 6.6 and later).
    fn hold_window(&self) {
        if let (Some(socket), Some(rwnd), false) = (&self.socket, self.spec.rwnd, self.intake.is_none()) {
            let _ = clamp_window(socket, rwnd);
        }
    }

    fn connected(&mut self, now: u64) -> bool {
        let Some(socket) = &self.socket else { return false };
        match socket.take_error() {
            Ok(None) if socket.peer_addr().is_ok() => self.establish(now),
            Ok(None) => {}
            Ok(Some(e)) | Err(e) => {
                let what = format!("connect to {}", self.spec.remote);
                self.broken(now, &e, &what);
            }
        }
        self.state == State::Open
    }

    fn read(&mut self, clock: &impl Fn() -> u64, buffer: &mut [u8; READ_MAX]) -> Turn {
        for _ in 0..TURN {
            let (Some(socket), Some(intake)) = (&self.socket, &mut self.intake) else { return Turn::Idle };
            match discard(socket, buffer) {
                Ok(0) => {
                    let now = clock();
                    intake.eof(now);
                    self.closed_by_sender(now);
                    return Turn::Idle;
                }
                Ok(n) => {
                    let now = clock();
                    intake.read(now, n as u64);
                    if let Some(talk) = &mut self.talk {
                        talk.read(now, n as u64);
                    }
                    // A short read emptied the queue, so an event announces the next data.
                    if n < READ_MAX && !self.peer_closed {
                        return Turn::Idle;
                    }
                }
                Err(e) => return self.stopped(clock(), &e, "read"),
            }
        }
        Turn::More
    }

    fn closed_by_sender(&mut self, now: u64) {
        self.heard_all = true;
        if let Some(talk) = &mut self.talk {
            talk.end();
        }
        match (self.spec.amount, &self.intake) {
            (Amount::Bytes(all), Some(i)) if !i.complete() => {
                self.fail(now, format!("the sender closed before all {all} bytes were here"));
            }
            // The rest of this end's data must be sent first.
            _ if self.sender.is_some() => {}
            _ => self.close(),
        }
    }

    fn write(&mut self, clock: &impl Fn() -> u64, zeroes: &[u8]) -> Turn {
        for _ in 0..TURN {
            let (Some(socket), Some(sender)) = (&self.socket, &mut self.sender) else { return Turn::Idle };
            let want = match &self.talk {
                Some(talk) if talk.wants() == 0 && !talk.is_over() => return Turn::Idle,
                Some(talk) => talk.wants().min(WRITE_MAX as u64) as usize,
                None => sender.wants(WRITE_MAX),
            };
            if want == 0 {
                self.end_of_data(clock());
                return Turn::More;
            }
            match socket.send(&zeroes[..want]) {
                Ok(n) => {
                    sender.wrote(n);
                    if let Some(talk) = &mut self.talk {
                        talk.wrote(clock(), n as u64);
                    }
                }
                Err(e) => return self.stopped(clock(), &e, "write"),
            }
        }
        Turn::More
    }

    /// Closes the sending direction.
    pub(super) fn end_of_data(&mut self, now: u64) {
        self.sample(now);
        if let Some(socket) = &self.socket {
            match socket.shutdown(Shutdown::Write) {
                Ok(()) => self.state = State::Draining,
                Err(e) => self.fail(now, format!("shutdown: {e}")),
            }
        }
    }

    /// Waits for the peer to close, which it does after reading everything.
    fn drain(&mut self, clock: &impl Fn() -> u64, buffer: &mut [u8; READ_MAX]) -> Turn {
        for _ in 0..TURN {
            let Some(socket) = &self.socket else { return Turn::Idle };
            match discard(socket, buffer) {
                Ok(0) => {
                    self.sample(clock());
                    self.close();
                    return Turn::Idle;
                }
                Ok(_) => {}
                Err(e) => return self.stopped(clock(), &e, "waiting for the peer to close"),
            }
        }
        Turn::More
    }

    /// Handles an error of a socket call.
    fn stopped(&mut self, now: u64, e: &io::Error, what: &str) -> Turn {
        match e.kind() {
            io::ErrorKind::WouldBlock => Turn::Idle,
            io::ErrorKind::Interrupted => Turn::More,
            _ => {
                self.broken(now, e, what);
                Turn::Idle
            }
        }
    }

    /// Ends the flow after an error of its connection.
    fn broken(&mut self, now: u64, e: &io::Error, what: &str) {
        if e.kind() == io::ErrorKind::TimedOut {
            self.gave_up = true;
            self.close();
        } else {
            self.fail(now, format!("{what}: {e}"));
        }
    }
}
