//! The filter of system calls (seccomp(2)): a list of the calls that a switch makes. Any other one
//! ends the process, and the kernel's audit log has its number.
//!
//! The list omits the calls that start programs, change the user, the namespaces, the mounts or the
//! root directory, load modules, and read the memory of other processes. The filter covers all
//! threads, and those that start later. Capabilities decide if an allowed call succeeds: `bpf(2)`
//! needs CAP_BPF. Not here: arguments of calls, except the address family of sockets.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use config::ConfigError;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter_all_threads,
};

use crate::error::DaemonError;

/// The reaction to a system call that is not in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyscallFilter {
    /// No filter.
    Off,
    /// The call is executed, and the kernel logs it: to find calls that the list lacks.
    Log,
    /// The kernel ends the process by SIGSYS, and logs the call. A monitor restarts the process.
    Kill,
}

impl SyscallFilter {
    /// The filter of a process without the option: on if the process changes its user, unless it has
    /// DPDK, whose drivers make further calls.
    #[must_use]
    pub const fn default_of(changes_user: bool) -> Self {
        match changes_user && !dpdk::IS_ENABLED {
            true => Self::Kill,
            false => Self::Off,
        }
    }

    /// Applies the filter to all threads of the process, for good.
    ///
    /// # Errors
    /// The kernel has no filters, or this processor is not supported.
    pub fn apply(self) -> Result<(), DaemonError> {
        let mismatch = match self {
            Self::Off => return Ok(()),
            Self::Log => SeccompAction::Log,
            Self::Kill => SeccompAction::KillProcess,
        };
        let failed = |error: seccompiler::Error| DaemonError::System {
            what: "filtering system calls (--seccomp=off disables the filter)",
            error: std::io::Error::other(error),
        };
        let program = compile(mismatch).map_err(failed)?;
        apply_filter_all_threads(&program).map_err(failed)?;
        tracing::info!("system calls are filtered: {self}");
        Ok(())
    }
}

impl fmt::Display for SyscallFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Log => "log",
            Self::Kill => "kill",
        })
    }
}

impl FromStr for SyscallFilter {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        match text {
            "off" => Ok(Self::Off),
            "log" => Ok(Self::Log),
            "kill" => Ok(Self::Kill),
            other => Err(ConfigError::new(
                "--seccomp",
                format!("'{other}' is unknown: use kill, log or off"),
            )),
        }
    }
}

fn compile(mismatch: SeccompAction) -> Result<BpfProgram, seccompiler::Error> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        allowed().map(|call| (call, Vec::new())).collect();
    let families = FAMILIES.into_iter().map(|family| {
        let family = u64::try_from(family).unwrap_or_default();
        let equal = SeccompCmpOp::Eq;
        let is_family = SeccompCondition::new(0, SeccompCmpArgLen::Dword, equal, family)?;
        SeccompRule::new(vec![is_family])
    });
    rules.insert(libc::SYS_socket, families.collect::<Result<_, _>>()?);
    let filter = SeccompFilter::new(rules, mismatch, SeccompAction::Allow, arch)?;
    Ok(BpfProgram::try_from(filter)?)
}

/// Returns the allowed calls with any arguments.
fn allowed() -> impl Iterator<Item = i64> {
    let groups = [
        FILES, EVENTS, MEMORY, THREADS, SIGNALS, NETWORK, IDENTITY, OLDER,
    ];
    groups.into_iter().flatten().copied()
}

/// The address families of sockets: `AF_PACKET` and `AF_XDP` for ports, netlink for interfaces,
/// routes and queues.
const FAMILIES: [libc::c_int; 6] = [
    libc::AF_UNIX,
    libc::AF_INET,
    libc::AF_INET6,
    libc::AF_NETLINK,
    libc::AF_PACKET,
    libc::AF_XDP,
];

/// Files: the log, the pidfile, the checkpoint, certificates, and `/proc` and `/sys`.
#[rustfmt::skip]
const FILES: &[i64] = &[
    libc::SYS_read, libc::SYS_readv, libc::SYS_pread64, libc::SYS_preadv, libc::SYS_preadv2,
    libc::SYS_write, libc::SYS_writev, libc::SYS_pwrite64, libc::SYS_pwritev, libc::SYS_pwritev2,
    libc::SYS_openat, libc::SYS_openat2, libc::SYS_close, libc::SYS_close_range, libc::SYS_lseek,
    libc::SYS_dup, libc::SYS_dup3, libc::SYS_fcntl, libc::SYS_flock, libc::SYS_fstat,
    libc::SYS_newfstatat, libc::SYS_statx, libc::SYS_statfs, libc::SYS_fstatfs,
    libc::SYS_getdents64, libc::SYS_faccessat, libc::SYS_faccessat2, libc::SYS_readlinkat,
    libc::SYS_unlinkat, libc::SYS_renameat, libc::SYS_renameat2, libc::SYS_linkat,
    libc::SYS_mkdirat, libc::SYS_fchmod, libc::SYS_fchmodat, libc::SYS_fchown,
    libc::SYS_ftruncate, libc::SYS_fallocate, libc::SYS_fsync, libc::SYS_fdatasync,
    libc::SYS_umask, libc::SYS_getcwd, libc::SYS_chdir, libc::SYS_fchdir,
    libc::SYS_copy_file_range, libc::SYS_sendfile, libc::SYS_splice, libc::SYS_ioctl,
];

/// Waiting for events.
#[rustfmt::skip]
const EVENTS: &[i64] = &[
    libc::SYS_epoll_create1, libc::SYS_epoll_ctl, libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2,
    libc::SYS_ppoll, libc::SYS_pselect6, libc::SYS_eventfd2, libc::SYS_pipe2,
    libc::SYS_timerfd_create, libc::SYS_timerfd_settime, libc::SYS_timerfd_gettime,
    libc::SYS_signalfd4,
];

/// Memory, and the programs and maps of AF_XDP.
#[rustfmt::skip]
const MEMORY: &[i64] = &[
    libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_mprotect, libc::SYS_madvise,
    libc::SYS_mincore, libc::SYS_msync, libc::SYS_brk, libc::SYS_mlock, libc::SYS_mlock2,
    libc::SYS_munlock, libc::SYS_mlockall, libc::SYS_munlockall, libc::SYS_membarrier,
    libc::SYS_mbind, libc::SYS_get_mempolicy, libc::SYS_set_mempolicy, libc::SYS_bpf,
];

/// Threads, their placement and the time.
#[rustfmt::skip]
const THREADS: &[i64] = &[
    libc::SYS_clone, libc::SYS_clone3, libc::SYS_futex, libc::SYS_set_robust_list,
    libc::SYS_get_robust_list, libc::SYS_rseq, libc::SYS_set_tid_address, libc::SYS_exit,
    libc::SYS_exit_group, libc::SYS_sched_yield, libc::SYS_sched_setaffinity,
    libc::SYS_sched_getaffinity, libc::SYS_sched_setattr, libc::SYS_sched_getattr,
    libc::SYS_sched_setscheduler, libc::SYS_sched_getscheduler, libc::SYS_sched_setparam,
    libc::SYS_sched_getparam, libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min, libc::SYS_setpriority, libc::SYS_getpriority,
    libc::SYS_getcpu, libc::SYS_prctl, libc::SYS_nanosleep, libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime, libc::SYS_clock_getres, libc::SYS_gettimeofday,
    libc::SYS_restart_syscall,
];

/// Signals; `tgkill` is that of abort(3).
#[rustfmt::skip]
const SIGNALS: &[i64] = &[
    libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigtimedwait, libc::SYS_rt_sigpending, libc::SYS_sigaltstack, libc::SYS_tgkill,
];

/// Sockets, beside `socket` itself, whose address family is limited.
#[rustfmt::skip]
const NETWORK: &[i64] = &[
    libc::SYS_socketpair, libc::SYS_bind, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4,
    libc::SYS_connect, libc::SYS_getsockname, libc::SYS_getpeername, libc::SYS_setsockopt,
    libc::SYS_getsockopt, libc::SYS_sendto, libc::SYS_sendmsg, libc::SYS_sendmmsg,
    libc::SYS_recvfrom, libc::SYS_recvmsg, libc::SYS_recvmmsg, libc::SYS_shutdown,
];

/// Reading of the process's identity, its limits and the system's state; random numbers.
#[rustfmt::skip]
const IDENTITY: &[i64] = &[
    libc::SYS_getpid, libc::SYS_getppid, libc::SYS_gettid, libc::SYS_getuid, libc::SYS_geteuid,
    libc::SYS_getgid, libc::SYS_getegid, libc::SYS_getgroups, libc::SYS_getresuid,
    libc::SYS_getresgid, libc::SYS_getsid, libc::SYS_getpgid, libc::SYS_capget,
    libc::SYS_prlimit64, libc::SYS_getrusage, libc::SYS_times, libc::SYS_sysinfo,
    libc::SYS_uname, libc::SYS_getrandom, libc::SYS_wait4,
];

/// Older forms of calls, which the C library uses on this processor.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLDER: &[i64] = &[
    libc::SYS_open, libc::SYS_stat, libc::SYS_lstat, libc::SYS_access, libc::SYS_readlink,
    libc::SYS_unlink, libc::SYS_rename, libc::SYS_link, libc::SYS_mkdir, libc::SYS_chmod,
    libc::SYS_getdents, libc::SYS_dup2, libc::SYS_pipe, libc::SYS_poll, libc::SYS_select,
    libc::SYS_epoll_create, libc::SYS_epoll_wait, libc::SYS_eventfd, libc::SYS_arch_prctl,
    libc::SYS_getrlimit, libc::SYS_setrlimit, libc::SYS_getpgrp, libc::SYS_time,
];

/// Older forms of calls, which this processor does not have.
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[i64] = &[];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn filter_compiles_for_this_processor() {
        for action in [SeccompAction::Log, SeccompAction::KillProcess] {
            let program = compile(action).expect("the list is valid");
            assert!(program.len() > FILES.len());
        }
    }

    #[test]
    fn calls_that_start_programs_or_change_rights_are_not_allowed() {
        let allowed: BTreeSet<_> = allowed().collect();
        for call in [
            libc::SYS_execve,
            libc::SYS_execveat,
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_process_vm_writev,
            libc::SYS_setuid,
            libc::SYS_setgid,
            libc::SYS_setresuid,
            libc::SYS_capset,
            libc::SYS_chroot,
            libc::SYS_pivot_root,
            libc::SYS_mount,
            libc::SYS_umount2,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_init_module,
            libc::SYS_finit_module,
            libc::SYS_kexec_load,
            libc::SYS_reboot,
            libc::SYS_io_uring_setup,
            libc::SYS_userfaultfd,
            libc::SYS_keyctl,
            libc::SYS_perf_event_open,
            libc::SYS_open_by_handle_at,
            libc::SYS_socket,
        ] {
            assert!(!allowed.contains(&call), "{call}");
        }
    }

    #[test]
    fn names_of_filters_round_trip_and_others_are_refused() {
        for filter in [SyscallFilter::Off, SyscallFilter::Log, SyscallFilter::Kill] {
            let read: SyscallFilter = filter.to_string().parse().expect("its own name");
            assert_eq!(read, filter);
        }
        let error = "errno".parse::<SyscallFilter>().expect_err("unknown");
        assert!(error.to_string().contains("--seccomp"));
        assert_eq!(SyscallFilter::default_of(false), SyscallFilter::Off);
    }

    #[test]
    fn call_outside_the_list_ends_a_process_with_the_filter() {
        // A thread of its own would not do: the action ends the whole process. The filter of a
        // thread alone, with another action, shows the same decision.
        let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let program = compile(refuse).expect("the list is valid");
        let thread = std::thread::spawn(move || {
            seccompiler::apply_filter(&program).expect("the kernel has filters");
            let child = std::process::Command::new("/bin/true").status();
            let socket = std::net::UdpSocket::bind("127.0.0.1:0");
            let file = std::fs::read("/proc/self/status");
            (child.is_err(), socket.is_ok(), file.is_ok())
        });
        assert_eq!(thread.join().expect("it ends"), (true, true, true));
    }
}
