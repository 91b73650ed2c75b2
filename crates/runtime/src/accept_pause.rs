//! The reaction of a listener to a failed accept. Most likely no file descriptor is left: the call
//! fails at once and the listener stays ready, so a loop without a pause would use a whole core.
//!
//! The process keeps a spare descriptor for that case. Without it, peers would wait in the backlog
//! for an answer that may never arrive; with it, each is accepted and disconnected at once.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// The pause after a failure.
const PAUSE: Duration = Duration::from_millis(100);

/// The pause after the refusal of a peer: it may connect again at once.
const REFUSAL_PAUSE: Duration = Duration::from_millis(10);

/// The share of the process's file descriptors that the peers of one listener may take, as a
/// divisor: ports, logs and other listeners need some, too.
const SHARE: u64 = 4;

/// The spare descriptor of the process, for all listeners.
static SPARE: SpareDescriptor = SpareDescriptor::new(|| eventfd(0, EventfdFlags::CLOEXEC));

/// A descriptor that is closed while no other is left.
#[derive(Debug)]
struct SpareDescriptor {
    descriptor: Mutex<Option<OwnedFd>>,
    /// Opens any descriptor.
    open: fn() -> Result<OwnedFd, Errno>,
}

impl SpareDescriptor {
    const fn new(open: fn() -> Result<OwnedFd, Errno>) -> Self {
        Self {
            descriptor: Mutex::new(None),
            open,
        }
    }

    /// Opens the descriptor unless it is open. Returns false if none is left.
    fn keep(&self) -> bool {
        let mut descriptor = self
            .descriptor
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if descriptor.is_none() {
            *descriptor = (self.open)().ok();
        }
        descriptor.is_some()
    }

    /// Closes the descriptor. Returns false if it was not open.
    fn release(&self) -> bool {
        let descriptor = self
            .descriptor
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        descriptor.is_some()
    }
}

/// The failures of a listener.
#[derive(Debug)]
pub(crate) struct AcceptPause {
    listener: &'static str,
    spare: &'static SpareDescriptor,
    /// The failures since the last success.
    failures: u64,
}

impl AcceptPause {
    /// Returns the state of a listener without failures.
    pub(crate) fn new(listener: &'static str) -> Self {
        Self::with_spare(listener, &SPARE)
    }

    fn with_spare(listener: &'static str, spare: &'static SpareDescriptor) -> Self {
        // If none is left already, a later call opens it.
        spare.keep();
        Self {
            listener,
            spare,
            failures: 0,
        }
    }

    /// Returns the accepted value, unless it took the last descriptor: then the peer is
    /// disconnected. Logs a failure and waits; only each doubling is logged.
    pub(crate) async fn check<T>(&mut self, accepted: io::Result<T>) -> Option<T> {
        let (error, pause) = match accepted {
            Ok(accepted) if self.spare.keep() => {
                self.failures = 0;
                return Some(accepted);
            }
            Ok(last) => {
                drop(last);
                self.spare.keep();
                (io::Error::from(Errno::MFILE), REFUSAL_PAUSE)
            }
            // The peer gave up: the next accept may succeed at once.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => return None,
            // The next accept succeeds, unless another thread takes the descriptor.
            Err(error) if is_exhausted(&error) && self.spare.release() => (error, Duration::ZERO),
            Err(error) => (error, PAUSE),
        };
        self.record_failure(&error);
        tokio::time::sleep(pause).await;
        None
    }

    fn record_failure(&mut self, error: &io::Error) {
        self.failures += 1;
        if self.failures.is_power_of_two() {
            let (listener, failures) = (self.listener, self.failures);
            tracing::warn!(%error, failures, "cannot accept a connection for {listener}");
        }
    }
}

/// Returns true if the process or the system has no file descriptor left.
fn is_exhausted(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| [Errno::MFILE, Errno::NFILE].contains(&errno))
}

/// Returns the limit of peers of one listener: `most`, or fewer if the process may open few files.
pub(crate) fn peers_max(most: usize) -> usize {
    limit_of(most, getrlimit(Resource::Nofile).current)
}

fn limit_of(most: usize, files: Option<u64>) -> usize {
    let share = files.map_or(u64::MAX, |files| files / SHARE).max(1);
    most.min(usize::try_from(share).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    fn block_on(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.expect("a runtime").block_on(test);
    }

    #[test]
    fn failed_accept_pauses_and_success_resets() {
        block_on(async {
            let mut pause = AcceptPause::new("tests");
            let begun = Instant::now();
            for failures in 1..=2 {
                let error = Errno::NOMEM.into();
                assert_eq!(pause.check::<()>(Err(error)).await, None);
                assert_eq!(pause.failures, failures);
            }
            assert!(begun.elapsed() >= 2 * PAUSE);
            assert_eq!(pause.check(Ok(7)).await, Some(7));
            assert_eq!(pause.failures, 0);
        });
    }

    #[test]
    fn spare_descriptor_is_released_for_the_next_accept() {
        static FREE: SpareDescriptor = SpareDescriptor::new(|| eventfd(0, EventfdFlags::CLOEXEC));
        block_on(async {
            let mut pause = AcceptPause::with_spare("tests", &FREE);
            let is_kept = || FREE.descriptor.lock().expect("no panic").is_some();
            assert!(is_kept());
            let error = Errno::MFILE.into();
            assert_eq!(pause.check::<()>(Err(error)).await, None);
            assert!(!is_kept());
            // Another thread took it: the listener waits.
            let begun = Instant::now();
            let error = Errno::MFILE.into();
            assert_eq!(pause.check::<()>(Err(error)).await, None);
            assert!(begun.elapsed() >= PAUSE);
            assert_eq!(pause.check(Ok(7)).await, Some(7));
            assert!(is_kept());
        });
    }

    #[test]
    fn peer_with_the_last_descriptor_is_disconnected() {
        static EXHAUSTED: SpareDescriptor = SpareDescriptor::new(|| Err(Errno::MFILE));
        block_on(async {
            let mut pause = AcceptPause::with_spare("tests", &EXHAUSTED);
            assert_eq!(pause.check(Ok(7)).await, None);
            assert_eq!(pause.failures, 1);
        });
    }

    #[test]
    fn peers_leave_descriptors_to_the_rest() {
        assert_eq!(limit_of(2048, Some(65_536)), 2048);
        assert_eq!(limit_of(2048, Some(1024)), 256);
        assert_eq!(limit_of(2048, Some(0)), 1);
        assert_eq!(limit_of(2048, None), 2048);
    }
}
