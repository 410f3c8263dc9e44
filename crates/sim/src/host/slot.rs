//! An endpoint at work: its connection, its application, its record.

use super::application::Application;
use super::record::Record;
use super::{Change, Endpoint};
use crate::tcp::{Connection, Delivered, Failure, State};
use weir_core::time::Time;

/// An endpoint at work.
#[derive(Debug)]
pub(super) struct Slot {
    /// Of the segments that it receives ([`Pair::key`](crate::tcp::segment::Pair::key)).
    pub(super) key: u64,
    pub(super) endpoint: Endpoint,
    /// There is one from the start of the flow to its end.
    pub(super) connection: Option<Box<Connection>>,
    pub(super) application: Option<Box<Application>>,
    pub(super) record: Record,
    /// Of a connection that is gone.
    pub(super) last: Option<Box<Last>>,
}

/// What is left of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Last {
    pub(super) failure: Option<Failure>,
    pub(super) acked: u64,
    pub(super) retransmits: u64,
    pub(super) rtos: u64,
}

impl Slot {
    /// Has it not begun yet?
    pub(super) fn fresh(&self) -> bool {
        self.connection.is_none() && self.record.closed.is_none()
    }

    pub(super) fn note(&mut self, delivered: &Delivered, now: Time) {
        if delivered.bytes > 0 {
            self.record.received(delivered.bytes, self.endpoint.bin, now);
        }
        if delivered.finished {
            self.record.finished(now);
        }
        if let Some(rtt) = delivered.rtt {
            self.record.round_trip(rtt);
        }
    }

    pub(super) fn note_change(&mut self, now: Time) {
        let Some(connection) = self.connection.as_deref().filter(|_| self.endpoint.trace) else { return };
        let change = change(connection, now);
        let same = |c: &Change| Change { at: now, ..*c } == change;
        if !self.record.trace.last().is_some_and(same) {
            self.record.trace.push(change);
        }
    }

    /// Writes what the application has; one that only receives closes when its peer has.
    pub(super) fn run_application(&mut self, now: Time) {
        let Some(connection) = self.connection.as_deref_mut() else { return };
        if connection.state() != State::Established {
            return;
        }
        if self.record.established.is_none() {
            self.record.established = Some(now);
            let start = self.endpoint.start.max(now);
            let mss = connection.mss();
            self.application = self.endpoint.source.map(|s| Box::new(Application::new(s, start, mss)));
        }
        match &mut self.application {
            Some(application) => {
                let (limit, close) = application.written(now, connection.sent());
                connection.write(limit, close);
            }
            None if self.record.finished_at().is_some() => connection.write(0, true),
            None => {}
        }
    }

    /// When something is to be done for it without a segment; [`Time::MAX`] for never.
    pub(super) fn next_deadline(&self) -> Time {
        let Some(connection) = self.connection.as_deref() else { return Time::MAX };
        let writes = self.application.as_deref().filter(|_| connection.state() == State::Established);
        let open = writes.filter(|_| !connection.sender().closed());
        connection.next_deadline().min(open.map_or(Time::MAX, Application::next_deadline))
    }

    /// Lets go of a connection that is over.
    pub(super) fn end_if_over(&mut self, now: Time) {
        let Some(connection) = self.connection.as_deref() else { return };
        match connection.state() {
            State::Closed => {
                self.last = Some(Box::new(Last::of(connection)));
                self.record.closed.get_or_insert(now);
                self.connection = None;
                self.application = None;
            }
            State::TimeWait => {
                self.record.closed.get_or_insert(now);
            }
            _ => {}
        }
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
