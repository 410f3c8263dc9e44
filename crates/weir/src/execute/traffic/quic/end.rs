//! One end of a QUIC flow: its connection, its streams and its accounts.

use super::super::intake::Intake;
use super::super::{Amount, FlowReport, Quantiles, QuicSpec, Sent};
use bytes::Bytes;
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{
    Connection, ConnectionError, ConnectionHandle, Dir, Event, StreamEvent, StreamId, TransportConfig,
    VarInt, WriteError,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// Most bytes that a stream is given before the next one has its turn.
const CHUNK: usize = 16 * 1024;
static ZEROES: [u8; CHUNK] = [0; CHUNK];

/// State of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waiting for its start or for the peer.
    Waiting,
    /// In the handshake.
    Connecting,
    /// Transferring data.
    Open,
    /// Closed by this end, which repeats it to a peer that has not heard.
    Closing,
    /// Gone.
    Done,
}

/// A stream of the sending end.
struct Outlet {
    id: StreamId,
    /// Bytes that are not written yet; `None` without an end.
    left: Option<u64>,
}

/// A moment, as the library and as reports count it.
#[derive(Clone, Copy)]
pub(super) struct Now {
    /// Reading of the library's clock.
    pub at: Instant,
    /// Nanoseconds since the epoch.
    pub ns: u64,
}

/// One end of a flow.
pub(super) struct End {
    /// Specification of the end.
    pub spec: QuicSpec,
    /// Number of its socket.
    pub port: usize,
    /// Connection, from its first packet until it is gone.
    pub connection: Option<(ConnectionHandle, Connection)>,
    /// Time at which the connection wants to be called.
    pub timeout: Option<Instant>,
    /// Time from which the peer may end the connection in any way without an error.
    limit_ns: u64,
    state: State,
    outlets: Vec<Outlet>,
    /// Numbers of outlets that may write, in the order of their turns.
    writable: VecDeque<usize>,
    /// Number of streams that are over: acknowledged at the sender, read at the receiver.
    over: u32,
    written: u64,
    intake: Option<Intake>,
    opened_ns: Option<u64>,
    established_ns: Option<u64>,
    error: Option<String>,
    gave_up: bool,
    rtts_us: Vec<u32>,
    /// ACK frames received up to the last sample.
    acks: u64,
    lost_packets: u64,
    mtu: u16,
}

impl End {
    /// Returns an end that waits for its start. `stop_ns` is the end of everything.
    pub fn new(spec: QuicSpec, port: usize, bin_ns: u64, stop_ns: u64) -> End {
        let limit_ns = match spec.amount {
            Amount::Bytes(_) => stop_ns,
            Amount::UntilNs(until) => until.min(stop_ns),
        };
        let intake = (!spec.sends).then(|| Intake::new(spec.amount, bin_ns, spec.gap_after_ns));
        End {
            spec,
            port,
            connection: None,
            timeout: None,
            limit_ns,
            state: State::Waiting,
            outlets: Vec::new(),
            writable: VecDeque::new(),
            over: 0,
            written: 0,
            intake,
            opened_ns: None,
            established_ns: None,
            error: None,
            gave_up: false,
            rtts_us: Vec::new(),
            acks: 0,
            lost_packets: 0,
            mtu: 0,
        }
    }

    /// Returns the settings of the end's connection.
    pub fn transport(&self) -> Result<Arc<TransportConfig>, String> {
        let window = VarInt::from_u32(self.spec.window);
        let mut transport = TransportConfig::default();
        transport
            .max_concurrent_bidi_streams(VarInt::from_u32(0))
            .max_concurrent_uni_streams(VarInt::from_u32(self.spec.streams))
            .stream_receive_window(window)
            .receive_window(window)
            .send_window(u64::from(self.spec.window))
            .datagram_receive_buffer_size(None)
            .congestion_controller_factory(control(&self.spec)?);
        Ok(Arc::new(transport))
    }

    /// Returns whether the end is gone.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Takes over a connection in its handshake.
    pub fn take(&mut self, now: Now, handle: ConnectionHandle, connection: Connection) {
        self.opened_ns = Some(now.ns);
        self.connection = Some((handle, connection));
        self.state = State::Connecting;
    }

    /// Handles the connection's events, reads and writes.
    pub fn work(&mut self, now: Now) {
        let Some((handle, mut connection)) = self.connection.take() else { return };
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.establish(now, &mut connection),
                Event::ConnectionLost { reason } => self.lost(now, &reason),
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = connection.streams().accept(dir) {
                        self.read(now, &mut connection, id);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => self.read(now, &mut connection, id),
                Event::Stream(StreamEvent::Writable { id }) => {
                    self.writable.extend(self.outlets.iter().position(|outlet| outlet.id == id));
                }
                Event::Stream(StreamEvent::Finished { .. }) => self.finished(now, &mut connection),
                _ => {}
            }
        }
        self.write(now, &mut connection);
        if connection.is_drained() {
            self.state = State::Done;
        }
        if self.is_done() {
            self.count(&connection);
        }
        self.connection = Some((handle, connection));
    }

    fn establish(&mut self, now: Now, connection: &mut Connection) {
        self.established_ns = Some(now.ns);
        self.state = State::Open;
        if !self.spec.sends {
            return;
        }
        for k in 0..self.spec.streams {
            let Some(id) = connection.streams().open(Dir::Uni) else {
                return self.fail(now, "the peer has room for fewer streams".into());
            };
            let left = match self.spec.amount {
                Amount::Bytes(all) => Some(share(all, self.spec.streams, k)),
                Amount::UntilNs(_) => None,
            };
            self.writable.push_back(self.outlets.len());
            self.outlets.push(Outlet { id, left });
        }
    }

    /// Writes as much as the connection accepts, the streams in turn.
    fn write(&mut self, now: Now, connection: &mut Connection) {
        while let Some(k) = self.writable.pop_front().filter(|_| self.state == State::Open) {
            let outlet = &mut self.outlets[k];
            let want = outlet.left.map_or(CHUNK, |left| left.min(CHUNK as u64) as usize);
            let mut stream = connection.send_stream(outlet.id);
            if want == 0 {
                // An error means that the peer refused the stream, which an event tells.
                let _ = stream.finish();
                continue;
            }
            match stream.write_chunks(&mut [Bytes::from_static(&ZEROES[..want])]) {
                Ok(wrote) => {
                    self.written += wrote.bytes as u64;
                    outlet.left = outlet.left.map(|left| left - wrote.bytes as u64);
                    self.writable.push_back(k);
                }
                Err(WriteError::Blocked) => {}
                Err(e) => self.fail(now, format!("write: {e}")),
            }
        }
    }

    /// Reads everything that a stream holds.
    fn read(&mut self, now: Now, connection: &mut Connection, id: StreamId) {
        let Some(intake) = &mut self.intake else { return };
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => intake.read(now.ns, chunk.bytes.len() as u64),
                Ok(None) => {
                    self.over += 1;
                    break;
                }
                Err(_) => break,
            }
        }
        // Packets are polled for after every reading anyway.
        let _ = chunks.finalize();
        if self.over == self.spec.streams {
            intake.eof(now.ns);
        }
    }

    /// Counts a stream whose data is acknowledged, and closes the connection after the last one.
    fn finished(&mut self, now: Now, connection: &mut Connection) {
        self.over += 1;
        if self.over == self.spec.streams {
            self.close(now, connection);
        }
    }

    fn lost(&mut self, now: Now, reason: &ConnectionError) {
        let complete = self.intake.as_ref().is_some_and(Intake::complete);
        if let Some(intake) = &mut self.intake {
            intake.eof(now.ns);
        }
        self.state = State::Done;
        match reason {
            // The end of the sender may have been lost.
            _ if complete => {}
            ConnectionError::TimedOut => self.gave_up = true,
            other => self.fail(now, other.to_string()),
        }
    }

    fn fail(&mut self, now: Now, error: String) {
        if now.ns < self.limit_ns {
            self.error.get_or_insert(error);
        }
    }

    fn close(&mut self, now: Now, connection: &mut Connection) {
        self.count(connection);
        connection.close(now.at, VarInt::from_u32(0), Bytes::new());
        self.state = State::Closing;
    }

    /// Ends the flow's time. Its sender closes the connection, and data on its way is lost.
    pub fn time_is_up(&mut self, now: Now) {
        if self.spec.sends && self.state == State::Open {
            self.end(now);
        }
    }

    /// Ends the flow immediately. The peer is told. A handshake under way is no error, since the path may
    /// have lost its packets; if none arrived, the listening end says so.
    pub fn abort(&mut self, now: Now) {
        match self.state {
            State::Done => return,
            State::Waiting if self.spec.start_ns <= now.ns => {
                self.error.get_or_insert("the peer never connected".into());
            }
            State::Waiting | State::Connecting | State::Open | State::Closing => {}
        }
        self.end(now);
        if self.connection.is_none() {
            self.state = State::Done;
        }
    }

    fn end(&mut self, now: Now) {
        if let Some((handle, mut connection)) = self.connection.take() {
            self.close(now, &mut connection);
            self.connection = Some((handle, connection));
        }
    }

    /// Records an error that kept the connection from being opened.
    pub fn refused(&mut self, now: Now, error: String) {
        self.fail(now, error);
        self.state = State::Done;
    }

    /// Samples the round-trip time, if this end sends and was acknowledged since the last sample.
    pub fn sample(&mut self) {
        let Some((_, connection)) = self.connection.as_ref().filter(|_| self.spec.sends) else { return };
        let acks = connection.stats().frame_rx.acks;
        if self.state == State::Open && acks > self.acks {
            self.acks = acks;
            self.rtts_us.push(connection.rtt().as_micros() as u32);
        }
    }

    /// Keeps the connection's counts, and the round-trip time of a flow too short for a sample.
    fn count(&mut self, connection: &Connection) {
        if self.spec.sends && self.rtts_us.is_empty() && self.established_ns.is_some() {
            self.rtts_us.push(connection.rtt().as_micros() as u32);
        }
        let path = connection.stats().path;
        (self.lost_packets, self.mtu) = (path.lost_packets, path.current_mtu);
    }

    /// Returns the report of this end at `now_ns`.
    pub fn finish(mut self, now_ns: u64) -> FlowReport {
        let sent = self.spec.sends.then(|| Sent {
            written: self.written,
            acked: 0,
            retransmits: self.lost_packets,
            rtos: 0,
            rtos_counted: false,
            min_rtt_us: self.rtts_us.iter().min().copied(),
            rtt_us: Quantiles::of(&mut self.rtts_us),
            mss: self.mtu.into(),
            cc: self.spec.cc.clone(),
            series: None,
        });
        FlowReport {
            id: self.spec.id,
            error: self.error,
            gave_up: self.gave_up,
            opened_ns: self.opened_ns,
            established_ns: self.established_ns,
            received: self.intake.map(|intake| intake.finish(now_ns)),
            sent,
            exchanges: None,
        }
    }
}

/// Returns the bytes of the `k`-th of `n` streams that share `all` bytes.
fn share(all: u64, n: u32, k: u32) -> u64 {
    all / u64::from(n) + u64::from(u64::from(k) < all % u64::from(n))
}

/// Returns the congestion control that the specification names.
fn control(spec: &QuicSpec) -> Result<Arc<dyn ControllerFactory + Send + Sync>, String> {
    Ok(match spec.cc.as_str() {
        "cubic" => Arc::new(CubicConfig::default()),
        "bbr" => Arc::new(BbrConfig::default()),
        "reno" | "newreno" => Arc::new(NewRenoConfig::default()),
        other => return Err(format!("QUIC flow `{}`: no congestion control `{other}`", spec.id)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_share_all_bytes() {
        assert_eq!([0, 1, 2].map(|k| share(10, 3, k)), [4, 3, 3]);
        assert_eq!([0, 1, 2].map(|k| share(2, 3, k)), [1, 1, 0]);
    }
}
