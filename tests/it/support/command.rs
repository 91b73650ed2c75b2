//! Programs that run to their end, with their output; the `comporta` binary.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;
use std::{env, fs};

use testbed::{Failure, Program};

use crate::support::context::{TestContext, TestError, WAIT_LIMIT};

/// Variable with the path of the binary, if it is not in Cargo's target directory.
const BINARY_VARIABLE: &str = "COMPORTA";

/// Exit status and output of a program.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    /// Command line as a user types it.
    pub(crate) command: String,
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl CommandOutput {
    /// Runs `program` to its end, for at most [`WAIT_LIMIT`].
    pub(crate) fn run(context: &TestContext, program: Program<'_>) -> Result<Self, Failure> {
        Self::run_within(WAIT_LIMIT, context, program)
    }

    /// Runs `program` to its end, for at most `limit`.
    pub(crate) fn run_within(
        limit: Duration,
        context: &TestContext,
        program: Program<'_>,
    ) -> Result<Self, Failure> {
        let (stdout, stderr) = (context.unique_path("out"), context.unique_path("err"));
        let read = |path: &Path| {
            let bytes = fs::read(path).map_err(Failure::to("read the output of a program"))?;
            Ok::<_, Failure>(String::from_utf8_lossy(&bytes).into_owned())
        };
        let program = program.output(&stdout).log(&stderr);
        let mut process = context.spawner.start(program)?;
        Ok(Self {
            status: process.wait(limit)?,
            command: process.command_line().to_owned(),
            stdout: read(&stdout)?,
            stderr: read(&stderr)?,
        })
    }

    /// Returns standard output, or fails if the program failed.
    pub(crate) fn expect_success(self) -> Result<String, Failure> {
        if self.status.success() {
            return Ok(self.stdout);
        }
        Err(self.into_failure())
    }

    /// Returns standard error, or fails if the program succeeded.
    pub(crate) fn expect_failure(self) -> Result<String, Failure> {
        if self.status.success() {
            return Err(self.into_failure());
        }
        Ok(self.stderr)
    }

    fn into_failure(self) -> Failure {
        Failure::Program {
            program: self.command,
            status: self.status.to_string(),
            output: format!("{}{}", self.stdout, self.stderr),
        }
    }
}

/// A program and its first arguments, separated by spaces.
pub(crate) fn program(words: &str) -> Program<'static> {
    let mut words = words.split_whitespace();
    Program::new(words.next().unwrap_or_default()).args(words)
}

/// Path of the `comporta` binary: one directory above the test binary, where Cargo puts it.
pub(crate) fn comporta_binary() -> PathBuf {
    let default = || {
        let path = env::current_exe().expect("a process can read its own path");
        path.with_file_name("..").join("comporta")
    };
    env::var_os(BINARY_VARIABLE).map_or_else(default, PathBuf::from)
}

/// The `comporta` binary as a program.
pub(crate) fn comporta_program() -> Program<'static> {
    Program::new(comporta_binary())
}

/// Directory of programs of a Python environment below `target`, which `cargo xtask setup`
/// creates.
pub(crate) fn python_environment(name: &str) -> Result<PathBuf, TestError> {
    let directory = project_file("target").join(name).join("bin");
    if directory.join("python").exists() {
        return Ok(directory);
    }
    let reason = format!(
        "the Python environment target/{name} is missing: create it with cargo xtask setup"
    );
    Err(TestError::Skip(reason))
}

/// Path of a file of the project.
pub(crate) fn project_file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The decimal number that follows `key` in a tool's output.
#[track_caller]
pub(crate) fn number_after(output: &str, key: &str) -> u64 {
    let (_, rest) = output.split_once(key).expect(key);
    let end = rest.find(|c: char| !c.is_ascii_digit());
    let digits = &rest[..end.unwrap_or(rest.len())];
    digits.parse().expect("digits follow the key")
}
