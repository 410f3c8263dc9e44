//! Commands that a signal stops, and what they leave; two at once.

#![cfg(feature = "linux")]

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Returns whether this host lets a user, or root, make network namespaces and TUN devices.
fn possible() -> bool {
    let made =
        Command::new("unshare").args(["-Urn", "ip", "tuntap", "add", "weirtest", "mode", "tun"]).output();
    made.is_ok_and(|made| made.status.success())
}

/// Starts `weir shell` as a user, in a process group of its own as shells give it.
fn shell(server: Option<&str>, program: &[&str]) -> Child {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-user=1000", "--map-group=1000", env!("CARGO_BIN_EXE_weir"), "shell"]);
    command.args(["--rtt", "2ms"]).args(server.iter().flat_map(|server| ["--server", server]));
    command.arg("--").args(program).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn signal(name: &str, process: &str) {
    Command::new("kill").args([format!("-{name}").as_str(), "--", process]).status().unwrap();
}

/// Returns the processes whose command line has this text.
fn processes(text: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(text)).count()
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < until, "not so after 20 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Ctrl-C while nothing listens yet goes to the process group. The server is in one of its own.
#[test]
fn no_server_stays_behind() {
    if !possible() {
        return eprintln!("skipped: no network namespaces here");
    }
    let mark = "sleep 86391";
    let mut weir = shell(Some(mark), &["true"]);
    wait_for("the server runs", || processes("86391") > 1);
    let begin = Instant::now();
    signal("INT", &format!("-{}", weir.id()));
    wait_for("weir ends", || weir.try_wait().unwrap().is_some());
    assert!(begin.elapsed() < Duration::from_secs(4), "it has waited for a port all the same");
    wait_for("the server has ended", || processes("86391") == 0);
}

/// Interactive shells ignore SIGTERM.
#[test]
fn a_program_that_ignores_the_end_is_ended() {
    if !possible() {
        return eprintln!("skipped: no network namespaces here");
    }
    let mut weir = shell(None, &["sh", "-c", "trap '' TERM HUP; sleep 86392 & wait; wait; sleep 86392"]);
    wait_for("the program runs", || processes("86392") > 1);
    std::thread::sleep(Duration::from_millis(200));
    signal("TERM", &weir.id().to_string());
    wait_for("weir ends", || weir.try_wait().unwrap().is_some());
    signal("KILL", &format!("-{}", weir.id()));
}

/// For root, the far side is this network namespace, which has one device of that name.
#[test]
fn a_second_shell_of_root_is_told_of_the_first() {
    if !rustix::process::geteuid().is_root() || !possible() {
        return eprintln!("skipped: needs root and TUN devices");
    }
    let weir = env!("CARGO_BIN_EXE_weir");
    let both = format!(
        "{weir} shell -- sleep 30 & first=$!\n\
         until ip link show weir1; do sleep 0.05; done\n\
         {weir} shell -- true; code=$?; kill $first; wait $first; exit $code"
    );
    let out = Command::new("unshare").args(["-n", "sh", "-c", &both]).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(3), "{said}");
    assert!(said.contains("another `weir shell` of root runs here"), "{said}");
}
