//! Running programs: their output passes through, they have a time limit if they
//! need one, and they end when this program is told to.
//!
//! Each program leads a process group of its own, so that Ctrl-C reaches it once,
//! through here, and reaches what it started as well.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::Failure;

/// How long a program that was told to end may take, before it is killed. A lab
/// run finishes its record in that time.
const GRACE: Duration = Duration::from_secs(15);

/// How long output is waited for after a program has ended: something that it
/// left behind may hold the pipe open for ever.
const LINGER: Duration = Duration::from_secs(1);

/// How often a signal is looked for.
const TICK: Duration = Duration::from_millis(100);

/// What happens while a program runs.
enum Event {
    Line(String),
    Closed,
    Ended(io::Result<ExitStatus>),
}

/// How a program's run ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// By itself, and well.
    Success,
    /// By itself, and not well: with this status.
    Failed(ExitStatus),
    /// It was ended because its time was over.
    Overdue,
    /// It was ended because this program was told to end.
    Interrupted,
}

/// Starts programs in the project's root, one at a time.
pub(crate) struct Shell {
    root: PathBuf,
    told_to_end: Arc<AtomicBool>,
    interrupted: bool,
}

impl Shell {
    /// A shell; from now on SIGINT and SIGTERM end the program that it runs.
    pub(crate) fn new() -> Result<Self, Failure> {
        let told_to_end = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&told_to_end))?;
        }
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest.parent().expect("xtask is a folder of the root");
        Ok(Self {
            root: root.to_owned(),
            told_to_end,
            interrupted: false,
        })
    }

    /// The project's root.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Whether this program was told to end.
    pub(crate) fn interrupted(&self) -> bool {
        self.interrupted || self.told_to_end.load(Ordering::Relaxed)
    }

    /// Runs `command`; what it prints passes through.
    pub(crate) fn run(&mut self, command: &mut Command) -> Result<Outcome, Failure> {
        self.supervise(command, None, None)
    }

    /// Runs `command`, and ends it after `limit`.
    pub(crate) fn run_for(
        &mut self,
        command: &mut Command,
        limit: Duration,
    ) -> Result<Outcome, Failure> {
        self.supervise(command, Some(limit), None)
    }

    /// Runs `command`; each line of its standard output passes through, and by `hear`.
    pub(crate) fn run_heard(
        &mut self,
        command: &mut Command,
        hear: &mut dyn FnMut(&str),
    ) -> Result<Outcome, Failure> {
        self.supervise(command, None, Some(hear))
    }

    /// Starts `command` and stays with it to its end.
    fn supervise(
        &mut self,
        command: &mut Command,
        limit: Option<Duration>,
        mut hear: Option<&mut dyn FnMut(&str)>,
    ) -> Result<Outcome, Failure> {
        if hear.is_some() {
            command.stdout(Stdio::piped());
        }
        command
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .process_group(0);
        let mut child = command.spawn().map_err(|error| {
            let program = command.get_program().to_string_lossy();
            format!("`{program}` cannot be started: {error}")
        })?;
        let group = Group(child.id());
        let (sender, events) = channel();
        let mut open = false;
        if let Some(output) = child.stdout.take() {
            open = true;
            read_lines(output, sender.clone());
        }
        thread::spawn(move || sender.send(Event::Ended(child.wait())));

        let mut deadline = limit.map(|limit| now() + limit);
        let mut overdue = false;
        let mut status = None;
        while status.is_none() || open {
            match events.recv_timeout(TICK) {
                Ok(Event::Line(line)) => {
                    println!("{line}");
                    if let Some(hear) = &mut hear {
                        hear(&line);
                    }
                }
                Ok(Event::Closed) => open = false,
                Ok(Event::Ended(result)) => {
                    status = Some(result?);
                    deadline = Some(now() + LINGER);
                }
                Err(_) => {}
            }
            let over = deadline.is_some_and(|deadline| now() >= deadline);
            if over && status.is_some() {
                break;
            }
            let told = self.told_to_end.swap(false, Ordering::Relaxed);
            if told || over {
                group.end(self.interrupted || overdue)?;
                self.interrupted |= told;
                overdue |= over;
                deadline = Some(now() + GRACE);
            }
        }
        io::stdout().flush()?;
        Ok(match status {
            _ if self.interrupted => Outcome::Interrupted,
            _ if overdue => Outcome::Overdue,
            Some(status) if !status.success() => Outcome::Failed(status),
            _ => Outcome::Success,
        })
    }
}

/// Sends each line of `output`, and then that it is closed.
fn read_lines(output: ChildStdout, sender: Sender<Event>) {
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            if sender.send(Event::Line(line)).is_err() {
                return;
            }
        }
        // Nobody listens any more when the program's end was not waited for.
        let _ = sender.send(Event::Closed);
    });
}

/// The group of processes that one program leads.
struct Group(u32);

impl Group {
    /// Tells it to end, or makes it.
    fn end(&self, by_force: bool) -> Result<(), Failure> {
        let signal = if by_force { "KILL" } else { "INT" };
        // The shell's own `kill` is the only one that every system has. It fails
        // when the group has just ended.
        let script = format!("kill -s {signal} -- -{} 2>/dev/null", self.0);
        Command::new("sh").args(["-c", &script]).status()?;
        Ok(())
    }
}

/// The time.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where this program reads the clock"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
