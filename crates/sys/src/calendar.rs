//! What the clocks of this place show.

use std::mem::MaybeUninit;
use std::time::Duration;

/// How many seconds the clocks of this place are ahead of Greenwich's at that moment, which is
/// told as the time since 1970; 0 if nobody knows.
#[must_use]
pub fn local(moment: Duration) -> i64 {
    let Ok(seconds) = libc::time_t::try_from(moment.as_secs()) else {
        return 0;
    };
    let mut told = MaybeUninit::<libc::tm>::uninit();
    // SAFETY: both pointers are of things that live until the call returns; the second is
    // written only if the call returns it.
    let done = unsafe { libc::localtime_r(&raw const seconds, told.as_mut_ptr()) };
    if done.is_null() {
        return 0;
    }
    // SAFETY: localtime_r(3) has written all of it, since it did not return null.
    unsafe { told.assume_init() }.tm_gmtoff
}
