//! The TCP settings in force in a lab that affect the kernel's behaviour.

use super::namespace::Namespace;
use std::collections::BTreeMap;
use std::path::Path;

/// Settings of each network namespace, below `/proc/sys/net`. The congestion control is absent because each
/// flow chooses its own.
const SYSCTLS: [&str; 36] = [
    "core/default_qdisc",
    "ipv4/tcp_adv_win_scale",
    "ipv4/tcp_app_win",
    "ipv4/tcp_autocorking",
    "ipv4/tcp_backlog_ack_defer",
    "ipv4/tcp_base_mss",
    "ipv4/tcp_comp_sack_delay_ns",
    "ipv4/tcp_comp_sack_nr",
    "ipv4/tcp_dsack",
    "ipv4/tcp_early_retrans",
    "ipv4/tcp_ecn",
    "ipv4/tcp_fastopen",
    "ipv4/tcp_frto",
    "ipv4/tcp_limit_output_bytes",
    "ipv4/tcp_max_reordering",
    "ipv4/tcp_min_rtt_wlen",
    "ipv4/tcp_min_tso_segs",
    "ipv4/tcp_moderate_rcvbuf",
    "ipv4/tcp_mtu_probing",
    "ipv4/tcp_no_metrics_save",
    "ipv4/tcp_notsent_lowat",
    "ipv4/tcp_pacing_ca_ratio",
    "ipv4/tcp_pacing_ss_ratio",
    "ipv4/tcp_recovery",
    "ipv4/tcp_reordering",
    "ipv4/tcp_rmem",
    "ipv4/tcp_rto_max_ms",
    "ipv4/tcp_rto_min_us",
    "ipv4/tcp_sack",
    "ipv4/tcp_shrink_window",
    "ipv4/tcp_slow_start_after_idle",
    "ipv4/tcp_timestamps",
    "ipv4/tcp_tso_rtt_log",
    "ipv4/tcp_tso_win_divisor",
    "ipv4/tcp_window_scaling",
    "ipv4/tcp_wmem",
];
/// Directory of CUBIC's parameters, which are global.
const CUBIC: &str = "/sys/module/tcp_cubic/parameters";

/// Returns the settings of the clients' host by the names of `sysctl`, such as `net.ipv4.tcp_sack`. Differing
/// settings of the servers' host are named `servers.net.ipv4.tcp_sack`. CUBIC's parameters are named
/// `tcp_cubic.hystart` and so on. Settings that the kernel lacks are left out.
pub fn in_force(clients: &Namespace, servers: &Namespace) -> Result<BTreeMap<String, String>, String> {
    let read = |namespace: &Namespace| {
        let values = namespace.inside(|| SYSCTLS.map(|key| value(&Path::new("/proc/sys/net").join(key))));
        values.map_err(|e| format!("{}: {e}", namespace.name()))
    };
    let (clients, servers) = (read(clients)?, read(servers)?);
    let mut out = BTreeMap::new();
    for ((key, client), server) in SYSCTLS.iter().zip(clients).zip(servers) {
        let name = format!("net.{}", key.replace('/', "."));
        out.extend(server.filter(|s| Some(s) != client.as_ref()).map(|s| (format!("servers.{name}"), s)));
        out.extend(client.map(|c| (name, c)));
    }
    out.extend(parameters());
    Ok(out)
}

/// Reads a value without trailing blanks, with one blank between its parts.
fn value(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn parameters() -> Vec<(String, String)> {
    let entries = std::fs::read_dir(CUBIC).into_iter().flatten().flatten();
    let named = |entry: std::fs::DirEntry| {
        Some((format!("tcp_cubic.{}", entry.file_name().to_string_lossy()), value(&entry.path())?))
    };
    entries.filter_map(named).collect()
}
