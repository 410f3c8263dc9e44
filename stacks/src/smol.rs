//! smoltcp, over the TAP device of the bridge.

use crate::path::{FAR, NEAR, PORT, TAP};
use crate::{Role, BEGINS, ENDS};
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{wait, Medium, TunTapInterface};
use smoltcp::socket::tcp;
use smoltcp::time::Instant as Now;
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr};
use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

const BUFFER: usize = 1 << 18;
/// It must be connected by then.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest sleep.
const NAP: smoltcp::time::Duration = smoltcp::time::Duration::from_millis(50);

fn address([a, b, c, d]: [u8; 4]) -> IpAddress {
    IpAddress::v4(a, b, c, d)
}

fn other(e: impl std::fmt::Debug) -> io::Error {
    io::Error::other(format!("smoltcp: {e:?}"))
}

/// A connection in this role; the bytes that it counts.
pub fn connect(role: Role, control: &str) -> io::Result<u64> {
    let mut device = TunTapInterface::new(TAP, Medium::Ethernet)?;
    let mut config = Config::new(EthernetAddress([2, 0, 0, 0, 9, 1]).into());
    config.random_seed = 7;
    let mut iface = Interface::new(config, &mut device, Now::now());
    iface.update_ip_addrs(|list| list.extend([IpCidr::new(address(NEAR), 24)]));
    let buffer = || tcp::SocketBuffer::new(vec![0; BUFFER]);
    let mut socket = tcp::Socket::new(buffer(), buffer());
    socket.set_congestion_control(match control {
        "reno" => tcp::CongestionControl::Reno,
        _ => tcp::CongestionControl::Cubic,
    });
    let mut sockets = SocketSet::new(Vec::new());
    let handle = sockets.add(socket);
    let socket = sockets.get_mut::<tcp::Socket>(handle);
    socket.connect(iface.context(), (address(FAR), PORT), 40_000).map_err(other)?;
    let (started, mut begun, mut bytes) = (Instant::now(), None, 0);
    loop {
        iface.poll(Now::now(), &mut device, &mut sockets);
        let socket = sockets.get_mut::<tcp::Socket>(handle);
        if begun.is_none() && socket.may_send() {
            begun = Some(Instant::now());
        }
        let Some(since) = begun.map(|b| b.elapsed()) else {
            if started.elapsed() > PATIENCE {
                return Err(other("no connection"));
            }
            pause(&mut iface, &device, &sockets)?;
            continue;
        };
        while role == Role::Sender && socket.can_send() {
            socket.send(|free| (free.len(), ())).map_err(other)?;
        }
        while socket.can_recv() {
            let got = socket.recv(|ready| (ready.len(), ready.len())).map_err(other)?;
            bytes += if (BEGINS..ENDS).contains(&since) { got as u64 } else { 0 };
        }
        // The other end closes once it has measured.
        let over = if role == Role::Sender { !socket.may_recv() } else { since >= ENDS };
        if over || since > ENDS + PATIENCE {
            socket.abort();
            iface.poll(Now::now(), &mut device, &mut sockets);
            return Ok(bytes);
        }
        pause(&mut iface, &device, &sockets)?;
    }
}

/// Sleeps until something comes, or is to be done.
fn pause(iface: &mut Interface, device: &TunTapInterface, sockets: &SocketSet<'_>) -> io::Result<()> {
    let delay = iface.poll_delay(Now::now(), sockets).map_or(NAP, |d| d.min(NAP));
    wait(device.as_raw_fd(), Some(delay))
}
