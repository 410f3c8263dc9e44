//! Prerequisites of a lab, reported in one message before anything is changed.

use super::controls;
use crate::experiment::plan::{BoxKind, Plan, Protocol};
use weir_core::gateway::Direction;
use weir_io::bpf::chirp;

/// Required bits of `CapEff` in `/proc/self/status` (linux/capability.h).
const CAPABILITIES: [(u32, &str); 2] = [(12, "CAP_NET_ADMIN"), (21, "CAP_SYS_ADMIN")];

/// Returns an error that names everything that is missing.
pub fn check(plan: &Plan, capture: bool) -> Result<(), String> {
    let mut missing = Vec::new();
    let held = capabilities();
    let absent: Vec<&str> =
        CAPABILITIES.iter().filter(|(bit, _)| held >> bit & 1 == 0).map(|&(_, name)| name).collect();
    if !absent.is_empty() {
        missing.push(format!("root (try sudo; {} missing)", absent.join(" and ")));
    }
    let nat = plan.lab.kind == BoxKind::Nat;
    for (needed, program, package) in
        [(true, "ip", "iproute2"), (capture, "tcpdump", "tcpdump"), (nat, "nft", "nftables")]
    {
        if needed && !in_path(program) {
            missing.push(format!("the program `{program}` (package {package})"));
        }
    }
    // Without privileges this process sees only the controls that users may choose.
    if absent.is_empty() {
        missing.extend(congestion_controls(plan));
    }
    missing.extend(settings_of_hosts(plan));
    if !cfg!(feature = "quic") && plan.groups.iter().any(|g| matches!(g.protocol, Protocol::Quic { .. })) {
        missing.push("a program with QUIC: this one was built without it".to_string());
    }
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

/// Returns the missing requirements of settings that Linux has per host. All flows must agree on these, and
/// segments that offload leaves whole need a box that cuts them.
fn settings_of_hosts(plan: &Plan) -> Vec<String> {
    let mut missing = Vec::new();
    let groups: Vec<_> = plan.groups.iter().filter(|group| group.protocol.is_tcp()).collect();
    for key in ["ecn", "recovery", "tso_segments"] {
        if groups.windows(2).any(|g| g[0].tcp.get(key) != g[1].tcp.get(key)) {
            missing.push(format!("the same `{key}` in all flows: it is a setting of its hosts (`[tcp]`)"));
        }
    }
    let offload = groups.iter().any(|g| g.tcp.number("tso_segments").is_some_and(|n| n > 1));
    let cut = plan.lab.kind != BoxKind::Host && plan.path.lan.is_bare();
    if offload && !(cut && groups.iter().all(|g| g.direction == Direction::Out)) {
        missing.push(
            "uploads through a bridge or a router, and a LAN with nothing to emulate, for `tso_segments`: the box \
             cuts the segments"
                .to_string(),
        );
    }
    missing
}

/// Returns an error for congestion controls that neither this kernel nor Weir can provide.
fn congestion_controls(plan: &Plan) -> Option<String> {
    let (ours, absent): (Vec<&str>, Vec<&str>) =
        controls::absent(plan).into_iter().partition(|cc| controls::is_ours(cc));
    if !absent.is_empty() {
        let list = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
        let list = list.as_deref().unwrap_or("?").trim();
        return Some(format!("the congestion control {} (this kernel has {list})", absent.join(", ")));
    }
    // Weir's own controls are loaded for the run, unless something prevents it.
    let problems: Vec<String> =
        chirp::problems().into_iter().filter(|p| p.fatal).map(|p| p.message).collect();
    if ours.is_empty() || problems.is_empty() {
        return None;
    }
    Some(format!("the congestion control {}, which it cannot load: {}", ours.join(", "), problems.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan;
    use super::*;
    use crate::experiment::plan::Value;

    #[test]
    fn a_congestion_control_that_is_not_there_is_named() {
        let mut p = plan();
        p.groups[0].tcp.cc = Some("tahoe".into());
        let message = congestion_controls(&p).unwrap();
        assert!(message.contains("tahoe (this kernel has ") && message.contains("reno"), "{message}");
        p.groups[0].tcp.cc = Some("reno".into());
        assert_eq!(congestion_controls(&p), None);
    }

    #[test]
    fn flows_share_what_is_a_setting_of_hosts() {
        let mut p = plan();
        p.groups.truncate(1);
        p.groups[0].tcp.set("ecn", Value::Switch(true));
        p.groups.push(p.groups[0].clone());
        assert_eq!(settings_of_hosts(&p), [""; 0]);
        p.groups[1].tcp.unset("ecn");
        assert!(settings_of_hosts(&p)[0].contains("the same `ecn`"));
        p.groups.truncate(1);
        p.groups[0].tcp.set("tso_segments", Value::Number(8));
        assert_eq!(settings_of_hosts(&p), [""; 0]);
        p.lab.kind = BoxKind::Host;
        assert!(settings_of_hosts(&p)[0].contains("through a bridge"));
    }
}
