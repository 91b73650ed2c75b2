//! Many things that wait for the kernel, done by several threads at once: to open a packet
//! socket or to close one takes it some milliseconds, of which the processor is wanted for
//! next to none. What is done one after the other by one who waits takes minutes where there
//! are thousands of ports.
//!
//! Not a pool: the threads are gone when all is done. One thing is done on the spot.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The most threads. They wait together for what the kernel does for all of them at once
/// (its RCU grace periods), so more than there are cores help; beyond some dozens they only
/// wait for one another, for the lock of the kernel's interfaces.
const HANDS_MAX: usize = 64;

/// Does `work` with each of `things`, and says in their order what came of it.
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
            // Were there no thread left to be had, those that there are do it all.
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
    fn what_comes_of_things_stands_in_their_order() {
        for count in [0, 1, 2, 63, 64, 65, 1000] {
            let done = each((0..count).collect(), |thing: usize| thing * 2);
            let wanted: Vec<_> = (0..count).map(|thing| thing * 2).collect();
            assert_eq!(done, wanted);
        }
    }

    #[test]
    fn things_that_wait_for_each_other_are_under_way_together() {
        let together = Barrier::new(8);
        let done = each((0..8).collect(), |thing: usize| {
            together.wait();
            thing
        });
        assert_eq!(done.len(), 8);
    }
}
