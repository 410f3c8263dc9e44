//! The processes of a lab that runs beside a benchmark.

/// Returns the process number of the gateway of the lab `id`, which this process has started, and the first
/// of its files.
pub(super) fn gateway(id: &str) -> Option<(u32, String)> {
    let is_its = |file: &String| file.contains(id) && file.contains("/gateway");
    children(std::process::id())
        .into_iter()
        .find_map(|pid| Some((pid, arguments(pid).into_iter().find(is_its)?)))
}

/// Returns the engine of that gateway, its child process.
pub(super) fn engine(id: &str) -> Option<u32> {
    gateway(id).and_then(|(pid, _)| children(pid).first().copied())
}

fn arguments(pid: u32) -> Vec<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|&b| b == 0).map(|a| String::from_utf8_lossy(a).into_owned()).collect()
}

/// Returns the child processes of `parent`.
pub(super) fn children(parent: u32) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return vec![] };
    let pids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|&pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name may contain anything but ends at the last parenthesis: `pid (name) state ppid`.
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        rest.split_whitespace().nth(1).is_some_and(|ppid| ppid == parent.to_string())
    })
    .collect()
}
