//! The congestion controls loaded for real, carrying data over the loopback of a namespace of its own.

use super::chirp;
use crate::sys::testing::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;

/// There is one of each name on a host.
static ONE: Mutex<()> = Mutex::new(());

fn choose(socket: &TcpStream, name: &str) -> std::io::Result<()> {
    Ok(rustix::net::sockopt::set_tcp_congestion(socket, name)?)
}

/// Sends a megabyte with this congestion control and returns what the sender's flows were then.
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

#[test]
fn it_is_loaded_carries_data_and_goes() {
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !privileged() {
        return;
    }
    // Somebody uses it.
    if chirp::is_loaded() {
        return println!("skipped: this host has it loaded");
    }
    chirp::load().unwrap();
    assert!(chirp::load().unwrap_err().to_string().contains("loaded already"));
    let flows = carry("weir_chirp", 3_000_000);
    assert!(flows.iter().any(|f| f.remote.ip().is_loopback()), "{flows:?}");
    carry("weir_dctcp", 1_000_000);
    // A connection that lives goes on.
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
