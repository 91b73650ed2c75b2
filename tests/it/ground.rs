//! What every test stands on: a directory of its own, a clock, a thread that is
//! given up if it takes too long, and a report of what went wrong.
//!
//! Not here: namespaces and the switch in them; that is a [`Rig`](crate::rig::Rig).

use std::cell::{Cell, RefCell};
use std::fmt::{Display, Write};
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use std::{env, fs, io, panic, process, thread};

use libtest_mimic::{Completion, Failed, Trial};
use testbed::{Clock, Failure, Requirement, Spawner};

/// How long a test may wait for one thing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// How long a test may take, unless a variable says how many seconds. It is a fence only: each
/// of its waits ends by itself.
const LIMIT: Duration = Duration::from_secs(240);
const LIMIT_VARIABLE: &str = "COMPORTA_LIMIT";

/// How much of the switches' last words goes into a failure, in bytes.
const LAST_WORDS: usize = 3000;

/// What all tests need of the machine.
const NEEDS: [Requirement; 2] = [Requirement::Namespaces, Requirement::Veth];

/// How many tests have begun, to tell their directories apart.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// How a test ends.
pub(crate) type Outcome = Result<(), Stop>;

/// Why a test does not go on.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The machine lacks something.
    Skip(String),
    /// Something is not as it should be.
    Fail(String),
}

impl<E: Display> From<E> for Stop {
    #[track_caller]
    fn from(error: E) -> Self {
        Self::Fail(format!("{}: {error}", Location::caller()))
    }
}

/// A test and the rule it proves.
#[derive(Clone, Copy)]
pub(crate) struct Rule {
    /// Its theme and the rule, as in `theme::rule`.
    pub(crate) name: &'static str,
    /// The test.
    pub(crate) test: fn(&Ground) -> Outcome,
}

/// The rules of a theme, by the names of their tests.
macro_rules! rules {
    ($($test:ident,)+) => {
        &[$($crate::ground::Rule {
            name: concat!(module_path!(), "::", stringify!($test)),
            test: $test,
        },)+]
    };
}
pub(crate) use rules;

impl Rule {
    /// The test for the harness.
    pub(crate) fn trial(self) -> Trial {
        let name = self.name.strip_prefix("it::").unwrap_or(self.name);
        Trial::ignorable_test(name, move || self.run(name))
    }

    fn run(self, name: &'static str) -> Result<Completion, Failed> {
        if let Err(missing) = testbed::check(&NEEDS) {
            return Ok(Completion::ignored_with(missing));
        }
        let (report, verdict) = mpsc::channel();
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || report.send(Ground::try_out(self.test)))?;
        let said = env::var(LIMIT_VARIABLE)
            .ok()
            .and_then(|said| said.parse().ok());
        let limit = said.map_or(LIMIT, Duration::from_secs);
        match verdict.recv_timeout(limit) {
            Ok(Ok(())) => Ok(Completion::Completed),
            Ok(Err(Stop::Skip(reason))) => Ok(Completion::ignored_with(reason)),
            Ok(Err(Stop::Fail(text))) => Err(text.into()),
            Err(_) => Err(format!("not done within {limit:?}").into()),
        }
    }
}

/// A test's own piece of the machine.
pub(crate) struct Ground {
    /// Tells the time, and waits.
    pub(crate) clock: Clock,
    /// Starts programs.
    pub(crate) spawner: Spawner,
    directory: PathBuf,
    files: Cell<u32>,
}

impl Ground {
    /// Runs `test` on fresh ground. What it leaves is kept if it fails.
    fn try_out(test: fn(&Self) -> Outcome) -> Outcome {
        let ground = Self::new()?;
        let outcome = catch_unwind(AssertUnwindSafe(|| test(&ground)));
        let failure = match outcome {
            Ok(Err(Stop::Fail(text))) => text,
            Ok(done) => {
                fs::remove_dir_all(&ground.directory)?;
                return done;
            }
            Err(_) => PANIC.take(),
        };
        Err(Stop::Fail(format!("{failure}\n{}", ground.last_words())))
    }

    fn new() -> Result<Self, Failure> {
        // Not by the test's name: a path of a Unix socket has 107 bytes at most.
        let directory =
            directory_of_this_run().join(COUNT.fetch_add(1, Ordering::Relaxed).to_string());
        // A run of the same process id may have left what it failed on.
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Failure::to("remove an older run's directory")(error));
            }
            _ => {}
        }
        fs::create_dir_all(&directory).map_err(Failure::to("make a directory"))?;
        Ok(Self {
            clock: Clock::start(),
            spawner: Spawner::new()?,
            directory,
            files: Cell::new(0),
        })
    }

    /// The test's directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// A path in the directory that nobody else was given.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        let number = self.files.get();
        self.files.set(number + 1);
        self.directory.join(format!("{number:03}-{name}"))
    }

    /// Waits until `look` finds something.
    pub(crate) fn wait_for<T>(
        &self,
        what: &str,
        look: impl FnMut() -> Result<Option<T>, Failure>,
    ) -> Result<T, Failure> {
        self.clock.wait_for(what, PATIENCE, look)
    }

    /// Waits until `holds`.
    pub(crate) fn wait_until(
        &self,
        what: &str,
        mut holds: impl FnMut() -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        self.wait_for(what, || Ok(holds()?.then_some(())))
    }

    /// What the switches of the test have said, and counted at their end.
    fn last_words(&self) -> String {
        let mut text = format!("kept: {}", self.directory.display());
        let entries = fs::read_dir(&self.directory).into_iter().flatten();
        let mut logs: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        let is_log = |path: &PathBuf| path.to_string_lossy().contains("-comporta.");
        logs.retain(is_log);
        logs.sort();
        for path in logs {
            let said = fs::read_to_string(&path).unwrap_or_default();
            let start = said.len().saturating_sub(LAST_WORDS);
            let start = said.ceil_char_boundary(start);
            write!(
                text,
                "\n--- {}\n{}",
                path.display(),
                said[start..].trim_end()
            )
            .expect("a string has room");
        }
        text
    }
}

/// Where the tests of this process have their directories.
fn directory_of_this_run() -> PathBuf {
    env::temp_dir().join(format!("comporta-tests-{}", process::id()))
}

/// Removes what the tests left, unless one failed and left something to look at.
pub(crate) fn clear_up() {
    // It is not there if no test was run, and not empty if one failed.
    let _ = fs::remove_dir(directory_of_this_run());
}

thread_local! {
    /// What a test's thread said when it panicked.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Has panics of tests told by the harness, where they belong, and not at once.
pub(crate) fn keep_panics_for_the_report() {
    panic::set_hook(Box::new(|info| PANIC.set(info.to_string())));
}
