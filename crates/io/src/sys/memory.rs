//! Memory that this process may use.

use std::path::{Path, PathBuf};

/// Returns the least limit of the control groups that this process is in, in bytes; `None` without a limit
/// that can be read.
pub fn limit() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    files(&groups).iter().filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok()).min()
}

/// Returns the files that have the limits of these groups and of those above them. Of version 2 a limit may
/// be `max`, which is none.
fn files(groups: &str) -> Vec<PathBuf> {
    let of_line = |line: &str| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            some if some.split(',').any(|one| one == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let groups = Path::new(path.trim_start_matches('/')).ancestors();
        Some(groups.map(|group| Path::new(root).join(group).join(file)).collect::<Vec<_>>())
    };
    groups.lines().filter_map(of_line).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_above_has_a_limit() {
        let paths =
            |groups| -> Vec<String> { files(groups).iter().map(|file| file.display().to_string()).collect() };
        assert_eq!(
            paths("0::/system.slice/weir.service\n"),
            [
                "/sys/fs/cgroup/system.slice/weir.service/memory.max",
                "/sys/fs/cgroup/system.slice/memory.max",
                "/sys/fs/cgroup/memory.max"
            ]
        );
        assert_eq!(
            paths("5:cpu,cpuacct:/\n4:memory:/a\n1:name=systemd:/\n"),
            ["/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        );
        assert!(paths("nonsense\n").is_empty());
    }
}
