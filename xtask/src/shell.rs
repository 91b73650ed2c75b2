//! Runs programs: passes their output through, limits their time, and ends them when this program
//! receives a signal.
//!
//! Each program leads its own process group, so that Ctrl-C reaches it once, through this module,
//! together with the processes that it started.

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

use crate::TaskError;

/// Time between SIGTERM and SIGKILL; a lab run completes its record in that time.
const GRACE: Duration = Duration::from_secs(15);

/// Time to wait for output after a program has ended: a process that it left behind may hold the
/// pipe open.
const LINGER: Duration = Duration::from_secs(1);

/// Interval between checks for a signal.
const TICK: Duration = Duration::from_millis(100);

/// An event of a running program.
enum ProgramEvent {
    Line(String),
    Closed,
    Ended(io::Result<ExitStatus>),
}

/// The end of a program.
#[derive(Debug, PartialEq)]
pub(crate) enum ProgramOutcome {
    /// The program ended with success.
    Success,
    /// The program ended with this status.
    Failed(ExitStatus),
    /// The program exceeded its time limit and was ended.
    Overdue,
    /// The program was ended because this program received a signal.
    Interrupted,
}

/// The destination of a program's output lines.
enum ProgramOutput<'a> {
    /// Standard output.
    Passes,
    /// Standard output and this function.
    Heard(&'a mut dyn FnMut(&str)),
    /// This function alone.
    Taken(&'a mut dyn FnMut(&str)),
}

impl ProgramOutput<'_> {
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

/// Runs programs in the project's root.
pub(crate) struct Shell {
    root: PathBuf,
    end_requested: Arc<AtomicBool>,
    interrupted: bool,
}

impl Shell {
    /// Creates a shell. From then on SIGINT and SIGTERM end the program that it runs.
    pub(crate) fn new() -> Result<Self, TaskError> {
        let end_requested = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&end_requested))?;
        }
        // That of this run: working copies may share a folder of build results, and with it this
        // program.
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR");
        let manifest = manifest.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&manifest)
            .parent()
            .expect("xtask is a folder of the root");
        Ok(Self {
            root: root.to_owned(),
            end_requested,
            interrupted: false,
        })
    }

    /// Returns the project's root.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// True if this program received a signal to end.
    pub(crate) fn interrupted(&self) -> bool {
        self.interrupted || self.end_requested.load(Ordering::Relaxed)
    }

    /// Runs `command` and passes its output through.
    pub(crate) fn run(&mut self, command: &mut Command) -> Result<ProgramOutcome, TaskError> {
        self.supervise(command, None, ProgramOutput::Passes)
    }

    /// Runs `command`, which must succeed.
    pub(crate) fn succeed(&mut self, command: &mut Command) -> Result<(), TaskError> {
        match self.run(command)? {
            ProgramOutcome::Success => Ok(()),
            outcome => Err(format!("{command:?}: {outcome:?}").into()),
        }
    }

    /// Runs `command`; each line of its standard output is passed through and to `hear`.
    pub(crate) fn run_heard(
        &mut self,
        command: &mut Command,
        hear: &mut dyn FnMut(&str),
    ) -> Result<ProgramOutcome, TaskError> {
        self.supervise(command, None, ProgramOutput::Heard(hear))
    }

    /// Runs `command`; each line of its standard output is passed to `take` only.
    pub(crate) fn run_taken(
        &mut self,
        command: &mut Command,
        take: &mut dyn FnMut(&str),
    ) -> Result<ProgramOutcome, TaskError> {
        self.supervise(command, None, ProgramOutput::Taken(take))
    }

    /// As [`Shell::run_heard`], with a time limit.
    pub(crate) fn run_heard_for(
        &mut self,
        command: &mut Command,
        limit: Duration,
        hear: &mut dyn FnMut(&str),
    ) -> Result<ProgramOutcome, TaskError> {
        self.supervise(command, Some(limit), ProgramOutput::Heard(hear))
    }

    /// Runs `commands` in parallel. The output of each is printed when all have ended, in their
    /// order. Returns the outcome of the first that failed.
    pub(crate) fn run_together(
        &mut self,
        commands: &mut [Command],
    ) -> Result<ProgramOutcome, TaskError> {
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
                running.wait_a_tick(&mut ProgramOutput::Taken(&mut take))?;
            }
            self.check_limits(&mut all)?;
        }
        for line in printed.iter().flatten() {
            println!("{line}");
        }
        io::stdout().flush()?;
        let mut outcomes = all.iter().map(|running| self.outcome(running));
        let bad = outcomes.find(|outcome| *outcome != ProgramOutcome::Success);
        Ok(bad.unwrap_or(ProgramOutcome::Success))
    }

    /// Starts `command` and waits for its end.
    fn supervise(
        &mut self,
        command: &mut Command,
        limit: Option<Duration>,
        mut output: ProgramOutput<'_>,
    ) -> Result<ProgramOutcome, TaskError> {
        if !matches!(output, ProgramOutput::Passes) {
            command.stdout(Stdio::piped());
        }
        let mut running = Running::start(command.current_dir(&self.root), limit)?;
        while !running.is_over() {
            running.wait_a_tick(&mut output)?;
            self.check_limits(std::slice::from_mut(&mut running))?;
        }
        io::stdout().flush()?;
        Ok(self.outcome(&running))
    }

    /// Ends the running programs after a signal, and those that exceed their time limit.
    fn check_limits(&mut self, all: &mut [Running]) -> Result<(), TaskError> {
        let requested = self.end_requested.swap(false, Ordering::Relaxed);
        for running in all {
            if requested {
                running.end(self.interrupted)?;
            } else if running.is_late() {
                running.end(self.interrupted || running.overdue)?;
                running.overdue = true;
            }
        }
        self.interrupted |= requested;
        Ok(())
    }

    /// Returns the outcome of a program that has ended.
    fn outcome(&self, running: &Running) -> ProgramOutcome {
        match running.status {
            _ if self.interrupted => ProgramOutcome::Interrupted,
            _ if running.overdue => ProgramOutcome::Overdue,
            Some(status) if !status.success() => ProgramOutcome::Failed(status),
            _ => ProgramOutcome::Success,
        }
    }
}

/// A program that runs or has ended.
struct Running {
    /// Process group.
    group: u32,
    events: Receiver<ProgramEvent>,
    /// True while its output is open.
    open: bool,
    status: Option<ExitStatus>,
    /// Time limit of the present state.
    deadline: Option<Instant>,
    /// True if it exceeded its time limit.
    overdue: bool,
}

impl Running {
    fn start(command: &mut Command, limit: Option<Duration>) -> Result<Self, TaskError> {
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
        thread::spawn(move || sender.send(ProgramEvent::Ended(child.wait())));
        Ok(running)
    }

    /// True if it has ended and its output is complete.
    fn is_over(&self) -> bool {
        self.status.is_some() && (!self.open || self.is_past_deadline())
    }

    /// True if it exceeds its time limit.
    fn is_late(&self) -> bool {
        self.status.is_none() && self.is_past_deadline()
    }

    fn is_past_deadline(&self) -> bool {
        self.deadline.is_some_and(|deadline| now() >= deadline)
    }

    /// Waits for an event, for one tick at most.
    fn wait_a_tick(&mut self, output: &mut ProgramOutput<'_>) -> Result<(), TaskError> {
        match self.events.recv_timeout(TICK) {
            Ok(ProgramEvent::Line(line)) => output.line(&line),
            Ok(ProgramEvent::Closed) => self.open = false,
            Ok(ProgramEvent::Ended(status)) => {
                self.status = Some(status?);
                self.deadline = Some(now() + LINGER);
            }
            Err(_) => {}
        }
        Ok(())
    }

    /// Ends the process group, with SIGTERM or by force.
    fn end(&mut self, by_force: bool) -> Result<(), TaskError> {
        let signal = if by_force { "KILL" } else { "INT" };
        // The shell's built-in `kill` exists on every system. It fails if the group has just ended.
        let script = format!("kill -s {signal} -- -{} 2>/dev/null", self.group);
        Command::new("sh").args(["-c", &script]).status()?;
        self.deadline = Some(now() + GRACE);
        Ok(())
    }
}

/// Sends each line of `output` as an event, and an event at its end.
fn read_lines(output: ChildStdout, sender: Sender<ProgramEvent>) {
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            if sender.send(ProgramEvent::Line(line)).is_err() {
                return;
            }
        }
        // The receiver is dropped if the end of the program is not waited for.
        let _ = sender.send(ProgramEvent::Closed);
    });
}

/// Returns the present time.
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
        assert!(matches!(outcome, Ok(ProgramOutcome::Failed(status)) if status.code() == Some(3)));
        assert_eq!(heard, ["one", "two"]);
    }

    #[test]
    fn output_is_taken_line_by_line() {
        let mut taken = Vec::new();
        let outcome = shell().run_taken(&mut sh("printf 'one\\ntwo'"), &mut |line| {
            taken.push(line.to_owned());
        });
        assert!(matches!(outcome, Ok(ProgramOutcome::Success)));
        assert_eq!(taken, ["one", "two"]);
    }

    #[test]
    fn programs_side_by_side_wait_for_each_other_and_the_first_failure_counts() {
        let name = format!("comporta-side-by-side-{}", std::process::id());
        let file = std::env::temp_dir().join(name);
        let file = file.display();
        // Each command would wait for ever without the other one.
        let meet = format!("touch {file}; while [ -e {file} ]; do sleep 0.01; done");
        let part = format!("while [ ! -e {file} ]; do sleep 0.01; done; rm {file}; exit 3");
        let outcome = shell().run_together(&mut [sh(&meet), sh(&part), sh("exit 4")]);
        assert!(matches!(outcome, Ok(ProgramOutcome::Failed(status)) if status.code() == Some(3)));
    }

    #[test]
    fn program_is_ended_at_its_time_limit() {
        let outcome =
            shell().run_heard_for(&mut sh("sleep 600"), Duration::from_millis(1), &mut |_| {});
        assert!(matches!(outcome, Ok(ProgramOutcome::Overdue)));
    }

    #[test]
    fn second_signal_kills_a_program_that_ignored_the_first() {
        let mut shell = shell();
        shell.interrupted = true;
        shell.end_requested.store(true, Ordering::Relaxed);
        let outcome = shell.run(&mut sh("trap '' INT; sleep 600"));
        assert!(matches!(outcome, Ok(ProgramOutcome::Interrupted)));
    }

    #[test]
    fn missing_program_is_named() {
        let failure = shell()
            .run(&mut Command::new("no-such-program"))
            .expect_err("not there");
        assert!(failure.to_string().contains("`no-such-program`"));
    }
}
