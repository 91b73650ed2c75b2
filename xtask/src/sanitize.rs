//! Tests under tools that find undefined behaviour and data races: AddressSanitizer and
//! ThreadSanitizer builds of the daemon and its system tests, and miri for `unsafe` code that makes
//! no system calls. All need a nightly compiler.

use std::process::ExitCode;

use crate::shell::{ProgramOutcome, Shell};
use crate::{TaskError, setup};

/// The platform. With it, cargo keeps flags of the target from build scripts.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Folder of the builds. They share nothing with others.
const FOLDER: &str = "target/sanitize";

/// The package of the system tests.
const PACKAGE: &str = "tests";

/// System tests by prefix, if none are named: every kind of port, flow-mods under traffic, the
/// control socket, and the end of the daemon. The lab's tests measure, and are too slow so.
const TESTS: [&str; 4] = ["dataplane::", "daemon::", "l2::", "openflow::"];

/// Suppressions of ThreadSanitizer, from the project's root, with reasons.
const SUPPRESSIONS: &str = "xtask/tsan.supp";

/// A sanitizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sanitizer {
    Address,
    Thread,
}

impl Sanitizer {
    const ALL: [Self; 2] = [Self::Address, Self::Thread];

    const fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Thread => "thread",
        }
    }
}

/// Sanitizers, and the tests to run; the default ones if none.
#[derive(Debug, PartialEq)]
struct SanitizePlan<'a> {
    sanitizers: Vec<Sanitizer>,
    tests: Vec<&'a str>,
}

impl<'a> SanitizePlan<'a> {
    fn of(words: &[&'a str]) -> Result<Self, TaskError> {
        let (mut sanitizers, mut tests) = (Vec::new(), Vec::new());
        for word in words {
            match Sanitizer::ALL.iter().find(|one| one.name() == *word) {
                Some(sanitizer) => sanitizers.push(*sanitizer),
                None if word.starts_with('-') => {
                    return Err(format!("unknown option `{word}`").into());
                }
                None => tests.push(*word),
            }
        }
        if sanitizers.is_empty() {
            sanitizers = Sanitizer::ALL.to_vec();
        }
        if tests.is_empty() {
            tests = TESTS.to_vec();
        }
        Ok(Self { sanitizers, tests })
    }
}

/// Runs system tests with each sanitizer.
pub(crate) fn run(shell: &mut Shell, words: &[&str]) -> Result<ExitCode, TaskError> {
    let plan = SanitizePlan::of(words)?;
    setup::run(shell)?;
    setup::nightly(shell, &["rust-src"])?;
    let mut all = ExitCode::SUCCESS;
    for sanitizer in plan.sanitizers {
        if !sanitize(shell, sanitizer, &plan.tests)? {
            println!("sanitize: {} failed", sanitizer.name());
            all = ExitCode::FAILURE;
        }
    }
    Ok(all)
}

/// Builds the daemon and the tests with a sanitizer, and runs them. Returns whether they passed.
fn sanitize(shell: &mut Shell, sanitizer: Sanitizer, tests: &[&str]) -> Result<bool, TaskError> {
    let folder = shell.root().join(FOLDER).join(sanitizer.name());
    let flags = format!("-Zsanitizer={} -Cforce-frame-pointers", sanitizer.name());
    let suppressions = shell.root().join(SUPPRESSIONS);
    let with = |arguments: &[&str]| {
        let mut command = setup::nightly_cargo(arguments);
        command
            .args(["--target", TARGET, "-Zbuild-std"])
            .env("CARGO_TARGET_DIR", &folder)
            .env("RUSTFLAGS", &flags)
            // The daemon's memory is counted by tests, and C libraries of the system leak at exit.
            .env("ASAN_OPTIONS", "detect_leaks=0:abort_on_error=1")
            .env(
                "TSAN_OPTIONS",
                format!("halt_on_error=1:suppressions={}", suppressions.display()),
            );
        command
    };
    // System tests start the daemon from the folder of the build that they belong to.
    match shell.run(&mut with(&["build", "--package", "cli"]))? {
        ProgramOutcome::Success => {}
        _ => return Ok(false),
    }
    let mut command = with(&["test", "--package", PACKAGE]);
    command
        .args(["--", "--test-threads", "2"])
        .arg(tests.join("|"));
    Ok(matches!(shell.run(&mut command)?, ProgramOutcome::Success))
}

/// Packages with `unsafe` code or hand-written concurrency, and the tests that miri runs: those
/// without system calls.
const MIRI: [(&str, &[&str]); 3] = [
    (
        "sys",
        &["storage::", "vectors::", "netlink::", "free_stack::"],
    ),
    ("fastpath", &["weak_memory::"]),
    ("dataplane", &["program::"]),
];

/// Runs unit tests under miri; `words` are packages of the list.
pub(crate) fn miri(shell: &mut Shell, words: &[&str]) -> Result<ExitCode, TaskError> {
    setup::nightly(shell, &["miri", "rust-src"])?;
    let mut all = ExitCode::SUCCESS;
    for (package, tests) in MIRI {
        if !words.is_empty() && !words.contains(&package) {
            continue;
        }
        let mut command = setup::nightly_cargo(&["miri", "test", "--lib", "--package", package]);
        command
            .env("CARGO_TARGET_DIR", shell.root().join(FOLDER).join("miri"))
            // Aligned memory of the heap, and the clock of the host for names of temporary files.
            .env("MIRIFLAGS", "-Zmiri-disable-isolation")
            .arg("--")
            .args(tests);
        if !matches!(shell.run(&mut command)?, ProgramOutcome::Success) {
            all = ExitCode::FAILURE;
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sanitizers_and_tests_default_to_all() {
        let plan = SanitizePlan::of(&[]).expect("it is valid");
        assert_eq!(plan.sanitizers, Sanitizer::ALL);
        assert_eq!(plan.tests, TESTS);
        let plan = SanitizePlan::of(&["thread", "l2::"]).expect("it is valid");
        assert_eq!(plan.sanitizers, [Sanitizer::Thread]);
        assert_eq!(plan.tests, ["l2::"]);
        assert!(SanitizePlan::of(&["--fast"]).is_err());
    }
}
