//! All checks and tests, cheap ones first. A failure does not end the run; a step that depends on
//! it is skipped and reported.
//!
//! The last line is exactly `N passed, N failed, N skipped`.

use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;

use crate::metadata::cargo;
use crate::shared_build::{self, FEATURES, TestProgram};
use crate::shell::{ProgramOutcome, Shell, now};
use crate::summary::TestTally;
use crate::tidy::Tree;
use crate::{TaskError, bench, book, conform, counts, deny, setup, tidy};

/// A step: name, description and function.
struct TestStep {
    name: &'static str,
    about: &'static str,
    run: fn(&mut Shell) -> Result<TestTally, TaskError>,
}

/// The package of tests with namespaces and real peers.
const SYSTEM_TESTS: &str = "tests";

/// The crate of DPDK ports, and the package of the binary. Both variants, with and without DPDK
/// ports, are checked and tested; the default is without.
const DPDK: &str = "dpdk";
const BINARY: &str = "cli";

/// The packages with concurrency models, built with the feature `model`, and the modules of the
/// models.
const MODELLED: [&str; 3] = ["conntrack", "fastpath", "runtime"];
const MODELS: &str = "model::";

#[rustfmt::skip]
const STEPS: [TestStep; 12] = [
    TestStep { name: "setup",  about: "dependencies",                     run: set_up },
    TestStep { name: "tidy",   about: "dependencies between crates, names, prose, licences",        run: check_tidiness },
    TestStep { name: "deny",   about: "licences, sources and bans of dependencies",  run: check_dependencies },
    TestStep { name: "fmt",    about: "formatting",                              run: check_format },
    TestStep { name: "clippy", about: "lints, as errors",                        run: check_lints },
    TestStep { name: "unit",   about: "unit and property tests, vectors, cases, corpora", run: run_unit_tests },
    TestStep { name: "model",  about: "concurrency models, in many schedules",  run: run_models },
    TestStep { name: "docs",   about: "documentation, warnings as errors",       run: build_docs },
    TestStep { name: "counts", about: "instructions of hot code, against the baseline",       run: count_instructions },
    TestStep { name: "bench",  about: "one row of the benchmarks, as a smoke test",     run: try_bench },
    TestStep { name: "system", about: "real processes in namespaces",            run: run_system_tests },
    TestStep { name: "conform", about: "conformance suites, without the half-minute cases", run: run_suites },
];

/// The result of a step.
struct StepResult {
    name: &'static str,
    tally: TestTally,
    took: Duration,
}

/// Runs all steps, or those that `options` name.
pub(crate) fn run(shell: &mut Shell, options: &[&str]) -> Result<ExitCode, TaskError> {
    let chosen = choose(options)?;
    let mut done = Vec::new();
    for step in chosen {
        println!("\n== {}: {}", step.name, step.about);
        let start = now();
        let tally = (step.run)(shell)
            .unwrap_or_else(|failure| TestTally::failed(step.name, &failure.to_string()));
        done.push(StepResult {
            name: step.name,
            tally,
            took: now() - start,
        });
        if shell.interrupted() {
            break;
        }
    }
    let total = sum_up(done);
    Ok(match total.counts.failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Returns the steps that `--only` names, or all steps.
fn choose(options: &[&str]) -> Result<Vec<&'static TestStep>, TaskError> {
    let mut names = Vec::new();
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        let name = match (option.strip_prefix("--only="), *option) {
            (Some(name), _) => Some(name),
            (None, "--only") => rest.next().copied(),
            (None, _) => {
                return Err(
                    format!("unknown option `{option}`: the only option is --only STEP").into(),
                );
            }
        };
        match name.filter(|name| STEPS.iter().any(|step| step.name == *name)) {
            Some(name) => names.push(name),
            None => {
                let known: Vec<_> = STEPS.iter().map(|step| step.name).collect();
                return Err(format!("--only must be one of: {}", known.join(" ")).into());
            }
        }
    }
    let is_chosen = |step: &&TestStep| names.is_empty() || names.contains(&step.name);
    Ok(STEPS.iter().filter(is_chosen).collect())
}

/// Prints the results of all steps, and returns their sum.
fn sum_up(done: Vec<StepResult>) -> TestTally {
    println!("\n== summary");
    let mut total = TestTally::default();
    for StepResult { name, tally, took } in done {
        let counts = tally.counts;
        println!(
            "{name:8} {:5} passed {:3} failed {:3} skipped {:6.1} s",
            counts.passed,
            counts.failed,
            counts.skipped,
            took.as_secs_f64()
        );
        total.add(tally);
    }
    for failure in &total.failures {
        println!("failed: {failure}");
    }
    for name in &total.second_tries {
        println!("passed when repeated: {name}");
    }
    for skip in &total.skips {
        println!("skipped: {}: {}", skip.name, skip.reason);
    }
    let counts = total.counts;
    println!(
        "{} passed, {} failed, {} skipped",
        counts.passed, counts.failed, counts.skipped
    );
    total
}

/// Returns a cargo command.
fn cargo_with(arguments: &[&str]) -> Command {
    let mut command = Command::new(cargo());
    command.args(arguments);
    command
}

/// Runs a step of one command, which passes if the command succeeds.
fn one(shell: &mut Shell, name: &str, command: &mut Command) -> Result<TestTally, TaskError> {
    Ok(match shell.run(command)? {
        ProgramOutcome::Success => TestTally::passed(),
        outcome => TestTally::failed(name, &explain(&outcome)),
    })
}

/// Runs test binaries and counts their results. A binary that ends without a result is a failure.
fn counted(shell: &mut Shell, name: &str, command: &mut Command) -> Result<TestTally, TaskError> {
    let mut tally = TestTally::default();
    let outcome = shell.run_heard(command, &mut |line| tally.hear(line))?;
    match outcome {
        ProgramOutcome::Success => {}
        ProgramOutcome::Failed(_) if tally.counts.failed > 0 => {}
        outcome => tally.fail(name, &explain(&outcome)),
    }
    Ok(tally)
}

/// Describes the outcome of a failed command.
pub(crate) fn explain(outcome: &ProgramOutcome) -> String {
    match outcome {
        ProgramOutcome::Success => "succeeded".to_owned(),
        ProgramOutcome::Failed(status) => format!("the command failed, {status}; see above"),
        ProgramOutcome::Overdue => "the command took too long".to_owned(),
        ProgramOutcome::Interrupted => "interrupted".to_owned(),
    }
}

fn set_up(shell: &mut Shell) -> Result<TestTally, TaskError> {
    setup::all(shell).map(|()| TestTally::passed())
}

fn check_tidiness(shell: &mut Shell) -> Result<TestTally, TaskError> {
    let findings = tidy::run(&Tree::read(shell.root())?);
    tidy::print(&findings);
    Ok(match findings.len() {
        0 => TestTally::passed(),
        count => TestTally::failed("tidy", &format!("{count} findings, see above")),
    })
}

fn check_dependencies(shell: &mut Shell) -> Result<TestTally, TaskError> {
    Ok(match deny::check_offline(shell)? {
        ProgramOutcome::Success => TestTally::passed(),
        outcome => TestTally::failed("deny", &explain(&outcome)),
    })
}

fn check_format(shell: &mut Shell) -> Result<TestTally, TaskError> {
    one(shell, "fmt", &mut cargo_with(&["fmt", "--all", "--check"]))
}

fn check_lints(shell: &mut Shell) -> Result<TestTally, TaskError> {
    let mut tally = TestTally::default();
    let all = ["--workspace", "--features", FEATURES];
    let without_dpdk = ["--package", DPDK, "--package", BINARY];
    let mut model = vec!["--features", "model"];
    model.extend(
        MODELLED
            .into_iter()
            .flat_map(|package| ["--package", package]),
    );
    for selection in [all.as_slice(), &without_dpdk, model.as_slice()] {
        let mut command = cargo_with(&["clippy", "--all-targets"]);
        command.args(selection).args(["--", "-D", "warnings"]);
        tally.add(one(shell, "clippy", &mut command)?);
    }
    Ok(tally)
}

fn run_unit_tests(shell: &mut Shell) -> Result<TestTally, TaskError> {
    let programs = match shared_build::build(shell)? {
        Ok(programs) => programs,
        Err(outcome) => return Ok(TestTally::failed("unit", &explain(&outcome))),
    };
    let mut tally = TestTally::default();
    for program in programs
        .iter()
        .filter(|program| program.package != SYSTEM_TESTS)
    {
        println!("\n== {} ({})", program.package, program.target);
        let mut results = counted(shell, "unit", &mut program.command())?;
        try_again(shell, &mut results, |shell, name| {
            counted(shell, "unit", program.command().args(["--exact", name]))
        })?;
        tally.add(results);
        if shell.interrupted() {
            return Ok(tally);
        }
    }
    let mut examples = cargo_with(&["test", "--workspace", "--doc", "--features", FEATURES]);
    tally.add(counted(shell, "unit", &mut examples)?);
    let mut without = cargo_with(&["test", "--package", DPDK, "--tests"]);
    tally.add(counted(shell, "unit", &mut without)?);
    Ok(tally)
}

fn run_models(shell: &mut Shell) -> Result<TestTally, TaskError> {
    let mut command = cargo_with(&["test", "--lib", "--features", "model"]);
    for package in MODELLED {
        command.args(["--package", package]);
    }
    // With this feature, only the models can run.
    counted(shell, "model", command.arg(MODELS))
}

fn build_docs(shell: &mut Shell) -> Result<TestTally, TaskError> {
    let mut command = cargo_with(&["doc", "--workspace", "--no-deps", "--features", FEATURES]);
    let mut tally = one(shell, "docs", command.env("RUSTDOCFLAGS", "-D warnings"))?;
    tally.add(match book::build(shell) {
        Ok(_) => TestTally::passed(),
        Err(failure) => TestTally::failed("book", &failure.to_string()),
    });
    Ok(tally)
}

fn count_instructions(shell: &mut Shell) -> Result<TestTally, TaskError> {
    counts::check(shell)
}

fn try_bench(shell: &mut Shell) -> Result<TestTally, TaskError> {
    bench::try_one(shell)
}

fn run_system_tests(shell: &mut Shell) -> Result<TestTally, TaskError> {
    let programs = match shared_build::build(shell)? {
        Ok(programs) => programs,
        Err(outcome) => return Ok(TestTally::failed("system", &explain(&outcome))),
    };
    let mut tally = TestTally::default();
    for program in programs
        .iter()
        .filter(|program| program.package == SYSTEM_TESTS)
    {
        let mut results = system_tests(shell, program, &[], system_tests_at_once())?;
        try_again(shell, &mut results, |shell, name| {
            system_tests(shell, program, &["--exact", name], 1)
        })?;
        tally.add(results);
    }
    Ok(tally)
}

/// Number of failed tests that are repeated, each alone. Many tests run real processes on a shared
/// machine: a test that was late once says less than one that fails twice. Repeated tests are
/// reported. More failures have a common cause. Random inputs that failed are stored by `proptest`
/// and fail again.
const RETRIED_MAX: usize = 6;

/// Repeats each failed test with `once_more`, if they are few.
fn try_again(
    shell: &mut Shell,
    tally: &mut TestTally,
    mut once_more: impl FnMut(&mut Shell, &str) -> Result<TestTally, TaskError>,
) -> Result<(), TaskError> {
    if tally.failures.len() > RETRIED_MAX || shell.interrupted() {
        return Ok(());
    }
    for name in tally.failures.clone() {
        println!("\n== repeated alone: {name}");
        let again = once_more(shell, &name)?;
        tally.try_again(&name, &again);
    }
    Ok(())
}

/// Runs the system tests of `program` that `chosen` selects, `at_once` of them in parallel.
fn system_tests(
    shell: &mut Shell,
    program: &TestProgram,
    chosen: &[&str],
    at_once: usize,
) -> Result<TestTally, TaskError> {
    let mut command = program.command();
    command.arg("--test-threads").arg(at_once.to_string());
    counted(shell, "system", command.args(chosen))
}

/// Returns the number of parallel system tests: one more than processors, since they mostly wait.
fn system_tests_at_once() -> usize {
    thread::available_parallelism().map_or(1, usize::from) + 1
}

fn run_suites(shell: &mut Shell) -> Result<TestTally, TaskError> {
    Ok(match conform::conform(shell, &conform::QUICK)? {
        ProgramOutcome::Success => TestTally::passed(),
        outcome => TestTally::failed("conform", &explain(&outcome)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(options: &[&str]) -> Result<Vec<&'static str>, String> {
        match choose(options) {
            Ok(steps) => Ok(steps.iter().map(|step| step.name).collect()),
            Err(failure) => Err(failure.to_string()),
        }
    }

    #[test]
    fn steps_run_in_their_own_order() {
        assert_eq!(chosen(&[]).map(|all| all.len()), Ok(STEPS.len()));
        assert_eq!(
            chosen(&["--only", "unit", "--only=fmt"]),
            Ok(vec!["fmt", "unit"])
        );
    }

    #[test]
    fn unknown_steps_and_options_are_refused() {
        assert!(chosen(&["--only", "lint"]).is_err_and(|text| text.contains("clippy")));
        assert!(chosen(&["--only"]).is_err());
        assert!(chosen(&["--fast"]).is_err_and(|text| text.contains("--only")));
    }
}
