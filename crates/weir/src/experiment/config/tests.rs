//! Configurations as the keys of files and options make them, and as JSON for other processes.

mod keys;
mod strategies;

use super::gateway;
use super::gateway::GatewayFile;
use super::wan::{laid_over, path_of_options, WanFile};
use super::{experiment, Errors, Source};
use crate::result::Backend;
use proptest::prelude::*;
use strategies::{emulators, gateways};
use weir_core::ack::{Action, Leaf, Release, When, Window, CLASS_PRESETS};
use weir_core::link::{Config, QueueLimit, TRILLION};
use weir_core::queue::{self, pfq, red, Kind};
use weir_core::rate::Rate;

proptest! {
    #[test]
    fn an_emulator_is_the_same_in_its_process(file in emulators()) {
        let json = serde_json::to_string(&file).unwrap();
        prop_assert_eq!(serde_json::from_str::<WanFile>(&json).map_err(|e| e.to_string()), Ok(file), "{}", json);
    }

    #[test]
    fn a_gateway_is_the_same_in_its_process(file in gateways()) {
        let json = serde_json::to_string(&file).unwrap();
        prop_assert_eq!(serde_json::from_str::<GatewayFile>(&json).map_err(|e| e.to_string()), Ok(file), "{}", json);
    }
}

/// Every key of a class with a queue, and of its parent.
#[test]
fn classes_with_queues_have_what_their_keys_say() {
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
    // The number of flows is a power of two.
    let pfq = Kind::Pfq(pfq::Params { flows: 128, quantum: 300, ..pfq::Params::default() });
    assert_eq!(
        shares[1].queue,
        Some(queue::Config { limit: QueueLimit::Packets(1000), kind: pfq, tins: None })
    );
    // The upper threshold is three times the lower one.
    let params = red::Params { min: 4 * 1514, max: 12 * 1514, max_p: TRILLION / 5, ..red::Params::default() };
    assert_eq!(shares[2].queue.map(|q| q.kind), Some(Kind::Red { params, seed: 1 }));
    let control = |i: usize| file.gateway.classes[i].ack.unwrap();
    assert_eq!(control(2).when, When::Congested { above: QueueLimit::Bytes(20_480) });
    // Neither policy lets windows bound the flow.
    assert_eq!((control(2).window, control(3).window), (Window::Keep, Window::Keep));
    assert!(
        matches!(control(3).release, Release::Rate(law) if law.action == Action::Police { burst: 10_000 })
    );
}

/// A full frame is what the link counts for 1500 bytes of IP: in CoDel's bound, in quanta and in thresholds
/// in packets.
#[test]
fn full_frames_have_the_overhead_of_their_link() {
    use weir_core::link::Aqm;
    let link = |keys: &str| {
        let text = format!(
            "name = 'x'\nduration = '1s'\n[path]\nrtt = '10ms'\n[path.wan.out]\nrate = '1Mbit'\noverhead = 38\n{keys}\n[[flow]]\nid = 'a'"
        );
        experiment::parse(&Source::new("t.toml", text)).unwrap().plan.path.wan_out.aqm
    };
    assert!(matches!(link("aqm = 'codel'"), Aqm::Codel(codel) if codel.full_frame == 1538));
    assert!(
        matches!(link("aqm = 'fq-codel'"), Aqm::FqCodel(fq) if (fq.quantum, fq.codel.full_frame) == (1538, 1538))
    );
    assert!(matches!(link("aqm = 'fq-codel'\nquantum = 300"), Aqm::FqCodel(fq) if fq.quantum == 300));
    assert!(matches!(link("aqm = 'red'"), Aqm::Red(red) if (red.min, red.max) == (5 * 1538, 15 * 1538)));
    assert!(
        matches!(link("aqm = 'red'\nred_min = '4p'"), Aqm::Red(red) if (red.min, red.max) == (4 * 1538, 12 * 1538))
    );
    assert!(matches!(link("ack_filter = true"), Aqm::AckFilter(filter) if filter.quantum == 1538));
    let table = "ack_filter = { policy = 'delayed-per-flow', quantum = 600 }";
    assert!(matches!(link(table), Aqm::AckFilter(filter) if filter.quantum == 600));
}

/// Classes that borrow by ACKs, with parents before and behind them.
#[test]
fn nested_classes_have_their_parents() {
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
    // Highest rate of each: its ceiling, or that of the classes above.
    let most = file.gateway.classes.iter().map(|c| c.ack.unwrap().release.rate());
    assert_eq!(most.collect::<Vec<_>>(), [3, 10, 10, 10].map(Rate::mbit));
}

/// Each preset of classes in a class as it needs it.
#[test]
fn presets_of_classes_are_read() {
    for preset in CLASS_PRESETS {
        let queue = match preset.leaf {
            Leaf::None => "",
            Leaf::Fifo => "queue = '100p'",
            Leaf::Pfq => "discipline = 'pfq'\nqueue = '100p'",
        };
        let text = format!(
            "[ports]\ndev = 'e'\n[[gateway.class]]\nname = 'a'\nrate = '10Mbit'\n{queue}\nack = {{ preset = '{}' }}",
            preset.name
        );
        let read = |text: String| gateway::parse(&Source::new("g.toml", text)).map_err(|e| e.to_string());
        let file = read(text).unwrap();
        assert_eq!(file.gateway.classes[0].ack, Some((preset.policy)(Rate::mbit(10))), "{}", preset.name);
        let words = super::policy::words(file.gateway.classes[0].ack.as_ref().unwrap());
        assert!(words.starts_with(preset.description), "{words}");
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

#[test]
fn settings_of_a_running_emulator_leave_the_other_keys() {
    let [rate, delay] = [("rate", "10Mbit"), ("delay", "20ms")].map(|(key, value)| (key, value.to_owned()));
    let path = path_of_options(&[rate, delay]).unwrap();
    let next =
        laid_over(&path, &["path.wan.rate=2Mbit", "path.wan.out.delay=30ms", "path.wan.back.queue=2bdp"]);
    let next = next.unwrap();
    let of = |link: Config| (link.rate.map(Rate::bps), link.delay.as_micros());
    assert_eq!((of(next.wan_out), of(next.wan_back)), ((Some(2_000_000), 30_000), (Some(2_000_000), 20_000)));
    // 2 Mbit/s send 10 kB in a round trip of 40 ms.
    assert_eq!(next.wan_back.queue.most_bytes(Rate::mbit(2), 1_514), 20_000);
    assert_eq!(next.wan_out.queue, path.wan_out.queue);
    let jitter = laid_over(&next, &["path.wan.jitter=3ms", "path.wan.jitter_law=normal"]).unwrap();
    assert!(laid_over(&jitter, &["path.wan.jitter_law=pareto"]).is_ok());
    for (setting, fault) in [
        ("path.wan.jitter_law=pareto", "`path.wan.out.jitter_law` needs `path.wan.out.jitter`"),
        ("path.wan.colour=red", "path.wan.out.colour"),
        ("path.wan.rate=fast", "path.wan.out.rate"),
        ("path.lan.rate=1Mbit", "`path.lan.rate=1Mbit` sets nothing"),
        ("rate", "`rate` sets nothing"),
    ] {
        let found = laid_over(&path, &[setting]).unwrap_err();
        assert!(found[0].to_string().contains(fault), "{setting}: {}", found[0]);
    }
}
