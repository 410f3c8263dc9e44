//! Taken frames come back, or everything passes: each link of the way that can break, and its repair.

use crate::lab::{eventually, Kind, Lab, Process, SERVER};
use crate::tests::{ends_well, internal};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub const ALL: &[(&str, fn())] = &[
    ("an_interface_may_move_to_another_namespace", an_interface_may_move_to_another_namespace),
    ("an_interface_may_be_away_unheard", an_interface_may_be_away_unheard),
    ("redirected_frames_stay_in_their_namespace", redirected_frames_stay_in_their_namespace),
    ("a_filter_of_spoofed_sources_lets_acks_back", a_filter_of_spoofed_sources_lets_acks_back),
    ("another_program_in_front_is_told", another_program_in_front_is_told),
    ("a_filter_takes_what_weir_sends", a_filter_takes_what_weir_sends),
    ("a_filter_takes_half_of_what_weir_sends", a_filter_takes_half_of_what_weir_sends),
    ("an_upload_goes_on_after_a_repair", an_upload_goes_on_after_a_repair),
    ("an_engine_without_a_processor_is_told", an_engine_without_a_processor_is_told),
    ("the_way_home_may_break", the_way_home_may_break),
    ("the_internal_pair_is_put_right", the_internal_pair_is_put_right),
    ("an_interface_is_held_by_its_number", an_interface_is_held_by_its_number),
];

/// At 20 Mbit/s, generously: unshaped it would be a hundred times as fast.
fn is_shaped(rate: f64) -> bool {
    (8e6..25e6).contains(&rate)
}

/// Waits until uploads and downloads are at their rate, and says how many milliseconds that took, of which
/// the last 700 are the measurement.
pub fn until_shaped(lab: &Lab) -> u128 {
    let started = Instant::now();
    eventually("flows are shaped", || {
        is_shaped(lab.send("c", SERVER, 700)) && is_shaped(lab.receive("c", SERVER, 700))
    });
    started.elapsed().as_millis()
}

/// The longest time without data of a download beside which something happens after 1.7 s, in milliseconds.
pub fn gap_beside(lab: &Lab, happens: impl FnOnce()) -> u32 {
    std::thread::scope(|scope| {
        let download = scope.spawn(|| lab.gap("c", SERVER, 4000));
        std::thread::sleep(Duration::from_millis(1700));
        happens();
        download.join().unwrap().0
    })
}

fn move_wan(lab: &Lab, from: &str, to: &str) {
    lab.ip(from, &["link", "set", "wan0", "netns", &lab.namespace(to)]);
    lab.ip(to, &["link", "set", "wan0", "up"]);
    lab.ip(to, &["addr", "add", "10.9.2.254/24", "dev", "wan0"]);
}

/// Nothing is taken from an interface that is in another namespace; back again, it is as before.
fn an_interface_may_move_to_another_namespace() {
    let lab = Lab::new(Kind::Router);
    let mut gateway = lab.running("gateway");
    let _server = lab.serve();
    assert!(is_shaped(lab.send("c", SERVER, 700)));
    for _ in 0..2 {
        move_wan(&lab, "g", "t");
        let there = lab.send("t", SERVER, 300);
        assert!(there > 1e8, "{there}");
        eventually("it is told", || lab.degraded() == "wan0 is gone");
        move_wan(&lab, "t", "g");
        eventually("it is told", || lab.degraded() == "no");
        println!("  shaped {} ms after it is back", until_shaped(&lab));
    }
    assert!(!lab.log().contains("cannot attach"), "{}", lab.log());
    ends_well(&lab, &mut gateway);
}

/// More news than a socket holds hides that the interface was in another namespace and is back.
fn an_interface_may_be_away_unheard() {
    for steered in ["gateway", "all"] {
        let lab = Lab::new(Kind::Router);
        let mut gateway = lab.running(steered);
        let _server = lab.serve();
        assert!(lab.send("c", SERVER, 700) > 1e6);
        let news: String = (0..4_000).map(|n| format!("link set lo txqueuelen {}\n", 1000 + n % 2)).collect();
        let file = lab.directory.join("news");
        fs::write(&file, news).unwrap();
        let unheard = |away: &dyn Fn()| {
            gateway.signal(libc::SIGSTOP);
            lab.ip("g", &["-batch", file.to_str().unwrap()]);
            away();
            gateway.signal(libc::SIGCONT);
            let before = lab.stat("from_lan");
            match steered {
                "gateway" => println!("  shaped {} ms after it is back", until_shaped(&lab)),
                _ => eventually("the engine carries frames", || {
                    lab.ping(5, 2) == 5 && lab.stat("from_lan") > before
                }),
            }
            eventually("nothing is told", || lab.degraded() == "no");
        };
        unheard(&|| {
            move_wan(&lab, "g", "t");
            move_wan(&lab, "t", "g");
        });
        if let Some(end) = ends(&lab).first() {
            unheard(&|| {
                lab.ip("g", &["link", "set", end, "netns", &lab.namespace("t")]);
                lab.ip("t", &["link", "set", end, "netns", &lab.namespace("g")]);
                lab.ip("g", &["link", "set", end, "up"]);
            });
        }
        ends_well(&lab, &mut gateway);
    }
}

/// The number of the internal pair is another interface's in another namespace.
fn redirected_frames_stay_in_their_namespace() {
    let lab = Lab::new(Kind::Router);
    for i in 0..8 {
        lab.ip("t", &["link", "add", &format!("a{i}"), "type", "veth", "peer", "name", &format!("b{i}")]);
        lab.ip("t", &["link", "set", &format!("a{i}"), "up"]);
    }
    let mut bump = lab.running("all");
    let _server = lab.serve();
    assert_eq!(lab.ping(5, 2), 5);
    move_wan(&lab, "g", "t");
    assert!(lab.send("t", SERVER, 300) > 1e8);
    move_wan(&lab, "t", "g");
    let before = lab.stat("from_lan");
    eventually("the engine carries frames again", || lab.ping(5, 2) == 5 && lab.stat("from_lan") > before);
    ends_well(&lab, &mut bump);
}

/// Only the network's own sources leave (BCP 38): ACKs that come in again have others.
fn a_filter_of_spoofed_sources_lets_acks_back() {
    let lab = Lab::new(Kind::Router);
    let rules = "table netdev f { chain e { type filter hook egress device wan0 priority 0; \
                 ip saddr != 10.9.1.0/24 ip saddr != 10.9.2.254 counter drop; }; }";
    let mut nft = lab.spawn("g", "nft", &[rules]);
    if nft.wait() != Some(0) {
        return println!("  skipped: this kernel has no filters at egress");
    }
    let mut gateway = lab.running("gateway");
    let _server = lab.serve();
    let (up, down) = (lab.send("c", SERVER, 700), lab.receive("c", SERVER, 700));
    assert!(is_shaped(up) && is_shaped(down), "{up} {down}");
    assert_eq!(lab.degraded(), "no");
    ends_well(&lab, &mut gateway);
}

/// Ends the chain in front of the hooks: nothing is shaped, no frame waits, and the report says it.
fn another_program_in_front_is_told() {
    let lab = Lab::new(Kind::Router);
    // One that was there before is behind.
    let Some(_before) = foreign(&lab) else { return println!("  skipped: no tcx on this kernel") };
    let mut gateway = lab.running("gateway");
    let _server = lab.serve();
    until_shaped(&lab);
    let mut other = None;
    let gap = gap_beside(&lab, || {
        other = foreign(&lab);
        eventually("it is told", || lab.degraded().contains("a filter or another program in front takes it"));
    });
    println!("  {gap} ms without data");
    assert!(gap < 500, "{gap} ms");
    drop(other);
    eventually("it is told", || lab.degraded() == "no");
    println!("  shaped {} ms after it is gone", until_shaped(&lab));
    assert_eq!(lab.log().matches("what is to leave by wan0 does not come there").count(), 1, "{}", lab.log());
    ends_well(&lab, &mut gateway);
}

/// Longest time without data while a part of the way breaks and while it is mended, and longest time from its
/// repair until the report says so, in milliseconds. On a quiet machine the first is less than 200.
pub const STILL: u32 = 500;
const REPAIRED: u128 = 2_000;

fn a_filter_takes_what_weir_sends() {
    filtered("", "does not come there");
}

fn a_filter_takes_half_of_what_weir_sends() {
    // Of few frames all may be lost.
    filtered("numgen random mod 2 0", "come");
}

/// A filter that takes what this host itself sends by an interface, if it fits `which`: ACKs of downloads
/// leave by wan0, and those of uploads come in by way of lo.
fn filtered(which: &str, words: &str) {
    for device in ["wan0", "lo"] {
        let lab = Lab::new(Kind::Router);
        let rules = format!(
            "table netdev f {{ chain e {{ type filter hook egress device {device} priority 0; \
             meta skuid >= 0 {which} drop; }}; }}"
        );
        let mut gateway = lab.running("gateway");
        let _server = lab.serve();
        until_shaped(&lab);
        let mut works = true;
        let gap = gap_beside(&lab, || {
            works = lab.spawn("g", "nft", &[&rules]).wait() == Some(0);
            if works && device == "lo" {
                lab.send("c", SERVER, 300);
            }
            eventually("it is told", || !works || lab.degraded().contains(words));
        });
        if !works {
            return println!("  skipped: this kernel has no filters at egress");
        }
        // Everything passes, and stays so.
        for _ in 0..3 {
            let rate =
                if device == "lo" { lab.send("c", SERVER, 500) } else { lab.receive("c", SERVER, 500) };
            assert!(rate > 5e7, "{rate}");
        }
        // Beside a download that has had all of the path.
        let mut told = 0;
        let back = gap_beside(&lab, || {
            lab.run("g", "nft", &["delete table netdev f"]);
            let repaired = Instant::now();
            eventually("it is told", || lab.degraded() == "no");
            told = repaired.elapsed().as_millis();
        });
        println!(
            "  {device}: {gap} ms without data, {back} after the repair, told after {told} ms, shaped after {} ms",
            until_shaped(&lab)
        );
        assert!(gap <= STILL && back <= STILL && told <= REPAIRED, "{gap} {back} {told}");
        ends_well(&lab, &mut gateway);
    }
}

/// Returns the bytes that have left the gateway by wan0.
fn left_by_wan(lab: &Lab) -> u64 {
    let text = lab.run("g", "cat", &["/sys/class/net/wan0/statistics/tx_bytes"]);
    text.trim().parse().unwrap()
}

/// An upload that has had all of the path while its ACKs did not come back has its rate after the repair: an
/// ACK that tries the way tells the engine of gigabytes that it is not owed.
fn an_upload_goes_on_after_a_repair() {
    let lab = Lab::new(Kind::Router);
    let rules = "table netdev f { chain e { type filter hook egress device lo priority 0; drop; }; }";
    let mut gateway = lab.running("gateway");
    let _server = lab.serve();
    until_shaped(&lab);
    std::thread::scope(|scope| {
        let upload = scope.spawn(|| lab.send("c", SERVER, 8000));
        std::thread::sleep(Duration::from_millis(500));
        if lab.spawn("g", "nft", &[rules]).wait() != Some(0) {
            return println!("  skipped: this kernel has no filters at egress");
        }
        eventually("it is told", || lab.degraded().contains("does not come there"));
        std::thread::sleep(Duration::from_millis(1200));
        lab.run("g", "nft", &["delete table netdev f"]);
        eventually("it is told", || lab.degraded() == "no");
        std::thread::sleep(Duration::from_millis(700));
        let (from, before) = (Instant::now(), left_by_wan(&lab));
        std::thread::sleep(Duration::from_millis(1000));
        let rate = (left_by_wan(&lab) - before) as f64 * 8.0 / from.elapsed().as_secs_f64();
        println!("  {:.1} Mbit/s after the repair", rate / 1e6);
        assert!(is_shaped(rate), "{rate}");
        assert!(upload.join().unwrap() > 5e7, "the way was not shut");
    });
    ends_well(&lab, &mut gateway);
}

/// A group of processes that gets 2 of 100 ms of a processor. Removed when dropped.
struct Quota(PathBuf);

impl Quota {
    fn of(pids: &[u32]) -> Option<Quota> {
        let name = format!("wio-{}", std::process::id());
        let (first, second) = (PathBuf::from("/sys/fs/cgroup/cpu"), PathBuf::from("/sys/fs/cgroup"));
        let (group, members, limits) = if first.is_dir() {
            let ordinary = [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "2000")];
            let real_time = [("cpu.rt_period_us", "100000"), ("cpu.rt_runtime_us", "2000")];
            (first.join(name), "cgroup.procs", [ordinary, real_time].concat())
        } else {
            fs::write(second.join("cgroup.subtree_control"), "+cpu").ok()?;
            (second.join(name), "cgroup.procs", vec![("cpu.max", "2000 100000")])
        };
        fs::create_dir(&group).ok()?;
        let quota = Quota(group);
        for (file, limit) in limits {
            // Kernels need not have groups of real-time threads.
            let written = fs::write(quota.0.join(file), limit);
            written.ok().or(file.contains("rt").then_some(()))?;
        }
        for pid in pids {
            fs::write(quota.0.join(members), pid.to_string()).ok()?;
        }
        Some(quota)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let above = self.0.parent().unwrap();
        for file in ["cgroup.procs", "tasks"] {
            for pid in fs::read_to_string(self.0.join(file)).unwrap_or_default().lines() {
                let _ = fs::write(above.join(file), pid);
            }
        }
        let _ = fs::remove_dir(&self.0);
    }
}

/// Two milliseconds in a hundred: traffic goes past the engine for half of the time, and the report says it.
fn an_engine_without_a_processor_is_told() {
    let lab = Lab::new(Kind::Router);
    let mut gateway = lab.running("gateway");
    let _server = lab.serve();
    until_shaped(&lab);
    let pids = [gateway.0.id(), lab.engine(0)];
    let mut quota = None;
    let gap = gap_beside(&lab, || quota = Quota::of(&pids));
    if quota.is_none() {
        return println!("  skipped: no groups of processes with a share of a processor");
    }
    eventually("it is told", || lab.degraded().contains("the engine has no processor"));
    println!("  {gap} ms without data");
    assert!(gap <= STILL, "{gap}");
    drop(quota);
    println!("  shaped {} ms after it is gone", until_shaped(&lab));
    eventually("it is told", || lab.degraded() == "no");
    ends_well(&lab, &mut gateway);
}

/// A program that lets everything pass, in front of all others, which see nothing of it.
fn foreign(lab: &Lab) -> Option<Process> {
    let ready = lab.directory.join("foreign");
    let _ = std::fs::remove_file(&ready);
    let own = std::env::current_exe().unwrap();
    let mut process =
        lab.spawn("g", own.to_str().unwrap(), &["host", "foreign", "wan0", ready.to_str().unwrap()]);
    let mut ended = false;
    eventually("it is attached", || {
        ended = process.0.try_wait().unwrap().is_some();
        ended || ready.exists()
    });
    (!ended).then_some(process)
}

/// Uploads' ACKs come in by the loopback interface. None are lost for long if it is set down, or takes only
/// packets that are shorter than they are.
fn the_way_home_may_break() {
    let lab = Lab::new(Kind::Router);
    let mut gateway = lab.running("gateway");
    let _server = lab.serve();
    assert!(is_shaped(lab.send("c", SERVER, 700)));
    let breaks = [
        (["lo", "down"].as_slice(), "the loopback interface is down", ["lo", "up"].as_slice()),
        (&["lo", "mtu", "50"], "the loopback interface takes packets of 50 bytes", &["lo", "mtu", "65536"]),
    ];
    for (broken, told, mended) in breaks {
        let sent = std::thread::scope(|scope| {
            let upload = scope.spawn(|| lab.send("c", SERVER, 3000));
            std::thread::sleep(Duration::from_millis(700));
            lab.ip("g", &[&["link", "set"], broken].concat());
            upload.join().unwrap()
        });
        assert!(lab.log().contains(told), "{}", lab.log());
        assert!(sent > 8e6, "{sent}");
        println!("  shaped {} ms after that", until_shaped(&lab));
        // It is used again as soon as it carries them.
        let without = lab.engine(0);
        lab.ip("g", &[&["link", "set"], mended].concat());
        lab.engine(without);
        println!("  shaped {} ms after it is back", until_shaped(&lab));
    }
    ends_well(&lab, &mut gateway);
}

/// Names of the ends of the internal pair.
fn ends(lab: &Lab) -> Vec<String> {
    let links = lab.ip("g", &["-o", "link"]);
    let names = links.lines().filter_map(|line| line.split(": ").nth(1)?.split('@').next());
    names.filter(|name| name.starts_with("weir-")).map(String::from).collect()
}

/// Ends of the pair are set down, get another MTU or another name, join a bridge, or are removed.
fn the_internal_pair_is_put_right() {
    let lab = Lab::new(Kind::Router);
    let mut bump = lab.running("all");
    let _server = lab.serve();
    assert_eq!(lab.ping(20, 2), 20);
    lab.ip("g", &["link", "add", "br9", "type", "bridge"]);
    for what in ["down", "mtu 600", "master br9"] {
        for end in ends(&lab) {
            let before = lab.stat("from_lan");
            let longest = std::thread::scope(|scope| {
                let pings = scope.spawn(|| lab.pings("c", SERVER, 500, 2).1);
                std::thread::sleep(Duration::from_millis(300));
                lab.ip(
                    "g",
                    &[&["link", "set", end.as_str()][..], &what.split(' ').collect::<Vec<_>>()].concat(),
                );
                pings.join().unwrap()
            });
            println!("  {end} {what}: {} ms without an answer", longest * 2);
            assert!(longest * 2 <= 200, "{}", longest * 2);
            eventually("the engine carries frames", || lab.ping(5, 2) == 5 && lab.stat("from_lan") > before);
            eventually("all is well", || lab.degraded() == "no");
            assert!(lab.send("c", SERVER, 200) > 1e8);
        }
    }
    lab.ip("g", &["link", "set", &ends(&lab)[0], "name", "other"]);
    lab.ip("g", &["link", "del", &ends(&lab)[0]]);
    eventually("there is another pair", || internal(&lab) == 2);
    eventually("all is well", || lab.ping(5, 2) == 5 && lab.degraded() == "no");
    lab.ip("g", &["link", "del", "br9"]);
    ends_well(&lab, &mut bump);
}

fn an_interface_is_held_by_its_number() {
    let mut lab = Lab::new(Kind::Router);
    let mut bump = lab.running("all");
    for (old, new) in [("wan0", "wan9"), ("lan0", "wan0")] {
        lab.ip("g", &["link", "set", old, "down"]);
        lab.ip("g", &["link", "set", old, "name", new]);
        lab.ip("g", &["link", "set", new, "up"]);
    }
    lab.attach = "wan9".into();
    assert_eq!(lab.start("all").wait(), Some(2));
    assert!(lab.log().contains("wan9 is in use by another Weir"), "{}", lab.log());
    // Another interface has its name.
    lab.attach = "wan0".into();
    std::fs::remove_file(lab.directory.join("stats")).unwrap();
    let mut other = lab.running("acks");
    other.signal(crate::tests::TERM);
    assert_eq!(other.wait(), Some(0), "{}", lab.log());
    ends_well(&lab, &mut bump);
}
