//! Flows of UDP datagrams at constant rates, with an event loop of their own.
//!
//! Each datagram has its own time, computed from the flow's start and its rate. A loop that wakes late sends
//! everything due at once, and the delay does not carry over to the next datagrams. Datagrams are numbered,
//! so that the receiver can count missing ones, and tell when they left: both ends have one clock.

use super::alarm::{Alarm, LOOK_UP, TIMER};
use super::intake::Intake;
use super::spec::{Amount, DatagramSpec, OnOff, Spec, NUMBER, STAMPED};
use super::sys::{set_codepoint, set_option};
use super::{clock, Control, DatagramReport};
use crate::result::QuantilesMax;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use socket2::{Domain, Protocol, Socket, Type};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd};
use weir_core::rate::Rate;
use weir_core::stats::Histogram;
use weir_core::time::Time;
use weir_sim::udp::{Numbers, Timetable};

/// Size of a receiving socket's buffer in bytes.
const BUFFER: i32 = 4 << 20;
/// Longest payload of a datagram.
const LONGEST: usize = 65_507;

/// Ends of all datagram flows of a process.
pub(super) struct Datagrams {
    ends: Vec<End>,
    poll: Poll,
    alarm: Alarm,
    /// Time at which everything ends, and how long the receiver waits for late datagrams after a flow's time.
    stop_ns: u64,
    linger_ns: u64,
}

/// One end of a flow.
struct End {
    spec: DatagramSpec,
    socket: Socket,
    /// Sending times of datagrams.
    table: Timetable,
    /// Receiver's account, at the receiving end.
    intake: Option<Intake>,
    report: DatagramReport,
    /// Numbers received.
    numbers: Numbers,
    /// One-way delays in nanoseconds.
    delays: Histogram,
}

impl Datagrams {
    /// Opens the sockets of all ends.
    pub fn open(spec: &Spec) -> Result<Datagrams, String> {
        let io = |e: io::Error| format!("event loop of datagrams: {e}");
        let poll = Poll::new().map_err(io)?;
        let alarm = Alarm::register(poll.registry()).map_err(io)?;
        let mut ends = Vec::new();
        for (i, end) in spec.datagrams.iter().enumerate() {
            let end = End::open(end, spec.bin_ns)?;
            if !end.spec.sends {
                let fd = end.socket.as_raw_fd();
                poll.registry().register(&mut SourceFd(&fd), Token(i), Interest::READABLE).map_err(io)?;
            }
            ends.push(end);
        }
        Ok(Datagrams { ends, poll, alarm, stop_ns: spec.stop_ns, linger_ns: spec.linger_ns })
    }

    /// Runs all ends until the specification's stop, or until `control` requests one.
    pub fn run(mut self, epoch: Time, control: &Control) -> io::Result<Vec<DatagramReport>> {
        // The default slack adds 50 us to every sleep. Failing to set it costs only precision.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let mut buffer = vec![0; LONGEST];
        let mut due: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        let senders = self.ends.iter().enumerate().filter(|(_, end)| end.spec.sends);
        due.extend(senders.filter_map(|(i, end)| Some(Reverse((end.due()?, i)))));
        let last = self.ends.iter().map(|end| end.last_ns(self.linger_ns)).max().unwrap_or(0);
        let end = last.min(self.stop_ns);
        let mut events = Events::with_capacity(256);
        while !control.stop_requested() {
            let now = now_since(epoch);
            if now.is_some_and(|now| now >= end) {
                break;
            }
            while let Some(&Reverse((at, i))) = due.peek().filter(|next| Some(next.0 .0) <= now) {
                debug_assert!(Some(at) <= now);
                due.pop();
                self.ends[i].send(now_since(epoch), &mut buffer);
                due.extend(self.ends[i].due().map(|at| Reverse((at, i))));
            }
            let next = due.peek().map_or(end, |next| next.0 .0.min(end));
            self.alarm.set(Some(Time::from_nanos(epoch.as_nanos().saturating_add(next))))?;
            match self.poll.poll(&mut events, Some(LOOK_UP)) {
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            for event in events.iter().filter(|event| event.token() != TIMER) {
                self.ends[event.token().0].receive(epoch, &mut buffer);
            }
        }
        let now = now_since(epoch).unwrap_or(0);
        Ok(self.ends.into_iter().map(|end| end.finish(now)).collect())
    }
}

/// Returns the sending times of an end's datagrams, as in virtual time.
fn timetable(spec: &DatagramSpec) -> Option<Timetable> {
    let until = match spec.amount {
        Amount::Bytes(_) => Time::MAX,
        Amount::UntilNs(until) => Time::from_nanos(until),
    };
    let (on_off, seed) = match spec.on_off.clone() {
        Some(OnOff { on, off, seed }) => (Some((on, off)), seed),
        None => (None, 0),
    };
    let rate = Rate::from_bps(spec.rate_bps)?;
    Some(Timetable::new(rate, (Time::from_nanos(spec.start_ns), until), on_off, seed))
}

/// Returns the nanoseconds since the epoch, or `None` before it.
fn now_since(epoch: Time) -> Option<u64> {
    let now = clock::monotonic();
    (now >= epoch).then(|| now.since(epoch).as_nanos())
}

impl End {
    fn open(spec: &DatagramSpec, bin_ns: u64) -> Result<End, String> {
        let fault = |what: &str| {
            let id = spec.id.clone();
            let what = what.to_string();
            move |e: io::Error| format!("datagrams `{id}`: {what}: {e}")
        };
        let domain = Domain::for_address(spec.local);
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP)).map_err(fault("socket"))?;
        // Flows may share their server's address and port: the kernel knows connected sockets by both ends.
        socket.set_reuse_address(true).map_err(fault("socket"))?;
        socket.bind(&spec.local.into()).map_err(fault(&format!("bind to {}", spec.local)))?;
        socket.connect(&spec.remote.into()).map_err(fault(&format!("connect to {}", spec.remote)))?;
        socket.set_nonblocking(true).map_err(fault("socket"))?;
        set_codepoint(&socket, spec.local, spec.dscp).map_err(fault("DSCP"))?;
        // With a smaller buffer, datagrams are lost only while the loop is busy.
        let _ = set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER);
        let report = DatagramReport { id: spec.id.clone(), ..DatagramReport::default() };
        let intake = (!spec.sends).then(|| Intake::new(spec.amount, bin_ns, 0));
        let table = timetable(spec).ok_or_else(|| format!("datagrams `{}`: no rate", spec.id))?;
        let (numbers, delays) = (Numbers::default(), Histogram::default());
        Ok(End { table, spec: spec.clone(), socket, intake, report, numbers, delays })
    }

    /// Returns the time of the next datagram; `None` if all are sent.
    fn due(&self) -> Option<u64> {
        let before = self.report.sent.saturating_mul(u64::from(self.spec.size));
        let enough = matches!(self.spec.amount, Amount::Bytes(all) if before >= all);
        let at = Some(self.table.next()).filter(|&at| at != Time::MAX)?;
        (self.report.error.is_none() && !enough).then_some(at.as_nanos())
    }

    /// Returns the time after which no more datagrams are expected.
    fn last_ns(&self, linger_ns: u64) -> u64 {
        match self.spec.amount {
            Amount::Bytes(_) => u64::MAX,
            Amount::UntilNs(until) => until.saturating_add(linger_ns),
        }
    }

    /// Returns the payload bytes of the next datagram, as in virtual time: the last one has the rest.
    fn payload(&self) -> u16 {
        let Amount::Bytes(all) = self.spec.amount else { return self.spec.size };
        let before = self.report.sent.saturating_mul(u64::from(self.spec.size));
        let rest = all.saturating_sub(before).max(NUMBER as u64);
        rest.min(u64::from(self.spec.size)) as u16
    }

    fn send(&mut self, now: Option<u64>, buffer: &mut [u8]) {
        let datagram = &mut buffer[..usize::from(self.payload())];
        datagram[..NUMBER].copy_from_slice(&self.report.sent.to_be_bytes());
        if let Some(stamp) = datagram.get_mut(NUMBER..STAMPED) {
            stamp.copy_from_slice(&now.unwrap_or(0).to_be_bytes());
        }
        // Datagrams are lost without room on the path, and without a listener.
        let lost = [ErrorKind::WouldBlock, ErrorKind::ConnectionRefused, ErrorKind::Interrupted];
        if let Err(e) = self.socket.send(datagram) {
            if !lost.contains(&e.kind()) && e.raw_os_error() != Some(libc::ENOBUFS) {
                self.report.error = Some(format!("send: {e}"));
            }
        }
        self.report.sent += 1;
        self.table.advance(u64::from(self.spec.size));
    }

    fn receive(&mut self, epoch: Time, buffer: &mut [u8]) {
        loop {
            let read = rustix::net::recv(&self.socket, &mut buffer[..], rustix::net::RecvFlags::empty());
            match read.map_err(io::Error::from) {
                Ok((len, _)) => self.count(now_since(epoch).unwrap_or(0), &buffer[..len]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if [ErrorKind::WouldBlock, ErrorKind::ConnectionRefused].contains(&e.kind()) => return,
                Err(e) => {
                    self.report.error = Some(format!("receive: {e}"));
                    return;
                }
            }
        }
    }

    fn count(&mut self, now: u64, datagram: &[u8]) {
        let Some(number) = datagram.first_chunk().map(|n: &[u8; NUMBER]| u64::from_be_bytes(*n)) else {
            return;
        };
        let left = datagram.get(NUMBER..STAMPED).and_then(|left| left.try_into().ok());
        if self.numbers.note(number) {
            let delay = left.and_then(|left| now.checked_sub(u64::from_be_bytes(left)));
            delay.into_iter().for_each(|delay| self.delays.record(delay));
            self.intake.iter_mut().for_each(|intake| intake.read(now, datagram.len() as u64));
        }
        self.report.arrived = self.numbers.distinct();
        self.report.missing = self.numbers.missing();
    }

    /// Returns the report of this end at `now`.
    fn finish(self, now: u64) -> DatagramReport {
        let received = self.intake.map(|intake| intake.finish(now));
        DatagramReport { received, delay_us: QuantilesMax::of_nanos(&self.delays), ..self.report }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;
    use weir_core::dist::Distribution;

    fn end(amount: Amount, sends: bool) -> End {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let spec = DatagramSpec {
            id: "call".into(),
            local: at(0),
            remote: at(9),
            sends,
            rate_bps: 30_000,
            size: 160,
            dscp: 0,
            start_ns: 7,
            amount,
            on_off: None,
        };
        End::open(&spec, 1000).unwrap()
    }

    /// Verifies the sending times by the rate: 1,280 bits at 30 kbit/s take 42 2/3 ms, and three of them 128
    /// ms.
    #[test]
    fn datagrams_are_due_by_the_rate() {
        let mut e = end(Amount::Bytes(640), true);
        let mut due = || {
            let due = e.due();
            e.report.sent += 1;
            e.table.advance(160);
            due
        };
        let times = [Some(7), Some(42_666_673), Some(85_333_340), Some(128_000_007), None];
        assert_eq!([due(), due(), due(), due(), due()], times);
        assert_eq!(end(Amount::UntilNs(7), true).due(), None);
    }

    /// Verifies that with 100 ms on and 50 ms off, only the time on counts for the rate.
    #[test]
    fn datagrams_wait_for_the_times_on() {
        let (on, off) = (Distribution::Constant(100_000_000), Distribution::Constant(50_000_000));
        let e = end(Amount::Bytes(960), true);
        let spec = DatagramSpec { on_off: Some(OnOff { on, off, seed: 1 }), ..e.spec };
        let told: DatagramSpec = serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
        let mut e = End::open(&told, 1000).unwrap();
        let mut due = || {
            let due = e.due();
            e.report.sent += 1;
            e.table.advance(160);
            due.map(|at| at / 1_000_000)
        };
        assert_eq!(
            [due(), due(), due(), due(), due(), due(), due()],
            [Some(0), Some(42), Some(85), Some(178), Some(220), Some(313), None]
        );
    }

    /// 2,505 bytes are two datagrams of 1,250 and one of 5, which has room for its number.
    #[test]
    fn the_last_datagram_has_the_rest() {
        let sizes = |bytes| {
            let mut e = end(Amount::Bytes(bytes), true);
            e.spec.size = 1250;
            let mut sizes = Vec::new();
            while e.due().is_some() {
                sizes.push(e.payload());
                e.report.sent += 1;
                e.table.advance(1250);
            }
            sizes
        };
        assert_eq!(
            (sizes(2505), sizes(2600), sizes(2500)),
            (vec![1250, 1250, 8], vec![1250, 1250, 100], vec![1250, 1250])
        );
    }

    /// Two flows to one port of a server: each end receives what its peer sends.
    #[test]
    fn flows_may_share_the_port_of_a_server() {
        let free = || std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (server, clients) = (free(), [free(), free()]);
        let open = |local, remote, sends| {
            let spec = DatagramSpec { local, remote, ..end(Amount::Bytes(960), sends).spec };
            End::open(&spec, 1000).unwrap()
        };
        let mut sinks = clients.map(|client| open(server, client, false));
        let mut sources = clients.map(|client| open(client, server, true));
        let buffer = &mut [0; 160];
        [0, 1, 1, 0, 1].into_iter().for_each(|i: usize| sources[i].send(None, buffer));
        sinks.iter_mut().for_each(|sink| sink.receive(clock::monotonic(), buffer));
        assert_eq!(sinks.map(|sink| sink.report.arrived), [2, 3]);
    }

    #[test]
    fn what_is_missing_is_counted() {
        let mut e = end(Amount::UntilNs(100), false);
        for number in [0u64, 1, 4, 3, 3, 1] {
            e.count(50, &number.to_be_bytes());
        }
        e.count(60, &[1, 2]);
        let r = e.finish(100);
        assert_eq!((r.arrived, r.missing, r.received.unwrap().bytes, r.delay_us), (4, 1, 32, None));
    }

    /// Datagrams under way for 3, 5 and 9 us. The copy of the first, 20 us later, counts no more.
    #[test]
    fn delays_are_those_of_the_first_copies() {
        let mut e = end(Amount::UntilNs(100_000), false);
        for (number, left, came) in
            [(0u64, 1000u64, 4000), (1, 2000, 7000), (2, 3000, 12_000), (0, 1000, 21_000)]
        {
            e.count(came, &[number.to_be_bytes(), left.to_be_bytes()].concat());
        }
        assert_eq!(e.finish(100_000).delay_us, Some(QuantilesMax { p50: 5, p99: 9, max: 9 }));
    }
}
