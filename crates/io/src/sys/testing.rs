//! Interfaces for tests, in a network namespace of the test's own that ends with it.

use super::clock;
use super::packet::{Device, Vnet};
use super::{check, link};
use crate::port::{Packets, CHUNK};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::{unshare_unsafe, UnshareFlags};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::time::{Duration, Instant};
use weir_core::frame::{Frame, Frames};
use weir_core::gateway::LAN;
use weir_core::time::Time;

/// Returns whether this run may make namespaces and load programs; ordinary runs may not.
pub fn privileged() -> bool {
    const CAP_NET_ADMIN: u32 = 12;
    let able = super::process::capabilities().is_ok_and(|c| c >> CAP_NET_ADMIN & 1 == 1);
    if !able {
        println!("skipped: network namespaces and BPF programs need root");
    }
    able
}

/// Runs `test` in a thread with its own network namespace, which disappears afterwards.
pub fn in_namespace(test: impl FnOnce() + Send) {
    if !privileged() {
        return;
    }
    let body = || {
        // SAFETY: this affects only the calling thread, which was made for it, and no descriptors.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.unwrap();
        test();
    };
    std::thread::scope(|scope| scope.spawn(body).join()).unwrap_or_else(|e| std::panic::resume_unwind(e));
}

/// Runs a command with arguments that are separated by spaces.
pub fn run(command: &str) {
    let mut words = command.split(' ');
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Creates a pair of interfaces, up and silent, and returns their numbers.
pub fn pair(a: &str, b: &str) -> (u32, u32) {
    run(&format!("ip link add {a} type veth peer name {b}"));
    for end in [a, b] {
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{end}/disable_ipv6"), "1");
        run(&format!("ip link set {end} up"));
    }
    // The kernel passes frames a little later.
    for end in [a, b] {
        eventually("an interface is ready", || link::find(end).unwrap().filter(|link| link.carrier));
    }
    (index(a), index(b))
}

pub fn index(name: &str) -> u32 {
    link::find(name).unwrap().unwrap().index
}

/// The far end of an interface without Ethernet headers.
pub struct Tun(OwnedFd);

impl Tun {
    pub fn new(name: &str) -> Tun {
        const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
        const IFF_TUN: i16 = 1;
        const IFF_NO_PI: i16 = 0x1000;
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open("/dev/net/tun", flags, Mode::empty()).unwrap();
        // SAFETY: zero is a valid request.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = IFF_TUN | IFF_NO_PI;
        // SAFETY: `request` is valid for the call.
        check(unsafe { libc::ioctl(fd.as_raw_fd(), TUNSETIFF as _, &mut request) }).unwrap();
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
        run(&format!("ip link set {name} up"));
        Tun(fd)
    }
    /// Makes a packet come in on the interface.
    pub fn send(&self, packet: &[u8]) {
        assert_eq!(rustix::io::write(&self.0, packet).unwrap(), packet.len());
    }
    /// Waits for a packet that has left by the interface.
    pub fn receive(&self) -> Vec<u8> {
        eventually("a packet has left", || self.poll())
    }
    /// Returns a packet that has left by the interface, if there is one.
    pub fn poll(&self) -> Option<Vec<u8>> {
        let mut buffer = vec![0; 1 << 16];
        match rustix::io::read(&self.0, &mut buffer[..]) {
            Ok(len) => Some(buffer[..len].to_vec()),
            Err(Errno::AGAIN) => None,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Waits until `holds` returns a value, and returns it.
pub fn eventually<T>(what: &str, mut holds: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(answer) = holds() {
            return answer;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The device numbered `ifindex`, with Ethernet headers.
pub fn ethernet(ifindex: u32) -> Device {
    Device { ifindex, ethernet: true }
}

/// Listener on an interface.
pub struct Ear {
    pub packets: Packets,
    frames: Frames,
}

/// Properties of a frame that was heard.
#[derive(Debug)]
pub struct Heard {
    pub frame: Frame,
    pub vnet: Vnet,
    pub at: Time,
}

impl Ear {
    pub fn on(index: u32) -> Ear {
        let frames = Frames::new(8192, CHUNK, 0);
        Ear { packets: Packets::open(LAN, index, false).unwrap(), frames }
    }
    /// Takes the frames that have come, with their properties.
    pub fn now(&mut self) -> Vec<(Vec<u8>, Heard)> {
        let mut inbox = Vec::new();
        self.packets.receive(&mut self.frames, 1000, clock::now(), &mut inbox).unwrap();
        let heard = |(at, _, frame)| {
            let bytes = self.frames.parts(&frame).flatten().copied().collect();
            let vnet = Vnet::read(self.frames.headroom(&frame).last_chunk().unwrap());
            (bytes, Heard { frame, vnet, at })
        };
        inbox.into_iter().map(heard).collect()
    }
    /// Waits for the next frame, which must come alone.
    pub fn next(&mut self) -> (Vec<u8>, Heard) {
        let mut frames = eventually("a frame has come", || Some(self.now()).filter(|f| !f.is_empty()));
        assert_eq!(frames.len(), 1, "{frames:?}");
        frames.remove(0)
    }
}
