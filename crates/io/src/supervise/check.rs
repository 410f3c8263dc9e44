//! What has to be there before anything is touched. Everything that is missing is named at once.

use crate::port;
use crate::sys::link::Link;
use crate::sys::process;
use std::fmt;
use std::io;

/// Oldest kernel: links for XDP (5.9), a UMEM shared by devices (5.10).
const KERNEL: (u32, u32) = (5, 10);

/// Why Weir cannot start: everything that is in the way.
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

/// Capabilities by number (`linux/capability.h`): any of the alternatives will do.
const CAPABILITIES: [(&[u32], &str, &str); 4] = [
    (&[12], "CAP_NET_ADMIN", "to attach XDP programs and set up interfaces"),
    (&[13], "CAP_NET_RAW", "to send and receive frames"),
    (&[39, 21], "CAP_BPF (or CAP_SYS_ADMIN)", "to load BPF programs"),
    (&[38, 21], "CAP_PERFMON (or CAP_SYS_ADMIN)", "to load BPF programs that follow pointers"),
];

/// Privileges that are missing.
pub(super) fn capabilities(have: u64) -> Vec<String> {
    let has = |any: &[u32]| any.iter().any(|bit| have >> bit & 1 == 1);
    let lacks = |(any, name, why): &(&[u32], &str, &str)| {
        (!has(any)).then(|| format!("{name} is missing, needed {why}"))
    };
    let mut missing: Vec<String> = CAPABILITIES.iter().filter_map(lacks).collect();
    if missing.len() == CAPABILITIES.len() {
        missing = vec![format!(
            "this needs root, or the capabilities {}",
            CAPABILITIES.map(|(_, name, _)| name).join(", ")
        )];
    }
    missing
}

/// Is the kernel new enough?
pub(super) fn kernel(version: Option<(u32, u32)>) -> Option<String> {
    let (major, minor) = version?;
    (version < Some(KERNEL)).then(|| {
        format!("Linux {major}.{minor} is too old: {}.{} or newer is needed for AF_XDP", KERNEL.0, KERNEL.1)
    })
}

/// May a pool of `bytes` be locked? CAP_IPC_LOCK lifts the limit.
pub(super) fn memory(have: u64, limit: u64, bytes: u64) -> Option<String> {
    (have >> 14 & 1 == 0 && limit < bytes).then(|| {
        format!(
            "locked memory is limited to {limit} bytes and the pool needs {bytes}: raise it \
             (`ulimit -l`) or add CAP_IPC_LOCK"
        )
    })
}

/// What is wrong with the host before its interfaces are looked at; `pool` is the pool's bytes.
pub(super) fn host(pool: u64) -> Vec<String> {
    let have = process::capabilities().unwrap_or(0);
    let mut problems = capabilities(have);
    problems.extend(kernel(process::kernel()));
    problems.extend(memory(have, process::lockable_memory(), pool));
    problems
}

/// Finds the two interfaces.
pub(super) fn interfaces(lan: &str, wan: &str, all: &[Link]) -> Result<(Link, Link), Vec<String>> {
    if lan == wan {
        return Err(vec![format!("LAN and WAN are both {lan}: two interfaces are needed")]);
    }
    let find = |name: &str| {
        all.iter().find(|link| link.name == name).cloned().ok_or_else(|| {
            let names: Vec<&str> = all.iter().filter(|l| l.ethernet).map(|l| l.name.as_str()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            format!("there is no interface {name} here; Ethernet interfaces: {names}")
        })
    };
    match (find(lan), find(wan)) {
        (Ok(lan), Ok(wan)) => Ok((lan, wan)),
        (lan, wan) => Err([lan.err(), wan.err()].into_iter().flatten().collect()),
    }
}

/// What is wrong with an interface; `steered` if an XDP program is to be attached to it.
pub(super) fn interface(link: &Link, steered: bool) -> Vec<String> {
    let mut problems = Vec::new();
    let name = &link.name;
    if !link.ethernet {
        problems.push(format!("{name} is no Ethernet interface"));
    }
    if !link.up {
        problems.push(format!("{name} is down: bring it up with `ip link set {name} up`"));
    }
    if steered && link.xdp {
        problems.push(format!(
            "{name} has an XDP program already: stop what uses it, or `ip link set {name} xdp off`"
        ));
    }
    if port::chunk_size(link.mtu as usize).is_none() {
        let most = port::max_frame(4096) - 22;
        problems.push(format!("the MTU of {name} is {}: at most {most} is supported", link.mtu));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_named_one_by_one() {
        assert_eq!(capabilities(u64::MAX), [""; 0]);
        assert_eq!(capabilities(0).len(), 1);
        assert!(capabilities(0)[0].contains("root"));
        // CAP_SYS_ADMIN stands for the newer two.
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
    fn old_kernels_are_refused() {
        assert!(kernel(Some((5, 4))).unwrap().contains("5.4"));
        assert_eq!([kernel(Some((5, 10))), kernel(Some((6, 1))), kernel(None)], [None, None, None]);
    }

    #[test]
    fn interfaces_that_are_missing_are_named_with_those_that_exist() {
        let link = |name: &str| Link { name: name.into(), ethernet: true, ..Link::default() };
        let all = [link("eth0"), link("eth1"), Link { name: "lo".into(), ..Link::default() }];
        assert!(interfaces("eth0", "eth1", &all).is_ok());
        assert!(interfaces("eth0", "eth0", &all).is_err());
        let problems = interfaces("lan0", "wan0", &all).unwrap_err();
        assert_eq!(problems.len(), 2);
        assert_eq!(problems[0], "there is no interface lan0 here; Ethernet interfaces: eth0, eth1");
    }

    #[test]
    fn everything_wrong_with_an_interface_is_said() {
        let good = Link { name: "a".into(), ethernet: true, up: true, mtu: 1500, ..Link::default() };
        assert_eq!(interface(&good, true), [""; 0]);
        let bad = Link { up: false, xdp: true, mtu: 9000, ..good };
        assert_eq!(interface(&bad, true).len(), 3);
        assert_eq!(interface(&bad, false).len(), 2);
        let problems = Problems(interface(&bad, false)).to_string();
        assert!(problems.starts_with("several things are in the way:\n  - a is down"), "{problems}");
    }
}
