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
use std::sync::mpsc::{Receiver, Sender, channel};
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
#[derive(Debug, PartialEq)]
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

/// What is done with the lines that a program prints.
enum Output<'a> {
    /// They pass through.
    Passes,
    /// They pass through, and by this.
    Heard(&'a mut dyn FnMut(&str)),
    /// This takes them.
    Taken(&'a mut dyn FnMut(&str)),
}

impl Output<'_> {
    fn line(&mut self, line: &str) {
        match self {
            Self::Passes => println!("{line}"),
            Self::Heard(hear) => {
                println!("{line}");
                hear(line);
            }
            Self::Taken(take) => take(line),
        }
    }
}

/// Starts programs in the project's root.
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
        self.supervise(command, None, Output::Passes)
    }

    /// Runs `command`, which has to end well.
    pub(crate) fn succeed(&mut self, command: &mut Command) -> Result<(), Failure> {
        match self.run(command)? {
            Outcome::Success => Ok(()),
            outcome => Err(format!("{command:?}: {outcome:?}").into()),
        }
    }

    /// Runs `command`; each line of its standard output passes through, and by `hear`.
    pub(crate) fn run_heard(
        &mut self,
        command: &mut Command,
        hear: &mut dyn FnMut(&str),
    ) -> Result<Outcome, Failure> {
        self.supervise(command, None, Output::Heard(hear))
    }

    /// Runs `command`; each line of its standard output goes to `take` and nowhere else.
    pub(crate) fn run_taken(
        &mut self,
        command: &mut Command,
        take: &mut dyn FnMut(&str),
    ) -> Result<Outcome, Failure> {
        self.supervise(command, None, Output::Taken(take))
    }

    /// As [`Shell::run_heard`], and ends it after `limit`.
    pub(crate) fn run_heard_for(
        &mut self,
        command: &mut Command,
        limit: Duration,
        hear: &mut dyn FnMut(&str),
    ) -> Result<Outcome, Failure> {
        self.supervise(command, Some(limit), Output::Heard(hear))
    }

    /// Runs `commands` side by side; what each prints passes through when all have ended, in
    /// their order. The outcome is that of the first that did not end well.
    pub(crate) fn run_together(&mut self, commands: &mut [Command]) -> Result<Outcome, Failure> {
        let mut all: Vec<Running> = Vec::new();
        for command in &mut *commands {
            command.stdout(Stdio::piped());
            match Running::start(command.current_dir(&self.root), None) {
                Ok(running) => all.push(running),
                Err(failure) => {
                    all.iter_mut().try_for_each(|running| running.end(true))?;
                    return Err(failure);
                }
            }
        }
        let mut printed: Vec<Vec<String>> = vec![Vec::new(); all.len()];
        while all.iter().any(|running| !running.is_over()) {
            for (running, lines) in all.iter_mut().zip(&mut printed) {
                let mut take = |line: &str| lines.push(line.to_owned());
                running.wait_a_tick(&mut Output::Taken(&mut take))?;
            }
            self.heed(&mut all)?;
        }
        for line in printed.iter().flatten() {
            println!("{line}");
        }
        io::stdout().flush()?;
        let mut outcomes = all.iter().map(|running| self.outcome(running));
        let bad = outcomes.find(|outcome| *outcome != Outcome::Success);
        Ok(bad.unwrap_or(Outcome::Success))
    }

    /// Starts `command` and stays with it to its end.
    fn supervise(
        &mut self,
        command: &mut Command,
        limit: Option<Duration>,
        mut output: Output<'_>,
    ) -> Result<Outcome, Failure> {
        if !matches!(output, Output::Passes) {
            command.stdout(Stdio::piped());
        }
        let mut running = Running::start(command.current_dir(&self.root), limit)?;
        while !running.is_over() {
            running.wait_a_tick(&mut output)?;
            self.heed(std::slice::from_mut(&mut running))?;
        }
        io::stdout().flush()?;
        Ok(self.outcome(&running))
    }

    /// Ends what runs if this program was told to end, and what takes too long.
    fn heed(&mut self, all: &mut [Running]) -> Result<(), Failure> {
        let told = self.told_to_end.swap(false, Ordering::Relaxed);
        for running in all {
            if told {
                running.end(self.interrupted)?;
            } else if running.is_late() {
                running.end(self.interrupted || running.overdue)?;
                running.overdue = true;
            }
        }
        self.interrupted |= told;
        Ok(())
    }

    /// How the run of what has ended did end.
    fn outcome(&self, running: &Running) -> Outcome {
        match running.status {
            _ if self.interrupted => Outcome::Interrupted,
            _ if running.overdue => Outcome::Overdue,
            Some(status) if !status.success() => Outcome::Failed(status),
            _ => Outcome::Success,
        }
    }
}

/// A program that runs, or has ended.
struct Running {
    /// The process group that it leads.
    group: u32,
    events: Receiver<Event>,
    /// Whether its output is read here and may go on.
    open: bool,
    status: Option<ExitStatus>,
    /// Until when the present state may last.
    deadline: Option<Instant>,
    /// Whether its limit was reached.
    overdue: bool,
}

impl Running {
    fn start(command: &mut Command, limit: Option<Duration>) -> Result<Self, Failure> {
        command.stdin(Stdio::null()).process_group(0);
        let mut child = command.spawn().map_err(|error| {
            let program = command.get_program().to_string_lossy();
            format!("`{program}` cannot be started: {error}")
        })?;
        let (sender, events) = channel();
        let running = Self {
            group: child.id(),
            events,
            open: child.stdout.is_some(),
            status: None,
            deadline: limit.map(|limit| now() + limit),
            overdue: false,
        };
        if let Some(output) = child.stdout.take() {
            read_lines(output, sender.clone());
        }
        thread::spawn(move || sender.send(Event::Ended(child.wait())));
        Ok(running)
    }

    /// Whether there is nothing more to wait for.
    fn is_over(&self) -> bool {
        self.status.is_some() && (!self.open || self.is_past_deadline())
    }

    /// Whether it runs longer than it may.
    fn is_late(&self) -> bool {
        self.status.is_none() && self.is_past_deadline()
    }

    fn is_past_deadline(&self) -> bool {
        self.deadline.is_some_and(|deadline| now() >= deadline)
    }

    /// Takes in the next event, if there is one soon.
    fn wait_a_tick(&mut self, output: &mut Output<'_>) -> Result<(), Failure> {
        match self.events.recv_timeout(TICK) {
            Ok(Event::Line(line)) => output.line(&line),
            Ok(Event::Closed) => self.open = false,
            Ok(Event::Ended(status)) => {
                self.status = Some(status?);
                self.deadline = Some(now() + LINGER);
            }
            Err(_) => {}
        }
        Ok(())
    }

    /// Tells it and all that it started to end, or makes them.
    fn end(&mut self, by_force: bool) -> Result<(), Failure> {
        let signal = if by_force { "KILL" } else { "INT" };
        // The shell's own `kill` is the only one that every system has. It fails
        // when the group has just ended.
        let script = format!("kill -s {signal} -- -{} 2>/dev/null", self.group);
        Command::new("sh").args(["-c", &script]).status()?;
        self.deadline = Some(now() + GRACE);
        Ok(())
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

/// The time.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where this program reads the clock"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn shell() -> Shell {
        Shell::new().expect("signals can be caught")
    }

    #[test]
    fn output_is_heard_line_by_line_and_to_its_end() {
        let mut heard = Vec::new();
        let outcome = shell().run_heard(&mut sh("printf 'one\\ntwo'; exit 3"), &mut |line| {
            heard.push(line.to_owned());
        });
        assert!(matches!(outcome, Ok(Outcome::Failed(status)) if status.code() == Some(3)));
        assert_eq!(heard, ["one", "two"]);
    }

    #[test]
    fn output_is_taken_line_by_line() {
        let mut taken = Vec::new();
        let outcome = shell().run_taken(&mut sh("printf 'one\\ntwo'"), &mut |line| {
            taken.push(line.to_owned());
        });
        assert!(matches!(outcome, Ok(Outcome::Success)));
        assert_eq!(taken, ["one", "two"]);
    }

    #[test]
    fn programs_side_by_side_wait_for_each_other_and_the_first_failure_counts() {
        let name = format!("comporta-side-by-side-{}", std::process::id());
        let file = std::env::temp_dir().join(name);
        let file = file.display();
        // Each would wait for ever without the other.
        let meet = format!("touch {file}; while [ -e {file} ]; do sleep 0.01; done");
        let part = format!("while [ ! -e {file} ]; do sleep 0.01; done; rm {file}; exit 3");
        let outcome = shell().run_together(&mut [sh(&meet), sh(&part), sh("exit 4")]);
        assert!(matches!(outcome, Ok(Outcome::Failed(status)) if status.code() == Some(3)));
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended() {
        let outcome =
            shell().run_heard_for(&mut sh("sleep 600"), Duration::from_millis(1), &mut |_| {});
        assert!(matches!(outcome, Ok(Outcome::Overdue)));
    }

    #[test]
    fn a_second_signal_ends_what_ignored_the_first() {
        let mut shell = shell();
        shell.interrupted = true;
        shell.told_to_end.store(true, Ordering::Relaxed);
        let outcome = shell.run(&mut sh("trap '' INT; sleep 600"));
        assert!(matches!(outcome, Ok(Outcome::Interrupted)));
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let failure = shell()
            .run(&mut Command::new("no-such-program"))
            .expect_err("not there");
        assert!(failure.to_string().contains("`no-such-program`"));
    }
}
