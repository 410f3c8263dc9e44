//! The traffic generator over loopback, both ends in this process. Limits on times and amounts are wide: the
//! machine may be slow, or busy.

use std::net::SocketAddr;
use std::time::{Duration, Instant};
#[cfg(feature = "quic")]
use weir::execute::traffic::QuicSpec;
use weir::execute::traffic::{
    monotonic, Amount, Control, DatagramSpec, FlowReport, FlowSpec, Generator, Play, ProbeSpec, Report, Role,
    Spec,
};
use weir_core::time::Duration as Nanos;

const MS: u64 = 1_000_000;

/// An address that no other test uses: all of 127.0.0.0/8 is loopback.
fn at(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([127, 77, (std::process::id() % 251) as u8, host], port))
}

/// The connecting end of an upload.
fn upload(id: &str, host: u8, client_port: u16, amount: Amount) -> FlowSpec {
    FlowSpec {
        id: id.into(),
        role: Role::Connect,
        local: at(host, client_port),
        remote: at(host, 5000),
        sends: true,
        play: Play::OneWay,
        dscp: 0,
        start_ns: 20 * MS,
        amount,
        cc: None,
        mss: None,
        rwnd: None,
        sndbuf: None,
        nagle: false,
        fast_open: false,
        gap_after_ns: 0,
        series: false,
    }
}

/// The other end of a flow.
fn peer(f: &FlowSpec) -> FlowSpec {
    FlowSpec { role: Role::Listen, local: f.remote, remote: f.local, sends: !f.sends, ..f.clone() }
}

fn spec(flows: Vec<FlowSpec>, stop_ms: u64) -> Spec {
    Spec {
        epoch_ns: None,
        stop_ns: stop_ms * MS,
        bin_ns: 10 * MS,
        sample_ns: 5 * MS,
        linger_ns: 500 * MS,
        flows,
        datagrams: vec![],
        quic: vec![],
        probes: vec![],
    }
}

/// Plays both ends; `(clients, servers)`.
fn play(flows: Vec<FlowSpec>, stop_ms: u64) -> (Report, Report) {
    let servers = flows.iter().map(peer).collect();
    play_both(spec(flows, stop_ms), spec(servers, stop_ms))
}

fn play_both(clients: Spec, servers: Spec) -> (Report, Report) {
    let servers = Generator::open(servers).unwrap();
    let clients = Generator::open(clients).unwrap();
    let epoch = monotonic() + Nanos::from_millis(5);
    let thread = std::thread::spawn(move || servers.run(epoch, &Control::default()).unwrap());
    let client = clients.run(epoch, &Control::default()).unwrap();
    (client, thread.join().unwrap())
}

fn no_error(f: &FlowReport) {
    assert_eq!(f.error, None, "{f:?}");
}

#[test]
fn both_ways_in_one_connection() {
    for amount in [Amount::Bytes(3_000_000), Amount::UntilNs(200 * MS)] {
        let flow = FlowSpec { play: Play::BothWays, ..upload("both", 9, 20_000, amount) };
        let (client, server) = play(vec![flow], 5_000);
        for end in [&client.flows[0], &server.flows[0]] {
            no_error(end);
            let (got, sent) = (end.received.as_ref().unwrap(), end.sent.as_ref().unwrap());
            assert!(got.eof_ns.is_some() && sent.written > 100_000, "{end:?}");
            if amount == Amount::Bytes(3_000_000) {
                assert_eq!((got.bytes, sent.written), (3_000_000, 3_000_000));
            }
        }
    }
}

#[test]
fn requests_are_answered_one_after_the_other() {
    let exchange = Play::Exchange { request: 200, response: 60_000 };
    let flow = FlowSpec { play: exchange, ..upload("ask", 10, 20_000, Amount::UntilNs(200 * MS)) };
    let (client, server) = play(vec![flow], 5_000);
    [&client, &server].into_iter().for_each(|r| no_error(&r.flows[0]));
    let seen = client.flows[0].exchanges.unwrap();
    assert!(seen.count > 3, "{seen:?}");
    assert_eq!(client.flows[0].received.as_ref().unwrap().bytes, seen.count * 60_000);
    assert_eq!(server.flows[0].received.as_ref().unwrap().bytes, seen.count * 200);
    let latency = seen.latency_ns.unwrap();
    assert!(latency.p50 > 1_000 && latency.p50 <= latency.p90 && latency.p90 <= latency.p99, "{latency:?}");
    assert_eq!(server.flows[0].exchanges, None);
}

#[test]
fn finite_uploads_and_downloads_are_complete() {
    let mut flows: Vec<FlowSpec> = (0..20)
        .map(|i| upload(&format!("f{i}"), 1, 20_000 + i, Amount::Bytes(200_000 + u64::from(i))))
        .collect();
    for f in flows.iter_mut().skip(10) {
        f.sends = false;
    }
    let (client, server) = play(flows.clone(), 60_000);
    assert!(client.end_ns < 50_000 * MS, "both ends stop when all is done, not at the limit");
    for ((spec, c), s) in flows.iter().zip(&client.flows).zip(&server.flows) {
        no_error(c);
        no_error(s);
        let (sender, receiver) = if spec.sends { (c, s) } else { (s, c) };
        let (sent, got) = (sender.sent.as_ref().unwrap(), receiver.received.as_ref().unwrap());
        let Amount::Bytes(all) = spec.amount else { unreachable!() };
        assert_eq!((sent.written, sent.acked, got.bytes, got.bins.total()), (all, all, all, all));
        assert!(got.complete_ns.unwrap() > c.opened_ns.unwrap() && got.complete_ns <= got.last_ns);
        assert!(got.eof_ns >= got.complete_ns);
        assert!(c.opened_ns.unwrap() >= spec.start_ns);
        assert!(!sent.cc.is_empty() && sent.rtt_us.is_some());
    }
}

/// Uploads and downloads of QUIC to one server, of one stream and of several, with every control.
#[cfg(feature = "quic")]
#[test]
fn quic_transfers_are_complete() {
    let flow = |i: u16, cc: &str| QuicSpec {
        id: format!("q{i}"),
        role: Role::Connect,
        local: at(12, 20_000 + i),
        remote: at(12, 443),
        sends: i % 2 == 0,
        start_ns: 20 * MS,
        amount: Amount::Bytes(300_001),
        cc: cc.into(),
        streams: 1 + u32::from(i),
        window: 100_000,
        ecn: i == 3,
        gap_after_ns: 0,
    };
    let flows: Vec<QuicSpec> =
        ["cubic", "bbr", "reno", "newreno"].iter().zip(0..).map(|(cc, i)| flow(i, cc)).collect();
    let peer = |f: &QuicSpec| QuicSpec {
        role: Role::Listen,
        local: f.remote,
        remote: f.local,
        sends: !f.sends,
        ..f.clone()
    };
    let servers = Spec { quic: flows.iter().map(peer).collect(), ..spec(vec![], 60_000) };
    let (client, server) = play_both(Spec { quic: flows.clone(), ..spec(vec![], 60_000) }, servers);
    assert!(client.end_ns < 50_000 * MS, "both ends stop when all is done, not at the limit");
    for ((spec, c), s) in flows.iter().zip(&client.quic).zip(&server.quic) {
        no_error(c);
        no_error(s);
        let (sender, receiver) = if spec.sends { (c, s) } else { (s, c) };
        let (sent, got) = (sender.sent.as_ref().unwrap(), receiver.received.as_ref().unwrap());
        assert_eq!((sent.written, got.bytes, got.bins.total()), (300_001, 300_001, 300_001), "{}", spec.id);
        assert!(got.complete_ns.unwrap() > c.opened_ns.unwrap() && got.eof_ns >= got.complete_ns);
        assert!(c.established_ns > c.opened_ns && c.opened_ns.unwrap() >= spec.start_ns);
        assert_eq!(sent.cc, spec.cc);
        assert!(sent.rtt_us.is_some() && sent.mss >= 1200, "{sent:?}");
    }
}

/// A flow that ends by time is closed by its sender, and one whose peer never comes is a fault.
#[cfg(feature = "quic")]
#[test]
fn quic_ends_with_its_time() {
    let flow = |id: &str, port, amount| QuicSpec {
        id: id.into(),
        role: Role::Connect,
        local: at(13, port),
        remote: at(13, 443),
        sends: true,
        start_ns: 0,
        amount,
        cc: "cubic".into(),
        streams: 2,
        window: 100_000,
        ecn: false,
        gap_after_ns: 0,
    };
    let timed = flow("timed", 20_000, Amount::UntilNs(300 * MS));
    let lonely = flow("lonely", 20_001, Amount::UntilNs(100 * MS));
    let listens = QuicSpec {
        role: Role::Listen,
        local: timed.remote,
        remote: timed.local,
        sends: false,
        ..timed.clone()
    };
    let clients = Spec { quic: vec![timed, lonely], ..spec(vec![], 5_000) };
    let (client, server) = play_both(clients, Spec { quic: vec![listens], ..spec(vec![], 5_000) });
    no_error(&client.quic[0]);
    no_error(&server.quic[0]);
    let got = server.quic[0].received.as_ref().unwrap();
    assert!(got.bytes_in_time > 100_000 && got.eof_ns.is_some_and(|eof| eof >= 300 * MS), "{got:?}");
    assert!(client.quic[1].error.is_some(), "{:?}", client.quic[1]);
    assert!(client.end_ns < 4_000 * MS);
}

/// The system says whether the SYN carries data (`net.ipv4.tcp_fastopen`); all of it arrives in any
/// case.
#[test]
fn flows_that_would_send_with_the_syn_are_complete() {
    for (i, bytes) in [1u64, 1_000, 5_000, 300_000].into_iter().enumerate() {
        let flow =
            FlowSpec { fast_open: true, ..upload("fast", 11, 20_000 + i as u16, Amount::Bytes(bytes)) };
        let (client, server) = play(vec![flow], 5_000);
        [&client, &server].into_iter().for_each(|r| no_error(&r.flows[0]));
        assert_eq!(client.flows[0].sent.as_ref().unwrap().written, bytes);
        assert_eq!(server.flows[0].received.as_ref().unwrap().bytes, bytes);
    }
}

#[test]
fn a_flow_of_some_duration_ends_with_it() {
    let mut f = upload("d", 2, 20_000, Amount::UntilNs(300 * MS));
    f.cc = Some("reno".into());
    f.series = true;
    let (client, server) = play(vec![f], 30_000);
    no_error(&client.flows[0]);
    no_error(&server.flows[0]);
    let got = server.flows[0].received.clone().unwrap();
    let sent = client.flows[0].sent.clone().unwrap();
    assert_eq!(sent.cc, "reno");
    assert!(got.bytes > 100_000 && got.bytes == sent.acked, "{} {}", got.bytes, sent.acked);
    assert!(got.bytes - got.bytes_in_time < 8_000_000);
    assert!(got.last_ns.unwrap() < 10_000 * MS);
    let series = sent.series.unwrap();
    assert!(series.t_ns.len() > 5 && series.cwnd_packets.iter().all(|&c| c > 0));
    assert!(client.end_ns < 15_000 * MS);
}

#[test]
fn the_window_is_as_large_as_asked() {
    let mut f = upload("w", 3, 20_000, Amount::UntilNs(200 * MS));
    f.series = true;
    f.mss = Some(1000);
    f.rwnd = Some(20_000);
    let (client, server) = play(vec![f], 2_000);
    let sent = client.flows[0].sent.clone().unwrap();
    no_error(&server.flows[0]);
    let mut windows = sent.series.unwrap().window_bytes;
    windows.sort_unstable();
    let (usual, most) = (windows[windows.len() / 2], windows[windows.len() - 1]);
    assert!((988..=1000).contains(&sent.mss), "the time stamp option takes 12 bytes: {}", sent.mss);
    assert!((10_000..=20_000).contains(&usual), "a window of {usual}");
    assert!(most <= 60_000, "a window of {most}");
    assert!(sent.written > 20_000);
}

#[test]
fn a_server_that_never_comes_is_reported_in_time() {
    let refused = upload("r", 4, 20_000, Amount::Bytes(1000));
    let mut unknown = upload("cc", 4, 20_001, Amount::Bytes(1000));
    unknown.cc = Some("tahoe".into());
    let waiting = peer(&upload("l", 5, 20_000, Amount::Bytes(1000)));
    let start = Instant::now();
    let generator = Generator::open(spec(vec![refused, unknown, waiting], 300)).unwrap();
    let report = generator.run(monotonic(), &Control::default()).unwrap();
    assert!(start.elapsed() < Duration::from_secs(20));
    let errors: Vec<String> = report.flows.into_iter().map(|f| f.error.unwrap()).collect();
    assert!(errors[0].contains("refused"), "{errors:?}");
    assert!(errors[1].contains("`tahoe`") && errors[1].contains("reno"), "{errors:?}");
    assert!(errors[2].contains("never connected"), "{errors:?}");
}

#[test]
fn a_peer_that_dies_fails_its_flow() {
    let f = upload("p", 6, 20_000, Amount::UntilNs(60_000 * MS));
    let servers = Generator::open(spec(vec![peer(&f)], 200)).unwrap();
    let clients = Generator::open(spec(vec![f], 90_000)).unwrap();
    let epoch = monotonic();
    let thread = std::thread::spawn(move || servers.run(epoch, &Control::default()).unwrap());
    let client = clients.run(epoch, &Control::default()).unwrap();
    let server = thread.join().unwrap();
    assert!(client.end_ns < 30_000 * MS);
    assert!(client.flows[0].error.is_some());
    assert!(server.flows[0].received.as_ref().unwrap().bytes > 0);
}

#[test]
fn a_stop_from_outside_keeps_what_there_is() {
    let f = upload("s", 7, 20_000, Amount::UntilNs(60_000 * MS));
    let servers = Generator::open(spec(vec![peer(&f)], 90_000)).unwrap();
    let clients = Generator::open(spec(vec![f], 90_000)).unwrap();
    let (epoch, control) = (monotonic(), Control::default());
    let both = control.clone();
    let thread = std::thread::spawn(move || servers.run(epoch, &both).unwrap());
    let other = control.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        other.stop();
    });
    let client = clients.run(epoch, &control).unwrap();
    let server = thread.join().unwrap();
    assert!(client.interrupted && client.end_ns < 30_000 * MS);
    assert!(server.flows[0].received.as_ref().unwrap().bytes > 0);
    assert!(client.flows[0].sent.as_ref().unwrap().acked > 0);
}

/// 50 datagrams of 100 bytes, 5 ms apart.
#[test]
fn datagrams_come_at_their_rate() {
    let call = |sends: bool, amount| DatagramSpec {
        id: "call".into(),
        local: at(9, if sends { 6000 } else { 6001 }),
        remote: at(9, if sends { 6001 } else { 6000 }),
        sends,
        rate_bps: 160_000,
        size: 100,
        dscp: 0,
        start_ns: 20 * MS,
        amount,
        on_off: None,
    };
    for amount in [Amount::Bytes(5_000), Amount::UntilNs(270 * MS)] {
        let ends =
            [true, false].map(|sends| Spec { datagrams: vec![call(sends, amount)], ..spec(vec![], 1_500) });
        let [clients, servers] = ends;
        let (client, server) = play_both(clients, servers);
        let (sent, got) = (&client.datagrams[0], &server.datagrams[0]);
        assert_eq!((sent.sent, got.arrived, got.missing), (50, 50, 0));
        let received = got.received.as_ref().unwrap();
        assert_eq!(received.bytes, 5_000);
        // The first is due at 20 ms, the last 49 x 5 ms later.
        assert!(received.first_ns >= Some(20 * MS) && received.last_ns >= Some(265 * MS), "{received:?}");
    }
}

#[test]
fn probes_measure_one_way_delay() {
    let probe = |sends: bool| ProbeSpec {
        id: "probe".into(),
        local: at(8, if sends { 6000 } else { 6001 }),
        remote: at(8, if sends { 6001 } else { 6000 }),
        sends,
        pps: 2_000,
        size: 200,
        burst: 1,
        gap_ns: None,
        start_ns: 20 * MS,
        until_ns: 220 * MS,
    };
    let clients = Spec { probes: vec![probe(true)], ..spec(vec![], 3_000) };
    let servers = Spec { probes: vec![probe(false)], ..spec(vec![], 3_000) };
    let (client, server) = play_both(clients, servers);
    let (sent, got) = (&client.probes[0], &server.probes[0]);
    assert_eq!((sent.sent + sent.skipped, got.reordered), (400, 0));
    // What was due while the machine had no time for it is skipped.
    assert!(
        sent.sent > 20 && got.received <= sent.sent && got.received * 10 >= sent.sent * 9,
        "{sent:?} {got:?}"
    );
    let (kernel, app) = (got.delay_ns.unwrap(), got.delay_app_ns.unwrap());
    assert_eq!((kernel.samples, app.samples), (got.received, got.received));
    assert!(kernel.p50 > 0 && kernel.p50 <= app.p50 && app.p50 < 2_000 * MS, "{kernel:?} {app:?}");
}
