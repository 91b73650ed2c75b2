//! The other end of the control socket: asks a switch that runs.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
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
    let unanswered = |error| SwitchError::Unanswered {
        path: path.clone(),
        error,
    };
    let mut stream = UnixStream::connect(&path).map_err(unanswered)?;
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

/// The first JSON value that comes.
fn next_value(stream: &mut impl Read) -> std::io::Result<Value> {
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
