//! QUIC by the state machine of the library `quinn` (`quinn-proto`), with sockets and timers of this loop. It
//! has a thread of its own, so that encryption does not delay the flows of TCP.

mod end;
mod port;
mod tls;

use super::alarm::{Alarm, LOOK_UP, TIMER};
use super::dues::{Due, Dues};
use super::protocol::Control;
use super::{clock, FlowReport, Role, Spec};
use end::{End, Now};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use port::{Buffers, Port};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{ClientConfig, Connection, ConnectionHandle, Incoming, ServerConfig};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_core::time::Time;

/// Flows per process up to which each has a sample at every interval.
const SAMPLED: u64 = 100;

/// All QUIC ends of a process.
pub(super) struct Quic {
    ports: Vec<Port>,
    ends: Vec<End>,
    client: Arc<QuicClientConfig>,
    server: Arc<QuicServerConfig>,
    poll: Poll,
    alarm: Alarm,
    stop_ns: u64,
    linger_ns: u64,
    sample_ns: u64,
}

impl Quic {
    /// Opens the sockets of all ends: one for each client, and one for each address of servers.
    pub fn open(spec: &Spec) -> Result<Quic, String> {
        let io = |e: io::Error| format!("event loop of QUIC: {e}");
        let poll = Poll::new().map_err(io)?;
        let alarm = Alarm::register(poll.registry()).map_err(io)?;
        let (client, server) = (tls::client()?, tls::server()?);
        let mut ports: Vec<Port> = Vec::new();
        let mut listening: BTreeMap<SocketAddr, usize> = BTreeMap::new();
        let mut ends = Vec::new();
        for (i, flow) in spec.quic.iter().enumerate() {
            let known = listening.get(&flow.local).copied().filter(|_| flow.role == Role::Listen);
            let number = known.unwrap_or(ports.len());
            let end = End::new(flow.clone(), number, spec.bin_ns, spec.stop_ns);
            end.transport()?;
            if known.is_none() {
                let listens = flow.role == Role::Listen;
                let config = listens.then(|| Arc::new(ServerConfig::with_crypto(server.clone())));
                let port = Port::open(flow.local, config)?;
                let interest = Interest::READABLE | Interest::WRITABLE;
                poll.registry()
                    .register(&mut SourceFd(&port.descriptor()), Token(number), interest)
                    .map_err(io)?;
                ports.push(port);
            }
            if flow.role == Role::Listen {
                listening.insert(flow.local, number);
                ports[number].expected.insert(flow.remote, i);
            }
            ends.push(end);
        }
        let sample_ns = spec.sample_ns * (1 + ends.len() as u64 / SAMPLED);
        let (stop_ns, linger_ns) = (spec.stop_ns, spec.linger_ns);
        Ok(Quic { ports, ends, client, server, poll, alarm, stop_ns, linger_ns, sample_ns })
    }

    /// Runs all ends until they are done, until the specification's stop, or until `control` requests one.
    pub fn run(self, epoch: Time, control: &Control) -> io::Result<Vec<FlowReport>> {
        // The default slack adds 50 us to every sleep. Failing to set it costs only precision.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let begin = instant(epoch);
        let ends = self.ends.iter().map(|end| (end.spec.role, end.spec.start_ns, end.spec.amount));
        let mut due = Dues::of(ends, self.linger_ns, self.stop_ns);
        due.add(self.sample_ns, Due::Sample);
        let mut stage = Stage {
            epoch,
            begin,
            queued: vec![false; self.ends.len()],
            all: self,
            due,
            timeouts: BTreeSet::new(),
            touched: VecDeque::new(),
            readable: BTreeSet::new(),
            buffers: Buffers::new(),
            packets: Vec::new(),
            done: 0,
        };
        stage.play(control)?;
        let now = stage.now().ns;
        Ok(stage.all.ends.into_iter().map(|end| end.finish(now)).collect())
    }
}

/// Returns a time of CLOCK_MONOTONIC on the library's clock, which is the same one. The reading with the
/// shortest bracket counts. The result is never late, so that a timer set by it is never early.
fn instant(time: Time) -> Instant {
    let read = || {
        let before = Instant::now();
        let monotonic = clock::monotonic();
        (before.elapsed(), before, monotonic)
    };
    let (_, before, monotonic) = (0..16).map(|_| read()).min().unwrap_or_else(read);
    match time > monotonic {
        true => before + Duration::from_nanos(time.since(monotonic).as_nanos()),
        false => before - Duration::from_nanos(monotonic.since(time).as_nanos()),
    }
}

/// State of the running loop.
struct Stage {
    all: Quic,
    epoch: Time,
    /// The epoch on the library's clock.
    begin: Instant,
    due: Dues,
    /// Times at which connections want to be called, with their ends.
    timeouts: BTreeSet<(Instant, usize)>,
    /// Ends that have something to do, in the order of their turns.
    touched: VecDeque<usize>,
    queued: Vec<bool>,
    /// Sockets that may hold something to read.
    readable: BTreeSet<usize>,
    buffers: Buffers,
    /// Buffer of outgoing packets.
    packets: Vec<u8>,
    /// Number of ends that are done, counted from the first up to the first that is not.
    done: usize,
}

impl Stage {
    fn now(&self) -> Now {
        let at = Instant::now();
        Now { at, ns: self.since_epoch(at) }
    }

    fn since_epoch(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.begin).as_nanos() as u64
    }

    /// Returns whether all ends are done. Ends found done are not checked again.
    fn is_done(&mut self) -> bool {
        let after = &self.all.ends[self.done..];
        self.done += after.iter().take_while(|end| end.is_done()).count();
        self.done == self.all.ends.len()
    }

    fn play(&mut self, control: &Control) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        while !self.is_done() && !control.stop_requested() {
            if self.run_timers() {
                break;
            }
            self.expire();
            self.receive();
            while let Some(i) = self.touched.pop_front() {
                self.queued[i] = false;
                self.drive(i);
            }
            self.wait(&mut events)?;
            for event in events.iter().filter(|event| event.token() != TIMER) {
                let port = event.token().0;
                if event.is_readable() {
                    self.readable.insert(port);
                }
                if event.is_writable() && self.all.ports[port].is_full() {
                    self.all.ports[port].flush();
                    let ends: Vec<usize> = self.all.ports[port].ends.values().copied().collect();
                    ends.into_iter().for_each(|i| self.touch(i));
                }
            }
        }
        for i in 0..self.all.ends.len() {
            let now = self.now();
            self.all.ends[i].abort(now);
            self.drive(i);
        }
        Ok(())
    }

    /// Runs due timers. Returns whether everything should stop.
    fn run_timers(&mut self) -> bool {
        loop {
            let now = self.now();
            // No timer is due before the epoch, although the time since it reads zero.
            let due = Some(now).filter(|now| now.at >= self.begin).and_then(|now| self.due.pop(now.ns));
            let Some(due) = due else { return false };
            match due {
                Due::Start(i) => self.start(i, now),
                Due::Sample => {
                    self.all.ends.iter_mut().for_each(End::sample);
                    self.due.add(now.ns + self.all.sample_ns, Due::Sample);
                }
                Due::TimeIsUp(i) => {
                    self.all.ends[i].time_is_up(now);
                    self.touch(i);
                }
                Due::Reset(i) => {
                    self.all.ends[i].abort(now);
                    self.touch(i);
                }
                Due::Stop => return true,
            }
        }
    }

    /// Opens the connection of a client.
    fn start(&mut self, i: usize, now: Now) {
        let end = &mut self.all.ends[i];
        let port = &mut self.all.ports[end.port];
        let connection = end.transport().and_then(|transport| {
            let mut config = ClientConfig::new(self.all.client.clone());
            config.transport_config(transport);
            let opened = port.endpoint.connect(now.at, config, end.spec.remote, "weir.invalid");
            opened.map_err(|e| format!("connect to {}: {e}", end.spec.remote))
        });
        self.take(i, now, connection);
    }

    /// Gives an end its connection, or the reason why it has none.
    fn take(&mut self, i: usize, now: Now, connection: Result<(ConnectionHandle, Connection), String>) {
        let end = &mut self.all.ends[i];
        match connection {
            Ok((handle, connection)) => {
                self.all.ports[end.port].ends.insert(handle, i);
                end.take(now, handle, connection);
                self.touch(i);
            }
            Err(e) => end.refused(now, e),
        }
    }

    /// Accepts the connection of an expected client, and refuses others.
    fn accept(&mut self, number: usize, incoming: Incoming) {
        let now = self.now();
        let port = &mut self.all.ports[number];
        self.packets.clear();
        let Some(i) = port.expected.remove(&incoming.remote_address()) else {
            let answer = port.endpoint.refuse(incoming, &mut self.packets);
            return port.send(answer, &self.packets);
        };
        let end = &mut self.all.ends[i];
        let connection = end.transport().and_then(|transport| {
            let mut config = ServerConfig::with_crypto(self.all.server.clone());
            config.transport_config(transport);
            let accepted = port.endpoint.accept(incoming, now.at, &mut self.packets, Some(Arc::new(config)));
            accepted.map_err(|e| {
                if let Some(answer) = e.response {
                    port.send(answer, &self.packets);
                }
                format!("accept: {}", e.cause)
            })
        });
        self.take(i, now, connection);
    }

    fn touch(&mut self, i: usize) {
        if !std::mem::replace(&mut self.queued[i], true) {
            self.touched.push_back(i);
        }
    }

    /// Calls the connections whose time has come.
    fn expire(&mut self) {
        let now = Instant::now();
        while let Some((_, i)) = self.timeouts.first().copied().filter(|(at, _)| *at <= now) {
            self.timeouts.pop_first();
            let end = &mut self.all.ends[i];
            end.timeout = None;
            if let Some((_, connection)) = &mut end.connection {
                connection.handle_timeout(now);
            }
            self.touch(i);
        }
    }

    /// Gives each readable socket one turn.
    fn receive(&mut self) {
        for number in std::mem::take(&mut self.readable) {
            let port = &mut self.all.ports[number];
            let arrived = port.receive(&mut self.buffers);
            if arrived.more {
                self.readable.insert(number);
            }
            for (handle, event) in arrived.events {
                let Some(&i) = self.all.ports[number].ends.get(&handle) else { continue };
                if let Some((_, connection)) = &mut self.all.ends[i].connection {
                    connection.handle_event(event);
                }
                self.touch(i);
            }
            arrived.incoming.into_iter().for_each(|incoming| self.accept(number, incoming));
        }
    }

    /// Lets an end work, and sends its packets.
    fn drive(&mut self, i: usize) {
        let now = self.now();
        let end = &mut self.all.ends[i];
        let port = &mut self.all.ports[end.port];
        loop {
            end.work(now);
            let Some((handle, connection)) = &mut end.connection else { break };
            while !port.is_full() {
                self.packets.clear();
                let most = port.most_at_once();
                let Some(mut transmit) = connection.poll_transmit(now.at, most, &mut self.packets) else {
                    break;
                };
                transmit.ecn = transmit.ecn.filter(|_| end.spec.ecn);
                port.send(transmit, &self.packets);
            }
            let mut answered = false;
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = port.endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                    answered = true;
                }
            }
            if !answered {
                break;
            }
        }
        if end.is_done() {
            if let Some((handle, _)) = end.connection.take() {
                port.ends.remove(&handle);
            }
        }
        let timeout = end.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
        if timeout != end.timeout {
            if let Some(at) = end.timeout {
                self.timeouts.remove(&(at, i));
            }
            self.timeouts.extend(timeout.map(|at| (at, i)));
            end.timeout = timeout;
        }
    }

    fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        let timer = self.due.first();
        let connection = self.timeouts.first().map(|(at, _)| self.since_epoch(*at));
        let next = timer.into_iter().chain(connection).min();
        let epoch = self.epoch.as_nanos();
        self.all.alarm.set(next.map(|at| Time::from_nanos(epoch.saturating_add(at))))?;
        let timeout = if self.readable.is_empty() { LOOK_UP } else { Duration::ZERO };
        match self.all.poll.poll(events, Some(timeout)) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(()),
            other => other,
        }
    }
}
