//! Requests to a running switch by its control socket (Open vSwitch's unixctl protocol).

use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::rundir::RunDir;

/// The time limit of a reply: the control thread replies between two bursts.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The reason why a request has no result.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// No switch answers at the control socket.
    #[error("no switch answers at {path}: {error}; start one, or name its directory with --rundir")]
    NoAnswer {
        /// The control socket.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The switch refused the command, with this message.
    #[error("{0}")]
    Refused(String),
}

/// Sends a command to the switch that runs `bridge` and returns its answer. `rundir` is as for
/// [`RunDir::named`].
///
/// # Errors
/// No switch answers, or the switch refuses the command.
pub fn request(
    rundir: Option<&Path>,
    bridge: &str,
    command: &str,
    arguments: &[String],
) -> Result<String, RequestError> {
    let path = RunDir::named(rundir).file(format!("{bridge}.ctl"));
    request_at(&path, command, arguments)
}

/// Sends a command to the switch with the control socket `path` and returns its answer.
///
/// # Errors
/// No switch answers, or the switch refuses the command.
pub fn request_at(
    path: &Path,
    command: &str,
    arguments: &[String],
) -> Result<String, RequestError> {
    let unanswered = |error| RequestError::NoAnswer {
        path: path.to_owned(),
        error,
    };
    let mut stream = UnixStream::connect(path).map_err(unanswered)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(unanswered)?;
    let request = json!({"id": 0, "method": command, "params": arguments});
    stream
        .write_all(request.to_string().as_bytes())
        .map_err(unanswered)?;
    let answer = next_value(&mut stream).map_err(unanswered)?;
    match (&answer["result"], &answer["error"]) {
        (Value::String(text), Value::Null) => Ok(text.clone()),
        (_, Value::String(refusal)) => Err(RequestError::Refused(refusal.trim_end().to_owned())),
        _ => Err(RequestError::Refused(format!("not understood: {answer}"))),
    }
}

/// Reads the next JSON value. The end of its line is read with it: closing the socket with unread
/// bytes would reset the connection of the peer.
fn next_value(stream: &mut impl Read) -> io::Result<Value> {
    let stream = BufReader::new(stream);
    let mut values = serde_json::Deserializer::from_reader(stream).into_iter();
    let none = || io::Error::from(io::ErrorKind::UnexpectedEof);
    Ok(values.next().ok_or_else(none)??)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_an_unreachable_switch_names_its_socket() {
        let rundir = std::env::temp_dir();
        let error = request(Some(&rundir), "comporta-no-bridge", "version", &[]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("comporta-no-bridge.ctl"), "{text}");
        assert!(text.contains("--rundir"), "{text}");
    }

    #[test]
    fn end_of_stream_before_a_value_is_an_error() {
        let error = next_value(&mut &b""[..]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(next_value(&mut &b"{\"id\":"[..]).is_err());
    }
}
