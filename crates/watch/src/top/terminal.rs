//! The terminal: taken, drawn on, and given back as it was, however this ends.

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

/// So long at most is waited for a key before answers and signals are looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Shows it on the whole terminal.
pub(super) fn run(options: Options, order: Option<Order>) -> Result<(), WatchError> {
    // One who does not answer at all is told of in a line, not on a screen.
    let first = options.target.telemetry(options.rules)?;
    let mut view = View::new(options.interval, options.target.bridge.clone(), order);
    view.take(Ok(first));
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        let registered = signal_hook::flag::register(signal, Arc::clone(&ended));
        registered.map_err(WatchError::io("signals"))?;
    }
    let asker = Asker::start(options.target, options.rules);
    // It gives the terminal back before a panic is told, too.
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

/// Asks the switch on a thread of its own: one that is slow to answer does not hold up keys.
struct Asker {
    questions: Sender<()>,
    answers: Receiver<Result<Telemetry, String>>,
}

impl Asker {
    fn start(target: Target, rules: usize) -> Self {
        let (questions, asked) = mpsc::channel();
        let (told, answers) = mpsc::channel();
        // It ends when nobody asks any more.
        thread::spawn(move || {
            while asked.recv().is_ok() {
                // What was asked while it waited is answered with it.
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
        // The thread ends with this.
        let _ = self.questions.send(());
    }

    fn answer(&self) -> Option<Result<Telemetry, String>> {
        self.answers.try_recv().ok()
    }
}
