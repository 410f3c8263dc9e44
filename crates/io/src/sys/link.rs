//! Network interfaces over rtnetlink: their properties, and the few changes that Weir makes to them.

use super::pod::{bytes_of, Pod};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    bind, netdevice, recv, send, socket_with, sockopt, AddressFamily, RecvFlags, SendFlags, SocketFlags,
    SocketType,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// An interface of this network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostInterface {
    /// Number, unique in the namespace.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Ethernet address; empty for interfaces without.
    pub mac: Vec<u8>,
    /// Largest packet, without the Ethernet header.
    pub mtu: u32,
    /// True if it is administratively up.
    pub up: bool,
    /// True if it has a carrier and frames pass.
    pub carrier: bool,
    /// True if its frames begin with an Ethernet header.
    pub ethernet: bool,
    /// True if its frames are IP packets without a header: TUN, PPP, WireGuard, tunnels.
    pub plain_ip: bool,
    /// Kind of a virtual interface: `veth`, `bridge`.
    pub kind: String,
    /// Longest segment that is sent or reassembled on it, if the kernel tells (since 4.16, 5.19 and 6.3).
    pub longest: u32,
    /// True for a tunnel without a fixed remote end: each packet brings its destination (`external`).
    pub external: bool,
    /// True if sent packets come back to this host.
    pub loopback: bool,
    /// Number of its bridge or bond, 0 for none.
    pub master: u32,
    /// Number of the interface below it or of a pair's other end, 0 for none in this network namespace.
    pub below: u32,
    /// Number of the XDP program on it, 0 for none.
    pub xdp: u32,
}

/// `struct ifinfomsg`.
#[derive(Clone, Copy)]
#[repr(C)]
struct LinkMessage {
    family: u8,
    pad: u8,
    kind: [u8; 2],
    index: u32,
    flags: u32,
    change: u32,
}
// SAFETY: integers only, and the padding of the original is a field.
unsafe impl Pod for LinkMessage {}

/// `struct nlmsghdr`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Header {
    len: u32,
    kind: [u8; 2],
    flags: [u8; 2],
    seq: u32,
    pid: u32,
}
// SAFETY: integers without padding.
unsafe impl Pod for Header {}

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_PROG_ID: u16 = 4;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
/// Attributes `IFLA_GSO_MAX_SIZE`, `IFLA_GRO_MAX_SIZE`, and both for IPv4.
const LONGEST_SEGMENTS: [u16; 4] = [41, 58, 63, 64];
/// Attributes that make a tunnel `external`, by its kind (`linux/if_link.h`, `linux/if_tunnel.h`).
const COLLECT_METADATA: [(&str, u16); 10] = [
    ("vxlan", 25),
    ("geneve", 6),
    ("gre", 18),
    ("gretap", 18),
    ("ip6gre", 18),
    ("ip6gretap", 18),
    ("ipip", 19),
    ("sit", 19),
    ("ip6tnl", 19),
    ("xfrm", 3),
];
/// Link types without a header (`linux/if_arp.h`): none, PPP, raw IP, tunnels of IPv4 and IPv6, SIT.
const PLAIN_IP: [u16; 6] =
    [libc::ARPHRD_NONE, libc::ARPHRD_PPP, 519, libc::ARPHRD_TUNNEL, libc::ARPHRD_TUNNEL6, libc::ARPHRD_SIT];
/// Longest time that the kernel may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest packet of a virtual interface.
pub const LONGEST: u32 = 65_535;

/// Finds the interface called `name`, `None` if there is none.
pub fn find(name: &str) -> io::Result<Option<HostInterface>> {
    Ok(all()?.into_iter().find(|link| link.name == name))
}

/// Returns whether there is an interface numbered `index`. Unlike the other queries, this one does not wait
/// for the lock that the kernel holds while an interface goes up or down (measured: 65 ms).
pub fn exists(index: u32) -> bool {
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    socket.is_ok_and(|socket| netdevice::index_to_name_inlined(&socket, index).is_ok())
}

/// Returns all interfaces, in the order of their numbers.
pub fn all() -> io::Result<Vec<HostInterface>> {
    let body = LinkMessage { family: 0, pad: 0, kind: [0; 2], index: 0, flags: 0, change: 0 };
    let mut links = Vec::new();
    exchange(libc::RTM_GETLINK, libc::NLM_F_DUMP, bytes_of(&body), |message| {
        links.extend(parse_link(message))
    })?;
    links.sort_by_key(|link| link.index);
    Ok(links)
}

/// Sets an interface administratively up or down.
pub fn set_up(index: u32, up: bool) -> io::Result<()> {
    let flag = libc::IFF_UP as u32;
    let body = change(index, if up { flag } else { 0 }, flag);
    exchange(libc::RTM_NEWLINK, libc::NLM_F_ACK, &body, |_| ())
}

/// Sets the MTU of an interface.
pub fn set_mtu(index: u32, mtu: u32) -> io::Result<()> {
    let mut body = change(index, 0, 0);
    attribute(&mut body, IFLA_MTU, &mtu.to_ne_bytes());
    exchange(libc::RTM_NEWLINK, libc::NLM_F_ACK, &body, |_| ())
}

/// Removes an interface from its bridge or bond.
pub fn release(index: u32) -> io::Result<()> {
    let mut body = change(index, 0, 0);
    attribute(&mut body, IFLA_MASTER, &[0; 4]);
    exchange(libc::RTM_NEWLINK, libc::NLM_F_ACK, &body, |_| ())
}

/// Creates a pair of virtual Ethernet interfaces, each the other's peer, for packets of any length. Fails if
/// a name is taken.
pub fn create_veth(names: [&str; 2]) -> io::Result<()> {
    let end = |name: &str, info: &[u8]| {
        let mut body = change(0, 0, 0);
        attribute(&mut body, IFLA_IFNAME, &[name.as_bytes(), &[0]].concat());
        attribute(&mut body, IFLA_MTU, &LONGEST.to_ne_bytes());
        if !info.is_empty() {
            attribute(&mut body, IFLA_LINKINFO, info);
        }
        body
    };
    let (mut info, mut data) = (Vec::new(), Vec::new());
    attribute(&mut data, VETH_INFO_PEER, &end(names[1], &[]));
    attribute(&mut info, IFLA_INFO_KIND, b"veth\0");
    attribute(&mut info, IFLA_INFO_DATA, &data);
    let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    exchange(libc::RTM_NEWLINK, flags, &end(names[0], &info), |_| ())
}

/// Removes a virtual interface.
pub fn delete(index: u32) -> io::Result<()> {
    exchange(libc::RTM_DELLINK, libc::NLM_F_ACK, &change(index, 0, 0), |_| ())
}

fn change(index: u32, flags: u32, change: u32) -> Vec<u8> {
    bytes_of(&LinkMessage { family: 0, pad: 0, kind: [0; 2], index, flags, change }).to_vec()
}

/// Appends an attribute, padded to four bytes (`struct rtattr`).
fn attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    to.extend((value.len() as u16 + 4).to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// Attributes in `bytes`; stops at a truncated one.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let [l0, l1, k0, k1] = *bytes.first_chunk()?;
        let len = u16::from_ne_bytes([l0, l1]) as usize;
        let value = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        // The top bits mean "nested" and "network order".
        Some((u16::from_ne_bytes([k0, k1]) & 0x3fff, value))
    })
}

fn parse_link(message: &[u8]) -> Option<HostInterface> {
    let head: LinkMessage = super::pod::read(message)?;
    let mut link = HostInterface {
        index: head.index,
        up: head.flags & libc::IFF_UP as u32 != 0,
        carrier: head.flags & libc::IFF_RUNNING as u32 != 0,
        loopback: head.flags & libc::IFF_LOOPBACK as u32 != 0,
        ethernet: [libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK].contains(&u16::from_ne_bytes(head.kind)),
        plain_ip: PLAIN_IP.contains(&u16::from_ne_bytes(head.kind)),
        ..HostInterface::default()
    };
    for (kind, value) in attributes(message.get(size_of::<LinkMessage>()..)?) {
        match kind {
            IFLA_ADDRESS => link.mac = value.to_vec(),
            IFLA_IFNAME => link.name = text(value),
            IFLA_MTU => link.mtu = super::pod::read(value)?,
            IFLA_MASTER => link.master = super::pod::read(value)?,
            IFLA_LINK => link.below = super::pod::read(value)?,
            IFLA_XDP => {
                let number = attributes(value).find(|(kind, _)| *kind == IFLA_XDP_PROG_ID);
                link.xdp = number.and_then(|(_, number)| super::pod::read(number)).unwrap_or(0);
            }
            kind if LONGEST_SEGMENTS.contains(&kind) => {
                link.longest = link.longest.max(super::pod::read(value)?);
            }
            IFLA_LINKINFO => {
                let of = |wanted| attributes(value).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
                link.kind = of(IFLA_INFO_KIND).map(text).unwrap_or_default();
                link.external = is_external(&link.kind, of(IFLA_INFO_DATA).unwrap_or_default());
            }
            _ => {}
        }
    }
    Some(link)
}

/// Returns whether a tunnel is `external`. Some kinds have a byte as a flag; for others the attribute itself
/// is the flag.
fn is_external(kind: &str, data: &[u8]) -> bool {
    let says = |(of, attribute): &(&str, u16)| {
        *of == kind && attributes(data).any(|(kind, value)| kind == *attribute && value != [0])
    };
    kind == "bareudp" || COLLECT_METADATA.iter().any(says)
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value.strip_suffix(&[0]).unwrap_or(value)).into_owned()
}

/// Change of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The interface is new or has changed.
    Is(HostInterface),
    /// The interface with this number is gone.
    Gone(u32),
    /// Events were lost: all interfaces have to be read again.
    Missed,
}

/// Listener to changes of the interfaces of this network namespace.
#[derive(Debug)]
pub struct Monitor {
    socket: OwnedFd,
}

impl Monitor {
    /// Starts listening.
    pub fn new() -> io::Result<Monitor> {
        let socket = open(SocketFlags::NONBLOCK)?;
        bind(&socket, &SocketAddrNetlink::new(0, libc::RTMGRP_LINK as u32))?;
        Ok(Monitor { socket })
    }

    /// Returns the changes since the last call.
    pub fn events(&self) -> io::Result<Vec<Event>> {
        let mut events = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match recv(&self.socket, &mut buffer[..], RecvFlags::empty()) {
                Ok((got, _)) => {
                    events.extend(messages(&buffer[..got]).filter_map(|(kind, body)| event(kind, body)))
                }
                Err(Errno::AGAIN) => return Ok(events),
                Err(Errno::INTR) => {}
                Err(Errno::NOBUFS) => events.push(Event::Missed),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Monitor {
    /// Readable after a change.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn event(kind: u16, body: &[u8]) -> Option<Event> {
    // Messages of other families are about ports of bridges.
    let head: LinkMessage = super::pod::read(body)?;
    if head.family != libc::AF_UNSPEC as u8 {
        return None;
    }
    match kind {
        libc::RTM_NEWLINK => parse_link(body).map(Event::Is),
        libc::RTM_DELLINK => Some(Event::Gone(head.index)),
        _ => None,
    }
}

/// Messages of one datagram: kind and body.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let header: Header = super::pod::read(bytes)?;
        let body = bytes.get(size_of::<Header>()..header.len as usize)?;
        bytes = bytes.get((header.len as usize).next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes(header.kind), body))
    })
}

/// Sends one request and hands the body of every answer to `each`, until the kernel reports the end.
fn exchange(kind: u16, flags: i32, body: &[u8], mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let socket = open(SocketFlags::empty())?;
    let header = Header {
        len: (size_of::<Header>() + body.len()) as u32,
        kind: kind.to_ne_bytes(),
        flags: ((libc::NLM_F_REQUEST | flags) as u16).to_ne_bytes(),
        seq: 1,
        pid: 0,
    };
    let request = [bytes_of(&header), body].concat();
    send(&socket, &request, SendFlags::empty())?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let (got, _) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        if answers(&buffer[..got], &mut each)? {
            return Ok(());
        }
    }
}

/// Opens a socket of NETLINK_ROUTE, which is the default protocol.
fn open(flags: SocketFlags) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC | flags, None)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(ANSWER_TIMEOUT))?;
    Ok(socket)
}

/// Handles one datagram of answers; true at the end of all answers.
fn answers(bytes: &[u8], each: &mut impl FnMut(&[u8])) -> io::Result<bool> {
    for (kind, body) in messages(bytes) {
        match i32::from(kind) {
            libc::NLMSG_DONE => return Ok(true),
            libc::NLMSG_ERROR => {
                return match super::pod::read::<[u8; 4]>(body).map(i32::from_ne_bytes) {
                    Some(0) => Ok(true),
                    code => Err(io::Error::from_raw_os_error(-code.unwrap_or(-libc::EIO))),
                }
            }
            _ => each(body),
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_exists() {
        let lo = find("lo").unwrap().unwrap();
        assert!(lo.ethernet && lo.mtu > 0 && lo.kind.is_empty());
        assert!(exists(lo.index) && !exists(u32::MAX >> 1));
        assert_eq!(find("weir-none").unwrap(), None);
    }

    #[test]
    fn attributes_cut_short_are_left_out() {
        let mut bytes = Vec::new();
        attribute(&mut bytes, 1, b"abc");
        attribute(&mut bytes, 2, b"defg");
        assert_eq!(attributes(&bytes).collect::<Vec<_>>(), [(1, &b"abc"[..]), (2, b"defg")]);
        assert_eq!(attributes(&bytes[..15]).count(), 1);
        assert_eq!(attributes(&[0, 0, 0, 0]).count(), 0);
    }
}
