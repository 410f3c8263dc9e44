//! Large pages for the memory of a simulation.
//!
//! A simulation goes through the state of one flow after the other. Of a thousand flows that is more pages of 4 kB than the
//! processor keeps translations of, and a large page (2 MB) holds hundreds of them. Where the kernel gives large pages to those that
//! ask (`madvise` in `/sys/kernel/mm/transparent_hugepage/enabled`), glibc asks for its heap if the tunable
//! `glibc.malloc.hugetlb` says so (since 2.35). It reads tunables only as a program starts.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    const VARIABLE: &str = "GLIBC_TUNABLES";
    const TUNABLE: &str = "glibc.malloc.hugetlb=1";

    /// Starts this program again with the tunable set, if that makes a difference. Whoever sets tunables has decided.
    pub fn ask() {
        let on_request = std::fs::read_to_string(ENABLED).is_ok_and(|modes| modes.contains("[madvise]"));
        if !on_request || std::env::var_os(VARIABLE).is_some() {
            return;
        }
        let mut arguments = std::env::args_os();
        let Some(name) = arguments.next() else { return };
        // Without it everything works the same, only slower: that it cannot be started again is no failure.
        let _ = Command::new("/proc/self/exe").arg0(name).args(arguments).env(VARIABLE, TUNABLE).exec();
    }
}

/// Makes this process use large pages. To be called before anything else is done: the process may begin anew.
pub fn ask_for_large() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::ask();
}
