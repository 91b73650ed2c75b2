//! The one debug build that all tests share: every library, program, test and example of the
//! workspace, with DPDK ports.
//!
//! Cargo compiles a crate again for each selection of packages and features. Unit tests, system
//! tests, conformance suites and the smoke test of the benchmarks therefore use one selection, and
//! run the programs of this build.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::TaskError;
use crate::metadata::cargo;
use crate::shell::{ProgramOutcome, Shell};

/// The features of the selection.
pub(crate) const FEATURES: &str = "cli/dpdk,dpdk/dpdk";

/// The selection of packages and targets.
const SELECTION: [&str; 8] = [
    "--workspace",
    "--features",
    FEATURES,
    "--lib",
    "--bins",
    "--tests",
    "--examples",
    "--message-format=json-render-diagnostics",
];

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestProgram {
    /// Package.
    pub(crate) package: String,
    /// Target: the library, a program or an integration test.
    pub(crate) target: String,
    /// Executable.
    pub(crate) executable: PathBuf,
    /// Folder of the package, in which cargo runs its tests.
    pub(crate) folder: PathBuf,
}

impl TestProgram {
    /// Returns a command that runs the program as cargo does.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

/// Builds everything. Returns the test programs, or the outcome of a failed build.
pub(crate) fn build(
    shell: &mut Shell,
) -> Result<Result<Vec<TestProgram>, ProgramOutcome>, TaskError> {
    build_with(shell, Command::new(cargo()).arg("build").args(SELECTION))
}

/// Builds the selection of a cargo command that prints messages as JSON. Returns the test programs,
/// or the outcome of a failed build.
pub(crate) fn build_with(
    shell: &mut Shell,
    command: &mut Command,
) -> Result<Result<Vec<TestProgram>, ProgramOutcome>, TaskError> {
    let mut programs = Vec::new();
    let outcome = shell.run_taken(command, &mut |line| programs.extend(parse(line)))?;
    Ok(match outcome {
        ProgramOutcome::Success => Ok(programs),
        outcome => Err(outcome),
    })
}

/// Parses a line of cargo's output: a test program, or `None` for everything else.
fn parse(line: &str) -> Option<TestProgram> {
    let message: Value = serde_json::from_str(line).ok()?;
    let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    if !is_test {
        return None;
    }
    let manifest = Path::new(message["manifest_path"].as_str()?);
    let folder = manifest.parent()?;
    Some(TestProgram {
        package: package_name(message["package_id"].as_str()?)?.to_owned(),
        target: message["target"]["name"].as_str()?.to_owned(),
        executable: PathBuf::from(message["executable"].as_str()?),
        folder: folder.to_owned(),
    })
}

/// Returns the name in a package id: `path+file:///a/b#name@1.0.0`, or `path+file:///a/name#1.0.0`.
fn package_name(id: &str) -> Option<&str> {
    let (path, fragment) = id.rsplit_once('#')?;
    match fragment.split_once('@') {
        Some((name, _)) => Some(name),
        None => path.rsplit('/').next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_parsed_from_cargo_messages() {
        let line = r#"{"reason":"compiler-artifact","package_id":"path+file:///p/crates/flow#0.1.0","manifest_path":"/p/crates/flow/Cargo.toml","target":{"name":"flow","kind":["lib"]},"profile":{"test":true},"executable":"/p/target/debug/deps/flow-1"}"#;
        assert_eq!(
            parse(line),
            Some(TestProgram {
                package: "flow".to_owned(),
                target: "flow".to_owned(),
                executable: PathBuf::from("/p/target/debug/deps/flow-1"),
                folder: PathBuf::from("/p/crates/flow"),
            })
        );
        assert_eq!(
            parse(&line.replace("\"test\":true", "\"test\":false")),
            None
        );
        assert_eq!(parse("Compiling flow"), None);
    }

    #[test]
    fn package_name_is_in_the_fragment_or_the_path() {
        assert_eq!(package_name("path+file:///p/tests#0.1.0"), Some("tests"));
        assert_eq!(
            package_name("path+file:///p/x#flow-export@0.1.0"),
            Some("flow-export")
        );
        assert_eq!(package_name("flow"), None);
    }
}
