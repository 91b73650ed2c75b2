//! Requests to write the facts at once, instead of collecting changes: tests warp the clock and
//! then read the database.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use std::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::Notify;

use crate::test_fault::TestFault;

/// The time limit for the writer of the facts.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The requests that the writer of the facts has not taken.
#[derive(Debug, Default)]
pub(crate) struct Flushes {
    requests: Mutex<Vec<FlushRequest>>,
    is_new: Notify,
    /// True if there is a writer.
    is_served: AtomicBool,
}

/// A request; its end completes it.
#[derive(Debug)]
pub struct FlushRequest {
    _completed: Sender<()>,
    /// A fault of the task that takes the request.
    fault: Option<TestFault>,
}

/// The wait for a request to be completed.
#[derive(Debug)]
pub(crate) struct FlushWait(Option<Receiver<()>>);

impl Flushes {
    /// Sets whether there is a writer. Without one, requests are complete.
    pub(crate) fn set_served(&self, is_served: bool) {
        self.is_served.store(is_served, Ordering::Relaxed);
        if !is_served {
            self.requests().clear();
        }
    }

    /// Requests that the facts are written.
    pub(crate) fn request(&self) -> FlushWait {
        self.request_with(None)
    }

    /// Injects a fault into the task that writes the facts. Returns false if there is none.
    pub(crate) fn inject(&self, fault: TestFault) -> bool {
        self.request_with(Some(fault)).0.is_some()
    }

    fn request_with(&self, fault: Option<TestFault>) -> FlushWait {
        if !self.is_served.load(Ordering::Relaxed) {
            return FlushWait(None);
        }
        let (completed, wait) = channel();
        self.requests().push(FlushRequest {
            _completed: completed,
            fault,
        });
        self.is_new.notify_one();
        FlushWait(Some(wait))
    }

    /// Waits for the next request.
    pub(crate) async fn next(&self) -> FlushRequest {
        loop {
            let next = self.requests().pop();
            match next {
                Some(next) => {
                    if let Some(fault) = next.fault {
                        fault.occur();
                    }
                    return next;
                }
                None => self.is_new.notified().await,
            }
        }
    }

    fn requests(&self) -> std::sync::MutexGuard<'_, Vec<FlushRequest>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FlushWait {
    /// Waits until the request is complete, or for some seconds.
    pub(crate) fn wait(self) {
        if let Some(wait) = self.0 {
            // The sender is dropped, it never sends.
            let _ = wait.recv_timeout(TIMEOUT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flush_completes_when_the_writer_drops_the_request() {
        let flushes = Flushes::default();
        flushes.request().wait();
        flushes.set_served(true);
        let wait = flushes.request();
        let request = flushes.requests().pop();
        let receiver = wait.0.expect("there is a writer");
        assert!(receiver.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty));
        drop(request);
        assert!(receiver.try_recv() == Err(std::sync::mpsc::TryRecvError::Disconnected));
        let wait = flushes.request();
        flushes.set_served(false);
        wait.wait();
    }
}
