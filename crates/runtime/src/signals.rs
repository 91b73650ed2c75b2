//! Signals: SIGTERM and SIGINT end the switch, SIGHUP reloads its configuration file.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

use super::inbox::{Inbox, Input};

/// Follows signals until the runtime ends. Must be called within the runtime.
pub(crate) fn follow(inbox: Inbox) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        loop {
            let input = tokio::select! {
                _ = terminate.recv() => Input::Stop,
                _ = interrupt.recv() => Input::Stop,
                _ = hang_up.recv() => Input::Reload,
            };
            inbox.send(input);
        }
    });
    Ok(())
}
