//! All checks and tests, the cheap ones first. One failure does not end the run;
//! what cannot be done after it is skipped, and says so.
//!
//! The last line is exactly `N passed, N failed, N skipped`.

use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;

use crate::metadata::{Metadata, cargo};
use crate::shell::{Outcome, Shell, now};
use crate::summary::Tally;
use crate::tidy::Tree;
use crate::{Failure, bench, book, conform, counts, setup, tidy};

/// One step: its name, what it is, and how it is done.
struct Step {
    name: &'static str,
    about: &'static str,
    run: fn(&mut Shell) -> Result<Tally, Failure>,
}

/// The package of tests that need namespaces and real peers, and the one with the
/// binary that they start.
const SYSTEM_TESTS: &str = "tests";
const BINARY: &str = "cli";

/// The feature that brings ports of DPDK, and the crate of them. Both states are built and
/// tested: the binary that users get without asking has none.
const DPDK: &str = "dpdk";

/// The packages that have models of what their threads hand over, built with the feature
/// `model`, and the modules of them.
const MODELLED: [&str; 2] = ["fastpath", "switch"];
const MODELS: &str = "model::";

#[rustfmt::skip]
const STEPS: [Step; 11] = [
    Step { name: "setup",  about: "what the tests need",                     run: set_up },
    Step { name: "tidy",   about: "what the compiler does not check",        run: check_tidiness },
    Step { name: "fmt",    about: "formatting",                              run: check_format },
    Step { name: "clippy", about: "lints, as errors",                        run: check_lints },
    Step { name: "unit",   about: "unit and property tests, vectors, cases, corpora", run: run_unit_tests },
    Step { name: "model",  about: "what threads hand over, in many orders",  run: run_models },
    Step { name: "docs",   about: "documentation, warnings as errors",       run: build_docs },
    Step { name: "counts", about: "instructions of hot code, against the baseline",       run: count_instructions },
    Step { name: "bench",  about: "one row of the benchmarks, to see that they work",     run: try_bench },
    Step { name: "system", about: "real processes in namespaces",            run: run_system_tests },
    Step { name: "conform", about: "others' conformance suites, but for their half-minute cases", run: run_suites },
];

/// What became of one step.
struct Done {
    name: &'static str,
    tally: Tally,
    took: Duration,
}

/// Carries out all steps, or those that `options` name.
pub(crate) fn run(shell: &mut Shell, options: &[&str]) -> Result<ExitCode, Failure> {
    let chosen = choose(options)?;
    let mut done = Vec::new();
    for step in chosen {
        println!("\n== {}: {}", step.name, step.about);
        let start = now();
        let tally = (step.run)(shell)
            .unwrap_or_else(|failure| Tally::failed(step.name, &failure.to_string()));
        done.push(Done {
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

/// The steps that `--only` names; all of them without one.
fn choose(options: &[&str]) -> Result<Vec<&'static Step>, Failure> {
    let mut names = Vec::new();
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        let name = match (option.strip_prefix("--only="), *option) {
            (Some(name), _) => Some(name),
            (None, "--only") => rest.next().copied(),
            (None, _) => {
                return Err(
                    format!("unknown option `{option}`: --only STEP is all there is").into(),
                );
            }
        };
        match name.filter(|name| STEPS.iter().any(|step| step.name == *name)) {
            Some(name) => names.push(name),
            None => {
                let known: Vec<_> = STEPS.iter().map(|step| step.name).collect();
                return Err(format!("--only wants one of: {}", known.join(" ")).into());
            }
        }
    }
    let wanted = |step: &&Step| names.is_empty() || names.contains(&step.name);
    Ok(STEPS.iter().filter(wanted).collect())
}

/// Prints what became of all steps, and returns the sum.
fn sum_up(done: Vec<Done>) -> Tally {
    println!("\n== summary");
    let mut total = Tally::default();
    for Done { name, tally, took } in done {
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
        println!("passed at the second try: {name}");
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

/// Cargo with these arguments.
fn cargo_with(arguments: &[&str]) -> Command {
    let mut command = Command::new(cargo());
    command.args(arguments);
    command
}

/// A step that is one command: it passes if the command does.
fn one(shell: &mut Shell, name: &str, command: &mut Command) -> Result<Tally, Failure> {
    Ok(match shell.run(command)? {
        Outcome::Success => Tally::passed(),
        outcome => Tally::failed(name, &explain(&outcome)),
    })
}

/// A step that runs test binaries. One that dies without a result is a failure more.
fn counted(shell: &mut Shell, name: &str, command: &mut Command) -> Result<Tally, Failure> {
    let mut tally = Tally::default();
    let outcome = shell.run_heard(command, &mut |line| tally.hear(line))?;
    match outcome {
        Outcome::Success => {}
        Outcome::Failed(_) if tally.counts.failed > 0 => {}
        outcome => tally.fail(name, &explain(&outcome)),
    }
    Ok(tally)
}

/// What to say of a command that did not end well.
pub(crate) fn explain(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Success => "succeeded".to_owned(),
        Outcome::Failed(status) => format!("the command failed, {status}; see above"),
        Outcome::Overdue => "the command took too long".to_owned(),
        Outcome::Interrupted => "interrupted".to_owned(),
    }
}

fn set_up(shell: &mut Shell) -> Result<Tally, Failure> {
    setup::all(shell).map(|()| Tally::passed())
}

fn check_tidiness(shell: &mut Shell) -> Result<Tally, Failure> {
    let findings = tidy::run(&Tree::read(shell.root())?);
    tidy::print(&findings);
    Ok(match findings.len() {
        0 => Tally::passed(),
        count => Tally::failed("tidy", &format!("{count} findings, see above")),
    })
}

fn check_format(shell: &mut Shell) -> Result<Tally, Failure> {
    one(shell, "fmt", &mut cargo_with(&["fmt", "--all", "--check"]))
}

fn check_lints(shell: &mut Shell) -> Result<Tally, Failure> {
    let with_dpdk = ["--package", DPDK, "--package", BINARY, "--features", DPDK];
    let mut tally = Tally::default();
    let with_model = ["--package", MODELLED[0], "--package", MODELLED[1]];
    let with_model = [with_model.as_slice(), &["--features", "model"]].concat();
    for of_what in [["--workspace"].as_slice(), &with_dpdk, &with_model] {
        let mut command = cargo_with(&["clippy", "--all-targets"]);
        command.args(of_what).args(["--", "-D", "warnings"]);
        tally.add(one(shell, "clippy", &mut command)?);
    }
    Ok(tally)
}

fn run_unit_tests(shell: &mut Shell) -> Result<Tally, Failure> {
    let mut command = cargo_with(&["test", "--workspace", "--no-fail-fast"]);
    if Metadata::read(shell.root())?.has(SYSTEM_TESTS) {
        command.args(["--exclude", SYSTEM_TESTS]);
    }
    let mut tally = counted(shell, "unit", &mut command)?;
    try_again(shell, &mut tally, |shell, name| {
        let mut command = cargo_with(&["test", "--workspace", "--lib", "--bins", "--tests"]);
        command.args(["--exclude", SYSTEM_TESTS, "--", "--exact", name]);
        counted(shell, "unit", &mut command)
    })?;
    let mut command = cargo_with(&["test", "--package", DPDK, "--features", DPDK]);
    tally.add(counted(shell, "unit", &mut command)?);
    Ok(tally)
}

fn run_models(shell: &mut Shell) -> Result<Tally, Failure> {
    let mut command = cargo_with(&["test", "--lib", "--features", "model"]);
    for package in MODELLED {
        command.args(["--package", package]);
    }
    // With that feature, nothing else runs than models.
    counted(shell, "model", command.arg(MODELS))
}

fn build_docs(shell: &mut Shell) -> Result<Tally, Failure> {
    let mut command = cargo_with(&["doc", "--workspace", "--no-deps"]);
    let mut tally = one(shell, "docs", command.env("RUSTDOCFLAGS", "-D warnings"))?;
    tally.add(match book::build(shell) {
        Ok(_) => Tally::passed(),
        Err(failure) => Tally::failed("book", &failure.to_string()),
    });
    Ok(tally)
}

fn count_instructions(shell: &mut Shell) -> Result<Tally, Failure> {
    counts::check(shell)
}

fn try_bench(shell: &mut Shell) -> Result<Tally, Failure> {
    bench::try_one(shell)
}

fn run_system_tests(shell: &mut Shell) -> Result<Tally, Failure> {
    let metadata = Metadata::read(shell.root())?;
    for package in [BINARY, SYSTEM_TESTS] {
        if !metadata.has(package) {
            let reason = format!("the workspace has no package `{package}`");
            return Ok(Tally::skipped("system", &reason));
        }
    }
    let build = ["build", "--package", BINARY, "--features", DPDK];
    let built = shell.run(&mut cargo_with(&build))?;
    if !matches!(built, Outcome::Success) {
        return Ok(Tally::failed(
            "system",
            &format!("building `{BINARY}`: {}", explain(&built)),
        ));
    }
    let mut tally = system_tests(shell, &[], system_tests_at_once())?;
    try_again(shell, &mut tally, |shell, name| {
        system_tests(shell, &["--exact", name], 1)
    })?;
    Ok(tally)
}

/// How many tests that failed are run once more, each alone: some are real processes on a
/// machine that others may use too, and one that was late says less than one that fails
/// twice. Which they were is told. More failures than that have another reason. What was found
/// at random fails again: `proptest` keeps it.
const RETRIED_MAX: usize = 6;

/// Has each test that failed, if they are few, run `once_more`.
fn try_again(
    shell: &mut Shell,
    tally: &mut Tally,
    mut once_more: impl FnMut(&mut Shell, &str) -> Result<Tally, Failure>,
) -> Result<(), Failure> {
    if tally.failures.len() > RETRIED_MAX || shell.interrupted() {
        return Ok(());
    }
    for name in tally.failures.clone() {
        println!("\n== once more, alone: {name}");
        let again = once_more(shell, &name)?;
        tally.try_again(&name, &again);
    }
    Ok(())
}

/// The system tests that `chosen` names to their harness, so many at once.
fn system_tests(shell: &mut Shell, chosen: &[&str], at_once: usize) -> Result<Tally, Failure> {
    let mut command = cargo_with(&["test", "--package", SYSTEM_TESTS, "--", "--test-threads"]);
    command.arg(at_once.to_string()).args(chosen);
    counted(shell, "system", &mut command)
}

/// How many system tests run at once: they wait more than they compute.
fn system_tests_at_once() -> usize {
    thread::available_parallelism().map_or(1, usize::from) + 1
}

fn run_suites(shell: &mut Shell) -> Result<Tally, Failure> {
    Ok(match conform::conform(shell, &conform::QUICK)? {
        Outcome::Success => Tally::passed(),
        outcome => Tally::failed("conform", &explain(&outcome)),
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
    fn steps_run_in_their_own_order_whatever_was_asked_first() {
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
