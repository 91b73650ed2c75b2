//! The control sockets: `ovs-appctl -t RUNDIR/BRIDGE.ctl COMMAND [ARG]...`. Any
//! bridge's answers for the whole process.
//!
//! Open vSwitch's unixctl protocol is JSON-RPC 1.0 over a Unix socket: requests
//! `{"id": .., "method": .., "params": [strings]}`, answered in order. What the
//! commands say is decided by the control thread.

use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, oneshot};

use super::inbox::{Inbox, Input};
use super::peers::Task;

/// The longest request read, in bytes; commands are short.
const REQUEST_LEN_MAX: usize = 64 * 1024;

/// Clients served at once; others wait their turn.
const CLIENTS_MAX: usize = 16;

/// The command that ends the process.
pub(crate) const EXIT: &str = "exit";

/// A question for the control thread.
pub(crate) struct Question {
    /// The command.
    pub(crate) command: String,
    /// Its arguments.
    pub(crate) arguments: Vec<String>,
    /// Where the answer goes: text, or what is wrong.
    pub(crate) answer: oneshot::Sender<Result<String, String>>,
}

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

/// Serves clients. To be called within the runtime.
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
                tracing::debug!(%error, "a client of the control socket was left");
            }
            drop(place);
        });
    }
}

async fn serve_client(mut stream: UnixStream, inbox: &Inbox) -> io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        while let Some((request, used)) = next_request(&buffer)? {
            buffer.drain(..used);
            let ends = request.method == EXIT;
            let response = respond(request, inbox).await;
            let ends = ends && response.error.is_none();
            let mut line = serde_json::to_vec(&response)?;
            line.push(b'\n');
            stream.write_all(&line).await?;
            if ends {
                // Only now: who asked is still to hear that it was heard.
                inbox.send(Input::Stop);
            }
        }
        if buffer.len() >= REQUEST_LEN_MAX {
            return Err(io::Error::other("the request is too long"));
        }
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    }
}

/// The first request in `buffer` and how many bytes it takes; none if it is not all there.
fn next_request(buffer: &[u8]) -> io::Result<Option<(Request, usize)>> {
    let mut requests = serde_json::Deserializer::from_slice(buffer).into_iter::<Request>();
    match requests.next() {
        None => Ok(None),
        Some(Ok(request)) => Ok(Some((request, requests.byte_offset()))),
        Some(Err(error)) if error.is_eof() => Ok(None),
        Some(Err(error)) => Err(error.into()),
    }
}

async fn respond(request: Request, inbox: &Inbox) -> Response {
    let (answer, wait) = oneshot::channel();
    inbox.send(Input::Question(Question {
        command: request.method,
        arguments: request.params,
        answer,
    }));
    match wait.await {
        Ok(Ok(text)) => Response {
            id: request.id,
            result: Some(text),
            error: None,
        },
        Ok(Err(text)) => Response {
            id: request.id,
            result: None,
            error: Some(text),
        },
        Err(_) => Response {
            id: request.id,
            result: None,
            error: Some("the switch is ending".to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_taken_one_by_one_and_an_unfinished_one_waits() {
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
