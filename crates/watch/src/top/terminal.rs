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

use super::Options;
use super::draw::draw;
use super::sheet::Order;
use super::view::{Asked, View};
use crate::clock;
use crate::error::WatchError;
use crate::target::Target;

/// The maximum time to wait for a key before replies and signals are checked.
const LOOK: Duration = Duration::from_millis(50);

/// Runs the interactive screen.
pub(super) fn run(options: Options, order: Option<Order>) -> Result<(), WatchError> {
    // If the switch does not answer the first request, the error is printed without a screen.
    let first = options.target.telemetry(options.rules)?;
    let mut view = View::new(options.interval, options.target.bridge.clone(), order);
    view.take(Ok(first));
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        let registered = signal_hook::flag::register(signal, Arc::clone(&ended));
        registered.map_err(WatchError::io("signals"))?;
    }
    let asker = Asker::start(options.target, options.rules);
    // It also restores the terminal before the message of a panic.
    let mut terminal = ratatui::try_init().map_err(WatchError::io("the terminal"))?;
    let shown = show(&mut terminal, &mut view, &asker, &ended);
    ratatui::restore();
    shown.map_err(WatchError::io("the terminal"))
}

fn show(
    terminal: &mut DefaultTerminal,
    view: &mut View,
    asker: &Asker,
    ended: &AtomicBool,
) -> io::Result<()> {
    let mut due = clock::now() + view.interval;
    let mut changed = true;
    while !ended.load(Ordering::Relaxed) {
        if changed {
            terminal.draw(|frame| draw(frame, view))?;
        }
        changed = false;
        if event::poll(LOOK)? {
            changed = true;
            match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press => match view.press(key) {
                    Asked::End => return Ok(()),
                    Asked::Answer => {
                        asker.ask();
                        due = clock::now() + view.interval;
                    }
                    Asked::Nothing => {}
                },
                _ => {}
            }
        }
        if let Some(answer) = asker.answer() {
            view.take(answer);
            changed = true;
        }
        let now = clock::now();
        if now >= due {
            if !view.paused {
                asker.ask();
            }
            due = now + view.interval;
        }
    }
    Ok(())
}

/// A thread that sends requests: a slow switch does not delay the handling of keys.
struct Asker {
    questions: Sender<()>,
    answers: Receiver<Result<Telemetry, String>>,
}

impl Asker {
    fn start(target: Target, rules: usize) -> Self {
        let (questions, asked) = mpsc::channel();
        let (told, answers) = mpsc::channel();
        // The thread ends when the sender of requests is dropped.
        thread::spawn(move || {
            while asked.recv().is_ok() {
                // One reply answers all requests that accumulated.
                while asked.try_recv().is_ok() {}
                let answer = target.telemetry(rules).map_err(|error| error.to_string());
                if told.send(answer).is_err() {
                    return;
                }
            }
        });
        Self { questions, answers }
    }

    fn ask(&self) {
        // Sending fails only after the thread has ended.
        let _ = self.questions.send(());
    }

    fn answer(&self) -> Option<Result<Telemetry, String>> {
        self.answers.try_recv().ok()
    }
}
