//! `weir shell`: a program in a network of its own, behind a path.

#![cfg(feature = "linux")]

use std::process::{Command, Output};
use std::time::Duration;

/// Returns whether this host lets a user, or root, make network namespaces and TUN devices.
fn possible() -> bool {
    let made =
        Command::new("unshare").args(["-Urn", "ip", "tuntap", "add", "weirtest", "mode", "tun"]).output();
    made.is_ok_and(|made| made.status.success())
}

fn shell(options: &[&str], program: &str) -> Output {
    // In a user namespace of its own, where it is not root: also where the tests are root's.
    let weir = env!("CARGO_BIN_EXE_weir");
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-user=1000", "--map-group=1000", weir, "shell"])
        .args(options)
        .args(["--", "sh", "-c", program]);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_program_ends_as_it_does() {
    if !possible() {
        return eprintln!("skipped: no network namespaces here");
    }
    let out = shell(&["--rtt", "10ms"], "ip -o addr show dev weir0; ip route; exit 7");
    assert_eq!(out.status.code(), Some(7), "{}", text(&out.stderr));
    let said = text(&out.stdout);
    assert!(said.contains("10.77.0.1 peer 10.77.0.2/32") && said.contains("default dev weir0"), "{said}");
    assert_eq!(shell(&[], "kill -9 $$").status.code(), Some(128 + 9));
}

/// Data that is sent to the far side and echoed comes back after the round trip at the earliest, and all of
/// it.
#[test]
fn packets_take_their_round_trip() {
    if !possible() {
        return eprintln!("skipped: no network namespaces here");
    }
    // A datagram there and back, by an echo on the far side.
    let echo = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('10.77.0.2', 7))\nwhile True: s.sendto(*s.recvfrom(99))";
    let ask = "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.5)\nfor i in range(40):\n \
               t = time.monotonic(); s.sendto(str(i).encode(), ('10.77.0.2', 7))\n try:\n  assert s.recv(9) == str(i).encode(); \
               print(time.monotonic() - t); break\n except OSError: time.sleep(0.1)";
    let out = shell(
        &["--rtt", "80ms", "--server", &format!("exec python3 -c \"{echo}\"")],
        &format!("python3 -c \"{ask}\""),
    );
    let took: f64 = text(&out.stdout).trim().parse().unwrap_or_else(|_| panic!("{}", text(&out.stderr)));
    assert!(Duration::from_secs_f64(took) >= Duration::from_millis(80), "{took}");
}

#[test]
fn a_server_runs_on_the_far_side_and_ends_with_the_program() {
    if !possible() {
        return eprintln!("skipped: no network namespaces here");
    }
    let served = "exec python3 -c 'import socket; s = socket.create_server((\"10.77.0.2\", 7)); s.accept()[0].sendall(b\"far\\n\"); s.accept()'";
    let asks = "for i in 1 2 3 4 5 6 7 8 9; do python3 -c 'import socket; print(socket.create_connection((\"10.77.0.2\", 7)).recv(9))' 2>/dev/null && exit 0; sleep 0.3; done; exit 1";
    let out = shell(&["--rate", "10Mbit", "--server", served], asks);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert_eq!(text(&out.stdout), "b'far\\n'\n");
}

#[test]
fn a_wrong_path_is_refused_before_anything_starts() {
    let out = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["shell", "--rate", "10MB", "--", "true"])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("`--rate`: unknown unit `MB`"), "{}", text(&out.stderr));
}

/// A program that asks once finds a server that takes a second to listen, and is not mixed up with it.
#[test]
fn a_program_waits_for_a_server_that_is_slow_to_listen() {
    if !possible() {
        return eprintln!("skipped: no network namespaces here");
    }
    let served = "sleep 1; echo up; exec python3 -c 'import socket; s = socket.create_server((\"10.77.0.2\", 7)); s.accept()[0].sendall(b\"far\\n\"); s.accept()'";
    let asks = "exec python3 -c 'import socket; print(socket.create_connection((\"10.77.0.2\", 7)).recv(9))'";
    let out = shell(&["--rate", "10Mbit", "--server", served], asks);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert_eq!(text(&out.stdout), "b'far\\n'\n");
    assert!(text(&out.stderr).contains("server: up"), "{}", text(&out.stderr));
}
