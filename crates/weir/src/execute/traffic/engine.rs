//! The event loop that runs a [`Spec`].

use super::alarm::{Alarm, LOOK_UP, TIMER};
use super::datagrams::Datagrams;
use super::dues::{Due, Dues};
use super::flow::{Flow, Turn, WRITE_MAX};
use super::probe::{ProbeSink, ProbeSource};
use super::protocol::Control;
use super::quic::Quic;
use super::socket::{listen, READ_MAX};
use super::spec::{Role, Spec};
use super::{clock, ProbeReport, Report};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use socket2::Socket;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::thread::JoinHandle;
use std::time::Duration;
use weir_core::time::Time;

/// TCP_INFO samples per second over all flows of the process, at about a microsecond each.
const SAMPLES_PER_S: u64 = 5_000;

/// Flows and probes that are ready to run.
pub struct Generator {
    spec: Spec,
    flows: Vec<Flow>,
    listeners: Vec<Socket>,
    /// Flow of each expected peer, by local and remote address.
    expected: HashMap<(SocketAddr, SocketAddr), usize>,
    sources: Vec<(usize, ProbeSource)>,
    sinks: Vec<(usize, ProbeSink)>,
    datagrams: Option<Datagrams>,
    quic: Option<Quic>,
    poll: Poll,
    alarm: Alarm,
}

impl Generator {
    /// Opens everything that peers need before they connect. Peers may connect from here on.
    pub fn open(spec: Spec) -> Result<Generator, String> {
        spec.check()?;
        allow_many_sockets();
        let io = |e: io::Error| format!("event loop: {e}");
        let poll = Poll::new().map_err(io)?;
        let alarm = Alarm::register(poll.registry()).map_err(io)?;

        let flows: Vec<Flow> = spec.flows.iter().map(|f| Flow::new(f.clone(), &spec)).collect();
        let mut by_local = BTreeMap::<SocketAddr, Vec<usize>>::new();
        let mut expected = HashMap::new();
        for (i, f) in spec.flows.iter().enumerate().filter(|(_, f)| f.role == Role::Listen) {
            by_local.entry(f.local).or_default().push(i);
            expected.insert((f.local, f.remote), i);
        }
        let mut listeners = Vec::new();
        for members in by_local.values() {
            let specs: Vec<_> = members.iter().map(|&i| &spec.flows[i]).collect();
            let socket = listen(&specs)?;
            let token = Token(flows.len() + listeners.len());
            poll.registry()
                .register(&mut SourceFd(&socket.as_raw_fd()), token, Interest::READABLE)
                .map_err(io)?;
            listeners.push(socket);
        }
        let (mut sources, mut sinks) = (Vec::new(), Vec::new());
        for (i, p) in spec.probes.iter().enumerate() {
            if p.sends {
                sources.push((i, ProbeSource::open(p)?));
            } else {
                sinks.push((i, ProbeSink::open(p)?));
            }
        }
        let datagrams = (!spec.datagrams.is_empty()).then(|| Datagrams::open(&spec)).transpose()?;
        let quic = (!spec.quic.is_empty()).then(|| Quic::open(&spec)).transpose()?;
        Ok(Generator { spec, flows, listeners, expected, sources, sinks, datagrams, quic, poll, alarm })
    }

    /// Runs everything from `epoch` on, until all flows are done, the specification's stop, or `control`
    /// requests a stop.
    pub fn run(self, epoch: Time, control: &Control) -> io::Result<Report> {
        let stop = self.spec.stop_ns;
        let mut probes = vec![ProbeReport::default(); self.spec.probes.len()];
        let threads: Vec<(usize, JoinHandle<ProbeReport>)> = {
            let sources = self.sources.into_iter().map(|(i, source)| {
                let control = control.clone();
                (i, std::thread::spawn(move || source.run(epoch, &control)))
            });
            let sinks = self.sinks.into_iter().map(|(i, sink)| {
                let control = control.clone();
                (i, std::thread::spawn(move || sink.run(epoch, stop, &control)))
            });
            sources.chain(sinks).collect()
        };
        let datagrams = self.datagrams.map(|ends| {
            let control = control.clone();
            std::thread::spawn(move || ends.run(epoch, &control))
        });
        let quic = self.quic.map(|ends| {
            let control = control.clone();
            std::thread::spawn(move || ends.run(epoch, &control))
        });
        let ends = self.flows.iter().map(Flow::spec).map(|f| (f.role, f.start_ns, f.amount));
        let mut due = Dues::of(ends, self.spec.linger_ns, stop);
        if self.flows.iter().any(|f| f.spec().writes()) {
            due.add(self.spec.sample_ns, Due::Sample);
        }
        let mut stage = Stage {
            epoch,
            spec: self.spec,
            queued: vec![false; self.flows.len()],
            flows: self.flows,
            listeners: self.listeners,
            expected: self.expected,
            poll: self.poll,
            alarm: self.alarm,
            due,
            ready: VecDeque::new(),
            sample_next: 0,
            done: 0,
            strangers: 0,
            interrupted: false,
        };
        stage.play(control)?;
        for (i, thread) in threads {
            probes[i] = thread.join().unwrap_or_else(|_| ProbeReport {
                error: Some("the probe's thread panicked".into()),
                ..ProbeReport::default()
            });
        }
        let datagrams = datagrams.map_or(Ok(Vec::new()), |thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("the datagrams' thread panicked")))
        })?;
        let quic = quic.map_or(Ok(Vec::new()), |thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread of QUIC panicked")))
        })?;
        // The probes may have been stopped while there were no flows.
        stage.interrupted |= control.stop_requested();
        let now = stage.now();
        Ok(Report {
            flows: stage.flows.into_iter().map(|f| f.finish(now)).collect(),
            datagrams,
            quic,
            probes,
            end_ns: now,
            interrupted: stage.interrupted,
            strangers: stage.strangers,
            cpu_s: cpu_seconds(),
        })
    }
}

/// State of the running loop.
struct Stage {
    epoch: Time,
    spec: Spec,
    flows: Vec<Flow>,
    queued: Vec<bool>,
    listeners: Vec<Socket>,
    expected: HashMap<(SocketAddr, SocketAddr), usize>,
    poll: Poll,
    alarm: Alarm,
    due: Dues,
    /// Flows whose sockets are ready, in the order of their turns.
    ready: VecDeque<usize>,
    sample_next: usize,
    /// Number of flows that are done, counted from the first up to the first that is not.
    done: usize,
    strangers: u64,
    interrupted: bool,
}

impl Stage {
    fn now(&self) -> u64 {
        clock::monotonic().since(self.epoch).as_nanos()
    }

    /// Returns whether all flows are done. Flows found done are not checked again.
    fn is_done(&mut self) -> bool {
        let after = &self.flows[self.done..];
        self.done += after.iter().take_while(|flow| flow.is_done()).count();
        self.done == self.flows.len()
    }

    fn play(&mut self, control: &Control) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        let mut buffer = [0; READ_MAX];
        let zeroes = vec![0; WRITE_MAX];
        while !self.is_done() {
            self.interrupted |= control.stop_requested();
            if self.interrupted || self.run_timers() {
                break;
            }
            self.run_ready(&mut buffer, &zeroes);
            self.wait(&mut events)?;
            for event in &events {
                match event.token() {
                    TIMER => {}
                    Token(i) if i < self.flows.len() => {
                        if event.is_read_closed() || event.is_error() {
                            self.flows[i].peer_closed();
                        }
                        self.enqueue(i);
                    }
                    Token(l) => self.accept(l - self.flows.len())?,
                }
            }
        }
        // The peers may have been stopped first, which ends the flows before this loop checks.
        self.interrupted |= control.stop_requested();
        let now = self.now();
        self.flows.iter_mut().for_each(|f| f.abort(now));
        Ok(())
    }

    /// Runs due timers. Returns whether everything should stop.
    fn run_timers(&mut self) -> bool {
        // No timer is due before the epoch, although the clock here reads zero.
        while clock::monotonic() >= self.epoch {
            let now = self.now();
            let Some(due) = self.due.pop(now) else { return false };
            match due {
                Due::Start(i) => self.start(i, now),
                Due::Sample => self.sample(now),
                Due::TimeIsUp(i) => {
                    self.flows[i].time_is_up(now);
                    self.enqueue(i);
                }
                Due::Reset(i) => self.flows[i].abort(now),
                Due::Stop => return true,
            }
        }
        false
    }

    fn start(&mut self, i: usize, now: u64) {
        self.flows[i].connect(now);
        self.register(i);
    }

    fn register(&mut self, i: usize) {
        let Some(fd) = self.flows[i].socket().map(AsRawFd::as_raw_fd) else { return };
        let interest = if self.flows[i].spec().writes() || self.flows[i].spec().role == Role::Connect {
            Interest::READABLE | Interest::WRITABLE
        } else {
            Interest::READABLE
        };
        // Closing the socket removes it from the poll again.
        if self.poll.registry().register(&mut SourceFd(&fd), Token(i), interest).is_err() {
            let now = self.now();
            self.flows[i].abort(now);
        }
    }

    /// Samples as many flows as the budget allows, and continues with the next ones at the next call.
    fn sample(&mut self, now: u64) {
        let n = self.flows.len();
        let budget = (SAMPLES_PER_S * self.spec.sample_ns / 1_000_000_000).clamp(1, n as u64);
        let mut left = budget;
        for _ in 0..n {
            let i = self.sample_next % n;
            self.sample_next = i + 1;
            if self.flows[i].is_sending() {
                self.flows[i].sample(now);
                left -= 1;
                if left == 0 {
                    break;
                }
            }
        }
        // The next sample is scheduled from now, because a late loop must not catch up on samples.
        self.due.add(now + self.spec.sample_ns, Due::Sample);
    }

    fn enqueue(&mut self, i: usize) {
        if !self.queued[i] && !self.flows[i].is_done() {
            self.queued[i] = true;
            self.ready.push_back(i);
        }
    }

    /// Gives each ready flow one turn.
    fn run_ready(&mut self, buffer: &mut [u8; READ_MAX], zeroes: &[u8]) {
        let epoch = self.epoch;
        let clock = || clock::monotonic().since(epoch).as_nanos();
        for _ in 0..self.ready.len() {
            let Some(i) = self.ready.pop_front() else { break };
            self.queued[i] = false;
            if self.flows[i].turn(&clock, buffer, zeroes) == Turn::More {
                self.enqueue(i);
            }
        }
    }

    fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        let epoch = self.epoch.as_nanos();
        self.alarm.set(self.due.first().map(|at| Time::from_nanos(epoch.saturating_add(at))))?;
        let timeout = if self.ready.is_empty() { LOOK_UP } else { Duration::ZERO };
        match self.poll.poll(events, Some(timeout)) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(()),
            other => other,
        }
    }

    fn accept(&mut self, listener: usize) -> io::Result<()> {
        loop {
            let (socket, peer) = match self.listeners[listener].accept() {
                Ok(a) => a,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => continue,
                // Most likely no descriptor is left. The flow will report that no peer connected.
                Err(_) => return Ok(()),
            };
            let key = socket.local_addr().ok().and_then(|l| l.as_socket()).zip(peer.as_socket());
            match key.and_then(|k| self.expected.remove(&k)) {
                Some(i) => {
                    let now = self.now();
                    self.flows[i].accept(now, socket);
                    self.register(i);
                    self.enqueue(i);
                }
                None => self.strangers += 1,
            }
        }
    }
}

/// Raises the limit of open files to its maximum.
fn allow_many_sockets() {
    use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
    let limit = getrlimit(Resource::Nofile);
    // On failure, flows beyond the limit fail one by one and report why.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

fn cpu_seconds() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}
