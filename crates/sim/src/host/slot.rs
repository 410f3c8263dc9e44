//! An active endpoint, with its connection, application and record.

use super::application::Application;
use super::record::EndpointRecord;
use super::{Change, Endpoint, Source};
use crate::cache::{prefetch_lines, LINE};
use crate::tcp::{Connection, Delivered, Failure, State, TcpConfig};
use core::mem::offset_of;
use std::net::SocketAddrV4;
use std::sync::Arc;
use weir_core::time::Time;

/// Active endpoint. The fields that every segment uses come first.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Slot {
    /// Key of the segments that it receives ([`Pair::key`](crate::tcp::segment::Pair::key)).
    pub(super) key: u64,
    /// Time at which the application is next asked for data; [`Time::ZERO`] before it has begun.
    asked: Time,
    /// Connection, from the start of the flow to its end.
    pub(super) connection: Option<Box<Connection>>,
    pub(super) trace: bool,
    pub(super) opens: bool,
    pub(super) record: EndpointRecord,
    pub(super) application: Option<Box<Application>>,
    /// Initial settings, until the connection is established.
    pub(super) origin: Option<Box<Origin>>,
    /// Final counters of a connection that is gone.
    pub(super) last: Option<Box<Last>>,
}

/// Initial settings of an endpoint.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) tcp: Arc<TcpConfig>,
    pub(super) start: Time,
    source: Option<Source>,
    pub(super) local: SocketAddrV4,
    pub(super) remote: SocketAddrV4,
}

/// Final counters of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Last {
    pub(super) failure: Option<Failure>,
    pub(super) acked: u64,
    pub(super) retransmits: u64,
    pub(super) rtos: u64,
}

impl Slot {
    pub(super) fn new(key: u64, endpoint: Endpoint) -> Slot {
        let Endpoint { opens, local, remote, start, tcp, source, bin, until, trace } = endpoint;
        Slot {
            key,
            asked: Time::ZERO,
            connection: None,
            trace,
            opens,
            record: EndpointRecord::new(bin, until),
            application: None,
            origin: Some(Box::new(Origin { tcp, start, source, local, remote })),
            last: None,
        }
    }

    /// Returns whether the endpoint has not started yet.
    pub(super) fn fresh(&self) -> bool {
        self.connection.is_none() && !self.record.closed.has_been()
    }

    /// Returns the bytes that the application writes when the connection opens, with segments of `mss` bytes.
    pub(super) fn written_at_first(&self, mss: u16) -> u64 {
        let source = self.origin.as_deref().and_then(|origin| origin.source.as_ref());
        source.map_or(0, |source| source.at_first(mss.into()))
    }

    /// Prefetches the fields that a segment uses.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch_lines(
            &self.key,
            const { (offset_of!(Slot, record) + EndpointRecord::FIRST).div_ceil(LINE) },
        );
    }

    /// Prefetches the memory that the endpoint and its connection point to.
    #[inline]
    pub(super) fn prefetch_last(&self) {
        self.record.prefetch();
        if let Some(connection) = &self.connection {
            connection.prefetch_rest();
        }
    }

    #[inline(always)]
    pub(super) fn note(&mut self, delivered: &Delivered, now: Time) {
        if delivered.bytes > 0 {
            self.record.received(delivered.bytes, now);
        }
        if delivered.finished {
            self.record.finished(now);
            self.asked = Time::ZERO;
        }
        if let Some(rtt) = delivered.rtt {
            self.record.round_trip(rtt);
        }
    }

    #[inline]
    pub(super) fn note_change(&mut self, now: Time) {
        if self.trace {
            self.keep_change(now);
        }
    }

    #[cold]
    fn keep_change(&mut self, now: Time) {
        let Some(connection) = self.connection.as_deref() else { return };
        self.record.change(change(connection, now));
    }

    /// Writes the application's data. An application that only receives closes after its peer.
    #[inline]
    pub(super) fn run_application(&mut self, now: Time) {
        if self.asked <= now {
            self.ask_application(now);
        }
    }

    #[inline(never)]
    fn ask_application(&mut self, now: Time) {
        let Some(connection) = self.connection.as_deref_mut() else { return };
        if connection.state() != State::Established {
            return;
        }
        if !self.record.established.has_been() {
            self.record.established.note(now);
            let mss = connection.mss();
            self.application = self.origin.take().and_then(|origin| {
                let start = origin.start.max(now);
                origin.source.map(|source| Box::new(Application::new(source, start, mss)))
            });
        }
        match &mut self.application {
            Some(application) => {
                let over = application.burst_over(now, connection.sender().acked());
                over.into_iter().for_each(|took| self.record.burst(took));
                let (limit, close) = application.written(now, connection.sent());
                connection.write(limit, close);
                self.asked = if close { Time::MAX } else { application.next_deadline(connection.sent()) };
            }
            None => {
                if self.record.has_finished() {
                    connection.write(0, true);
                }
                self.asked = Time::MAX;
            }
        }
    }

    /// Returns the time of the next action without a segment; [`Time::MAX`] for never.
    #[inline(always)]
    pub(super) fn next_deadline(&self) -> Time {
        let Some(connection) = self.connection.as_deref() else { return Time::MAX };
        let writes = if self.asked == Time::ZERO { self.next_wake(connection) } else { self.asked };
        connection.next_deadline().min(writes)
    }

    /// Returns the time at which an application that is asked at each event has something to write without
    /// one; [`Time::MAX`] for never.
    #[inline(never)]
    fn next_wake(&self, connection: &Connection) -> Time {
        let writes = self.application.as_ref().filter(|_| connection.state() == State::Established);
        writes.map_or(Time::MAX, |application| application.next_wake(connection.sent()))
    }

    /// Releases a connection that is over. Returns whether it has just ended.
    #[inline]
    pub(super) fn end_if_over(&mut self, now: Time) -> bool {
        let state = self.connection.as_deref().map(Connection::state);
        matches!(state, Some(State::Closed | State::TimeWait)) && self.end(now)
    }

    #[cold]
    fn end(&mut self, now: Time) -> bool {
        let Some(connection) = self.connection.as_deref() else { return false };
        let before = self.record.closed.has_been();
        match connection.state() {
            State::Closed => {
                self.last = Some(Box::new(Last::of(connection)));
                self.record.closed.note(now);
                self.connection = None;
                let cut = self.application.take().and_then(|application| application.burst_since());
                cut.into_iter().for_each(|since| self.record.cut_burst(since));
            }
            State::TimeWait => {
                self.record.closed.note(now);
            }
            _ => {}
        }
        !before && self.record.closed.has_been()
    }
}

impl Last {
    pub(super) fn of(connection: &Connection) -> Last {
        let (retransmits, rtos) = connection.repairs();
        Last { failure: connection.failure(), acked: connection.sender().acked(), retransmits, rtos }
    }
}

pub(super) fn change(connection: &Connection, now: Time) -> Change {
    let sender = connection.sender();
    Change {
        at: now,
        cwnd: sender.window().cwnd,
        ssthresh: sender.window().ssthresh,
        in_flight: sender.in_flight(),
        acked: sender.acked(),
        srtt: sender.rtt().srtt(),
    }
}
