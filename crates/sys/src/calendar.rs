//! The offset of local time from UTC.

use std::mem::MaybeUninit;
use std::time::Duration;

/// Returns the offset of local time from UTC, in seconds, at a time since 1970; zero if the system
/// does not know it.
#[must_use]
pub fn local(moment: Duration) -> i64 {
    let Ok(seconds) = libc::time_t::try_from(moment.as_secs()) else {
        return 0;
    };
    let mut broken_down = MaybeUninit::<libc::tm>::uninit();
    // SAFETY: both pointers are of things that live until the call returns; the second is
    // written only if the call returns it.
    let done = unsafe { libc::localtime_r(&raw const seconds, broken_down.as_mut_ptr()) };
    if done.is_null() {
        return 0;
    }
    // SAFETY: localtime_r(3) has written all of it, since it did not return null.
    unsafe { broken_down.assume_init() }.tm_gmtoff
}
