//! The control thread's interface for tasks of other crates.

use std::sync::Arc;

use config::Config;
use tokio::sync::{Notify, oneshot};

use crate::clock::Clock;
use crate::facts::Facts;
use crate::flushes::{FlushRequest, Flushes};
use crate::inbox::{Inbox, Input};

/// A handle of the control thread: it takes configurations and returns facts.
#[derive(Clone)]
pub struct ControlHandle {
    inbox: Inbox,
    facts_changed: Arc<Notify>,
    flushes: Arc<Flushes>,
    clock: Clock,
}

impl ControlHandle {
    pub(crate) fn new(
        inbox: Inbox,
        (facts_changed, flushes): (Arc<Notify>, Arc<Flushes>),
        clock: Clock,
    ) -> Self {
        Self {
            inbox,
            facts_changed,
            flushes,
            clock,
        }
    }

    /// Returns the clock of the switch.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Applies `config` as far as possible. `None` if the switch ends.
    pub async fn configure(&self, config: Config) -> Option<()> {
        let (done, wait) = oneshot::channel();
        self.inbox.send(Input::Configure(Box::new(config), done));
        wait.await.ok()
    }

    /// Returns the state of all bridges. `None` if the switch ends.
    pub async fn facts(&self) -> Option<Facts> {
        let (answer, wait) = oneshot::channel();
        self.inbox.send(Input::Facts(answer));
        wait.await.ok()
    }

    /// Waits until the facts have changed.
    pub async fn changed(&self) {
        self.facts_changed.notified().await;
    }

    /// Announces that the caller writes the facts somewhere, or no longer does. While it does,
    /// [`ControlHandle::flush_request`] returns the requests to write them at once.
    pub fn set_writing(&self, writes: bool) {
        self.flushes.set_served(writes);
    }

    /// Waits for a request to write the facts at once. The caller completes the request when it
    /// has written them.
    pub async fn flush_request(&self) -> FlushRequest {
        self.flushes.next().await
    }
}
