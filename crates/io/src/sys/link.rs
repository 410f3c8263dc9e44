//! Network interfaces over rtnetlink: what they are, and the few changes Weir makes to them.

use super::pod::{bytes_of, Pod};
use super::{check, check_fd, check_size};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// An interface of this network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Its number, unique in the namespace.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Ethernet address; empty for interfaces without.
    pub mac: Vec<u8>,
    /// Largest packet, without the Ethernet header.
    pub mtu: u32,
    /// Administratively up.
    pub up: bool,
    /// Has a carrier.
    pub carrier: bool,
    /// Is Ethernet.
    pub ethernet: bool,
    /// The bridge or bond it belongs to.
    pub master: Option<u32>,
    /// Kind of a virtual interface: `veth`, `bridge`.
    pub kind: String,
    /// An XDP program is attached.
    pub xdp: bool,
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

/// `struct ifaddrmsg`.
#[derive(Clone, Copy)]
#[repr(C)]
struct AddressMessage {
    family: u8,
    prefix: u8,
    flags: u8,
    scope: u8,
    index: u32,
}
// SAFETY: integers without padding.
unsafe impl Pod for AddressMessage {}

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
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_XDP: u16 = 43;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_XDP_ATTACHED: u16 = 2;

/// The interface called `name`, `None` if there is none.
pub fn find(name: &str) -> io::Result<Option<Link>> {
    Ok(all()?.into_iter().find(|link| link.name == name))
}

/// Is there an interface numbered `index`? Unlike the other questions this one does not wait for
/// the lock that the kernel holds while an interface goes up or down (measured: 65 ms).
pub fn exists(index: u32) -> bool {
    let mut name = [0; libc::IF_NAMESIZE];
    // SAFETY: `name` is as long as a name may be.
    !unsafe { libc::if_indextoname(index, name.as_mut_ptr()) }.is_null()
}

/// All interfaces, in the order of their numbers.
pub fn all() -> io::Result<Vec<Link>> {
    let body = LinkMessage { family: 0, pad: 0, kind: [0; 2], index: 0, flags: 0, change: 0 };
    let mut links = Vec::new();
    exchange(libc::RTM_GETLINK, libc::NLM_F_DUMP, bytes_of(&body), |message| {
        links.extend(parse_link(message))
    })?;
    links.sort_by_key(|link| link.index);
    Ok(links)
}

/// Does the interface have an address that someone uses: any but IPv6 link-local ones?
pub fn has_address(index: u32) -> io::Result<bool> {
    let body = AddressMessage { family: 0, prefix: 0, flags: 0, scope: 0, index: 0 };
    let mut found = false;
    exchange(libc::RTM_GETADDR, libc::NLM_F_DUMP, bytes_of(&body), |message| {
        if let Some(address) = super::pod::read::<AddressMessage>(message) {
            found |= address.index == index && address.scope != libc::RT_SCOPE_LINK;
        }
    })?;
    Ok(found)
}

/// Puts an interface into a bridge, or takes it out.
pub fn set_master(index: u32, master: Option<u32>) -> io::Result<()> {
    let mut body = change(index, 0, 0);
    attribute(&mut body, IFLA_MASTER, &master.unwrap_or(0).to_ne_bytes());
    exchange(libc::RTM_NEWLINK, libc::NLM_F_ACK, &body, |_| ())
}

/// Sets an interface administratively up or down.
pub fn set_up(index: u32, up: bool) -> io::Result<()> {
    let flag = libc::IFF_UP as u32;
    let body = change(index, if up { flag } else { 0 }, flag);
    exchange(libc::RTM_NEWLINK, libc::NLM_F_ACK, &body, |_| ())
}

/// Makes a bridge; an error if the name is taken.
pub fn create_bridge(name: &str) -> io::Result<()> {
    let mut body = change(0, 0, 0);
    attribute(&mut body, IFLA_IFNAME, &[name.as_bytes(), &[0]].concat());
    let mut info = Vec::new();
    attribute(&mut info, IFLA_INFO_KIND, b"bridge\0");
    attribute(&mut body, IFLA_LINKINFO, &info);
    let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    exchange(libc::RTM_NEWLINK, flags, &body, |_| ())
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

/// The attributes in `bytes`; stops at one that is cut short.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let [l0, l1, k0, k1] = *bytes.first_chunk()?;
        let len = u16::from_ne_bytes([l0, l1]) as usize;
        let value = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        // The top bits say "nested" and "network order".
        Some((u16::from_ne_bytes([k0, k1]) & 0x3fff, value))
    })
}

fn parse_link(message: &[u8]) -> Option<Link> {
    let head: LinkMessage = super::pod::read(message)?;
    let mut link = Link {
        index: head.index,
        up: head.flags & libc::IFF_UP as u32 != 0,
        carrier: head.flags & libc::IFF_LOWER_UP as u32 != 0,
        ethernet: u16::from_ne_bytes(head.kind) == libc::ARPHRD_ETHER,
        ..Link::default()
    };
    for (kind, value) in attributes(message.get(size_of::<LinkMessage>()..)?) {
        match kind {
            IFLA_ADDRESS => link.mac = value.to_vec(),
            IFLA_IFNAME => link.name = text(value),
            IFLA_MTU => link.mtu = super::pod::read(value)?,
            IFLA_MASTER => link.master = super::pod::read(value),
            IFLA_LINKINFO => {
                let kind = attributes(value).find(|(kind, _)| *kind == IFLA_INFO_KIND);
                link.kind = kind.map(|(_, value)| text(value)).unwrap_or_default();
            }
            IFLA_XDP => {
                link.xdp = attributes(value).any(|(kind, value)| kind == IFLA_XDP_ATTACHED && value != [0]);
            }
            _ => {}
        }
    }
    Some(link)
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value.strip_suffix(&[0]).unwrap_or(value)).into_owned()
}

/// Sends one request and hands the body of every answer to `each`, until the kernel says it is done.
fn exchange(kind: u16, flags: i32, body: &[u8], mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let socket = open()?;
    let header = Header {
        len: (size_of::<Header>() + body.len()) as u32,
        kind: kind.to_ne_bytes(),
        flags: ((libc::NLM_F_REQUEST | flags) as u16).to_ne_bytes(),
        seq: 1,
        pid: 0,
    };
    let request = [bytes_of(&header), body].concat();
    // SAFETY: `request` is valid for reads of its length.
    check_size(unsafe { libc::send(socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) })?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        // SAFETY: `buffer` is valid for writes of its length.
        let got = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        if answers(&buffer[..check_size(got)?], &mut each)? {
            return Ok(());
        }
    }
}

fn open() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers; the result is a new descriptor.
    let socket = unsafe { check_fd(libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE)) }?;
    let timeout = libc::timeval { tv_sec: 5, tv_usec: 0 };
    let len = size_of_val(&timeout) as libc::socklen_t;
    // SAFETY: `timeout` is valid for reads of `len` bytes.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            (&raw const timeout).cast(),
            len,
        )
    })?;
    Ok(socket)
}

/// Goes through one datagram of answers; true at the end of all answers.
fn answers(mut bytes: &[u8], each: &mut impl FnMut(&[u8])) -> io::Result<bool> {
    while let Some(header) = super::pod::read::<Header>(bytes) {
        let len = header.len as usize;
        let message = bytes.get(size_of::<Header>()..len).ok_or(io::ErrorKind::UnexpectedEof)?;
        match i32::from(u16::from_ne_bytes(header.kind)) {
            libc::NLMSG_DONE => return Ok(true),
            libc::NLMSG_ERROR => {
                return match super::pod::read::<[u8; 4]>(message).map(i32::from_ne_bytes) {
                    Some(0) => Ok(true),
                    code => Err(io::Error::from_raw_os_error(-code.unwrap_or(-libc::EIO))),
                }
            }
            _ => each(message),
        }
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_exists() {
        let lo = find("lo").unwrap().unwrap();
        assert!(!lo.ethernet && lo.mtu > 0 && lo.master.is_none());
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
