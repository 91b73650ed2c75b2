//! Child processes that cannot outlive their parent, in a given namespace, on given cores, with
//! their output in files.
//!
//! Not here: the programs of a device.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;
use std::{fmt, io};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal};
use sys::process::Confinement;

use crate::{Failure, Namespace, Usage};

/// Time from SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(3);

/// Length of the log excerpt in a failure, in bytes.
const LAST_WORDS: usize = 600;

/// A program to start.
#[derive(Debug)]
pub struct Program<'a> {
    path: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
    namespace: Option<&'a Namespace>,
    cores: Vec<usize>,
    log: Option<PathBuf>,
    output: Option<PathBuf>,
}

impl<'a> Program<'a> {
    /// The program at `path`, or of this name in `PATH`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            directory: None,
            namespace: None,
            cores: Vec::new(),
            log: None,
            output: None,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Adds an environment variable to the inherited ones.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Sets the network namespace.
    #[must_use]
    pub const fn inside(mut self, namespace: &'a Namespace) -> Self {
        self.namespace = Some(namespace);
        self
    }

    /// Sets the cores on which it may run.
    #[must_use]
    pub fn on_cores(mut self, cores: &[usize]) -> Self {
        self.cores = cores.to_vec();
        self
    }

    /// Sets the file for standard error, and for standard output unless that has its own file.
    #[must_use]
    pub fn log(mut self, file: impl Into<PathBuf>) -> Self {
        self.log = Some(file.into());
        self
    }

    /// Sets the file for standard output.
    #[must_use]
    pub fn output(mut self, file: impl Into<PathBuf>) -> Self {
        self.output = Some(file.into());
        self
    }

    /// Returns the command line as a user would type it.
    #[must_use]
    pub fn command_line(&self) -> String {
        let words = self.arguments.iter().map(OsString::as_os_str);
        std::iter::once(self.path.as_os_str())
            .chain(words)
            .map(quoted)
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    fn into_command(self) -> io::Result<Command> {
        let mut command = Command::new(resolve(&self.path));
        command
            .args(&self.arguments)
            .envs(self.environment)
            .stdin(Stdio::null());
        if let Some(directory) = self.directory {
            command.current_dir(directory);
        }
        let log = self.log.as_deref().map(File::create).transpose()?;
        let output = match self.output.as_deref() {
            Some(path) => Some(File::create(path)?),
            None => log.as_ref().map(File::try_clone).transpose()?,
        };
        command.stdout(output.map_or_else(Stdio::null, Stdio::from));
        command.stderr(log.map_or_else(Stdio::null, Stdio::from));
        let namespace = self
            .namespace
            .map(|namespace| namespace.as_fd().try_clone_to_owned())
            .transpose()?;
        let confinement = Confinement {
            namespace,
            cores: self.cores,
            own_session: true,
            dies_with_parent: true,
        };
        sys::process::confine(&mut command, confinement)?;
        Ok(command)
    }
}

/// A command to start, and the channel for the child.
type SpawnOrder = (Command, Sender<io::Result<Child>>);

/// Starts programs from one thread that lives as long as this value and its children. With
/// `PR_SET_PDEATHSIG` a child is bound to the *thread* that forked it, and would be killed with a
/// thread that ends early.
#[derive(Clone, Debug)]
pub struct Spawner {
    orders: Sender<SpawnOrder>,
}

impl Spawner {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system cannot create a thread.
    pub fn new() -> Result<Self, Failure> {
        let (orders, inbox) = mpsc::channel::<SpawnOrder>();
        thread::Builder::new()
            .name("spawner".to_owned())
            .spawn(move || {
                for (mut command, reply) in inbox {
                    // The requester has given up. Dropping `Child` does not end the process, so it
                    // is killed here.
                    if let Err(mpsc::SendError(Ok(mut child))) = reply.send(command.spawn()) {
                        let _ = child.kill();
                    }
                }
            })
            .map_err(Failure::to("start a thread"))?;
        Ok(Self { orders })
    }

    /// Starts `program`.
    ///
    /// # Errors
    /// The program does not exist or is not executable, its files cannot be created, or it cannot
    /// be moved to its namespace or cores.
    pub fn start(&self, program: Program<'_>) -> Result<Process, Failure> {
        let name = program.name();
        let command_line = program.command_line();
        let log = program.log.clone();
        let output = program.output.clone();
        let failure = || Failure::to(format!("start {name}"));
        let command = program.into_command().map_err(failure())?;
        let (reply, answer) = mpsc::channel();
        let thread_ended = |_| io::Error::other("the thread that starts programs has ended");
        self.orders
            .send((command, reply))
            .map_err(|_| thread_ended(()))
            .map_err(failure())?;
        let child = answer
            .recv()
            .map_err(|_| thread_ended(()))
            .and_then(|child| child)
            .map_err(failure())?;
        Ok(Process {
            child,
            name,
            command_line,
            log,
            output,
            _spawner: self.clone(),
        })
    }

    /// Runs `program` to its end.
    ///
    /// # Errors
    /// Those of [`Spawner::start`]; it does not end within `limit`; it fails.
    pub fn run(&self, program: Program<'_>, limit: Duration) -> Result<(), Failure> {
        let mut process = self.start(program)?;
        let status = process.wait(limit)?;
        if status.success() {
            return Ok(());
        }
        Err(process.failed(status))
    }
}

/// A started program. Dropping it stops the program.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: String,
    command_line: String,
    log: Option<PathBuf>,
    output: Option<PathBuf>,
    _spawner: Spawner,
}

impl Process {
    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The command line as a user would type it.
    #[must_use]
    pub fn command_line(&self) -> &str {
        &self.command_line
    }

    /// Returns true if the process is running.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns its resource usage so far.
    ///
    /// # Errors
    /// The process has ended.
    pub fn usage(&self) -> io::Result<Usage> {
        crate::usage(self.id())
    }

    /// Waits for the end of the process.
    ///
    /// # Errors
    /// It runs longer than `limit`.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus, Failure> {
        let waiting = Failure::to(format!("wait for {}", self.name));
        match self.wait_quietly(limit) {
            Ok(Some(status)) => Ok(status),
            Ok(None) => Err(Failure::Timeout {
                what: format!("{} to end", self.name),
                limit,
            }),
            Err(error) => Err(waiting(error)),
        }
    }

    /// Sends SIGHUP, so that the program reloads its settings.
    ///
    /// # Errors
    /// The system does not permit the signal.
    pub fn hang_up(&self) -> Result<(), Failure> {
        rustix::process::kill_process(self.pid(), Signal::HUP)
            .map_err(Failure::to(format!("signal {}", self.name)))
    }

    /// Stops the process with SIGTERM, and with SIGKILL after three seconds.
    ///
    /// # Errors
    /// The system does not permit the signal.
    pub fn stop(&mut self) -> Result<ExitStatus, Failure> {
        self.end(GRACE)
            .map_err(Failure::to(format!("stop {}", self.name)))
    }

    /// Like [`Process::stop`], with another limit before SIGKILL.
    ///
    /// # Errors
    /// The system does not permit the signal.
    pub fn stop_within(&mut self, limit: Duration) -> Result<ExitStatus, Failure> {
        self.end(limit)
            .map_err(Failure::to(format!("stop {}", self.name)))
    }

    /// Sends SIGKILL, and waits for the end of the process.
    ///
    /// # Errors
    /// The system does not permit the signal.
    pub fn kill(&mut self) -> Result<ExitStatus, Failure> {
        self.child
            .kill()
            .and_then(|()| self.child.wait())
            .map_err(Failure::to(format!("kill {}", self.name)))
    }

    /// Reads its output file.
    ///
    /// # Errors
    /// It has no output file, or the file has been deleted.
    pub fn written(&self) -> Result<String, Failure> {
        let path = self.output.as_deref().or(self.log.as_deref());
        path.ok_or_else(|| io::ErrorKind::NotFound.into())
            .and_then(fs::read_to_string)
            .map_err(Failure::to(format!("read the output of {}", self.name)))
    }

    /// Returns a failure with `status` and the end of the program's log.
    #[must_use]
    pub fn failed(&self, status: ExitStatus) -> Failure {
        Failure::Program {
            program: self.name.clone(),
            status: status.to_string(),
            output: self.last_words(),
        }
    }

    /// Returns the end of its log; empty if it has none.
    #[must_use]
    pub fn last_words(&self) -> String {
        let path = self.log.as_deref().or(self.output.as_deref());
        let text = path
            .and_then(|path| fs::read(path).ok())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default();
        let text = text.trim_end();
        let mut start = text.len().saturating_sub(LAST_WORDS);
        while !text.is_char_boundary(start) {
            start += 1;
        }
        text[start..].to_owned()
    }

    fn end(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(status);
        }
        rustix::process::kill_process(self.pid(), Signal::TERM)?;
        match self.wait_quietly(grace)? {
            Some(status) => Ok(status),
            None => {
                self.child.kill()?;
                self.child.wait()
            }
        }
    }

    /// Waits on a pidfd, so that the end of the process is noticed immediately.
    fn wait_quietly(&mut self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(Some(status));
        }
        let fd = rustix::process::pidfd_open(self.pid(), PidfdFlags::empty())?;
        let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
        loop {
            let mut fds = [PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)];
            match poll(&mut fds, Some(&limit)) {
                Err(rustix::io::Errno::INTR) => {}
                outcome => {
                    outcome?;
                    return self.child.try_wait();
                }
            }
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Callers that need the exit status call `stop`.
        let _ = self.end(GRACE);
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.id())
    }
}

/// Pins the calling thread to `cores`; an empty slice keeps the current affinity.
///
/// # Errors
/// A core does not exist or is not allowed.
pub fn pin_current_thread(cores: &[usize]) -> Result<(), Failure> {
    sys::process::pin_current_thread(cores)
        .map_err(Failure::to(format!("run on the cores {cores:?}")))
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Resolves a bare program name; other paths, and names that are not found, are returned unchanged.
fn resolve(path: &Path) -> PathBuf {
    let bare = path.components().count() == 1;
    let found = path.to_str().filter(|_| bare).and_then(find);
    found.unwrap_or_else(|| path.to_owned())
}

/// Finds `program` in `PATH` or in Debian's directories of system programs, even if `PATH` does not
/// contain those.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin", "/usr/bin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(usual)
        .map(|directory| directory.join(program))
        .find(|candidate| is_program(candidate))
}

pub(crate) fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests;
