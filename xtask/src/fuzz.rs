//! Fuzzing: runs each target for some minutes from its corpus, and extends the corpus by inputs
//! that reach new code.
//!
//! An input that fails is added to the corpus as well, so that `cargo test -p testkit` runs it from
//! then on.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crate::TaskError;
use crate::setup;
use crate::shell::{ProgramOutcome, Shell};

/// The targets and the corpora, from the project's root.
const TARGETS: &str = "fuzz/fuzz_targets";
const CORPUS: &str = "fuzz/corpus";

/// The inputs that a run generated and those that failed, before they are added to the tree.
const LEARNED: &str = "target/fuzz/learned";
const FOUND: &str = "target/fuzz/found";

/// Longest input, in bytes: the longest OpenFlow message.
const LENGTH_MAX: u32 = 65_535;

/// Minutes for each target, by default.
const MINUTES: u32 = 1;

/// Targets, and the time for each.
#[derive(Debug, PartialEq)]
struct FuzzPlan {
    targets: Vec<String>,
    minutes: u32,
}

impl FuzzPlan {
    /// Parses the arguments of `fuzz`; `all` are the existing targets.
    fn of(words: &[&str], all: &BTreeSet<String>) -> Result<Self, TaskError> {
        let (mut chosen, mut minutes) = (BTreeSet::new(), MINUTES);
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            if word == "--minutes" {
                let number = words.next().and_then(|number| number.parse().ok());
                minutes = number
                    .filter(|minutes| *minutes > 0)
                    .ok_or("--minutes takes a number of minutes, one at least")?;
            } else if all.contains(word) {
                chosen.insert(word.to_owned());
            } else {
                let names: Vec<&str> = all.iter().map(String::as_str).collect();
                return Err(format!("no target `{word}`; there are {}", names.join(", ")).into());
            }
        }
        let targets = if chosen.is_empty() { all } else { &chosen };
        Ok(Self {
            targets: targets.iter().cloned().collect(),
            minutes,
        })
    }
}

/// Fuzzes the targets that `words` name, or all of them, in sequence.
pub(crate) fn run(shell: &mut Shell, words: &[&str]) -> Result<ExitCode, TaskError> {
    let plan = FuzzPlan::of(words, &targets(shell.root())?)?;
    setup::fuzzing(shell)?;
    let mut findings = Vec::new();
    for target in &plan.targets {
        let before = files(&shell.root().join(CORPUS).join(target))?.len();
        findings.extend(fuzz(shell, target, plan.minutes)?);
        keep(shell, target)?;
        let after = files(&shell.root().join(CORPUS).join(target))?.len();
        println!(
            "fuzz: {target}: {} of {after} files are new",
            after - before
        );
        if shell.interrupted() {
            break;
        }
    }
    for finding in &findings {
        println!("found: {finding}");
    }
    Ok(match findings.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Runs one target. Returns the inputs that failed, which are in the corpus then.
fn fuzz(shell: &mut Shell, target: &str, minutes: u32) -> Result<Vec<String>, TaskError> {
    let root = shell.root().to_owned();
    let (learned, found) = (format!("{LEARNED}/{target}"), format!("{FOUND}/{target}/"));
    for folder in [&learned, &found] {
        fs::create_dir_all(root.join(folder))?;
    }
    let corpus = format!("{CORPUS}/{target}");
    let mut command = setup::cargo_fuzz(&root);
    command
        .args(["fuzz", "run", target, &learned, &corpus, "--"])
        .arg(format!("-max_len={LENGTH_MAX}"))
        .arg(format!("-max_total_time={}", minutes * 60))
        .arg(format!("-artifact_prefix={}", root.join(&found).display()))
        .arg("-print_final_stats=1");
    let words = root.join(format!("fuzz/{target}.dict"));
    if words.is_file() {
        command.arg(format!("-dict={}", words.display()));
    }
    let outcome = shell.run(&mut command)?;
    let mut kept = Vec::new();
    for name in files(&root.join(&found))? {
        let place = format!("{corpus}/{name}");
        fs::rename(root.join(&found).join(&name), root.join(&place))?;
        kept.push(place);
    }
    match outcome {
        ProgramOutcome::Failed(status) if kept.is_empty() => {
            Err(format!("fuzzing {target} ended with {status}").into())
        }
        _ => Ok(kept),
    }
}

/// Adds a minimal set of inputs that reach new code to the corpus.
fn keep(shell: &mut Shell, target: &str) -> Result<(), TaskError> {
    let (learned, corpus) = (format!("{LEARNED}/{target}"), format!("{CORPUS}/{target}"));
    let mut command = setup::cargo_fuzz(shell.root());
    command
        .args(["fuzz", "run", target, &corpus, &learned, "--"])
        // Hit counts do not matter here, only coverage.
        .args(["-set_cover_merge=1", "-use_counters=0"])
        .arg(format!("-max_len={LENGTH_MAX}"));
    match shell.run(&mut command)? {
        ProgramOutcome::Failed(status) => {
            Err(format!("merging {target} ended with {status}").into())
        }
        _ => Ok(()),
    }
}

/// Returns the names of all targets.
fn targets(root: &Path) -> Result<BTreeSet<String>, TaskError> {
    let names = files(&root.join(TARGETS))?;
    let name = |file: &String| file.strip_suffix(".rs").map(str::to_owned);
    Ok(names.iter().filter_map(name).collect())
}

/// Returns the names of the files in a folder; none if it does not exist.
fn files(folder: &Path) -> Result<Vec<String>, TaskError> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(Vec::new());
    };
    entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> BTreeSet<String> {
        ["frame", "print"].map(str::to_owned).into()
    }

    #[test]
    fn targets_default_to_all() {
        let plan = FuzzPlan::of(&[], &all()).unwrap();
        assert_eq!(plan.targets, ["frame", "print"]);
        let plan = FuzzPlan::of(&["print", "--minutes", "60"], &all()).unwrap();
        assert_eq!((plan.targets, plan.minutes), (vec!["print".to_owned()], 60));
    }

    #[test]
    fn unknown_target_is_reported_with_the_known_ones() {
        let refused = |words: &[&str]| FuzzPlan::of(words, &all()).unwrap_err().to_string();
        assert_eq!(
            refused(&["flow"]),
            "no target `flow`; there are frame, print"
        );
        assert!(refused(&["--minutes"]).contains("number of minutes"));
        assert!(refused(&["--minutes", "0"]).contains("one at least"));
    }

    #[test]
    fn targets_have_corpora() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let targets = targets(root).unwrap();
        assert!(targets.contains("commands"));
        for target in targets {
            assert!(!files(&root.join(CORPUS).join(&target)).unwrap().is_empty());
        }
    }
}
