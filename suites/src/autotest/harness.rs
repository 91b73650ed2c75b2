//! Run of the harness: one process that executes several groups in parallel, in namespaces of its
//! own for networks, mounts and processes. No process of a group remains after the run.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use std::{fs, io, thread};

use suite_report::CaseOutcome;
use testbed::{Clock, Failure};

use crate::source::SourceTree;
use crate::testsuite::TestGroup;

/// Outcome of each finished group, by its name.
pub(crate) type GroupOutcomes = BTreeMap<String, CaseOutcome>;

/// Interval at which the run checks for an interruption.
const TICK: Duration = Duration::from_millis(200);

/// Time limit for the next result: the longest groups take a minute on a quiet machine.
const STALL: Duration = Duration::from_secs(300);

/// The files that configure the harness.
const CONFIGURATION: [&str; 2] = ["atconfig", "atlocal"];

/// Commands that run in the namespaces before the harness: a loopback interface, and run
/// directories that hide the machine's.
const IN_NAMESPACES: &str = "ip link set lo up && mount -t tmpfs none /run && \
                             mkdir -p /run/openvswitch && exec \"$@\"";

/// The harness and its parameters.
#[derive(Debug)]
pub(crate) struct Harness<'a> {
    pub(crate) source: &'a SourceTree,
    /// Program that takes the place of ovs-vswitchd.
    pub(crate) daemon: &'a Path,
    /// Directory of the run, which is emptied.
    pub(crate) directory: PathBuf,
    pub(crate) jobs: u8,
}

impl Harness<'_> {
    /// Returns the directory with a directory of logs for each failed group.
    pub(crate) fn logs(&self) -> PathBuf {
        self.directory.join("tests/testsuite.dir")
    }

    /// Runs `groups`; returns `None` if the run was interrupted.
    pub(crate) fn run(
        &self,
        groups: &[TestGroup],
        stop: &AtomicBool,
    ) -> Result<Option<GroupOutcomes>, Failure> {
        let mut child = self
            .start(groups)
            .map_err(Failure::to("start the harness"))?;
        let output = child.stdout.take().expect("standard output is a pipe");
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let names: BTreeMap<u32, String> = groups
            .iter()
            .map(|group| (group.number, group.name()))
            .collect();
        let mut outcomes = GroupOutcomes::new();
        let clock = Clock::start();
        let mut last_result = clock.now();
        loop {
            match lines.recv_timeout(TICK) {
                Ok(line) => {
                    let result = parse_result(&line);
                    if let Some((name, outcome)) =
                        result.and_then(|(number, outcome)| Some((names.get(&number)?, outcome)))
                    {
                        outcomes.insert(name.clone(), outcome);
                        last_result = clock.now();
                        print_progress(outcomes.len(), groups.len());
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                    end(&mut child)?;
                    return Ok(None);
                }
                Err(RecvTimeoutError::Timeout) if clock.now().since(last_result) > STALL => {
                    end(&mut child)?;
                    println!("autotest: no result within {} s", STALL.as_secs());
                    break;
                }
                Err(RecvTimeoutError::Timeout) => (),
            }
        }
        end(&mut child)?;
        Ok(Some(outcomes))
    }

    /// Starts the harness. The process that `unshare` starts is the first of its namespace: its end
    /// is the end of all daemons of the groups.
    fn start(&self, groups: &[TestGroup]) -> io::Result<Child> {
        let _ = fs::remove_dir_all(&self.directory);
        let (programs, tests) = (self.directory.join("bin"), self.directory.join("tests"));
        fs::create_dir_all(&programs)?;
        fs::create_dir_all(&tests)?;
        symlink(self.daemon.canonicalize()?, programs.join("ovs-vswitchd"))?;
        let sources = self.source.tests();
        for file in CONFIGURATION {
            fs::copy(sources.join(file), tests.join(file))?;
        }
        // Groups find the tree's programs by relative paths.
        link_entries(self.source.root(), &self.directory, &["tests", "bin"])?;
        link_entries(&sources, &tests, &CONFIGURATION)?;
        let programs = programs.canonicalize()?;
        let path = format!("AUTOTEST_PATH={}:{}", programs.display(), sources.display());
        let mut command = Command::new("unshare");
        command
            .args(["--net", "--mount", "--pid", "--fork", "--kill-child"])
            .args(["--mount-proc", "sh", "-c", IN_NAMESPACES, "sh"])
            .arg(self.source.testsuite())
            .arg(path)
            .arg(format!("-j{}", self.jobs))
            .args(groups.iter().map(|group| group.number.to_string()))
            .current_dir(&tests)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command.spawn()
    }
}

/// Links the entries of a directory, except some, into another.
fn link_entries(from: &Path, to: &Path, except: &[&str]) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_kept = |name: &str| !except.contains(&name) && !name.starts_with("testsuite.");
        if name.to_str().is_some_and(is_kept) {
            symlink(entry.path(), to.join(name))?;
        }
    }
    Ok(())
}

/// Ends the harness and all processes of its namespace.
fn end(child: &mut Child) -> Result<(), Failure> {
    let _ = child.kill();
    child
        .wait()
        .map(|_| ())
        .map_err(Failure::to("wait for the harness"))
}

/// Groups between two lines of progress.
const PROGRESS: usize = 50;

fn print_progress(done: usize, all: usize) {
    if done.is_multiple_of(PROGRESS) {
        println!("{done} of {all} groups");
    }
}

/// Parses a line of the harness: `NUMBER: TITLE RESULT`, with the first failed check in
/// parentheses.
fn parse_result(line: &str) -> Option<(u32, CaseOutcome)> {
    let (number, rest) = line.trim_start().split_once(": ")?;
    let number = number.parse().ok()?;
    let mut words: VecDeque<&str> = rest.split_whitespace().collect();
    let last = words.pop_back()?;
    let outcome = match last {
        "ok" => CaseOutcome::Passed,
        _ => {
            let place = last.strip_prefix('(')?.strip_suffix(')')?;
            match words.pop_back()? {
                "FAILED" => CaseOutcome::Failed(format!("first failed check: {place}")),
                "skipped" => CaseOutcome::Skipped(format!("skipped at {place}")),
                _ => return None,
            }
        }
    };
    Some((number, outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_line_has_number_and_outcome() {
        assert_eq!(
            parse_result("856: ofproto - echo request                          ok"),
            Some((856, CaseOutcome::Passed))
        );
        assert_eq!(
            parse_result(" 22: bfd - basic config   FAILED (bfd.at:68)"),
            Some((
                22,
                CaseOutcome::Failed("first failed check: bfd.at:68".to_owned())
            ))
        );
        assert_eq!(
            parse_result("900: x   skipped (ofproto.at:1)"),
            Some((
                900,
                CaseOutcome::Skipped("skipped at ofproto.at:1".to_owned())
            ))
        );
    }

    #[test]
    fn unrelated_line_has_no_outcome() {
        for line in ["", "## Test results. ##", "1 test was run,", "856: running"] {
            assert_eq!(parse_result(line), None, "{line}");
        }
    }
}
