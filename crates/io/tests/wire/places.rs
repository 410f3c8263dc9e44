//! Things that others do to the places where Weir is: its programs, its directory, its clock.

use crate::lab::{alive, eventually, Kind, Lab, Process, SERVER};
use crate::tests::ends_well;
use crate::ways::{gap_beside, until_shaped, STILL};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

pub const ALL: &[(&str, fn())] = &[
    ("programs_that_are_taken_off_are_put_on_again", programs_that_are_taken_off_are_put_on_again),
    ("an_interface_has_one_gateway", an_interface_has_one_gateway),
    ("a_clock_of_its_own_is_refused", a_clock_of_its_own_is_refused),
    ("an_engine_that_does_not_die_is_replaced", an_engine_that_does_not_die_is_replaced),
];

/// `bpftool link detach` takes them off the interface, or off the loopback interface by which ACKs come in.
fn programs_that_are_taken_off_are_put_on_again() {
    let lab = Lab::new(Kind::Router);
    let mut gateway = lab.running("gateway");
    let _server = lab.serve();
    until_shaped(&lab);
    for (device, words) in [("wan0", "programs off wan0"), ("lo", "programs off the loopback interface")] {
        let mut count = 0;
        let gap = gap_beside(&lab, || {
            count = lab.host("g", &["strip", device]).trim().parse().unwrap();
            if device == "lo" {
                lab.send("c", SERVER, 300);
            }
            eventually("it is told", || count == 0 || lab.log().contains(words));
        });
        if count == 0 {
            return println!("  skipped: no tcx on this kernel");
        }
        println!("  {device}: {gap} ms without data, shaped after {} ms", until_shaped(&lab));
        assert!(gap <= STILL, "{gap}");
        eventually("all is well", || lab.degraded() == "no");
    }
    ends_well(&lab, &mut gateway);
    assert_eq!(["wan0", "lo"].map(|device| lab.host("g", &["strip", device]).trim().to_owned()), ["0", "0"]);
}

/// Runs a gateway with its files in `directory` by a command in front of its own, and returns how it ends.
fn runs_by(lab: &Lab, before: &[&str], directory: &str) -> (Option<i32>, String) {
    let directory = lab.directory.join(directory);
    fs::create_dir_all(&directory).unwrap();
    let log = lab.directory.join("second");
    let file = fs::File::create(&log).unwrap();
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &lab.namespace("g")]).args(before);
    command.arg(std::env::current_exe().unwrap()).args(["gateway", "gateway", "wan0"]).arg(&directory);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file).process_group(0);
    let code = Process(command.spawn().unwrap()).wait();
    (code, fs::read_to_string(log).unwrap())
}

/// Another instance has its files elsewhere, as in a container, or those of the first were removed.
fn an_interface_has_one_gateway() {
    let lab = Lab::new(Kind::Router);
    let mut gateway = lab.running("gateway");
    let _server = lab.serve();
    until_shaped(&lab);
    let refused = |directory: &str| {
        let (code, log) = runs_by(&lab, &[], directory);
        assert_eq!(code, Some(2), "{log}");
        assert!(log.contains("wan0 is in use by another Weir"), "{log}");
    };
    refused("elsewhere");
    let state = lab.directory.join("state");
    fs::remove_dir_all(&state).unwrap();
    eventually("it is told", || lab.log().contains("they are made again"));
    assert_eq!(fs::read_dir(&state).unwrap().count(), 1);
    refused(".");
    until_shaped(&lab);
    ends_well(&lab, &mut gateway);
    fs::remove_file(lab.directory.join("stats")).unwrap();
    let mut gateway = lab.running("gateway");
    ends_well(&lab, &mut gateway);
}

/// Hooks have the host's clock.
fn a_clock_of_its_own_is_refused() {
    let lab = Lab::new(Kind::Router);
    let away = ["unshare", "--time", "--monotonic", "1000", "--fork", "--kill-child"];
    let can = Command::new(away[0]).args(&away[1..]).arg("true").stderr(Stdio::null()).status();
    if !can.is_ok_and(|status| status.success()) {
        return println!("  skipped: no time namespaces");
    }
    let (code, log) = runs_by(&lab, &away, ".");
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("the clock of this time namespace is 1000 s ahead"), "{log}");
}

/// A group of frozen processes. Where groups are those of the first version, not even SIGKILL ends them. They
/// go on when this is dropped.
struct Ice(PathBuf);

impl Ice {
    fn of(pid: u32) -> Option<Ice> {
        let name = format!("wio-{}", std::process::id());
        let (first, second) = (Path::new("/sys/fs/cgroup/freezer"), Path::new("/sys/fs/cgroup"));
        let ice = Ice(if first.is_dir() { first } else { second }.join(name));
        fs::create_dir(&ice.0).ok()?;
        fs::write(ice.0.join("cgroup.procs"), pid.to_string()).ok()?;
        ice.freeze(true).then_some(ice)
    }

    fn freeze(&self, is: bool) -> bool {
        let first = fs::write(self.0.join("freezer.state"), if is { "FROZEN" } else { "THAWED" });
        first.or_else(|_| fs::write(self.0.join("cgroup.freeze"), if is { "1" } else { "0" })).is_ok()
    }
}

impl Drop for Ice {
    fn drop(&mut self) {
        self.freeze(false);
        // A group goes once its last process has.
        for _ in 0..500 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Traffic passes, another engine takes over, and the gateway ends, while the first one is frozen.
fn an_engine_that_does_not_die_is_replaced() {
    let lab = Lab::new(Kind::Router);
    let mut gateway = lab.running("gateway");
    let _server = lab.serve();
    until_shaped(&lab);
    let first = lab.engine(0);
    let mut ice = None;
    let gap = gap_beside(&lab, || ice = Ice::of(first));
    if ice.is_none() {
        return println!("  skipped: no groups of processes can be frozen");
    }
    assert_ne!(lab.engine(first), first);
    println!("  {gap} ms without data, shaped after {} ms", until_shaped(&lab));
    assert!(gap <= STILL, "{gap}");
    ends_well(&lab, &mut gateway);
    drop(ice);
    eventually("it dies", || !alive(first));
}
