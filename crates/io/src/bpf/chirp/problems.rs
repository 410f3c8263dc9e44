//! Problems of paced chirping on this host.

use super::host::{is_loaded, permitted, registered};
use crate::sys::process::kernel;
use libbpf_rs::btf::{types, Btf};
use std::path::Path;

const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Type information of the kernel's CUBIC as a module.
const CUBIC_BTF: &str = "/sys/kernel/btf/tcp_cubic";
/// First kernel with everything that the programs use: CUBIC as functions for BPF, and fields that they may
/// write.
const SINCE: (u32, u32) = (6, 1);

/// Reason why the congestion controls cannot be loaded, or their flows do not chirp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// True if nothing can be loaded; otherwise some flows do not chirp.
    pub fatal: bool,
    /// Description of the problem and its remedy.
    pub message: String,
}

/// Returns all problems on this host.
pub fn problems() -> Vec<Problem> {
    let fatal = |message: String| Problem { fatal: true, message };
    let mut all: Vec<Problem> = missing().into_iter().map(fatal).collect();
    match permitted() {
        Err(e) => all.push(fatal(e.to_string())),
        Ok(()) if !is_loaded() => all.extend(registered().iter().map(|name| {
            fatal(format!("the name {name} is taken: another program has registered a congestion control"))
        })),
        Ok(()) => {}
    }
    all.extend(pacing_devices().into_iter().map(|device| Problem {
        fatal: false,
        message: format!(
            "{device} has fq, which paces by itself: flows over it start by slow start (tc qdisc replace dev {device} root \
             fq_codel)"
        ),
    }));
    all
}

/// Returns the features that this kernel lacks.
fn missing() -> Vec<String> {
    match kernel() {
        Some(version) if version < SINCE => {
            return vec![format!("Linux {}.{} is too old: 6.1 or newer is needed", version.0, version.1)]
        }
        _ => {}
    }
    if !Path::new(BTF).exists() {
        return vec![format!("this kernel has no BTF ({BTF}): it must be built with CONFIG_DEBUG_INFO_BTF")];
    }
    // The kernel itself refuses the programs if its type information cannot be read.
    let Ok(btf) = Btf::from_vmlinux() else { return Vec::new() };
    missing_of(
        |name| btf.type_by_name::<types::Struct<'_>>(name).is_some(),
        |name| btf.type_by_name::<types::Func<'_>>(name).is_some() || Path::new(CUBIC_BTF).exists(),
    )
}

/// Returns the features that a kernel with these structures and functions lacks.
fn missing_of(structure: impl Fn(&str) -> bool, function: impl Fn(&str) -> bool) -> Vec<String> {
    let mut all = Vec::new();
    if !structure("bpf_struct_ops_tcp_congestion_ops") {
        all.push(
            "this kernel takes no congestion controls as BPF programs: it must be built with CONFIG_BPF_JIT"
                .into(),
        );
    }
    if !function("cubictcp_init") {
        all.push("this kernel has no CUBIC, or not as functions for BPF: CONFIG_TCP_CONG_CUBIC, `modprobe tcp_cubic`".into());
    }
    all
}

/// Devices of this network namespace with the qdisc fq.
fn pacing_devices() -> Vec<String> {
    let said = std::process::Command::new("tc").args(["qdisc", "show"]).output();
    let said = said.map(|out| String::from_utf8_lossy(&out.stdout).into_owned()).unwrap_or_default();
    devices_with_fq(&said)
}

/// Devices with fq in the output of `tc qdisc show`, each once.
fn devices_with_fq(said: &str) -> Vec<String> {
    let mut devices: Vec<String> = said.lines().filter_map(device_with_fq).map(str::to_string).collect();
    devices.dedup();
    devices
}

/// Device of a line: `qdisc fq 8001: dev eth0 root …` names eth0.
fn device_with_fq(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let fq = words.next() == Some("qdisc") && words.next() == Some("fq");
    words.skip_while(|word| *word != "dev").nth(1).filter(|_| fq)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_lacks_is_said() {
        assert_eq!(missing_of(|_| true, |_| true), [""; 0]);
        let all = missing_of(|_| false, |_| false);
        assert!(
            all.len() == 2 && all[0].contains("CONFIG_BPF_JIT") && all[1].contains("tcp_cubic"),
            "{all:?}"
        );
    }

    #[test]
    fn a_device_with_fq_is_told_from_others() {
        assert_eq!(devices_with_fq(QDISCS), ["lo", "d1", "d2"]);
        assert_eq!(devices_with_fq(""), [""; 0]);
    }

    /// Output of `tc qdisc show` of iproute2 6.1.0 on Linux 6.12: fq below prio, alone, and below mq of two
    /// queues.
    const QDISCS: &str = "\
qdisc prio 1: dev lo root refcnt 2 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1
qdisc fq 8001: dev lo parent 1:1 limit 10000p flow_limit 100p buckets 1024 orphan_mask 1023 quantum 131100b initial_quantum 655500b low_rate_threshold 550Kbit refill_delay 40ms timer_slack 10us horizon 10s horizon_drop 
qdisc fq_codel 8002: dev lo parent 1:2 limit 10240p flows 1024 quantum 65550 target 5ms interval 100ms memory_limit 32Mb ecn drop_batch 64 
qdisc fq_codel 8003: dev d0 root refcnt 2 limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms memory_limit 32Mb ecn drop_batch 64 
qdisc fq 8004: dev d1 root refcnt 2 limit 10000p flow_limit 100p buckets 1024 orphan_mask 1023 quantum 3028b initial_quantum 15140b low_rate_threshold 550Kbit refill_delay 40ms timer_slack 10us horizon 10s horizon_drop 
qdisc mq 8005: dev d2 root 
qdisc fq 0: dev d2 parent 8005:2 limit 10000p flow_limit 100p buckets 1024 orphan_mask 1023 quantum 3028b initial_quantum 15140b low_rate_threshold 550Kbit refill_delay 40ms timer_slack 10us horizon 10s horizon_drop 
qdisc fq 0: dev d2 parent 8005:1 limit 10000p flow_limit 100p buckets 1024 orphan_mask 1023 quantum 3028b initial_quantum 15140b low_rate_threshold 550Kbit refill_delay 40ms timer_slack 10us horizon 10s horizon_drop 
";
}
