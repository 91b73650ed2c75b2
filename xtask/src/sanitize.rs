//! Tests under tools that find undefined behaviour and data races: AddressSanitizer and
//! ThreadSanitizer builds of the daemon and its system tests, and miri for `unsafe` code that makes
//! no system calls. All need a nightly compiler.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::{fs, io};

use crate::shared_build::{self, TestProgram};
use crate::shell::{ProgramOutcome, Shell};
use crate::{TaskError, setup};

/// The platform. With it, cargo keeps flags of the target from build scripts.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Folder of the builds. They share nothing with others.
const FOLDER: &str = "target/sanitize";

/// The package of the system tests.
const PACKAGE: &str = "tests";

/// The daemon and the system tests: one selection, so that cargo compiles no crate twice.
#[rustfmt::skip]
const SELECTION: [&str; 11] = [
    "build", "--package", "cli", "--package", PACKAGE, "--bin", "comporta", "--test", "it",
    "-Zbuild-std", "--message-format=json-render-diagnostics",
];

/// System tests by prefix, if none are named: every kind of port, flow-mods under traffic, the
/// connection tracker, the control socket, and the end of the daemon. The lab's tests measure, and
/// are too slow so.
const TESTS: [&str; 5] = [
    "conntrack::",
    "dataplane::",
    "daemon::",
    "l2::",
    "openflow::",
];

/// Tests that an instrumented daemon cannot pass, by parts of their names, with reasons.
#[rustfmt::skip]
const EXCLUDED: [(&str, &str); 10] = [
    ("openflow::memory_growth::", COUNTS_MEMORY),
    ("openflow::robustness::memory_stays_bounded", COUNTS_MEMORY),
    ("dataplane::port_memory::", COUNTS_MEMORY),
    ("dataplane::dpdk::", "the build has no DPDK, whose library is not instrumented"),
    ("conntrack::neutron_agent::", "ovs-ofctl may wait longer than 30 s for 4,362 rules"),
    ("daemon::crashes::monitor_restarts", SLOW_BACKTRACE),
    ("daemon::crashes::panic_of_any_thread", SLOW_BACKTRACE),
    ("daemon::crashes::stopped_worker", SLOW_BACKTRACE),
    ("daemon::lifecycle::sigterm_exits_within_a_second", SHORT_LIMIT),
    ("daemon::lifecycle::exit_command", SHORT_LIMIT),
];
const COUNTS_MEMORY: &str = "it counts memory, of which a sanitizer takes several times as much";
const SLOW_BACKTRACE: &str = "the backtrace of a panic takes seconds, and lacks inlined functions";
const SHORT_LIMIT: &str = "a second is too short for the end of an instrumented daemon";

/// Longest duration of a test in seconds: several times that of a daemon that is not instrumented.
const TEST_LIMIT: u32 = 900;

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
        if shell.interrupted() {
            break;
        }
    }
    Ok(all)
}

/// Builds the daemon and the tests with a sanitizer, and runs them. Returns whether they passed
/// without a report.
fn sanitize(shell: &mut Shell, sanitizer: Sanitizer, tests: &[&str]) -> Result<bool, TaskError> {
    let folder = shell.root().join(FOLDER).join(sanitizer.name());
    let flags = format!("-Zsanitizer={} -Cforce-frame-pointers", sanitizer.name());
    let mut command = setup::nightly_cargo(&SELECTION);
    command
        .args(["--target", TARGET])
        .env("CARGO_TARGET_DIR", &folder)
        .env("RUSTFLAGS", &flags);
    let Ok(programs) = shared_build::build_with(shell, &mut command)? else {
        return Ok(false);
    };
    let is_test = |program: &&TestProgram| program.package == PACKAGE;
    let program = programs.iter().find(is_test);
    let mut test = program.ok_or("the build has no system tests")?.command();
    let reports = folder.join("reports");
    make_report_folder(&reports)?;
    set_options(&mut test, shell.root(), &reports);
    test.args(["--test-threads", "2"])
        .env("COMPORTA_LIMIT", TEST_LIMIT.to_string())
        .arg(tests.join("|"));
    for (name, reason) in EXCLUDED {
        println!("sanitize: without {name}: {reason}");
        test.args(["--skip", name]);
    }
    let passed = matches!(shell.run(&mut test)?, ProgramOutcome::Success);
    Ok(print_reports(&reports)? == 0 && passed)
}

/// Sets the options of both sanitizers. A report is written to a file, since tests end daemons in
/// many ways and do not look at all their output.
fn set_options(command: &mut Command, root: &Path, reports: &Path) {
    let report = reports.join("report");
    let report = report.display();
    let suppressions = root.join(SUPPRESSIONS);
    command
        // Tests count the daemon's memory, and C libraries of the system leak at exit.
        .env(
            "ASAN_OPTIONS",
            format!("detect_leaks=0:abort_on_error=1:log_path={report}"),
        )
        // Otherwise each process sleeps for a second at its exit, and tests limit that time.
        .env(
            "TSAN_OPTIONS",
            format!("log_path={report}:suppressions={}", suppressions.display()),
        );
}

/// Makes an empty folder that daemons with other users can write to.
fn make_report_folder(folder: &Path) -> io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o1777))
}

/// Prints the reports of a run, and returns their number.
fn print_reports(folder: &Path) -> io::Result<usize> {
    let mut count = 0;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let text = fs::read(&path)?;
        println!(
            "sanitize: {}\n{}",
            path.display(),
            String::from_utf8_lossy(&text)
        );
        count += 1;
    }
    println!("sanitize: {count} processes with reports");
    Ok(count)
}

/// Packages with `unsafe` code or hand-written concurrency, and the tests that miri runs: those
/// without system calls.
#[rustfmt::skip]
const MIRI: [(&str, &[&str]); 4] = [
    (
        "sys",
        &["cache::", "free_stack::", "netlink::", "ring::", "storage::", "umem::", "vectors::"],
    ),
    ("conntrack", &["steady::entry::", "weak_memory::"]),
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
        if shell.interrupted() {
            break;
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
