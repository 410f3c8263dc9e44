//! Valid configurations of each kind, for property tests.

use super::super::gateway::GatewayFile;
use super::super::ports::{Attach, Driving};
use super::super::wan::{path_of_options, WanFile};
use crate::experiment::plan::Path;
use core::net::IpAddr;
use core::ops::RangeInclusive;
use proptest::option;
use proptest::prelude::*;
use weir_core::ack::{
    AckControl, Action, Counts, Hold, Meter, Period, RateRelease, Release, ShareRelease, SlowStart, Turns,
    Unresponsive, When, Window,
};
use weir_core::gateway::{ClassConfig, Config, Direction, Match, Prefix};
use weir_core::link::{
    Burst, Config as Link, Damage, Jitter, Law, Loss, QueueLimit, RateTrace, Reorder, TRILLION,
};
use weir_core::packet::{Cells, LinkLayer};
use weir_core::queue::ack_filter::{self, Measure, Policy, Service, Threshold};
use weir_core::queue::{codel, dualpi2, fq_codel, red, Aqm};
use weir_core::rate::Rate;
use weir_core::time::Duration;

/// Windows are longer than an ACK takes at any rate.
fn filters() -> impl Strategy<Value = ack_filter::Params> {
    let unsaid = ack_filter::Params { service: Service::Fifo, ..ack_filter::Params::default() };
    let static_at = move |n: u32| ack_filter::Params { policy: Policy::Static(Threshold::Acks(n)), ..unsaid };
    let measured =
        (1..=1_000_000u32, 1..=1_000_000u32, option::of(400..=10_000u64), 1..=1u32 << 20, any::<[bool; 3]>());
    let measured =
        measured.prop_map(move |(a, b, window, flows, [each, turns, presence])| ack_filter::Params {
            policy: if each { Policy::DelayedPerFlow } else { Policy::Delayed },
            service: if each && turns { Service::RoundRobin } else { Service::Fifo },
            measure: if presence { Measure::Presence } else { Measure::Rate },
            on: a.max(b),
            off: a.min(b),
            window: window.map(Duration::from_secs),
            flows,
            ..unsaid
        });
    let plain = [Policy::None, Policy::Classical, Policy::Static(Threshold::Auto)];
    prop_oneof![
        proptest::sample::select(plain.to_vec())
            .prop_map(move |policy| ack_filter::Params { policy, ..unsaid }),
        (1..=1_000_000u32).prop_map(static_at),
        measured,
    ]
}

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
        filters().prop_map(Aqm::AckFilter),
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

/// With CoDel's full frame as the link counts it.
fn framed(mut aqm: Aqm, link: &Link) -> Aqm {
    let full_frame = link.bytes(1500) as u32;
    match &mut aqm {
        Aqm::Codel(codel) => codel.full_frame = full_frame,
        Aqm::FqCodel(fq) => fq.codel.full_frame = full_frame,
        _ => {}
    }
    aqm
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

/// A mark below the queue's limit, if both are of one kind.
fn marked(queue: QueueLimit, mark: Option<QueueLimit>) -> Option<QueueLimit> {
    mark.filter(|mark| match (mark, queue) {
        (QueueLimit::Packets(mark), QueueLimit::Packets(queue)) => *mark < queue,
        (QueueLimit::Bytes(mark), QueueLimit::Bytes(queue)) => *mark < queue,
        _ => true,
    })
}

prop_compose! {
    pub(super) fn links()(
        rate in option::of(rates(1..=u64::MAX)),
        delay in times(0),
        loss in losses(),
        queue in limits(1961..=u64::MAX),
        mark in option::of(thresholds()),
        (overhead, cells) in (0..=256u16, prop::sample::select(vec![Cells::None, Cells::Atm, Cells::Ptm])),
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
        let link = Link { rate, trace, delay, loss, damage, overhead, cells, jitter, reorder, ..Link::BARE };
        match rate {
            None => link,
            Some(_) if aqm != Aqm::None => Link { queue, aqm: framed(aqm, &link), burst, ..link },
            Some(_) => Link { queue, mark: marked(queue, mark), burst, ..link },
        }
    }
}

prop_compose! {
    /// `batch_delay` and `engines` are for gateways.
    fn drivings()(
        wait in option::of(times(1)),
        priority in option::of(0..=98u8),
        cpu in option::of(0..=8191u32),
        spin in option::of((0..=1_000_000u64).prop_map(Duration::from_nanos)),
    ) -> Driving {
        Driving { wait, priority, cpu, spin, batch_delay: None, engines: None }
    }
}

/// Names that interfaces may have, quotes and backslashes too.
fn interfaces() -> impl Strategy<Value = String> {
    "[!-.0-9;-~]{1,15}".prop_filter("directories", |name| name != "." && name != "..")
}

prop_compose! {
    pub(super) fn emulators()(
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

const ON_LINK: Counts = Counts::Link(LinkLayer { overhead: -4, mpu: 64, cells: Cells::Atm });

prop_compose! {
    fn policies()(
        rate in rates(8_000..=100_000_000_000),
        counts in prop::sample::select(vec![Counts::Payload, Counts::Ip, Counts::Frame, Counts::Wire, ON_LINK]),
        meter in prop::sample::select(vec![Meter::Acked, Meter::Received]),
        period in periods(),
        slow_start in detectors(),
        burst in option::of(1..=1u32 << 30),
        catch_up in times(1),
        unresponsive in prop::sample::select(vec![Unresponsive::Bound, Unresponsive::Count]),
        bound in option::of(times(0)),
    ) -> AckControl {
        let action = burst.map_or(Action::Shape, |burst| Action::Police { burst });
        let bound = bound.filter(|_| action == Action::Shape);
        AckControl {
            hold: Hold::Number,
            release: Release::Rate(RateRelease { rate, counts, meter, period, slow_start, action, catch_up, unresponsive }),
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
    fn shared()(rate in 8_000..=100_000_000_000u64, ip in any::<bool>(), unresponsive in prop::sample::select(vec![Unresponsive::Bound, Unresponsive::Police, Unresponsive::FAIR, Unresponsive::Count]), part in option::of(1..=1_000u64), least in option::of(1..=1_000u64), standing in times(1)) -> AckControl {
        let flow_max = part.and_then(|part| Rate::from_bps((rate / part).max(8_000)));
        let most = flow_max.map_or(rate, Rate::bps);
        let flow_min = least.and_then(|part| Rate::from_bps((most / part).max(8_000)));
        let counts = if ip { Counts::Ip } else { Counts::Payload };
        let release = Release::Share(ShareRelease { rate: Rate::from_bps(rate).unwrap(), counts, unresponsive, flow_max, flow_min, turns: Turns::Bytes });
        let window = Window::Size { standing_delay: standing };
        AckControl { hold: Hold::Number, release, window, when: When::Always }
    }
}

prop_compose! {
    /// TCP rate control in a class with a rate.
    fn in_turns_of_acks()(rate in 8_000..=100_000_000_000u64, counts in prop::sample::select(vec![Counts::Ip, Counts::Payload, Counts::Wire])) -> AckControl {
        let mut ack = AckControl::tcr(Rate::from_bps(rate).unwrap());
        if let Release::Share(law) = &mut ack.release {
            law.counts = counts;
        }
        ack
    }
}

prop_compose! {
    /// At least one class has a policy, and none takes what another would.
    pub(super) fn gateways()(
        dev in interfaces(),
        driving in drivings(),
        batch_delay in option::of((0..=10_000_000u64).prop_map(Duration::from_nanos)),
        // The last class is for all addresses.
        engines in option::of(Just(1)),
        classes in prop::collection::vec((any::<bool>(), prop::collection::vec(rules(), 1..4), option::of(policies())), 0..4),
        last in prop_oneof![policies(), shared(), in_turns_of_acks()],
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
        GatewayFile { dev, driving: Driving { batch_delay, engines, ..driving }, customers: Vec::new(), sites: Vec::new(), notes: Vec::new(), gateway }
    }
}
