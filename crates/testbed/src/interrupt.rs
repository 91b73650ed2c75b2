//! The user's wish to stop, and the signals that carry it.
//!
//! The first Ctrl-C (or SIGTERM) asks: the test under way is given up, and what was
//! measured before it is kept and reported. The second ends the program; children
//! and namespaces go with it. SIGHUP is left as it is, for the sake of nohup(1).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, thread};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit code of a program that was interrupted, by the shells' convention (128 + SIGINT).
pub const INTERRUPTED: u8 = 130;

/// Whether the user wants to stop.
#[derive(Clone, Debug)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
}

impl Interrupt {
    /// A wish that no signal brings; [`Interrupt::ask`] does.
    #[must_use]
    pub fn never() -> Self {
        Self {
            asked: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Listens for signals from now on.
    ///
    /// # Errors
    /// The system has no room for a thread or a handler.
    pub fn on_signals() -> io::Result<Self> {
        let interrupt = Self::never();
        let asked = Arc::clone(&interrupt.asked);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        let signals = {
            // Handlers can only be installed within the runtime that will serve them.
            let _inside = runtime.enter();
            Signals {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
            }
        };
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || runtime.block_on(listen(signals, &asked)))?;
        Ok(interrupt)
    }

    /// Asks to stop, as the first signal does.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Whether the user has asked to stop.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
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

async fn listen(mut signals: Signals, asked: &AtomicBool) {
    signals.next().await;
    asked.store(true, Ordering::Relaxed);
    signals.next().await;
    leave();
}

#[expect(
    clippy::exit,
    reason = "the user asked twice, and nothing must be waited for"
)]
fn leave() -> ! {
    std::process::exit(i32::from(INTERRUPTED))
}
