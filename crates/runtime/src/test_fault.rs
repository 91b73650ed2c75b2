//! Faults that tests inject into a thread: a panic, or a stall.

use std::sync::mpsc;
use std::time::Duration;

/// The limit of a stall.
pub(crate) const STALL_MAX: Duration = Duration::from_secs(60);

/// A fault of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestFault {
    /// The thread panics.
    Panic,
    /// The thread does nothing for this time.
    Stall(Duration),
}

impl TestFault {
    /// Has its effect on the calling thread.
    pub(crate) fn occur(self) {
        match self {
            Self::Panic => panic!("requested by comporta/panic"),
            Self::Stall(time) => {
                // Unlike parking, this wait does not end when another thread wakes this one.
                let (_sender, receiver) = mpsc::channel::<()>();
                // The sender lives, so the only result is the end of the time.
                let _ = receiver.recv_timeout(time);
            }
        }
    }
}

/// Garbage that has a fault when it is freed.
pub(crate) struct FaultyGarbage(pub(crate) TestFault);

impl Drop for FaultyGarbage {
    fn drop(&mut self) {
        self.0.occur();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "requested by comporta/panic")]
    fn panic_fault_panics() {
        TestFault::Stall(Duration::ZERO).occur();
        TestFault::Panic.occur();
    }
}
