//! Tests that load the congestion controls and send data over the loopback interface of their own namespace.

mod peer;
mod starts;

use super::chirp;
use crate::sys::testing::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;

/// Lock of the names, which exist once on a host.
static ONE: Mutex<()> = Mutex::new(());

fn choose(socket: &TcpStream, name: &str) -> std::io::Result<()> {
    Ok(rustix::net::sockopt::set_tcp_congestion(socket, name)?)
}

/// Sends `bytes` with this congestion control, and returns the sender's flows at that moment.
fn carry(name: &str, bytes: usize) -> Vec<chirp::Flow> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    choose(&sender, name).unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    let received = std::thread::spawn(move || {
        let mut all = Vec::new();
        receiver.read_to_end(&mut all).unwrap();
        all.len()
    });
    sender.write_all(&vec![7; bytes]).unwrap();
    let flows = chirp::flows().unwrap();
    drop(sender);
    assert_eq!(received.join().unwrap(), bytes);
    flows
}

/// Runs a test with the congestion controls loaded, in its own network namespace, unless the host uses them.
fn loaded(test: impl FnOnce() + Send) {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !privileged() {
        return;
    }
    if chirp::is_loaded() {
        return println!("skipped: this host has it loaded");
    }
    chirp::load().unwrap();
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| in_namespace(test)));
    chirp::unload().unwrap();
    done.unwrap_or_else(|e| std::panic::resume_unwind(e));
}

#[test]
fn it_is_loaded_carries_data_and_goes() {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !privileged() {
        return;
    }
    // The host uses it.
    if chirp::is_loaded() {
        return println!("skipped: this host has it loaded");
    }
    chirp::load().unwrap();
    assert!(chirp::load().unwrap_err().to_string().contains("loaded already"));
    let flows = carry("weir_chirp", 3_000_000);
    assert!(flows.iter().any(|f| f.remote.ip().is_loopback()), "{flows:?}");
    carry("weir_dctcp", 1_000_000);
    // A living connection goes on.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    choose(&sender, "weir_chirp").unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    sender.write_all(b"before").unwrap();
    assert!(chirp::unload().unwrap());
    assert!(!chirp::is_loaded());
    sender.write_all(b" and after").unwrap();
    drop(sender);
    let mut got = String::new();
    receiver.read_to_string(&mut got).unwrap();
    assert_eq!(got, "before and after");
    assert!(choose(&TcpStream::connect(listener.local_addr().unwrap()).unwrap(), "weir_chirp").is_err());
    assert!(!chirp::unload().unwrap());
}

/// Rows of this namespace.
fn here() -> Vec<chirp::Flow> {
    use std::os::unix::fs::MetadataExt;
    let netns = std::fs::metadata("/proc/thread-self/ns/net").unwrap().ino();
    chirp::flows().unwrap().into_iter().filter(|flow| u64::from(flow.netns) == netns).collect()
}

fn connected(name: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    choose(&sender, name).unwrap();
    (sender, listener.accept().unwrap().0)
}

/// A row disappears with its connection, even if another namespace has the same addresses and ports.
#[test]
fn a_closed_connection_has_no_row() {
    loaded(|| {
        run("ip link set lo up");
        let (mut sender, receiver) = connected("weir_chirp");
        sender.write_all(b"something").unwrap();
        let local = sender.local_addr().unwrap();
        assert!(matches!(&here()[..], [flow] if flow.local == local), "{:?}", here());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                in_namespace(|| {
                    run("ip link set lo up");
                    assert_eq!(here().len(), 0);
                })
            });
        });
        drop(receiver);
        drop(sender);
        eventually("its row is gone", || here().is_empty().then_some(()));
    });
}

/// A killed command leaves its pins under another name. The next command, of either kind, clears them.
#[test]
fn what_a_killed_command_left_is_cleared() {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !privileged() || chirp::is_loaded() {
        return;
    }
    let partial = format!("{}-partial", chirp::PINNED);
    for links in [true, false] {
        chirp::load().unwrap();
        std::fs::rename(chirp::PINNED, &partial).unwrap();
        if !links {
            chirp::NAMES.iter().for_each(|name| std::fs::remove_file(format!("{partial}/{name}")).unwrap());
        }
        assert!(!chirp::is_loaded() && chirp::flows().is_err());
        chirp::load().unwrap();
        assert!(chirp::is_loaded() && !std::path::Path::new(&partial).exists());
        std::fs::rename(chirp::PINNED, &partial).unwrap();
        assert!(chirp::unload().unwrap() && !chirp::unload().unwrap());
        assert!(!std::path::Path::new(&partial).exists());
    }
}

/// A kernel whose TCP lacks a field of the programs refuses them, and nothing is left behind.
#[test]
fn an_object_for_another_kernel_leaves_nothing() {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !privileged() || chirp::is_loaded() {
        return;
    }
    let error = chirp::load_for_another_kernel().unwrap_err().to_string();
    assert!(error.contains("may differ from those"), "{error}");
    assert!(!chirp::is_loaded() && !std::path::Path::new(&format!("{}-partial", chirp::PINNED)).exists());
    assert!(chirp::problems().iter().all(|p| !p.fatal), "{:?}", chirp::problems());
}
