//! Confinement of the engine, which parses packets of strangers. It gets a user that owns nothing, no
//! capability, no file, and only the system calls that its work needs.
//!
//! The confinement holds for the calling thread and the threads that it starts. Parts that the kernel lacks
//! are left out and named. A forbidden system call fails with `EPERM` and changes nothing; it kills no
//! process.

use super::privileges::{self, capability};
use super::process;
use landlock::{
    Access, AccessFs, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, ABI,
};
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use seccompiler::{
    apply_filter, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;

/// First user number of engines. Each process has one, far from those that systems assign.
const USERS: u32 = 0x5745_0000;
/// Newest version of Landlock whose features are requested.
const NEWEST: ABI = ABI::V6;

/// Confines an engine's thread, which keeps the capabilities `keep`. Returns the names of missing parts.
pub fn confine_engine(keep: capability::Set) -> io::Result<Vec<String>> {
    let mut missing = Vec::new();
    if keep.is_empty() {
        let user = change_user().err().map(|error| format!("a user of its own ({error})"));
        missing.extend(user);
    } else {
        missing.push("a user of its own (this kernel asks for capabilities at each use of a map)".to_owned());
    }
    privileges::keep_only(keep)?;
    missing.extend(no_files(None::<io::Stdin>).err().map(|why| format!("Landlock ({why})")));
    missing.extend(few_calls(&[]).err().map(|why| format!("seccomp ({why})")));
    Ok(missing)
}

/// Confines a thread that only writes files in one directory, under its current user.
pub fn confine_writer(directory: impl AsFd) -> io::Result<()> {
    privileges::keep_only(capability::Set::empty())?;
    // The engine lacks the same parts and reports them.
    let _ = no_files(Some(directory));
    let _ = few_calls(&WRITING);
    Ok(())
}

/// Gives this thread a user and a group of its own.
fn change_user() -> io::Result<()> {
    use capability::{KILL, SETGID, SETUID};
    // A supervisor that may not kill other users could not end the engine. An unprivileged process keeps its
    // user.
    if !capability::have()?.contains(KILL | SETGID | SETUID) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let number = USERS + (std::process::id() & 0xff_ffff);
    // Without capabilities, the bounding set can no longer be reduced.
    privileges::bound_to(capability::Set::empty())?;
    let ends = process::end_of_parent()?;
    let (user, group) = (Uid::from_raw(number), Gid::from_raw(number));
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)?;
    // The change of user clears the signal for the parent's end.
    process::end_with(ends)
}

/// Takes away access to all files by name, except those beneath a directory.
fn no_files(beneath: Option<impl AsFd>) -> Result<(), String> {
    let say = |error: landlock::RulesetError| error.to_string();
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    let ruleset = ruleset.handle_access(AccessFs::from_all(NEWEST)).map_err(say)?;
    let mut ruleset = ruleset.create().map_err(say)?;
    if let Some(directory) = beneath {
        let rule = PathBeneath::new(directory, AccessFs::from_all(NEWEST));
        ruleset = ruleset.add_rule(rule).map_err(say)?;
    }
    let status = ruleset.restrict_self().map_err(say)?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err("not in this kernel".to_owned()),
        _ => Ok(()),
    }
}

/// System calls of a thread that writes files, beside the others.
const WRITING: [i64; 4] = [libc::SYS_openat, libc::SYS_renameat, libc::SYS_renameat2, libc::SYS_unlinkat];

/// System calls allowed with any arguments: memory, threads, time, waiting, and open descriptors.
const ANY: &[i64] = &[
    libc::SYS_brk,
    libc::SYS_capget,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    // A separate filter refuses this one.
    libc::SYS_clone3,
    libc::SYS_close,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_ftruncate,
    libc::SYS_futex,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_getsockopt,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_memfd_create,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_set_robust_list,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    libc::SYS_sigaltstack,
    libc::SYS_statx,
    libc::SYS_tgkill,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Older variants of these on this architecture.
#[cfg(target_arch = "x86_64")]
const OLD: &[i64] = &[libc::SYS_epoll_wait, libc::SYS_poll, libc::SYS_rename, libc::SYS_time];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[i64] = &[];

/// Commands of bpf(2) that look up and change entries of maps (`linux/bpf.h`).
const OF_MAPS: [u64; 8] = [1, 2, 3, 4, 15, 24, 26, 27];
/// Commands of prctl(2) that name threads and memory.
const NAMES: [u64; 3] = [libc::PR_SET_NAME as u64, libc::PR_GET_NAME as u64, libc::PR_SET_VMA as u64];

/// Permits only the listed system calls and `more` to this thread.
fn few_calls(more: &[i64]) -> Result<(), String> {
    // A filter cannot read the flags of `clone3`, which are in memory. With ENOSYS libc uses `clone` instead.
    let refused = BTreeMap::from([(libc::SYS_clone3, vec![])]);
    install(refused, SeccompAction::Allow, SeccompAction::Errno(libc::ENOSYS as u32))?;
    let any = ANY.iter().chain(OLD).chain(more).map(|call| (*call, vec![]));
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = any.collect();
    let (thread, executable) = (libc::CLONE_THREAD as u64, libc::PROT_EXEC as u64);
    rules.insert(libc::SYS_clone, vec![argument(0, SeccompCmpOp::MaskedEq(thread), thread)?]);
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        rules.insert(call, vec![argument(2, SeccompCmpOp::MaskedEq(executable), 0)?]);
    }
    for (call, commands) in [(libc::SYS_bpf, &OF_MAPS[..]), (libc::SYS_prctl, &NAMES[..])] {
        let command = |command: &u64| argument(0, SeccompCmpOp::Eq, *command);
        rules.insert(call, commands.iter().map(command).collect::<Result<_, _>>()?);
    }
    install(rules, SeccompAction::Errno(libc::EPERM as u32), SeccompAction::Allow)
}

/// Makes a rule about one argument.
fn argument(number: u8, compare: SeccompCmpOp, value: u64) -> Result<SeccompRule, String> {
    let condition = SeccompCondition::new(number, SeccompCmpArgLen::Dword, compare, value);
    condition.and_then(|condition| SeccompRule::new(vec![condition])).map_err(|e| e.to_string())
}

fn install(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    otherwise: SeccompAction,
    listed: SeccompAction,
) -> Result<(), String> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH).map_err(|e| e.to_string())?;
    let filter = SeccompFilter::new(rules, otherwise, listed, architecture);
    let program: BpfProgram = filter.and_then(BpfProgram::try_from).map_err(|e| e.to_string())?;
    apply_filter(&program).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{fstat, openat, Mode, OFlags};
    use std::fs::File;

    /// Runs a test in its own thread, because the test confines the thread for good.
    fn in_thread(test: impl FnOnce() + Send + 'static) {
        std::thread::spawn(test).join().unwrap();
    }

    #[test]
    fn an_engine_reaches_no_file_no_socket_and_no_program() {
        in_thread(|| {
            let missing = confine_engine(capability::Set::empty()).unwrap();
            assert!(File::open("/etc/hostname").is_err() && File::open("/proc/self/status").is_err());
            assert!(std::net::UdpSocket::bind("127.0.0.1:0").is_err());
            assert!(std::process::Command::new("/bin/true").status().is_err());
            assert_eq!(capability::have().unwrap(), capability::Set::empty());
            // Memory, threads and time are allowed.
            let sum = std::thread::spawn(|| vec![1u64; 1 << 20].iter().sum::<u64>()).join().unwrap();
            assert_eq!(sum, 1 << 20);
            std::thread::sleep(std::time::Duration::from_millis(1));
            assert!(missing.len() <= 3, "{missing:?}");
        });
    }

    #[test]
    fn an_engine_of_root_has_a_user_that_owns_nothing() {
        if !crate::sys::testing::privileged() {
            return;
        }
        in_thread(|| {
            confine_engine(capability::Set::empty()).unwrap();
            let user = rustix::process::geteuid().as_raw();
            assert!(user >= USERS && rustix::process::getuid().as_raw() == user, "{user}");
        });
    }

    #[test]
    fn a_writer_has_one_directory() {
        let path = std::env::temp_dir().join(format!("weir-writer-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let directory = File::open(&path).unwrap();
        let inside = path.join("x");
        in_thread(move || {
            confine_writer(&directory).unwrap();
            let flags = OFlags::CREATE | OFlags::WRONLY;
            let file = openat(&directory, "x", flags, Mode::RUSR | Mode::WUSR).unwrap();
            assert_eq!(rustix::io::write(&file, b"text").unwrap(), 4);
            assert!(fstat(&file).is_ok());
            // Landlock may be missing; without root, the file cannot be written anyway.
            let _ =
                openat(rustix::fs::CWD, "/etc/weir-test", flags, Mode::RUSR).map(|_| unreachable!("written"));
        });
        assert_eq!(std::fs::read(&inside).unwrap(), b"text");
        std::fs::remove_dir_all(path).unwrap();
    }
}
