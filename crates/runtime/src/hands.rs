//! A short-lived set of threads for system calls that wait in the kernel. To open or to close a
//! packet socket takes some milliseconds, of which the processor is busy for almost none; one after
//! the other, thousands of ports would take minutes.
//!
//! Not a pool: the threads end with the work. A single item runs on the calling thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The limit of threads. They wait together for one grace period of the kernel's RCU, so more
/// threads than cores help; beyond a few dozen they only wait for each other, at the kernel's RTNL
/// lock.
const HANDS_MAX: usize = 64;

/// Applies `work` to each item and returns the results in the order of the items.
pub(crate) fn each<T: Send, R: Send>(things: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    if things.len() < 2 {
        return things.into_iter().map(work).collect();
    }
    let count = things.len().min(HANDS_MAX);
    let things: Vec<_> = things
        .into_iter()
        .map(|thing| Mutex::new((Some(thing), None)))
        .collect();
    let next = AtomicUsize::new(0);
    let hand = || {
        while let Some(place) = things.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
            place.1 = place.0.take().map(&work);
        }
    };
    thread::scope(|scope| {
        for _ in 1..count {
            // If no further thread can be started, the existing ones do all the work.
            if thread::Builder::new()
                .name("hand".into())
                .spawn_scoped(scope, hand)
                .is_err()
            {
                break;
            }
        }
        hand();
    });
    let done = |place: Mutex<(Option<T>, Option<R>)>| {
        let (_, done) = place.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.expect("each thing is taken by a hand, and hands end when none is left")
    };
    things.into_iter().map(done).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::each;

    #[test]
    fn results_keep_order_of_items() {
        for count in [0, 1, 2, 63, 64, 65, 1000] {
            let done = each((0..count).collect(), |thing: usize| thing * 2);
            let wanted: Vec<_> = (0..count).map(|thing| thing * 2).collect();
            assert_eq!(done, wanted);
        }
    }

    #[test]
    fn items_run_concurrently() {
        let together = Barrier::new(8);
        let done = each((0..8).collect(), |thing: usize| {
            together.wait();
            thing
        });
        assert_eq!(done.len(), 8);
    }
}
