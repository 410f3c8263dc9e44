//! One end of a TCP flow: its socket, and what is done when the socket is ready.

use super::intake::Intake;
use super::sender::Sender;
use super::socket::{clamp_window, configure, discard, open, READ_MAX};
use super::spec::{Amount, FlowSpec, Play, Role, Spec};
use super::talk::Talk;
use super::FlowReport;
use socket2::Socket;
use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::time::Duration;

/// The most that is written at once.
pub(super) const WRITE_MAX: usize = 64 * 1024;
/// Reads or writes before another flow has its turn.
const TURN: usize = 16;

/// Where a flow stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its start, or the peer, has yet to come.
    Waiting,
    /// `connect` is under way.
    Connecting,
    /// Data flows.
    Open,
    /// All is sent; the peer has yet to close.
    Draining,
    /// Closed.
    Done,
}

/// Whether a flow has more to do at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It stopped because its turn was over.
    More,
    /// The socket stopped it; an event says when to go on.
    Idle,
}

/// One end of a flow.
pub(super) struct Flow {
    spec: FlowSpec,
    /// From here on the peer may end the connection any time, and however it does is no error.
    limit_ns: u64,
    state: State,
    socket: Option<Socket>,
    /// What this end sends and receives; both, if the flow goes both ways.
    sender: Option<Sender>,
    intake: Option<Intake>,
    talk: Option<Talk>,
    /// The peer has closed its direction: reads go on until they say so.
    peer_closed: bool,
    /// They have said so.
    heard_all: bool,
    opened_ns: Option<u64>,
    established_ns: Option<u64>,
    error: Option<String>,
    gave_up: bool,
}

impl Flow {
    /// A flow that waits for its start.
    pub fn new(spec: FlowSpec, all: &Spec) -> Flow {
        let limit_ns = match spec.amount {
            Amount::Bytes(_) => all.stop_ns,
            Amount::UntilNs(until) => until.min(all.stop_ns),
        };
        let talk = match spec.play {
            Play::Exchange { request, response } => {
                Some(Talk::new(spec.role == Role::Connect, request, response))
            }
            Play::OneWay | Play::BothWays => None,
        };
        Flow {
            sender: spec.writes().then(|| Sender::new(spec.amount, spec.series)),
            intake: spec.reads().then(|| Intake::new(spec.amount, all.bin_ns, spec.gap_after_ns)),
            talk,
            spec,
            limit_ns,
            state: State::Waiting,
            socket: None,
            peer_closed: false,
            heard_all: false,
            opened_ns: None,
            established_ns: None,
            error: None,
            gave_up: false,
        }
    }

    pub fn spec(&self) -> &FlowSpec {
        &self.spec
    }
    pub fn socket(&self) -> Option<&Socket> {
        self.socket.as_ref()
    }
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }
    /// Whether samples of TCP_INFO say something about it.
    pub fn is_sending(&self) -> bool {
        self.sender.is_some() && matches!(self.state, State::Open | State::Draining)
    }

    /// Opens the connection. The socket is there afterwards unless the flow failed.
    pub fn connect(&mut self, now: u64) {
        self.opened_ns = Some(now);
        match open(&self.spec) {
            Ok(socket) => {
                self.socket = Some(socket);
                self.state = State::Connecting;
            }
            Err(e) => self.fail(now, e),
        }
    }

    /// Takes the connection that the peer opened.
    pub fn accept(&mut self, now: u64, socket: Socket) {
        let set = socket
            .set_nonblocking(true)
            .map_err(|e| e.to_string())
            .and_then(|()| configure(&socket, &self.spec));
        self.socket = Some(socket);
        match set {
            Ok(()) => self.establish(now),
            Err(e) => self.fail(now, e),
        }
    }

    fn establish(&mut self, now: u64) {
        self.established_ns = Some(now);
        self.state = State::Open;
        if let (Some(s), Some(socket)) = (&mut self.sender, &self.socket) {
            let name = socket.tcp_congestion().unwrap_or_default();
            s.uses(String::from_utf8_lossy(&name).trim_end_matches('\0').to_string());
        }
    }

    /// The kernel says that the peer closed its direction.
    pub fn peer_closed(&mut self) {
        self.peer_closed = true;
    }

    /// Does what the socket allows, within one turn. `clock` stamps every read.
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

    /// Reads and writes. Reading comes first, since a conversation says what it does next by what it hears.
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

    /// The kernel sets the clamp anew when the size of arriving segments changes what it thinks a
    /// buffer holds (`tcp_measure_rcv_mss`, Linux 6.6 and later).
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
                    // Less than asked for: the queue was empty, and what comes after is an event.
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
            // What this end still has to send comes first.
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
    fn end_of_data(&mut self, now: u64) {
        self.sample(now);
        if let Some(socket) = &self.socket {
            match socket.shutdown(Shutdown::Write) {
                Ok(()) => self.state = State::Draining,
                Err(e) => self.fail(now, format!("shutdown: {e}")),
            }
        }
    }

    /// Waits for the peer to close, which it does when it has read everything.
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

    /// What an error of a socket call means.
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

    /// The socket says that the connection is over.
    fn broken(&mut self, now: u64, e: &io::Error, what: &str) {
        if e.kind() == io::ErrorKind::TimedOut {
            self.gave_up = true;
            self.close();
        } else {
            self.fail(now, format!("{what}: {e}"));
        }
    }

    /// Looks at the kernel's state of the flow, if this end sends.
    pub fn sample(&mut self, now: u64) {
        if let (Some(sender), Some(socket)) = (&mut self.sender, &self.socket) {
            sender.sample(now, socket.as_fd());
        }
    }

    /// The flow's time is up: its sender says so to the peer.
    pub fn time_is_up(&mut self, now: u64) {
        match &mut self.talk {
            Some(talk) if talk.asks() => talk.end(),
            Some(_) => {}
            None if self.sender.is_some() && self.state == State::Open => self.end_of_data(now),
            None => {}
        }
    }

    /// Ends the flow where it stands; a connection is reset, so that nothing of it stays behind.
    pub fn abort(&mut self, now: u64) {
        if matches!(self.state, State::Done) {
            return;
        }
        if self.state == State::Open {
            self.sample(now);
        }
        if self.state == State::Connecting {
            self.error.get_or_insert(format!("connect to {}: no answer", self.spec.remote));
        } else if self.state == State::Waiting && self.spec.start_ns <= now {
            self.error.get_or_insert("the peer never connected".into());
        }
        if let Some(socket) = &self.socket {
            // Failing means an orderly close, which is no worse.
            let _ = socket.set_linger(Some(Duration::ZERO));
        }
        self.close();
    }

    fn fail(&mut self, now: u64, error: String) {
        if now < self.limit_ns {
            self.error.get_or_insert(error);
        }
        self.close();
    }

    fn close(&mut self) {
        self.socket = None;
        self.state = State::Done;
    }

    /// The account of this end at `now`.
    pub fn finish(self, now: u64) -> FlowReport {
        FlowReport {
            id: self.spec.id,
            error: self.error,
            gave_up: self.gave_up,
            opened_ns: self.opened_ns,
            established_ns: self.established_ns,
            received: self.intake.map(|i| i.finish(now)),
            sent: self.sender.map(Sender::finish),
            exchanges: self.talk.and_then(Talk::finish),
        }
    }
}
