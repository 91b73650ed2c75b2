//! Time slice of the calling thread, for cores that several threads compete for.
//!
//! Not here: affinity (`process`) and yielding, which the standard library has.

use std::io;
use std::time::Duration;

/// Requests time slices of this length for the calling thread (`sched_setattr(2)`, `sched_runtime`;
/// Linux 6.12 and later, which clamps it to 100 us to 100 ms). A thread with shorter slices
/// receives the same share of the core; it runs sooner after a wake-up and loses less when it
/// yields. Older kernels ignore the value. Policy and niceness stay unchanged.
///
/// # Errors
/// `ENOSYS`, `EPERM`: the kernel or a system call filter refuses the call.
pub fn set_time_slice(slice: Duration) -> io::Result<()> {
    let mut attributes = attributes()?;
    attributes.sched_runtime = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
    // SAFETY: the structure is initialised and contains its length; the kernel reads no more than
    // that. Thread 0 is the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    check(result)
}

/// Returns the current attributes of the calling thread.
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
    // SAFETY: the kernel writes at most `ATTRIBUTES_LEN` bytes into the structure, which is that
    // long; all bit patterns are values of its fields.
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

/// Length of the structure's first version, which every kernel accepts.
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
        // A kernel that ignores the value reports the previous one.
        assert!([100_000, before.sched_runtime].contains(&after.sched_runtime));
    }

    #[test]
    fn time_slice_of_any_length_is_accepted() {
        for slice in [Duration::ZERO, Duration::MAX] {
            set_time_slice(slice).unwrap();
        }
    }
}
