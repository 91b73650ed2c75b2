//! `cargo xtask`: everything about the project that is not the project itself.
//!
//! Not a build system: each command is a few calls of cargo and of Debian's own
//! programs, in an order that a person could type.

#![allow(
    clippy::print_stdout,
    reason = "what this program says is its product, and it says it to a person"
)]

mod bench;
mod conform;
mod counts;
mod demo;
mod dist;
mod fuzz;
mod metadata;
mod setup;
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

/// Why a command could not be carried out.
type Failure = Box<dyn Error + Send + Sync>;

const USAGE: &str = "\
cargo xtask COMMAND

  setup                 install what tests and demonstration need (Debian, root)
  tidy                  check what the compiler does not
  test [--only STEP]... all checks and tests; the steps: setup tidy fmt clippy unit model docs counts bench system conform
  conform [PREFIX]...   others' conformance suites and our cases on Open vSwitch, all of it, only `cases`, or files that begin so (of13/meter)
  counts [--bless]      count the instructions of hot code, and say what takes more than before; or take that as the measure
  bench [ROW]...        figures beside their peers', as a table and as JSON: all rows, or those whose names begin so;
                        --list names them, --runs N, --quick, --readme (whole groups, into README.md)
  fuzz [TARGET]...      fuzz each target for --minutes N (1), with a nightly compiler, and keep what reaches further in fuzz/corpus
  soak                  change a database at random while frames cross: --changes N (10000), --seed S (1)
  dist                  build Debian packages into target/dist: --dpdk with its ports, --binary FILE of a program that is there, --out DIRECTORY
  demo                  measure comporta, a Linux bridge and Open vSwitch, and write a report
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

/// What a shell says of a program that Ctrl-C ended: 128 and the signal's number.
const INTERRUPTED: u8 = 130;

/// Carries out the command that `words` name.
fn dispatch(shell: &mut Shell, words: &[&str]) -> Result<ExitCode, Failure> {
    match words {
        [] | ["help"] | [.., "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        ["setup"] => setup::all(shell).map(|()| ExitCode::SUCCESS),
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
        ["bench", options @ ..] => bench::run(shell, options),
        ["counts", options @ ..] => counts::run(shell, options),
        ["fuzz", words @ ..] => fuzz::run(shell, words),
        ["soak", words @ ..] => soak::run(shell, words),
        ["dist", words @ ..] => dist::run(shell, words),
        ["demo"] => demo::run(shell).map(|()| ExitCode::SUCCESS),
        _ => Err(format!("unknown command `{}`\n\n{USAGE}", words.join(" ")).into()),
    }
}
