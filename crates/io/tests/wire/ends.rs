//! Traffic where no engine can be started, very many flows held at the end, and frames that engines take one
//! after the other.

use crate::lab::{alive, eventually, kill, Kind, Lab, SERVER};
use crate::tests::{ends_well, KILL, TERM};
use std::path::PathBuf;

pub const ALL: &[(&str, fn())] = &[
    ("no_process_can_be_made", no_process_can_be_made),
    ("no_file_can_be_opened", no_file_can_be_opened),
    ("what_six_thousand_flows_hold_is_delivered", what_six_thousand_flows_hold_is_delivered),
    ("every_engine_takes_as_much_memory", every_engine_takes_as_much_memory),
    ("an_engine_owns_nothing", an_engine_owns_nothing),
];

/// A group of processes with a limit to their number.
struct Group(PathBuf);

impl Group {
    /// `None` where there are no such groups.
    fn new(name: &str) -> Option<Group> {
        let old = PathBuf::from("/sys/fs/cgroup/pids");
        let root = if old.is_dir() { old } else { PathBuf::from("/sys/fs/cgroup") };
        let group = Group(root.join(name));
        std::fs::create_dir(&group.0).ok()?;
        group.0.join("pids.max").exists().then_some(group)
    }
    fn set(&self, file: &str, value: &str) {
        std::fs::write(self.0.join(file), value).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Fails while its processes end: the drop waits for them.
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn children(pid: u32) -> Vec<u32> {
    let children = format!("/proc/{pid}/task/{pid}/children");
    let pids = std::fs::read_to_string(children).unwrap();
    pids.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// The engine dies, and no other one can be forked: traffic flows, it is said once, and an engine runs as
/// soon as it can.
fn no_process_can_be_made() {
    for steered in ["all", "gateway"] {
        let lab = Lab::new(Kind::Router);
        let Some(group) = Group::new(&lab.namespace("group")) else {
            return println!("  skipped: there are no control groups with a limit of processes");
        };
        let mut weir = lab.running(steered);
        let _server = lab.serve();
        let first = lab.engine(0);
        group.set("cgroup.procs", &weir.0.id().to_string());
        group.set("pids.max", "0");
        kill(first, KILL);
        eventually("it is said", || lab.log().contains("cannot start an engine"));
        assert_eq!(lab.ping(500, 2), 500);
        let rate = lab.send("c", SERVER, 1500);
        assert!(rate > 1e8, "{rate}");
        assert!(!alive(first) && children(weir.0.id()).is_empty());
        let said = lab.log().matches("cannot start an engine").count();
        assert_eq!(said, 1, "{}", lab.log());
        group.set("pids.max", "max");
        let second = lab.engine(first);
        assert!(alive(second));
        eventually("the engine carries traffic", || {
            lab.ask("c", SERVER, 20);
            lab.stat("sent0") + lab.stat("sent1") > 0
        });
        ends_well(&lab, &mut weir);
    }
}

/// The engine dies while its supervisor may open few files: whatever step fails, no second engine runs beside
/// the one that is watched.
fn no_file_can_be_opened() {
    let lab = Lab::new(Kind::Router);
    let mut weir = lab.running("acks");
    let _server = lab.serve();
    let supervisor = weir.0.id();
    let mut engine = lab.engine(0);
    let limit = |pid: u32, files: u64| {
        std::process::Command::new("prlimit")
            .args(["--pid", &pid.to_string(), &format!("--nofile={files}:")])
            .status()
            .unwrap()
            .success()
    };
    // Descriptors have the lowest free numbers: above the first of them there may be others in use.
    let first_free = || {
        let files = std::path::PathBuf::from(format!("/proc/{supervisor}/fd"));
        (0..).find(|number: &u64| std::fs::symlink_metadata(files.join(number.to_string())).is_err()).unwrap()
    };
    for more in 0..24 {
        assert!(limit(supervisor, first_free() + more));
        // On a busy machine it may have been taken for hung before.
        let _ = std::process::Command::new("kill").args(["-9", &engine.to_string()]).status();
        std::thread::sleep(std::time::Duration::from_millis(300));
        assert_eq!(lab.ping(20, 2), 20);
        assert!(
            alive(supervisor) && children(supervisor).len() <= 1,
            "with {more} more files: {}",
            lab.log()
        );
        // An engine that could be started with few files has that limit of its own.
        assert!(limit(supervisor, 1024));
        for engine in children(supervisor) {
            limit(engine, 1024);
        }
        engine = lab.engine(engine);
        assert_eq!(children(supervisor).len(), 1, "with {more} more files: {}", lab.log());
    }
    ends_well(&lab, &mut weir);
}

/// Six thousand flows at 16 kbit/s hold acknowledgements, or have windows that lag behind, when the gateway
/// is told to stop: every sender learns of all of it at once. One that does not waits for a timer: for more
/// than a second, as round trips of that length are.
fn what_six_thousand_flows_hold_is_delivered() {
    const FLOWS: &str = "6000";
    let lab = Lab::new(Kind::Router);
    let mut weir = lab.running_with("gateway", &[("FLOWS", "16384"), ("SHAPE_KBIT", "16")]);
    let _server = lab.serve();
    let (stopped, held, done) = std::thread::scope(|scope| {
        let crowd = scope.spawn(|| lab.host("c", &["crowd", SERVER, FLOWS, "20000"]));
        eventually("flows hold something", || lab.stat("held") > 1_000_000);
        std::thread::sleep(std::time::Duration::from_secs(1));
        // An engine that the machine gave no time for has delivered all meanwhile, and begins anew.
        let mut held = 0;
        eventually("flows hold something", || {
            held = lab.stat("held");
            held > 1_000_000
        });
        weir.signal(TERM);
        assert_eq!(weir.wait(), Some(0), "{}", lab.log());
        let stopped = weir_io::sys::clock::now().as_nanos() / 1_000_000;
        (stopped, held, crowd.join().unwrap().trim().parse::<u64>().unwrap())
    });
    let after = done as i64 - stopped as i64;
    println!("  {held} bytes were held, all is delivered after {after} ms; {:?}", lab.stats());
    assert_eq!(lab.stat("held"), 0);
    assert!(after < 1_000, "{after} ms");
}

/// An engine that is started again takes as much memory of its own as the first one did, and so does the
/// next: nothing of it is there twice, and none is left for later. The first one locks all that is mapped,
/// the next ones lock what they use: for 65,536 flows without a measurement the difference is 2 MiB.
fn every_engine_takes_as_much_memory() {
    const SAME: u64 = 3 << 20;
    let lab = Lab::new(Kind::Router);
    let mut weir = lab.running_with("gateway", &[("FLOWS", "65536")]);
    let _server = lab.serve();
    let own = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    };
    let mut engine = 0;
    let taken: Vec<u64> = (0..4)
        .map(|_| {
            if engine != 0 {
                kill(engine, KILL);
            }
            engine = lab.engine(engine);
            assert!(lab.receive("c", SERVER, 300) > 1e6);
            own(engine)
        })
        .collect();
    println!("  {taken:?} bytes");
    assert!(taken.iter().all(|&bytes| bytes.abs_diff(taken[0]) < SAME), "{taken:?}");
    // 4 MiB of the pool, and some 60 bytes for each of 65,536 flows beside its record, which is shared. The
    // accounts of senders, 128 bytes each, are this gateway's own.
    assert!(taken[0] < 28 << 20, "{taken:?}");
    ends_well(&lab, &mut weir);
}

/// The process that reads what strangers send has a user of its own and no capability, the first one and the
/// next.
fn an_engine_owns_nothing() {
    let lab = Lab::new(Kind::Router);
    let mut weir = lab.running("gateway");
    let _server = lab.serve();
    let first = lab.engine(0);
    kill(first, KILL);
    let next = lab.engine(first);
    assert!(lab.receive("c", SERVER, 300) > 1e6);
    let status = std::fs::read_to_string(format!("/proc/{next}/status")).unwrap();
    let words = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    println!(
        "  user {:?}, capabilities {:?}, seccomp {:?}",
        words("Uid:"),
        words("CapEff:"),
        words("Seccomp:")
    );
    assert_eq!(words("CapPrm:"), ["0000000000000000"]);
    assert_eq!(words("NoNewPrivs:"), ["1"]);
    assert!(words("Uid:").iter().all(|user| user != "0") && words("Gid:").iter().all(|group| group != "0"));
    // The supervisor can still end it.
    ends_well(&lab, &mut weir);
}
