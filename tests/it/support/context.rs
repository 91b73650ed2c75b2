//! Test harness: a directory, a clock and a process spawner for each test, a time limit, and a
//! report of failures with the switches' logs.
//!
//! Network namespaces and switches are in [`network`](crate::support::network).

use std::cell::{Cell, RefCell};
use std::fmt::{Display, Write};
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use std::{env, fs, io, panic, process, thread};

use libtest_mimic::{Completion, Failed, Trial};
use testbed::{Clock, Failure, Requirement, Spawner};

/// Longest wait for one condition.
pub(crate) const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// Longest duration of a test, unless a variable gives another number of seconds. Only a safety
/// net: each wait in a test has its own limit.
const TEST_LIMIT: Duration = Duration::from_secs(240);
const TEST_LIMIT_VARIABLE: &str = "COMPORTA_LIMIT";

/// Variable that names a file: each test appends a line with its duration in seconds and its
/// name.
const TIMES_VARIABLE: &str = "COMPORTA_TEST_TIMES";

/// Duration of a flood, unless a variable gives another number of seconds: several times the time
/// after which fast LACP (3 s) or a spanning tree (6 s) gives up.
const FLOOD_TIME: Duration = Duration::from_secs(15);
const FLOOD_TIME_VARIABLE: &str = "COMPORTA_FLOOD_SECONDS";

/// Returns the duration of a flood.
pub(crate) fn flood_time() -> Duration {
    let seconds = env::var(FLOOD_TIME_VARIABLE).ok();
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    seconds.map_or(FLOOD_TIME, Duration::from_secs)
}

/// Number of bytes from the end of each switch's log that a failure report quotes.
const LOG_TAIL_BYTES: usize = 3000;

/// Requirements of all tests.
const REQUIREMENTS: [Requirement; 2] = [Requirement::Namespaces, Requirement::Veth];

/// Number of tests that have started; it names their directories.
static STARTED_TESTS: AtomicU32 = AtomicU32::new(0);

/// Result of a test.
pub(crate) type TestResult = Result<(), TestError>;

/// Reason why a test ended early.
#[derive(Debug)]
pub(crate) enum TestError {
    /// The machine lacks a requirement.
    Skip(String),
    /// An expectation was not met.
    Fail(String),
}

impl<E: Display> From<E> for TestError {
    #[track_caller]
    fn from(error: E) -> Self {
        Self::Fail(format!("{}: {error}", Location::caller()))
    }
}

/// A test and its name.
#[derive(Clone, Copy)]
pub(crate) struct SystemTest {
    /// Module path and function, as in `l2::bonds::test`.
    pub(crate) name: &'static str,
    /// Test function.
    pub(crate) test: fn(&TestContext) -> TestResult,
}

/// Tests of a file, by the names of their functions.
macro_rules! tests {
    ($($test:ident,)+) => {
        &[$($crate::support::context::SystemTest {
            name: concat!(module_path!(), "::", stringify!($test)),
            test: $test,
        },)+]
    };
}
pub(crate) use tests;

impl SystemTest {
    /// Converts to a test of the harness.
    pub(crate) fn trial(self) -> Trial {
        let name = self.name.strip_prefix("it::").unwrap_or(self.name);
        Trial::ignorable_test(name, move || self.run(name))
    }

    fn run(self, name: &'static str) -> Result<Completion, Failed> {
        if let Err(missing) = testbed::check(&REQUIREMENTS) {
            return Ok(Completion::ignored_with(missing));
        }
        let clock = Clock::start();
        let start = clock.now();
        let (sender, result) = mpsc::channel();
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || sender.send(TestContext::run(self.test)))?;
        let seconds = env::var(TEST_LIMIT_VARIABLE)
            .ok()
            .and_then(|seconds| seconds.parse().ok());
        let limit = seconds.map_or(TEST_LIMIT, Duration::from_secs);
        let result = result.recv_timeout(limit);
        record_time(name, clock.now() - start)?;
        match result {
            Ok(Ok(())) => Ok(Completion::Completed),
            Ok(Err(TestError::Skip(reason))) => Ok(Completion::ignored_with(reason)),
            Ok(Err(TestError::Fail(text))) => Err(text.into()),
            Err(_) => Err(format!("the test did not end within {limit:?}").into()),
        }
    }
}

/// Appends a test's duration to the file that [`TIMES_VARIABLE`] names.
fn record_time(name: &str, duration: Duration) -> io::Result<()> {
    let Some(path) = env::var_os(TIMES_VARIABLE) else {
        return Ok(());
    };
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)?;
    let line = format!("{:8.2} {name}\n", duration.as_secs_f64());
    file.write_all(line.as_bytes())
}

/// Resources of one test.
pub(crate) struct TestContext {
    /// Clock to read and wait by.
    pub(crate) clock: Clock,
    /// Spawner of programs.
    pub(crate) spawner: Spawner,
    directory: PathBuf,
    files: Cell<u32>,
}

impl TestContext {
    /// Runs `test` in a new context. Its directory stays if it fails.
    fn run(test: fn(&Self) -> TestResult) -> TestResult {
        let context = Self::new()?;
        let result = catch_unwind(AssertUnwindSafe(|| test(&context)));
        let failure = match result {
            Ok(Err(TestError::Fail(text))) => text,
            Ok(result) => {
                fs::remove_dir_all(&context.directory)?;
                return result;
            }
            Err(_) => PANIC.take(),
        };
        Err(TestError::Fail(format!(
            "{failure}\n{}",
            context.log_tails()
        )))
    }

    fn new() -> Result<Self, Failure> {
        // A number, because the path of a Unix socket has at most 107 bytes.
        let number = STARTED_TESTS.fetch_add(1, Ordering::Relaxed);
        let directory = run_directory().join(number.to_string());
        // An earlier run with the same process id may have left the directory of a failed test.
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Failure::to("remove an older run's directory")(error));
            }
            _ => {}
        }
        fs::create_dir_all(&directory).map_err(Failure::to("create a directory"))?;
        Ok(Self {
            clock: Clock::start(),
            spawner: Spawner::new()?,
            directory,
            files: Cell::new(0),
        })
    }

    /// Directory of the test.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns a new path in the test's directory that ends in `name`.
    pub(crate) fn unique_path(&self, name: &str) -> PathBuf {
        let number = self.files.get();
        self.files.set(number + 1);
        self.directory.join(format!("{number:03}-{name}"))
    }

    /// Polls `find` until it returns a value, for at most [`WAIT_LIMIT`].
    pub(crate) fn wait_for<T>(
        &self,
        condition: &str,
        find: impl FnMut() -> Result<Option<T>, Failure>,
    ) -> Result<T, Failure> {
        self.clock.wait_for(condition, WAIT_LIMIT, find)
    }

    /// Polls `holds` until it returns true, for at most [`WAIT_LIMIT`].
    pub(crate) fn wait_until(
        &self,
        condition: &str,
        mut holds: impl FnMut() -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        self.wait_for(condition, || Ok(holds()?.then_some(())))
    }

    /// Last lines of the logs of the test's switches, and their last counters.
    fn log_tails(&self) -> String {
        let mut text = format!("files of the test: {}", self.directory.display());
        let entries = fs::read_dir(&self.directory).into_iter().flatten();
        let mut logs: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        let is_log = |path: &PathBuf| path.to_string_lossy().contains("-comporta.");
        logs.retain(is_log);
        logs.sort();
        for path in logs {
            let log = fs::read_to_string(&path).unwrap_or_default();
            let start = log.len().saturating_sub(LOG_TAIL_BYTES);
            let start = log.ceil_char_boundary(start);
            write!(
                text,
                "\n--- {}\n{}",
                path.display(),
                log[start..].trim_end()
            )
            .expect("formatting into a String cannot fail");
        }
        text
    }
}

/// Directory of this process's tests.
fn run_directory() -> PathBuf {
    env::temp_dir().join(format!("comporta-tests-{}", process::id()))
}

/// Removes the directory of this process's tests, unless a test failed.
pub(crate) fn remove_run_directory() {
    // It does not exist if no test ran, and is not empty if a test failed.
    let _ = fs::remove_dir(run_directory());
}

thread_local! {
    /// Message of the panic that ended a test's thread.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Stores panic messages for the harness's report instead of printing them immediately.
pub(crate) fn capture_panics() {
    panic::set_hook(Box::new(|info| PANIC.set(info.to_string())));
}
