//! The other end of the control socket: asks a switch that runs.

use std::io::{BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::rundir::RunDir;
use crate::error::SwitchError;

/// How long an answer may take: the control thread answers between two bursts.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks the switch that runs `bridge`, and returns what it says. The run directory is
/// found as the switch finds its own.
///
/// # Errors
/// Nobody answers, or the switch refuses; one line says why.
pub fn ask(
    rundir: Option<&Path>,
    bridge: &str,
    command: &str,
    arguments: &[String],
) -> Result<String, SwitchError> {
    let path = RunDir::named(rundir).file(format!("{bridge}.ctl"));
    ask_at(&path, command, arguments)
}

/// Asks the switch that has this control socket, and returns what it says.
///
/// # Errors
/// Nobody answers, or the switch refuses; one line says why.
pub fn ask_at(path: &Path, command: &str, arguments: &[String]) -> Result<String, SwitchError> {
    let unanswered = |error| SwitchError::Unanswered {
        path: path.to_owned(),
        error,
    };
    let mut stream = UnixStream::connect(path).map_err(unanswered)?;
    stream
        .set_read_timeout(Some(PATIENCE))
        .map_err(unanswered)?;
    let question = json!({"id": 0, "method": command, "params": arguments});
    stream
        .write_all(question.to_string().as_bytes())
        .map_err(unanswered)?;
    let answer = next_value(&mut stream).map_err(unanswered)?;
    match (&answer["result"], &answer["error"]) {
        (Value::String(said), Value::Null) => Ok(said.clone()),
        (_, Value::String(refusal)) => Err(SwitchError::Refused(refusal.trim_end().to_owned())),
        _ => Err(SwitchError::Refused(format!("not understood: {answer}"))),
    }
}

/// The control sockets in the run directory, in the order of their names: those of bridges, of a
/// switch as a whole, and of others who answer as Open vSwitch's programs do. The run directory
/// is found as the switch finds its own, and told besides.
#[must_use]
pub fn control_sockets(rundir: Option<&Path>) -> (PathBuf, Vec<PathBuf>) {
    let directory = RunDir::named(rundir).file("");
    let files = std::fs::read_dir(&directory).into_iter().flatten();
    let paths = files.flatten().map(|file| file.path());
    let mut sockets: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "ctl"))
        .collect();
    sockets.sort();
    (directory, sockets)
}

/// The first JSON value that comes. The end of its line is taken with it: to leave that unread would
/// be to hang up on the one who answers.
fn next_value(stream: &mut impl Read) -> std::io::Result<Value> {
    let stream = BufReader::new(stream);
    let mut values = serde_json::Deserializer::from_reader(stream).into_iter();
    let none = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
    Ok(values.next().ok_or_else(none)??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_that_is_not_there_is_named_by_its_socket() {
        let rundir = std::env::temp_dir();
        let error = ask(Some(&rundir), "comporta-no-bridge", "version", &[]).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("comporta-no-bridge.ctl"), "{said}");
        assert!(said.contains("--rundir"), "{said}");
    }

    #[test]
    fn the_end_before_an_answer_is_no_answer() {
        let error = next_value(&mut &b""[..]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
        assert!(next_value(&mut &b"{\"id\":"[..]).is_err());
    }
}
