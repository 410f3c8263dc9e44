//! Requirements, checked before any change. All missing ones are named at once.

use crate::bpf;
use crate::sys::link::HostInterface;
use crate::sys::process;
use std::fmt;
use std::io;

/// Reasons why Weir cannot start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<String>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => f.write_str(one),
            many => {
                f.write_str("several things are in the way:")?;
                many.iter().try_for_each(|problem| write!(f, "\n  - {problem}"))
            }
        }
    }
}

impl std::error::Error for Problems {}

impl From<io::Error> for Problems {
    fn from(error: io::Error) -> Problems {
        Problems(vec![error.to_string()])
    }
}

/// Capabilities by number (`linux/capability.h`). One of the alternatives is enough.
const CAPABILITIES: [(&[u32], &str, &str); 4] = [
    (&[12], "CAP_NET_ADMIN", "to attach programs and set up interfaces"),
    (&[13], "CAP_NET_RAW", "to send and receive frames"),
    (&[39, 21], "CAP_BPF (or CAP_SYS_ADMIN)", "to load BPF programs"),
    (&[38, 21], "CAP_PERFMON (or CAP_SYS_ADMIN)", "to load BPF programs that follow pointers"),
];

/// Returns the missing privileges.
pub(super) fn capabilities(have: u64) -> Vec<String> {
    let has = |any: &[u32]| any.iter().any(|bit| have >> bit & 1 == 1);
    let lacks = |(any, name, why): &(&[u32], &str, &str)| {
        (!has(any)).then(|| format!("{name} is missing, needed {why}"))
    };
    let mut missing: Vec<String> = CAPABILITIES.iter().filter_map(lacks).collect();
    if missing.len() == CAPABILITIES.len() {
        missing = vec![format!(
            "this needs root (try sudo), or the capabilities {}",
            CAPABILITIES.map(|(_, name, _)| name).join(", ")
        )];
    }
    missing
}

/// Returns the problem if a pool of `bytes` cannot be locked. CAP_IPC_LOCK lifts the limit.
pub(super) fn memory(have: u64, limit: u64, bytes: u64) -> Option<String> {
    (have >> 14 & 1 == 0 && limit < bytes).then(|| {
        format!(
            "locked memory is limited to {limit} bytes and the pool needs {bytes}: raise it \
             (`ulimit -l`) or add CAP_IPC_LOCK"
        )
    })
}

/// Returns the problem if a setup needs more memory than its control group may have. It would be ended at a
/// moment of the kernel's choice.
pub(super) fn room(limit: Option<u64>, needed: u64, flows: u32) -> Option<String> {
    let limit = limit.filter(|limit| *limit < needed)?;
    let [limit, needed] = [limit >> 20, needed.div_ceil(1 << 20)];
    Some(format!(
        "memory is limited to {limit} MiB by a control group, and {needed} MiB are needed for {flows} flows: raise the \
         limit (`MemoryMax=` of a service), or lower `max_flows`"
    ))
}

/// Descriptors of the supervisor and an engine; the next constant is for each further engine.
const FILES: u64 = 128;
const FILES_OF_ENGINE: u64 = 16;

/// Returns the problem if too few files may be open.
pub(super) fn files(limit: u64, engines: u32) -> Option<String> {
    let needed = FILES + FILES_OF_ENGINE * (u64::from(engines) - 1);
    (limit < needed).then(|| {
        format!("open files are limited to {limit}, and {needed} are needed: raise the limit (`ulimit -n`)")
    })
}

/// Returns the problem if this process has a clock of its own, by its time namespace. Hooks and departure
/// times have the host's, so beats would never be fresh, or always.
pub(super) fn clock(offsets: &str) -> Option<String> {
    let own = offsets.lines().find_map(|line| line.strip_prefix("monotonic"))?;
    own.split_whitespace().any(|number| number != "0").then(|| {
        let offset = own.split_whitespace().next().unwrap_or_default();
        format!(
            "the clock of this time namespace is {offset} s ahead of the host's, which the kernel's programs have: \
             run Weir in the host's time namespace (`nsenter -T -t 1`)"
        )
    })
}

/// Returns the problem if flows may spill on a kernel of a version that does not tell marks of received
/// frames, by which the hooks name queues.
pub(super) fn marks(spills: bool, kernel: Option<(u32, u32)>) -> Option<String> {
    let lacks = spills && kernel.is_some_and(|version| version < (5, 19));
    lacks.then(|| {
        "`unresponsive = \"queue\"` needs the marks of received frames (since Linux 5.19): `\"fair\"` does not"
            .to_owned()
    })
}

/// Returns whether flows may spill on this kernel, as far as its version tells.
pub fn can_spill() -> bool {
    marks(true, process::kernel()).is_none()
}

/// Returns what the host lacks for any setup: privileges, and features of the kernel with the version since
/// which they exist.
pub fn host_problems() -> Vec<String> {
    host(0)
}

/// Returns the problems of the host, apart from its interfaces; `pool` is the pool's bytes.
pub(super) fn host(pool: u64) -> Vec<String> {
    let have = process::capabilities().unwrap_or(0);
    let mut problems = capabilities(have);
    problems.extend(memory(have, process::lockable_memory(), pool));
    problems.extend(clock(&std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default()));
    if problems.is_empty() {
        match bpf::missing() {
            Ok(missing) => problems.extend(missing.iter().map(ToString::to_string)),
            Err(error) => problems.push(format!("cannot make BPF maps: {error}")),
        }
    }
    problems
}

/// Finds the interfaces.
pub(super) fn interfaces(names: &[&str], all: &[HostInterface]) -> Result<Vec<HostInterface>, Vec<String>> {
    if let [lan, wan] = names {
        if lan == wan {
            return Err(vec![format!("LAN and WAN are both {lan}: two interfaces are needed")]);
        }
    }
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for name in names {
        match all.iter().find(|link| link.name == *name) {
            Some(link) => found.push(link.clone()),
            None => missing.push(not_there(name, all)),
        }
    }
    if missing.is_empty() {
        Ok(found)
    } else {
        Err(missing)
    }
}

fn not_there(name: &str, all: &[HostInterface]) -> String {
    let names: Vec<&str> = all.iter().filter(|l| l.name != "lo").map(|l| l.name.as_str()).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!("there is no interface {name} here; interfaces: {names}")
}

/// Returns the problem of an interface, if it has one.
pub(super) fn interface(link: &HostInterface, ethernet_only: bool) -> Option<String> {
    let name = &link.name;
    if ethernet_only && !link.ethernet {
        return Some(format!("{name} is no Ethernet interface: a bump in the wire needs two"));
    }
    if link.external {
        return Some(format!(
            "{name} is a tunnel whose packets each come with where they go (`external`), which those of Weir do not: \
             name the interface below it, or make a tunnel for each other end"
        ));
    }
    if let Some(reason) = needs_more_than_bytes(link) {
        return Some(format!("{name} {reason}"));
    }
    (!link.ethernet && !link.plain_ip).then(|| {
        format!(
            "frames of {name} are of a kind that is not known: Ethernet, or IP packets without a header, are"
        )
    })
}

/// Returns why frames of a device need more than their bytes. Taken frames could not be given back there.
fn needs_more_than_bytes(link: &HostInterface) -> Option<&'static str> {
    if link.loopback {
        return Some(
            "is the loopback interface, whose packets carry their route, which those of Weir do not: name the interface towards the WAN, \
             or try a path on one machine with `weir shell`",
        );
    }
    match link.kind.as_str() {
        "ifb" => Some(
            "is an intermediate device (ifb), whose packets carry where they came from, which those of Weir do not: name the interface whose \
             packets are redirected to it",
        ),
        "xfrm" | "vti" | "vti6" => Some(
            "is an IPsec interface, whose packets carry how they were decrypted, which those of Weir do not: name the interface below it",
        ),
        "vrf" => Some(
            "is a routing domain (VRF), which packets pass without coming in on it: name an interface that belongs to it",
        ),
        _ => None,
    }
}

/// Returns the problem if interfaces have segments longer than a frame of the pool.
pub(super) fn long_segments(all: &[HostInterface]) -> Option<String> {
    const MOST: u32 = 65_536;
    let long: Vec<&HostInterface> =
        all.iter().filter(|link| link.longest > MOST && link.name != "lo").collect();
    let (first, names): (_, Vec<&str>) =
        (long.first()?, long.iter().map(|link| link.name.as_str()).collect());
    Some(format!(
        "segments of {} may be {} bytes long (BIG TCP), which is more than can be taken: `ip link set dev {} gso_max_size \
         {MOST} gro_max_size {MOST}`, and the same for IPv4 (`gso_ipv4_max_size`, `gro_ipv4_max_size`), make it {MOST}",
        names.join(", "),
        first.longest,
        first.name,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_named_one_by_one() {
        assert_eq!(capabilities(u64::MAX), [""; 0]);
        assert_eq!(capabilities(0).len(), 1);
        assert!(capabilities(0)[0].contains("root"));
        // CAP_SYS_ADMIN includes the newer two.
        assert_eq!(capabilities(1 << 12 | 1 << 13 | 1 << 21), [""; 0]);
        let missing = capabilities(1 << 12 | 1 << 38);
        assert_eq!(missing.len(), 2);
        assert!(missing[0].starts_with("CAP_NET_RAW") && missing[1].starts_with("CAP_BPF"));
    }

    #[test]
    fn locked_memory() {
        assert_eq!([memory(0, 100, 100), memory(1 << 14, 0, 100)], [None, None]);
        assert!(memory(0, 99, 100).unwrap().contains("CAP_IPC_LOCK"));
    }

    #[test]
    fn flows_spill_where_frames_tell_their_marks() {
        let found = |spills, kernel| marks(spills, kernel).is_some();
        assert!(found(true, Some((5, 18))) && !found(false, Some((5, 18))));
        assert!(!found(true, Some((5, 19))) && !found(true, Some((6, 1))) && !found(true, None));
    }

    #[test]
    fn a_clock_that_is_not_the_hosts_is_refused() {
        let offsets = |monotonic: &str| format!("monotonic  {monotonic}\nboottime  7  0\n");
        assert_eq!([clock(""), clock(&offsets("         0         0"))], [None, None]);
        for ahead in ["      1000         0", "0  1", "-5 0"] {
            assert!(clock(&offsets(ahead)).unwrap().contains("ahead of the host's"), "{ahead}");
        }
    }

    #[test]
    fn open_files() {
        assert_eq!([files(128, 1), files(144, 2), files(u64::MAX, 8)], [None, None, None]);
        assert!(files(45, 1).unwrap().contains("limited to 45, and 128 are needed"));
    }

    #[test]
    fn interfaces_that_are_missing_are_named_with_those_that_exist() {
        let link =
            |name: &str| HostInterface { name: name.into(), ethernet: true, ..HostInterface::default() };
        let all = [link("eth0"), link("eth1"), link("lo")];
        assert_eq!(interfaces(&["eth0", "eth1"], &all).unwrap().len(), 2);
        assert!(interfaces(&["eth0", "eth0"], &all).is_err());
        let problems = interfaces(&["lan0", "wan0"], &all).unwrap_err();
        assert_eq!(problems.len(), 2);
        assert_eq!(problems[0], "there is no interface lan0 here; interfaces: eth0, eth1");
        let both = Problems(problems).to_string();
        assert!(both.starts_with("several things are in the way:\n  - there is no interface lan0"), "{both}");
    }

    #[test]
    fn devices_whose_frames_need_more_than_bytes_are_refused_by_name() {
        let link = |name: &str, kind: &str| HostInterface {
            name: name.into(),
            kind: kind.into(),
            ethernet: true,
            ..HostInterface::default()
        };
        let lo = HostInterface { loopback: true, ..link("lo", "") };
        assert!(interface(&lo, false).unwrap().starts_with("lo is the loopback interface"));
        for kind in ["ifb", "xfrm", "vti", "vti6", "vrf"] {
            assert!(interface(&link("x0", kind), false).unwrap().starts_with("x0 is a"), "{kind}");
        }
        for kind in ["", "veth", "bridge", "vlan", "wireguard", "macvlan", "bond"] {
            assert_eq!(interface(&link("x0", kind), false), None, "{kind}");
        }
    }

    #[test]
    fn memory_has_a_limit() {
        assert_eq!((room(None, 1 << 30, 1), room(Some(1 << 27), 1 << 27, 1)), (None, None));
        let problem = room(Some(60 << 20), 100 << 20 | 1, 65_536).unwrap();
        assert!(problem.contains("60 MiB") && problem.contains("101 MiB are needed for 65536"), "{problem}");
    }

    #[test]
    fn interfaces_without_ethernet_headers_are_no_bump_in_the_wire() {
        let tun = HostInterface { name: "tun0".into(), plain_ip: true, ..HostInterface::default() };
        assert_eq!(interface(&tun, false), None);
        assert!(interface(&tun, true).unwrap().starts_with("tun0 is no Ethernet interface"));
        let radio = HostInterface { name: "mon0".into(), ..HostInterface::default() };
        assert!(interface(&radio, false).unwrap().starts_with("frames of mon0"));
    }
}
