//! How the kernel's scheduler treats the calling thread: for how long it goes on at a
//! stretch where others want the same core.
//!
//! Not here: which core it is on (`process`), and when it gives way by itself, for which
//! the standard library has a call.

use std::io;
use std::time::Duration;

/// Asks that the calling thread be given its share of a core in stretches of this length
/// (`sched_setattr(2)`, `sched_runtime`; Linux 6.12 and later, which keep it between
/// 100 us and 100 ms). A thread of shorter stretches gets no more of the core; it gets it
/// sooner when it wakes up, and has less to lose when it gives way. Older kernels take no
/// notice. Policy and niceness stay as they are.
///
/// # Errors
/// `ENOSYS`, `EPERM`: the kernel, or a filter of system calls, does not let it.
pub fn set_time_slice(slice: Duration) -> io::Result<()> {
    let mut attributes = attributes()?;
    attributes.sched_runtime = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
    // SAFETY: the structure is initialised and says how long it is; the kernel reads no more
    // of it. Thread 0 is the calling one.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    check(result)
}

/// What holds of the calling thread now.
fn attributes() -> io::Result<libc::sched_attr> {
    let mut attributes = libc::sched_attr {
        size: ATTRIBUTES_LEN,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel writes at most the length that it is told into the structure, which
    // has it; all bit patterns are values of its fields.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            0,
            &raw mut attributes,
            ATTRIBUTES_LEN,
            0,
        )
    };
    check(result).map(|()| attributes)
}

fn check(result: libc::c_long) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The length of the structure in its first version, which all kernels know.
#[expect(
    clippy::cast_possible_truncation,
    reason = "it is some fifty bytes long"
)]
const ATTRIBUTES_LEN: u32 = size_of::<libc::sched_attr>() as u32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_slice_is_set_without_other_changes() {
        let before = attributes().unwrap();
        set_time_slice(Duration::from_micros(100)).unwrap();
        let after = attributes().unwrap();
        assert_eq!(
            (after.sched_policy, after.sched_nice, after.sched_flags),
            (before.sched_policy, before.sched_nice, before.sched_flags)
        );
        // A kernel that takes no notice says what it said before.
        assert!([100_000, before.sched_runtime].contains(&after.sched_runtime));
    }

    #[test]
    fn time_slice_of_any_length_is_accepted() {
        for slice in [Duration::ZERO, Duration::MAX] {
            set_time_slice(slice).unwrap();
        }
    }
}
