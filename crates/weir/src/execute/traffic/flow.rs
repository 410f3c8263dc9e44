//! One end of a TCP flow: its socket and its states, from the start to the report.

mod transfer;

use super::intake::Intake;
use super::sender::SenderAccount;
use super::socket::{configure, open};
use super::spec::{Amount, FlowSpec, Play, Role, Spec};
use super::talk::Talk;
use super::FlowReport;
use socket2::Socket;
use std::os::fd::AsFd;
use std::time::Duration;

/// Most bytes written at once.
pub(super) const WRITE_MAX: usize = 64 * 1024;
/// Most reads or writes before another flow has its turn.
const TURN: usize = 16;

/// State of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waiting for its start or for the peer.
    Waiting,
    /// Waiting for `connect` to complete.
    Connecting,
    /// Transferring data.
    Open,
    /// Waiting for the peer to close, after all data was sent.
    Draining,
    /// Closed.
    Done,
}

/// Result of a flow's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The turn ended with more work to do.
    More,
    /// The socket would block; an event resumes the flow.
    Idle,
}

/// One end of a flow.
pub(super) struct Flow {
    spec: FlowSpec,
    /// Time from which the peer may end the connection in any way without an error.
    limit_ns: u64,
    state: State,
    socket: Option<Socket>,
    /// Accounts of sending and receiving; both are present if the flow goes both ways.
    sender: Option<SenderAccount>,
    intake: Option<Intake>,
    talk: Option<Talk>,
    /// True if the kernel reported that the peer closed its direction. Reads continue until they report it
    /// too.
    peer_closed: bool,
    /// True if a read reported the end of data.
    heard_all: bool,
    opened_ns: Option<u64>,
    established_ns: Option<u64>,
    error: Option<String>,
    gave_up: bool,
}

impl Flow {
    /// Returns a flow that waits for its start.
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
            sender: spec.writes().then(|| SenderAccount::new(spec.amount, spec.series)),
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
    /// Returns whether samples of TCP_INFO are meaningful for this end.
    pub fn is_sending(&self) -> bool {
        self.sender.is_some() && matches!(self.state, State::Open | State::Draining)
    }

    /// Opens the connection. The socket exists afterwards unless the flow failed.
    pub fn connect(&mut self, now: u64) {
        self.opened_ns = Some(now);
        match open(&self.spec) {
            Ok(socket) => {
                self.socket = Some(socket);
                self.state = State::Connecting;
                if self.spec.fast_open {
                    self.write_first(now);
                }
            }
            Err(e) => self.fail(now, e),
        }
    }

    /// Takes over the connection that the peer opened.
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

    /// Notes the kernel's event that the peer closed its direction.
    pub fn peer_closed(&mut self) {
        self.peer_closed = true;
    }

    /// Samples the kernel's state of the flow, if this end sends.
    pub fn sample(&mut self, now: u64) {
        if let (Some(sender), Some(socket)) = (&mut self.sender, &self.socket) {
            sender.sample(now, socket.as_fd());
        }
    }

    /// Ends the flow's time. Its sender tells the peer.
    pub fn time_is_up(&mut self, now: u64) {
        match &mut self.talk {
            Some(talk) if talk.asks() => talk.end(),
            Some(_) => {}
            None if self.sender.is_some() && self.state == State::Open => self.end_of_data(now),
            None => {}
        }
    }

    /// Ends the flow immediately. A connection is reset, so that none of it remains.
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
            // On failure the close is orderly, which is acceptable.
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

    /// Returns the report of this end at `now`.
    pub fn finish(self, now: u64) -> FlowReport {
        FlowReport {
            id: self.spec.id,
            error: self.error,
            gave_up: self.gave_up,
            opened_ns: self.opened_ns,
            established_ns: self.established_ns,
            received: self.intake.map(|i| i.finish(now)),
            sent: self.sender.map(SenderAccount::finish),
            exchanges: self.talk.and_then(|talk| talk.finish(now)),
        }
    }
}
