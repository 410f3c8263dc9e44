//! Round trips: a configuration that is written is read as what it was.

use super::gateway::{self, GatewayFile};
use super::ports::{Attach, Driving};
use super::wan::{self, path_of_options, WanFile};
use super::{experiment, link, Errors, Source};
use crate::experiment::plan::{Accepts, Path, Tcp, Value, TCP_SETTINGS, WINDOWS};
use crate::result::Backend;
use core::net::IpAddr;
use core::ops::RangeInclusive;
use proptest::option;
use proptest::prelude::*;
use weir_core::ack::{
    AckControl, Action, Counts, Hold, Meter, Period, RateRelease, Release, ShareRelease, SlowStart, When,
    Window, PRESETS,
};
use weir_core::gateway::{ClassConfig, Config, Direction, Match, Prefix};
use weir_core::link::{
    Burst, Config as Link, Damage, Jitter, Law, Loss, QueueLimit, RateTrace, Reorder, TRILLION,
};
use weir_core::queue::{self, codel, dualpi2, fq_codel, pfq, red, Aqm, Kind};
use weir_core::rate::Rate;
use weir_core::time::Duration;

fn aqms() -> impl Strategy<Value = Aqm> {
    let times = || (1_000..=4_000_000_000u64).prop_map(Duration::from_nanos);
    let codels = || {
        (times(), times(), any::<bool>()).prop_map(|(target, interval, ecn)| codel::Params {
            target,
            interval,
            ecn,
            ..codel::Params::default()
        })
    };
    let reds = (1..1u64 << 39, 1..1u64 << 39, 1..=TRILLION, 0..=24u8, any::<bool>());
    prop_oneof![
        codels().prop_map(Aqm::Codel),
        (1..=65_536u32, 64..=1_000_000u32, codels())
            .prop_map(|(flows, quantum, codel)| Aqm::FqCodel(fq_codel::Params { flows, quantum, codel })),
        reds.prop_map(|(min, more, max_p, weight, ecn)| {
            Aqm::Red(red::Params { min, max: min + more, max_p, weight, ecn })
        }),
        (times(), option::of(times()), 1..=16u8).prop_map(|(target, step, coupling)| {
            let default = dualpi2::Params { target, coupling, ..dualpi2::Params::default() };
            Aqm::DualPi2(step.map_or(default, |step| dualpi2::Params {
                step,
                range: Duration::ZERO,
                ..default
            }))
        }),
    ]
}

/// Times whose sums can be counted.
fn times(from: u64) -> impl Strategy<Value = Duration> {
    (from..1 << 60).prop_map(Duration::from_nanos)
}

fn rates(bps: RangeInclusive<u64>) -> impl Strategy<Value = Rate> {
    bps.prop_map(|bps| Rate::from_bps(bps).unwrap())
}

fn losses() -> impl Strategy<Value = Loss> {
    prop_oneof![
        Just(Loss::None),
        (1..=TRILLION).prop_map(|trillionths| Loss::Random { trillionths }),
        (1..=i64::MAX as u64).prop_map(|n| Loss::every(n).unwrap()),
        [0..=TRILLION, 0..=TRILLION, 0..=TRILLION, 0..=TRILLION]
            .prop_map(|[enter, leave, good, bad]| Loss::Burst(Burst { enter, leave, good, bad })),
        prop::sample::select(traced().to_vec()).prop_map(|link| link.loss),
    ]
}

/// Links that follow traces, one of each kind.
fn traced() -> &'static [Link; 4] {
    static LINKS: std::sync::OnceLock<[Link; 4]> = std::sync::OnceLock::new();
    LINKS.get_or_init(|| {
        let directory = std::env::temp_dir().join(format!("weir-traces \"{}\"", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let files = [
            ("rate_trace", "0s 10Mbit\n1s 0\n2s repeat\n"),
            ("delivery_trace", "1\n1\n4\n"),
            ("loss_trace", "0010"),
            ("loss_frames", "1 5-7"),
        ];
        files.map(|(key, text)| {
            let path = directory.join(key);
            std::fs::write(&path, text).unwrap();
            path_of_options(&[(key, path.display().to_string())]).unwrap().wan_out
        })
    })
}

fn jitters() -> impl Strategy<Value = Jitter> {
    let laws = prop::sample::select(Law::ALL.map(|(_, law)| law).to_vec());
    let some = (times(1), laws, any::<bool>()).prop_map(|(by, law, reorders)| Jitter { by, law, reorders });
    prop_oneof![Just(Jitter::NONE), some]
}

fn limits(bytes: RangeInclusive<u64>) -> impl Strategy<Value = QueueLimit> {
    prop_oneof![(1..u32::MAX).prop_map(QueueLimit::Packets), bytes.prop_map(QueueLimit::Bytes)]
}

fn thresholds() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![(0..u32::MAX).prop_map(QueueLimit::Packets), any::<u64>().prop_map(QueueLimit::Bytes)]
}

/// A threshold of nothing marks what finds anything waiting; a queue of nothing passes nothing.
#[test]
fn a_mark_may_be_zero_and_a_queue_may_not() {
    let wan = |keys: &str| {
        let text = format!(
            "name = 'x'\nduration = '1s'\n[path]\nwan = {{ rate = '1Mbit', {keys} }}\n[[flow]]\nid = 'a'"
        );
        let errors = |e: Errors| e.located().iter().map(|e| e.message.clone()).collect::<Vec<_>>();
        let parsed = experiment::parse(&Source::new("x.toml", text)).map_err(errors)?;
        Ok::<_, Vec<String>>(parsed.plan_for(Backend::Sim).unwrap().path.wan_out.mark)
    };
    assert_eq!(wan("mark = '0p'"), Ok(Some(QueueLimit::Packets(0))));
    assert_eq!(wan("mark = '0B'"), Ok(Some(QueueLimit::Bytes(0))));
    let refused = "`path.wan.queue`: a queue without room passes nothing".to_string();
    assert_eq!(wan("queue = '0p'"), Err(vec![refused]));
}

/// A mark below the queue's limit, if both are of one kind.
fn marked(queue: QueueLimit, mark: Option<QueueLimit>) -> Option<QueueLimit> {
    mark.filter(|mark| match (mark, queue) {
        (QueueLimit::Packets(mark), QueueLimit::Packets(queue)) => *mark < queue,
        (QueueLimit::Bytes(mark), QueueLimit::Bytes(queue)) => *mark < queue,
        _ => true,
    })
}

prop_compose! {
    fn links()(
        rate in option::of(rates(1..=u64::MAX)),
        delay in times(0),
        loss in losses(),
        queue in limits(1514..=u64::MAX),
        mark in option::of(thresholds()),
        overhead in 0..=256u16,
        burst in any::<u64>(),
        jitter in jitters(),
        reorder in option::of((1..=TRILLION, times(1))),
        damage in (0..=TRILLION, 0..=TRILLION).prop_map(|(duplicate, corrupt)| Damage { duplicate, corrupt }),
        (trace, aqm) in (option::of(0..2usize), prop_oneof![Just(Aqm::None), aqms()]),
    ) -> Link {
        let reorder = reorder.map(|(trillionths, by)| Reorder { trillionths, by }).unwrap_or_default();
        let followed = trace.map(|kind| traced()[kind]);
        let (rate, trace) = followed.map_or((rate, None), |link| (link.rate, link.trace));
        let burst = if matches!(trace, Some(RateTrace::Opportunities(_))) { 0 } else { burst };
        let link = Link { rate, trace, delay, loss, damage, overhead, jitter, reorder, ..Link::BARE };
        match rate {
            None => link,
            Some(_) if aqm != Aqm::None => Link { queue, aqm, burst, ..link },
            Some(_) => Link { queue, mark: marked(queue, mark), burst, ..link },
        }
    }
}

prop_compose! {
    /// `batch_delay` is for gateways.
    fn drivings()(
        wait in option::of(times(1)),
        priority in option::of(0..=98u8),
        cpu in option::of(0..=8191u32),
        spin in option::of((0..=1_000_000u64).prop_map(Duration::from_nanos)),
    ) -> Driving {
        Driving { wait, priority, cpu, spin, batch_delay: None }
    }
}

/// Names that interfaces may have, quotes and backslashes too.
fn interfaces() -> impl Strategy<Value = String> {
    "[!-.0-9;-~]{1,15}".prop_filter("directories", |name| name != "." && name != "..")
}

prop_compose! {
    fn emulators()(
        lan in interfaces(),
        wan in interfaces(),
        driving in drivings(),
        seed in 0..=i64::MAX as u64,
        wan_out in links(),
        wan_back in links(),
    ) -> WanFile {
        let path = Path { wan_out, wan_back, ..Path::default() };
        let idle = wan_out.is_bare() && wan_back.is_bare();
        let attach = if lan == wan && !idle { Attach::Dev(lan) } else { Attach::Pair { wan: format!("{wan:.14}+"), lan } };
        WanFile { attach, driving, seed, path }
    }
}

fn periods() -> impl Strategy<Value = Period> {
    let time = || (1_000..=1_000_000_000u64).prop_map(Duration::from_nanos);
    prop_oneof![
        time().prop_map(Period::Fixed),
        (time(), time()).prop_map(|(a, b)| Period::Auto { min: a.min(b), max: a.max(b) }),
    ]
}

fn detectors() -> impl Strategy<Value = SlowStart> {
    let detect = (1..=100_000u32, 1..=100_000u32, any::<bool>());
    let detect = detect.prop_filter("thresholds are two", |(a, b, _)| a != b);
    prop_oneof![
        Just(SlowStart::Ignore),
        detect.prop_map(|(a, b, gated)| SlowStart::Detect {
            enter_milli: a.max(b),
            exit_milli: a.min(b),
            gated
        }),
    ]
}

prop_compose! {
    fn policies()(
        rate in rates(8_000..=100_000_000_000),
        counts in prop::sample::select(vec![Counts::Payload, Counts::Ip, Counts::Frame, Counts::Wire]),
        meter in prop::sample::select(vec![Meter::Acked, Meter::Received]),
        period in periods(),
        slow_start in detectors(),
        burst in option::of(1..=1u32 << 30),
        catch_up in times(1),
        bound in option::of(times(0)),
    ) -> AckControl {
        let action = burst.map_or(Action::Shape, |burst| Action::Police { burst });
        let bound = bound.filter(|_| action == Action::Shape);
        AckControl {
            hold: Hold::Number,
            release: Release::Rate(RateRelease { rate, counts, meter, period, slow_start, action, catch_up }),
            window: bound.map_or(Window::Keep, |standing_delay| Window::Size { standing_delay }),
            when: When::Always,
        }
    }
}

fn prefixes() -> impl Strategy<Value = Prefix> {
    let v4 = (any::<u32>(), 0..=32u8);
    let v4 = v4.prop_map(|(bits, len)| {
        (IpAddr::from((bits & !(u32::MAX.checked_shr(u32::from(len)).unwrap_or(0))).to_be_bytes()), len)
    });
    let v6 = (any::<u128>(), 0..=128u8);
    let v6 = v6.prop_map(|(bits, len)| {
        (IpAddr::from((bits & !(u128::MAX.checked_shr(u32::from(len)).unwrap_or(0))).to_be_bytes()), len)
    });
    prop_oneof![v4, v6].prop_map(|(addr, len)| Prefix::new(addr, len).unwrap())
}

fn ports() -> impl Strategy<Value = RangeInclusive<u16>> {
    (1..=u16::MAX, 1..=u16::MAX).prop_map(|(a, b)| a.min(b)..=a.max(b))
}

prop_compose! {
    /// A rule that names something.
    fn rules()(
        src in option::of(prefixes()),
        dst in option::of(prefixes()),
        src_port in option::of(ports()),
        dst_port in option::of(ports()),
        vlan in 0..=4094u16,
        protocol in option::of(Just(6u8)),
    ) -> Match {
        Match { src, dst, src_port, dst_port, vlan: Some(vlan), protocol }
    }
}

prop_compose! {
    /// The policy of a class with a rate.
    fn shared()(rate in 8_000..=100_000_000_000u64, ip in any::<bool>(), police in any::<bool>(), part in option::of(1..=1_000u64), standing in times(1)) -> AckControl {
        let flow_max = part.and_then(|part| Rate::from_bps((rate / part).max(8_000)));
        let counts = if ip { Counts::Ip } else { Counts::Payload };
        let release = Release::Share(ShareRelease { rate: Rate::from_bps(rate).unwrap(), counts, police, flow_max });
        let window = Window::Size { standing_delay: standing };
        AckControl { hold: Hold::Number, release, window, when: When::Always }
    }
}

prop_compose! {
    /// At least one class has a policy, and none takes what another would.
    fn gateways()(
        dev in interfaces(),
        driving in drivings(),
        batch_delay in option::of((0..=10_000_000u64).prop_map(Duration::from_nanos)),
        classes in prop::collection::vec((any::<bool>(), prop::collection::vec(rules(), 1..4), option::of(policies())), 0..4),
        last in prop_oneof![policies(), shared()],
        max_flows in 1..=16_777_216u32,
        assumed_rtt in times(1),
        idle_timeout in times(1),
    ) -> GatewayFile {
        // Rules with other VLANs take other flows.
        let apart = |n: usize, rules: Vec<Match>| {
            (0..).zip(rules).map(|(k, rule)| Match { vlan: Some(4 * n as u16 + k), ..rule }).collect()
        };
        let class = |(n, (inward, matches, ack)): (usize, (bool, Vec<Match>, Option<AckControl>))| ClassConfig {
            name: format!("class-{n}"),
            direction: if inward { Direction::In } else { Direction::Out },
            matches: apart(n, matches),
            ack,
            share: None,
            nested: None,
        };
        let all = ClassConfig::controlled("all", Direction::In, last);
        let classes = classes.into_iter().enumerate().map(class).chain([all]).collect();
        let gateway = Config { classes, max_flows, assumed_rtt, idle_timeout, ..Config::default() };
        GatewayFile { dev, driving: Driving { batch_delay, ..driving }, customers: Vec::new(), gateway }
    }
}

/// Values that a setting accepts.
fn accepted(accepts: &Accepts) -> BoxedStrategy<Value> {
    let numbers = |min, max| (min..=max).prop_map(Value::Number).boxed();
    match *accepts {
        Accepts::Switch => any::<bool>().prop_map(Value::Switch).boxed(),
        Accepts::Number(min, max) => numbers(min, max),
        Accepts::Window => numbers(WINDOWS.0, WINDOWS.1),
        Accepts::Time(min, max) => (min.as_nanos()..=max.as_nanos())
            .prop_map(|ns| Value::Time(Duration::from_nanos(ns)))
            .boxed(),
        Accepts::Name(names) => {
            prop::sample::select(names).prop_map(|(name, _)| Value::Name(name)).boxed()
        }
    }
}

/// Any settings, within their ranges; a shorthand brings its own recovery.
fn tcps() -> impl Strategy<Value = Tcp> {
    let cc = option::of(prop::sample::select(vec!["reno", "cubic", "tahoe", "newreno", "bbr"]));
    let settings: Vec<_> = TCP_SETTINGS.iter().map(|s| option::of(accepted(&s.accepts))).collect();
    (cc, settings).prop_map(|(cc, values)| {
        let mut tcp = Tcp { cc: cc.map(String::from), ..Tcp::default() };
        for (setting, value) in TCP_SETTINGS.iter().zip(values) {
            value.into_iter().for_each(|value| tcp.set(setting.name, value));
        }
        cc.and_then(Tcp::shorthand).into_iter().for_each(|recovery| tcp.set_recovery(recovery));
        tcp
    })
}

proptest! {
    #[test]
    fn a_tcp_is_what_was_written(tcp in tcps()) {
        let text = super::tcp::assignments(&tcp).join("\n");
        let file = format!("name = 'x'\nduration = '1s'\nflow = [{{ id = 'a' }}]\n[tcp]\n{text}\n");
        let read = super::experiment::parse(&Source::new("written", file));
        let read = read.map(|experiment| experiment.plan.groups[0].tcp.clone()).map_err(|e| e.to_string());
        prop_assert_eq!(read, Ok(tcp), "{}", text);
    }

    #[test]
    fn a_file_of_an_emulator_is_what_was_written(file in emulators()) {
        let text = file.to_toml();
        let read = wan::parse(&Source::new("written", text.as_str()));
        prop_assert_eq!(read.map_err(|e| e.to_string()), Ok(file), "{}", text);
    }

    #[test]
    fn a_file_of_a_gateway_is_what_was_written(file in gateways()) {
        let text = file.to_toml();
        let read = gateway::parse(&Source::new("written", text.as_str()));
        prop_assert_eq!(read.map_err(|e| e.to_string()), Ok(file), "{}", text);
    }

    /// The same assignments as options: without quotes.
    #[test]
    fn options_are_what_was_written(link in links()) {
        let assignments = link::assignments(&link);
        let options: Vec<(&str, String)> = assignments
            .iter()
            .map(|line| line.split_once(" = ").unwrap())
            .map(|(name, value)| (name, toml::from_str::<toml::Table>(&format!("v = {value}")).unwrap()["v"].clone()))
            .map(|(name, value)| (name, value.as_str().map_or(value.to_string(), str::to_string)))
            .collect();
        let path = path_of_options(&options);
        prop_assert_eq!(path, Ok(Path { wan_out: link, wan_back: link, ..Path::default() }), "{:?}", options);
    }
}

/// Every key of a class with a queue, and of its parent.
#[test]
fn classes_with_queues_are_what_was_written() {
    const FILE: &str = r#"
        [ports]
        dev = "eth1"
        [[gateway.class]]
        name = "a"
        parent = "link"
        rate = "1Mbit"
        ceil = "2Mbit"
        priority = 3
        weight = 5
        match = [{ protocol = "icmp" }, { protocol = 47 }]
        queue = "64KiB"
        aqm = "codel"
        target = "7ms"
        interval = "90ms"
        ecn = true
        [[gateway.class]]
        name = "b"
        parent = "group"
        match = [{ protocol = "udp" }]
        discipline = "pfq"
        flows = 100
        quantum = 300
        [[gateway.class]]
        name = "c"
        parent = "group"
        match = [{ dst_port = 80 }]
        queue = "40p"
        aqm = "red"
        red_min = "4p"
        red_p = 0.2
        ack = { preset = "ack-shaper", flow_rate = "3Mbit", when = "congested", threshold = "20KiB" }
        [[gateway.class]]
        name = "d"
        parent = "group"
        match = [{ dst_port = 81 }]
        queue = "90p"
        aqm = "dualpi2"
        target = "9ms"
        step = "2ms"
        ack = { preset = "ack-policer", flow_rate = "3Mbit", burst = "10kB" }
        [[gateway.class]]
        name = "group"
        parent = "link"
        weight = 2
        [[gateway.class]]
        name = "link"
        rate = "10Mbit"
    "#;
    let read = |text: &str| gateway::parse(&Source::new("f.toml", text)).map_err(|e| e.to_string());
    let file = read(FILE).unwrap();
    let shares: Vec<_> = file.gateway.classes.iter().filter_map(|c| c.share).collect();
    assert_eq!(
        shares.iter().map(|s| s.parent).collect::<Vec<_>>(),
        [Some(5), Some(4), Some(4), Some(4), Some(5), None]
    );
    assert_eq!((shares[1].weight, shares[4].weight, shares[4].queue), (1, 2, None));
    // As many flows as a power of two.
    let pfq = Kind::Pfq(pfq::Params { flows: 128, quantum: 300, ..pfq::Params::default() });
    assert_eq!(shares[1].queue, Some(queue::Config { limit: QueueLimit::Packets(1000), kind: pfq }));
    // The upper threshold is three times the lower one.
    let params = red::Params { min: 4 * 1514, max: 12 * 1514, max_p: TRILLION / 5, ..red::Params::default() };
    assert_eq!(shares[2].queue.map(|q| q.kind), Some(Kind::Red { params, seed: 1 }));
    let control = |i: usize| file.gateway.classes[i].ack.unwrap();
    assert_eq!(control(2).when, When::Congested { above: QueueLimit::Bytes(20_480) });
    // Neither is for windows that bound the flow.
    assert_eq!((control(2).window, control(3).window), (Window::Keep, Window::Keep));
    assert!(
        matches!(control(3).release, Release::Rate(law) if law.action == Action::Police { burst: 10_000 })
    );
    assert_eq!(read(&file.to_toml()), Ok(file.clone()), "{}", file.to_toml());
}

/// Classes that borrow by ACKs are read again as they were written, with parents before and behind them.
#[test]
fn nested_classes_are_written_and_read_again() {
    const FILE: &str = r#"
        ports = { dev = "eth1" }
        [[gateway.class]]
        name = "a"
        parent = "group"
        match = [{ dst_port = 80 }]
        rate = "1Mbit"
        ceil = "3Mbit"
        flow_max = "500kbit"
        police = true
        [[gateway.class]]
        name = "group"
        parent = "site"
        weight = 2
        rate = "1Mbit"
        [[gateway.class]]
        name = "site"
        rate = "10Mbit"
        [[gateway.class]]
        name = "b"
        parent = "group"
    "#;
    let read = |text: &str| gateway::parse(&Source::new("f.toml", text)).map_err(|e| e.to_string());
    let file = read(FILE).unwrap();
    let nested: Vec<_> = file.gateway.classes.iter().filter_map(|c| c.nested).collect();
    assert_eq!(nested.iter().map(|n| n.parent).collect::<Vec<_>>(), [Some(1), Some(2), None, Some(1)]);
    assert_eq!(nested.iter().map(|n| n.lends).collect::<Vec<_>>(), [false, true, true, false]);
    // The most that each may have: its ceiling, or what those above it may.
    let most = file.gateway.classes.iter().map(|c| c.ack.unwrap().release.rate());
    assert_eq!(most.collect::<Vec<_>>(), [3, 10, 10, 10].map(Rate::mbit));
    assert_eq!(read(&file.to_toml()), Ok(file.clone()), "{}", file.to_toml());
}

/// A bare link needs no words, and a preset nothing but its rate.
#[test]
fn what_goes_without_saying_is_not_written() {
    assert_eq!(link::assignments(&Link::BARE), Vec::<String>::new());
    for preset in PRESETS {
        let policy = (preset.policy)(Rate::mbit(10));
        let written = super::policy::assignments(&policy);
        assert_eq!(written, [format!("preset = \"{}\"", preset.name), "flow_rate = \"10Mbit\"".into()]);
    }
}

/// Faults of options name the options.
#[test]
fn faults_of_options() {
    for (options, says) in [
        (&[("queue", "100p")][..], "`--queue` needs `--rate`: a queue forms only in front of a rate"),
        (&[("rate", "10")], "`--rate`: 10 is a rate without a unit: write \"10Mbit\""),
        (&[("queue", "100p"), ("jitter_law", "normal"), ("jitter", "1ms")], "`--queue` needs `--rate`: a queue forms only in front of a rate"),
        (&[("loss_p", "1%")], "`--loss-p` needs `--loss-r`: it is how probable losses begin after a frame, and loss_r how probable they end"),
        (&[("rate", "1Mbit"), ("rate_trace", "tests/traces/rate")], "`--rate-trace` cannot be combined with `--rate`: a link has one rate, or a trace of it"),
        (&[("loss_trace", "/does/not/exist")], "`--loss-trace`: /does/not/exist: No such file or directory (os error 2)"),
        (&[("loss", "0.1"), ("loss_every", "9")], "`--loss-every` cannot be combined with `--loss`: a link loses at random or periodically, not both"),
        (&[("rtt", "9ms"), ("delay", "1ms")], "`--delay` cannot be combined with `--rtt`: `rtt` is split evenly on WAN out and WAN back; give `rtt`, or a `delay` for each"),
    ] {
        let options: Vec<(&str, String)> = options.iter().map(|(name, value)| (*name, value.to_string())).collect();
        let faults = path_of_options(&options).unwrap_err();
        assert_eq!(faults.iter().map(|f| f.to_string()).collect::<Vec<_>>(), [says]);
    }
}
