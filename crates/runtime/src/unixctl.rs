//! The control sockets: `ovs-appctl -t RUNDIR/BRIDGE.ctl COMMAND [ARG]...`. Each bridge's socket
//! answers for the whole process.
//!
//! Open vSwitch's unixctl protocol is JSON-RPC 1.0 over a Unix socket: requests `{"id": ..,
//! "method": .., "params": [strings]}`, answered in order. The control thread executes the
//! commands, except `set-options`, which concerns the connection.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, oneshot};

use super::inbox::{CommandReply, CommandRequest, Inbox, Input, OutputFormat};
use super::task::Task;
use crate::accept_pause::AcceptPause;

/// The limit of a request, in bytes: a trace of the longest frame has two digits for each byte, and
/// clients may send several frames.
const REQUEST_LEN_MAX: usize = 1 << 20;

/// The limit of concurrent clients; others wait.
const CLIENTS_MAX: usize = 16;

/// The idle timeout of a client. Few clients are served at once, so an idle one must make room.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The command that ends the process.
pub(crate) const EXIT: &str = "exit";

/// The command that sets the output format of a connection, in Open vSwitch 3.4 and later.
const SET_OPTIONS: &str = "set-options";

#[derive(Deserialize)]
struct Request {
    id: Value,
    method: String,
    #[serde(default)]
    params: Vec<Value>,
}

#[derive(Serialize)]
struct Response {
    id: Value,
    result: Option<Value>,
    error: Option<String>,
}

/// A violation of the protocol, which ends the connection.
struct Violation {
    /// The id of the request, null if it has none.
    id: Value,
    problem: String,
}

/// Serves clients. Must be called within the runtime.
pub(crate) fn serve(listener: UnixListener, inbox: Inbox) -> Task {
    Task::spawn(accept(listener, inbox))
}

async fn accept(listener: UnixListener, inbox: Inbox) {
    let places = Arc::new(Semaphore::new(CLIENTS_MAX));
    let mut pause = AcceptPause::new("control commands");
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let Some((stream, _)) = pause.check(listener.accept().await).await else {
            continue;
        };
        let inbox = inbox.clone();
        tokio::spawn(async move {
            if let Err(error) = serve_client(stream, &inbox).await {
                tracing::warn!("control-socket client disconnected: {error}");
            }
            drop(place);
        });
    }
}

async fn serve_client(mut stream: UnixStream, inbox: &Inbox) -> io::Result<()> {
    let mut buffer = Vec::new();
    let mut format = OutputFormat::default();
    loop {
        loop {
            let (request, used) = match next_request(&buffer) {
                Ok(Some(next)) => next,
                Ok(None) => break,
                Err(violation) => {
                    let problem = violation.problem.clone();
                    write(&mut stream, &Response::refusal(violation)).await?;
                    return Err(io::Error::other(problem));
                }
            };
            buffer.drain(..used);
            let ends = request.method == EXIT;
            let response = respond(request, &mut format, inbox).await;
            let ends = ends && response.error.is_none();
            write(&mut stream, &response).await?;
            if ends {
                // After the answer: the client must receive it before the process ends.
                inbox.send(Input::Stop);
            }
        }
        let read = tokio::time::timeout(IDLE_TIMEOUT, stream.read_buf(&mut buffer));
        match read.await {
            Ok(Ok(0)) => return Ok(()),
            Ok(read) => drop(read?),
            Err(_) => return Err(io::Error::other("idle for a minute")),
        }
    }
}

async fn write(stream: &mut UnixStream, response: &Response) -> io::Result<()> {
    let mut line = serde_json::to_vec(response)?;
    line.push(b'\n');
    stream.write_all(&line).await
}

impl Response {
    /// Returns the answer to a client that violates the protocol, before it is disconnected.
    fn refusal(violation: Violation) -> Self {
        Self {
            id: violation.id,
            result: None,
            error: Some(ended(violation.problem)),
        }
    }
}

/// Parses the first request in `buffer` and returns it with its length; none if it is incomplete.
///
/// # Errors
/// The bytes are no request, or too many.
fn next_request(buffer: &[u8]) -> Result<Option<(Request, usize)>, Violation> {
    let mut values = serde_json::Deserializer::from_slice(buffer).into_iter::<Value>();
    let violation = |id, problem: String| Err(Violation { id, problem });
    match values.next() {
        None => Ok(None),
        Some(Ok(value)) => {
            let id = value.get("id").cloned().unwrap_or_default();
            match Request::deserialize(value) {
                Ok(request) => Ok(Some((request, values.byte_offset()))),
                Err(error) => violation(id, format!("not a JSON-RPC request: {error}")),
            }
        }
        Some(Err(error)) if error.is_eof() && buffer.len() < REQUEST_LEN_MAX => Ok(None),
        Some(Err(error)) if error.is_eof() => {
            violation(id_in(buffer), "the request is too long".to_owned())
        }
        Some(Err(error)) => violation(Value::Null, format!("not a JSON-RPC request: {error}")),
    }
}

/// Returns the id at the beginning of an incomplete request; null if it is not found.
fn id_in(buffer: &[u8]) -> Value {
    const KEY: &[u8] = b"\"id\":";
    let place = buffer.windows(KEY.len()).position(|bytes| bytes == KEY);
    let rest = place.map_or(&[][..], |place| &buffer[place + KEY.len()..]);
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<Value>();
    let id = values.next().and_then(Result::ok);
    id.unwrap_or_default()
}

async fn respond(request: Request, format: &mut OutputFormat, inbox: &Inbox) -> Response {
    let Request { id, method, params } = request;
    let shown = Value::from(params.clone());
    tracing::debug!("received request {method}{shown}, id={id}");
    let answer = match texts(&method, params) {
        Err(problem) => Err(problem),
        Ok(arguments) if method == SET_OPTIONS => {
            set_options(&arguments, format).map(CommandReply::Text)
        }
        Ok(arguments) => execute(method, arguments, *format, inbox).await,
    };
    log_reply(&id, &answer);
    let (result, error) = match answer {
        Ok(reply) => (Some(formatted(reply, *format)), None),
        Err(problem) => (None, Some(ended(problem))),
    };
    Response { id, result, error }
}

fn log_reply(id: &Value, answer: &Result<CommandReply, String>) {
    let (outcome, text) = match answer {
        Ok(CommandReply::Text(text)) => ("success", Cow::Borrowed(text.as_str())),
        Ok(CommandReply::Json(value)) => ("success", Cow::Owned(value.to_string())),
        Err(problem) => ("error", Cow::Borrowed(problem.as_str())),
    };
    tracing::debug!("replying with {outcome}, id={id}: \"{}\"", text.trim_end());
}

/// Returns the result of a command in this format, as Open vSwitch 3.4 sends it.
fn formatted(reply: CommandReply, format: OutputFormat) -> Value {
    match (reply, format) {
        (CommandReply::Json(value), _) => value,
        (CommandReply::Text(text), OutputFormat::Text) => ended(text).into(),
        (CommandReply::Text(text), OutputFormat::Json) => {
            serde_json::json!({"reply-format": "plain", "reply": ended(text)})
        }
    }
}

/// Returns the parameters as strings.
fn texts(method: &str, params: Vec<Value>) -> Result<Vec<String>, String> {
    let text = |param| match param {
        Value::String(text) => Ok(text),
        _ => Err(format!("\"{method}\" command has non-string argument")),
    };
    params.into_iter().map(text).collect()
}

/// Sets the output format of a connection: `--format json`, `--format=json`, or `text`.
fn set_options(arguments: &[String], format: &mut OutputFormat) -> Result<String, String> {
    let words: Vec<_> = arguments.iter().flat_map(|word| word.split('=')).collect();
    for option in words.chunks(2) {
        *format = match option {
            ["--format", "json"] => OutputFormat::Json,
            ["--format", "text"] => OutputFormat::Text,
            ["--format", other] => {
                return Err(format!("option format has invalid value {other}"));
            }
            ["--format"] => return Err("option format requires an argument".to_owned()),
            _ => return Err(format!("unrecognized option '{}'", option[0])),
        };
    }
    Ok(String::new())
}

async fn execute(
    command: String,
    arguments: Vec<String>,
    format: OutputFormat,
    inbox: &Inbox,
) -> Result<CommandReply, String> {
    let (answer, wait) = oneshot::channel();
    inbox.send(Input::CommandRequest(CommandRequest {
        command,
        arguments,
        format,
        answer,
    }));
    wait.await
        .unwrap_or_else(|_| Err("the switch is ending".to_owned()))
}

/// Adds a line end to the last line, which printing clients expect.
fn ended(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Feeds `bytes` in pieces of these lengths, and the rest at once. Returns the methods of the
/// requests, and true if the input ends in a violation of the protocol.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn methods(bytes: &[u8], pieces: impl Iterator<Item = usize>) -> (Vec<String>, bool) {
    let (mut methods, mut buffer, mut rest) = (Vec::new(), Vec::new(), bytes);
    let mut pieces = pieces.chain(std::iter::repeat(usize::MAX));
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(pieces.next().unwrap_or(1).clamp(1, rest.len()));
        buffer.extend_from_slice(piece);
        rest = behind;
        loop {
            match next_request(&buffer) {
                Ok(Some((request, used))) => {
                    buffer.drain(..used);
                    methods.push(request.method);
                }
                Ok(None) => break,
                Err(_) => return (methods, true),
            }
        }
    }
    (methods, false)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn requests_are_equal_for_any_split(
            names in prop::collection::vec("[a-z/ \"{}]{0,12}", 0..5),
            pieces in prop::collection::vec(1_usize..40, 0..30),
        ) {
            let request = |name: &String| {
                serde_json::json!({"id": 0, "method": name, "params": [name]}).to_string()
            };
            let bytes: Vec<_> = names.iter().map(request).collect();
            let (methods, is_bad) = methods(bytes.join(" ").as_bytes(), pieces.iter().copied());
            prop_assert_eq!((methods, is_bad), (names, false));
        }

        #[test]
        fn malformed_bytes_are_refused_or_wait_for_more(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            pieces in prop::collection::vec(1_usize..40, 0..30),
        ) {
            let _ = methods(&bytes, pieces.iter().copied());
        }
    }

    #[test]
    fn endless_request_is_refused() {
        let mut text = br#"{"id":0,"method":""#.to_vec();
        text.resize(REQUEST_LEN_MAX - 1, b'a');
        assert!(next_request(&text).is_ok_and(|request| request.is_none()));
        text.push(b'a');
        let violation = next_request(&text).err().expect("too long");
        assert_eq!(violation.problem, "the request is too long");
        assert_eq!(violation.id, Value::from(0));
    }

    #[test]
    fn requests_are_parsed_one_by_one_and_partial_one_waits() {
        let text = br#"{"id":0,"method":"version","params":[]} {"id":1,"method":"fdb/show","params":["br0"]}{"id""#;
        let legal = |bytes| next_request(bytes).ok().expect("legal");
        let (first, used) = legal(&text[..]).expect("whole");
        assert_eq!((first.method.as_str(), first.params.len()), ("version", 0));
        let (second, more) = legal(&text[used..]).expect("whole");
        assert_eq!(
            (second.id, second.params),
            (Value::from(1), vec![Value::from("br0")])
        );
        assert!(legal(&text[used + more..]).is_none());
        assert!(
            next_request(b"{\"id\":0,\"method\":7}").is_err() && next_request(b"garbage").is_err()
        );
    }

    #[test]
    fn violation_keeps_the_id_of_its_request() {
        for (bytes, id) in [
            (
                &b"{\"id\":7,\"method\":3,\"params\":[]}"[..],
                Value::from(7),
            ),
            (b"{\"method\":\"version\"}", Value::Null),
            (b"[]", Value::Null),
        ] {
            let violation = next_request(bytes).err().expect("no request");
            assert_eq!(violation.id, id);
        }
    }

    #[test]
    fn parameters_must_be_strings() {
        let error = texts("version", vec![Value::from(1)]);
        let expected = "\"version\" command has non-string argument";
        assert_eq!(error, Err(expected.to_owned()));
        assert_eq!(texts("version", vec!["a".into()]), Ok(vec!["a".to_owned()]));
    }

    #[test]
    fn output_format_is_set_for_the_connection() {
        let mut format = OutputFormat::default();
        let mut set = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            set_options(&words, &mut format).map(|_| format)
        };
        assert_eq!(set(&["--format", "json"]), Ok(OutputFormat::Json));
        assert_eq!(set(&["--format=text"]), Ok(OutputFormat::Text));
        assert!(set(&["--format"]).is_err() && set(&["--format", "xml"]).is_err());
        assert!(set(&["--dance", "json"]).is_err());
    }

    #[test]
    fn text_is_wrapped_for_clients_that_read_json() {
        let text = || CommandReply::Text("br0".to_owned());
        assert_eq!(formatted(text(), OutputFormat::Text), Value::from("br0\n"));
        let wrapped = serde_json::json!({"reply-format": "plain", "reply": "br0\n"});
        assert_eq!(formatted(text(), OutputFormat::Json), wrapped);
        let value = serde_json::json!([{"name": "br0"}]);
        let reply = CommandReply::Json(value.clone());
        assert_eq!(formatted(reply, OutputFormat::Json), value);
    }
}
