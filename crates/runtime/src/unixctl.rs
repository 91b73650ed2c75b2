//! The control sockets: `ovs-appctl -t RUNDIR/BRIDGE.ctl COMMAND [ARG]...`. Each bridge's socket
//! answers for the whole process.
//!
//! Open vSwitch's unixctl protocol is JSON-RPC 1.0 over a Unix socket: requests `{"id": ..,
//! "method": .., "params": [strings]}`, answered in order. The control thread executes the
//! commands.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, oneshot};

use super::inbox::{CommandRequest, Inbox, Input};
use super::task::Task;

/// The limit of a request, in bytes; commands are short.
const REQUEST_LEN_MAX: usize = 64 * 1024;

/// The limit of concurrent clients; others wait.
const CLIENTS_MAX: usize = 16;

/// The idle timeout of a client. Few clients are served at once, so an idle one must make room.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The command that ends the process.
pub(crate) const EXIT: &str = "exit";

#[derive(Deserialize)]
struct Request {
    id: Value,
    method: String,
    #[serde(default)]
    params: Vec<String>,
}

#[derive(Serialize)]
struct Response {
    id: Value,
    result: Option<String>,
    error: Option<String>,
}

/// Serves clients. Must be called within the runtime.
pub(crate) fn serve(listener: UnixListener, inbox: Inbox) -> Task {
    Task::spawn(accept(listener, inbox))
}

async fn accept(listener: UnixListener, inbox: Inbox) {
    let places = Arc::new(Semaphore::new(CLIENTS_MAX));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
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
    loop {
        loop {
            let (request, used) = match next_request(&buffer) {
                Ok(Some(next)) => next,
                Ok(None) => break,
                Err(error) => {
                    write(&mut stream, &Response::refusal(&error)).await?;
                    return Err(error);
                }
            };
            buffer.drain(..used);
            let ends = request.method == EXIT;
            let response = respond(request, inbox).await;
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
    fn refusal(error: &io::Error) -> Self {
        Self {
            id: Value::Null,
            result: None,
            error: Some(error.to_string()),
        }
    }
}

/// Parses the first request in `buffer` and returns it with its length; none if it is incomplete.
///
/// # Errors
/// The bytes are no request, or too many.
fn next_request(buffer: &[u8]) -> io::Result<Option<(Request, usize)>> {
    let mut requests = serde_json::Deserializer::from_slice(buffer).into_iter::<Request>();
    match requests.next() {
        None => Ok(None),
        Some(Ok(request)) => Ok(Some((request, requests.byte_offset()))),
        Some(Err(error)) if error.is_eof() && buffer.len() < REQUEST_LEN_MAX => Ok(None),
        Some(Err(error)) if error.is_eof() => Err(io::Error::other("the request is too long")),
        Some(Err(error)) => Err(io::Error::other(format!("not a JSON-RPC request: {error}"))),
    }
}

async fn respond(request: Request, inbox: &Inbox) -> Response {
    let (answer, wait) = oneshot::channel();
    inbox.send(Input::CommandRequest(CommandRequest {
        command: request.method,
        arguments: request.params,
        answer,
    }));
    let (result, error) = match wait.await {
        Ok(Ok(text)) => (Some(ended(text)), None),
        Ok(Err(text)) => (None, Some(ended(text))),
        Err(_) => (None, Some(ended("the switch is ending".to_owned()))),
    };
    Response {
        id: request.id,
        result,
        error,
    }
}

/// Adds a line end to the last line, which printing clients expect.
fn ended(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Feeds `bytes` in pieces of these lengths. Returns the methods of the requests, and true if
    /// the input ended in a protocol violation.
    fn understood(bytes: &[u8], pieces: &[usize]) -> (Vec<String>, bool) {
        let (mut methods, mut buffer, mut rest) = (Vec::new(), Vec::new(), bytes);
        let mut pieces = pieces.iter().copied().chain(std::iter::repeat(usize::MAX));
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
            let (methods, is_bad) = understood(bytes.join(" ").as_bytes(), &pieces);
            prop_assert_eq!((methods, is_bad), (names, false));
        }

        #[test]
        fn malformed_bytes_are_refused_or_wait_for_more(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            pieces in prop::collection::vec(1_usize..40, 0..30),
        ) {
            let _ = understood(&bytes, &pieces);
        }
    }

    #[test]
    fn endless_request_is_refused() {
        let mut text = br#"{"id":0,"method":""#.to_vec();
        text.resize(REQUEST_LEN_MAX - 1, b'a');
        assert!(next_request(&text).expect("legal so far").is_none());
        text.push(b'a');
        let error = next_request(&text).err().expect("too long").to_string();
        assert_eq!(error, "the request is too long");
    }

    #[test]
    fn requests_are_parsed_one_by_one_and_partial_one_waits() {
        let text = br#"{"id":0,"method":"version","params":[]} {"id":1,"method":"fdb/show","params":["br0"]}{"id""#;
        let (first, used) = next_request(text).expect("legal").expect("whole");
        assert_eq!((first.method.as_str(), first.params.len()), ("version", 0));
        let (second, more) = next_request(&text[used..]).expect("legal").expect("whole");
        assert_eq!(
            (second.id, second.params),
            (Value::from(1), vec!["br0".to_owned()])
        );
        assert!(
            next_request(&text[used + more..])
                .expect("legal so far")
                .is_none()
        );
        assert!(
            next_request(b"{\"id\":0,\"method\":7}").is_err() && next_request(b"garbage").is_err()
        );
    }
}
