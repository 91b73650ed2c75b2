//! The reaction of a listener to a failed accept. Most likely no file descriptor is left: the call
//! fails at once and the listener stays ready, so a loop without a pause would use a whole core.

use std::io;
use std::time::Duration;

use rustix::process::{Resource, getrlimit};

/// The pause after a failure.
const PAUSE: Duration = Duration::from_millis(100);

/// The share of the process's file descriptors that the peers of one listener may take, as a
/// divisor: ports, logs and other listeners need some, too.
const SHARE: u64 = 4;

/// The failures of a listener.
#[derive(Debug)]
pub(crate) struct AcceptPause {
    listener: &'static str,
    /// The failures since the last success.
    failures: u64,
}

impl AcceptPause {
    /// Returns the state of a listener without failures.
    pub(crate) const fn new(listener: &'static str) -> Self {
        Self {
            listener,
            failures: 0,
        }
    }

    /// Returns the accepted value. After a failure, logs it and waits; only each doubling is logged.
    pub(crate) async fn check<T>(&mut self, accepted: io::Result<T>) -> Option<T> {
        match accepted {
            Ok(accepted) => {
                self.failures = 0;
                Some(accepted)
            }
            // The peer gave up: the next accept may succeed at once.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => None,
            Err(error) => {
                self.failures += 1;
                if self.failures.is_power_of_two() {
                    let (listener, failures) = (self.listener, self.failures);
                    tracing::warn!(%error, failures, "cannot accept a connection for {listener}");
                }
                tokio::time::sleep(PAUSE).await;
                None
            }
        }
    }
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
    use super::*;

    #[test]
    fn failed_accept_pauses_and_success_resets() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.expect("a runtime").block_on(async {
            let mut pause = AcceptPause::new("tests");
            let begun = tokio::time::Instant::now();
            for failures in 1..=2 {
                let error = io::Error::from_raw_os_error(24);
                assert_eq!(pause.check::<()>(Err(error)).await, None);
                assert_eq!(pause.failures, failures);
            }
            assert!(begun.elapsed() >= 2 * PAUSE);
            assert_eq!(pause.check(Ok(7)).await, Some(7));
            assert_eq!(pause.failures, 0);
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
