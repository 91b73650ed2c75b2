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
const THREADS_MAX: usize = 64;

/// Applies `work` to each item and returns the results in the order of the items.
pub(crate) fn map<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    if items.len() < 2 {
        return items.into_iter().map(work).collect();
    }
    let count = items.len().min(THREADS_MAX);
    let items: Vec<_> = items
        .into_iter()
        .map(|item| Mutex::new((Some(item), None)))
        .collect();
    let next = AtomicUsize::new(0);
    let work_loop = || {
        while let Some(slot) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            slot.1 = slot.0.take().map(&work);
        }
    };
    thread::scope(|scope| {
        for _ in 1..count {
            // If no further thread can be started, the existing ones do all the work.
            if thread::Builder::new()
                .name("parallel".into())
                .spawn_scoped(scope, work_loop)
                .is_err()
            {
                break;
            }
        }
        work_loop();
    });
    let result = |slot: Mutex<(Option<T>, Option<R>)>| {
        let (_, result) = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
        result.expect("each item is processed before the threads end")
    };
    items.into_iter().map(result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::map;

    #[test]
    fn results_keep_order_of_items() {
        for count in [0, 1, 2, 63, 64, 65, 1000] {
            let result = map((0..count).collect(), |item: usize| item * 2);
            let wanted: Vec<_> = (0..count).map(|item| item * 2).collect();
            assert_eq!(result, wanted);
        }
    }

    #[test]
    fn items_run_concurrently() {
        let together = Barrier::new(8);
        let result = map((0..8).collect(), |item: usize| {
            together.wait();
            item
        });
        assert_eq!(result.len(), 8);
    }
}
