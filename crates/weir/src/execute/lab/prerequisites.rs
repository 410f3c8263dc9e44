//! What a lab needs from the machine, said in one message before anything is touched.

use crate::experiment::plan::{BoxKind, Plan};
use socket2::{Domain, Socket, Type};
use std::collections::BTreeSet;

/// Bits of `/proc/self/status`' `CapEff` (linux/capability.h).
const CAPABILITIES: [(u32, &str); 2] = [(12, "CAP_NET_ADMIN"), (21, "CAP_SYS_ADMIN")];

/// Names everything that is missing.
pub fn check(plan: &Plan, capture: bool) -> Result<(), String> {
    let mut missing = Vec::new();
    let held = capabilities();
    let absent: Vec<&str> =
        CAPABILITIES.iter().filter(|(bit, _)| held >> bit & 1 == 0).map(|&(_, name)| name).collect();
    if !absent.is_empty() {
        missing.push(format!("root ({} missing)", absent.join(" and ")));
    }
    let nat = plan.lab.kind == BoxKind::Nat;
    for (needed, program, package) in
        [(true, "ip", "iproute2"), (capture, "tcpdump", "tcpdump"), (nat, "nft", "nftables")]
    {
        if needed && !in_path(program) {
            missing.push(format!("the program `{program}` (package {package})"));
        }
    }
    missing.extend(congestion_controls(plan));
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("the lab needs {}", missing.join(", and ")))
}

fn capabilities() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

fn in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// Those of the plan that this kernel has not, nor can load.
fn congestion_controls(plan: &Plan) -> Option<String> {
    let names: BTreeSet<&str> = plan.groups.iter().map(|g| g.tcp.cc()).collect();
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).ok()?;
    // Asking for one makes the kernel load its module.
    let absent: Vec<&str> =
        names.into_iter().filter(|cc| socket.set_tcp_congestion(cc.as_bytes()).is_err()).collect();
    if absent.is_empty() {
        return None;
    }
    let list = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    Some(format!(
        "the congestion control {} (this kernel has {})",
        absent.join(", "),
        list.as_deref().unwrap_or("?").trim()
    ))
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan;
    use super::*;

    #[test]
    fn a_congestion_control_that_is_not_there_is_named() {
        let mut p = plan();
        p.groups[0].tcp.cc = Some("tahoe".into());
        let message = congestion_controls(&p).unwrap();
        assert!(message.contains("tahoe (this kernel has ") && message.contains("reno"), "{message}");
        p.groups[0].tcp.cc = Some("reno".into());
        assert_eq!(congestion_controls(&p), None);
    }
}
