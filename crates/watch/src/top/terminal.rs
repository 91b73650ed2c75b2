//! The terminal: set up, drawn on, and restored at every exit.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use control_api::telemetry::Telemetry;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::TopOptions;
use super::draw::draw;
use super::sheet::RowOrder;
use super::view::{KeyRequest, TopView};
use crate::clock;
use crate::error::WatchError;
use crate::target::SwitchTarget;

/// The maximum time to wait for a key before replies and signals are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Exit code after SIGHUP, as shells report it: 128 plus the number of the signal.
const HANGUP_EXIT_CODE: i32 = 128 + SIGHUP;

/// Runs the interactive screen.
pub(super) fn run(options: TopOptions, order: Option<RowOrder>) -> Result<(), WatchError> {
    // If the switch does not answer the first request, the error is printed without a screen.
    let first = options.target.telemetry(options.rules)?;
    let mut view = TopView::new(options.interval, options.target.bridge.clone(), order);
    view.handle_reply(Ok(first));
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let registered = signal_hook::flag::register(signal, Arc::clone(&interrupted));
        registered.map_err(WatchError::io("signals"))?;
    }
    // A closed terminal needs no restoring, and crossterm reads its end in an endless loop.
    let always = Arc::new(AtomicBool::new(true));
    let registered =
        signal_hook::flag::register_conditional_shutdown(SIGHUP, HANGUP_EXIT_CODE, always);
    registered.map_err(WatchError::io("signals"))?;
    let requests = RequestThread::start(options.target, options.rules);
    // It also restores the terminal before the message of a panic.
    let mut terminal = ratatui::try_init().map_err(WatchError::io("the terminal"))?;
    let shown = show(&mut terminal, &mut view, &requests, &interrupted);
    ratatui::restore();
    shown.map_err(WatchError::io("the terminal"))
}

fn show(
    terminal: &mut DefaultTerminal,
    view: &mut TopView,
    requests: &RequestThread,
    interrupted: &AtomicBool,
) -> io::Result<()> {
    let mut due = clock::now() + view.interval;
    let mut changed = true;
    while !interrupted.load(Ordering::Relaxed) {
        if changed {
            terminal.draw(|frame| draw(frame, view))?;
        }
        changed = false;
        if event::poll(POLL_INTERVAL)? {
            changed = true;
            match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press => match view.press(key) {
                    KeyRequest::Quit => return Ok(()),
                    KeyRequest::Refresh => {
                        requests.send();
                        due = clock::now() + view.interval;
                    }
                    KeyRequest::Nothing => {}
                },
                _ => {}
            }
        }
        if let Some(reply) = requests.poll_reply() {
            view.handle_reply(reply);
            changed = true;
        }
        let now = clock::now();
        if now >= due {
            if !view.paused {
                requests.send();
            }
            due = now + view.interval;
        }
    }
    Ok(())
}

/// A thread that sends requests: a slow switch does not delay the handling of keys.
struct RequestThread {
    requests: Sender<()>,
    replies: Receiver<Result<Telemetry, String>>,
}

impl RequestThread {
    fn start(target: SwitchTarget, rules: usize) -> Self {
        let (requests, pending) = mpsc::channel();
        let (reply_sender, replies) = mpsc::channel();
        // The thread ends when the sender of requests is dropped.
        thread::spawn(move || {
            while pending.recv().is_ok() {
                // One reply answers all requests that accumulated.
                while pending.try_recv().is_ok() {}
                let reply = target.telemetry(rules).map_err(|error| error.to_string());
                if reply_sender.send(reply).is_err() {
                    return;
                }
            }
        });
        Self { requests, replies }
    }

    fn send(&self) {
        // Sending fails only after the thread has ended.
        let _ = self.requests.send(());
    }

    fn poll_reply(&self) -> Option<Result<Telemetry, String>> {
        self.replies.try_recv().ok()
    }
}
