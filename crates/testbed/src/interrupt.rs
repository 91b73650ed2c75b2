//! The user's request to stop, by signals.
//!
//! The first Ctrl-C (or SIGTERM) is a request: the trial in progress is abandoned, and the results
//! before it are kept and reported. The second ends the program; its children and namespaces end
//! with it. SIGHUP keeps its default, for nohup(1).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, thread};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Exit code of an interrupted program, by the shells' convention (128 + SIGINT).
pub const INTERRUPTED: u8 = 130;

/// The request to stop, if there is one.
#[derive(Clone, Debug)]
pub struct Interrupt {
    requested: Arc<AtomicBool>,
}

impl Interrupt {
    /// Creates a request without signals; [`Interrupt::request`] makes it.
    #[must_use]
    pub fn never() -> Self {
        Self {
            requested: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Installs the signal handlers.
    ///
    /// # Errors
    /// The system cannot start a thread or install a handler.
    pub fn on_signals() -> io::Result<Self> {
        let interrupt = Self::never();
        let requested = Arc::clone(&interrupt.requested);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        let signals = {
            // Handlers can only be installed within the runtime that will run them.
            let _inside = runtime.enter();
            Signals {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
            }
        };
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || runtime.block_on(listen(signals, &requested)))?;
        Ok(interrupt)
    }

    /// Requests to stop, as the first signal does.
    pub fn request(&self) {
        self.requested.store(true, Ordering::Relaxed);
    }

    /// True if a stop was requested.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

async fn listen(mut signals: Signals, requested: &AtomicBool) {
    signals.next().await;
    requested.store(true, Ordering::Relaxed);
    signals.next().await;
    leave();
}

#[expect(clippy::exit, reason = "the second signal ends the program at once")]
fn leave() -> ! {
    std::process::exit(i32::from(INTERRUPTED))
}
