//! `cargo xtask`: set-up, tests, benchmarks, packages and checks of the project.
//!
//! Each command is a few calls of cargo and Debian programs, which a person could type as well.

#![allow(
    clippy::print_stdout,
    reason = "the output of this program is for people"
)]

mod bench;
mod book;
mod conform;
mod counts;
mod demo;
mod deny;
mod dist;
mod fuzz;
mod metadata;
mod sanitize;
mod setup;
mod shared_build;
mod shell;
mod soak;
mod summary;
mod test;
mod tidy;

use std::env;
use std::error::Error;
use std::process::ExitCode;

use shell::Shell;
use tidy::Tree;

/// The reason of a failed command.
type TaskError = Box<dyn Error + Send + Sync>;

const USAGE: &str = "\
cargo xtask COMMAND

  demo                  measure comporta, Open vSwitch, a Linux bridge and a bare link, and write a report (10 minutes)
  test [--only STEP]... all checks and tests; steps: setup tidy deny fmt clippy unit model docs counts bench system conform
  setup [neutron]       install what tests and demonstration need (Debian, root); or Neutron's agent, to record its rules
  tidy [--bless]        check what the compiler does not; --bless writes the prose baseline
  conform [PREFIX]...   conformance suites, and our cases on Open vSwitch: all, `cases`, `autotest`, or a prefix
                        (of13/meter)
  autotest [GROUP]...   Open vSwitch's own test suite with our daemon: all groups that start a switch, or numbers,
                        ranges (856-860) and files (ofproto.at)
  counts [--bless]      compare instruction counts of hot code with the baseline; --bless writes the baseline
  bench [ROW]...        figures next to those of peers: all rows, or rows by prefix; --list, --runs N, --quick,
                        --chassis N (50) of ovn-chassis, --publish (whole groups, into the documents)
  fuzz [TARGET]...      fuzz each target for --minutes N (1) with a nightly compiler, and extend fuzz/corpus
  deny [--advisories]   dependencies against deny.toml: licences, sources, bans; or known vulnerabilities (network)
  sanitize [NAME|TEST]  system tests with AddressSanitizer and ThreadSanitizer builds: `address`, `thread`, prefixes of tests
  miri [PACKAGE]...     unit tests of `unsafe` code and of lock-free structures under miri
  soak                  random database changes under traffic: --changes N (10000), --seed S (1); or --hostile: peers,
                        floods and panics at their worst, for --minutes N (10)
  book                  build the documents as one book with search, into target/book
  dist                  build Debian packages into target/dist: --dpdk, --binary FILE, --out DIRECTORY
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = Shell::new().and_then(|mut shell| {
        let done = dispatch(&mut shell, &words);
        match (done, shell.interrupted()) {
            (Ok(_), true) => Ok(ExitCode::from(INTERRUPTED)),
            (Err(failure), true) => {
                println!("xtask: {failure}");
                Ok(ExitCode::from(INTERRUPTED))
            }
            (done, false) => done,
        }
    });
    done.unwrap_or_else(|failure| {
        println!("xtask: {failure}");
        ExitCode::FAILURE
    })
}

/// Exit code of a program that Ctrl-C ended: 128 plus the number of the signal.
const INTERRUPTED: u8 = 130;

/// Runs the command that `words` name.
fn dispatch(shell: &mut Shell, words: &[&str]) -> Result<ExitCode, TaskError> {
    match words {
        [] | ["help"] | [.., "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        ["setup"] => setup::all(shell).map(|()| ExitCode::SUCCESS),
        ["setup", "neutron"] => setup::neutron(shell).map(|()| ExitCode::SUCCESS),
        ["tidy"] => {
            let findings = tidy::run(&Tree::read(shell.root())?);
            tidy::print(&findings);
            Ok(match findings.is_empty() {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            })
        }
        ["tidy", "--bless"] => tidy::bless(shell.root()).map(|()| ExitCode::SUCCESS),
        ["test", options @ ..] => test::run(shell, options),
        ["conform", options @ ..] => conform::run(shell, options),
        ["autotest", options @ ..] => conform::autotest(shell, options),
        ["bench", options @ ..] => bench::run(shell, options),
        ["counts", options @ ..] => counts::run(shell, options),
        ["fuzz", words @ ..] => fuzz::run(shell, words),
        ["deny", words @ ..] => deny::run(shell, words),
        ["sanitize", words @ ..] => sanitize::run(shell, words),
        ["miri", words @ ..] => sanitize::miri(shell, words),
        ["soak", words @ ..] => soak::run(shell, words),
        ["dist", words @ ..] => dist::run(shell, words),
        ["book"] => {
            println!("{}", book::build(shell)?.display());
            Ok(ExitCode::SUCCESS)
        }
        ["demo"] => demo::run(shell).map(|()| ExitCode::SUCCESS),
        _ => Err(format!("unknown command `{}`\n\n{USAGE}", words.join(" ")).into()),
    }
}
