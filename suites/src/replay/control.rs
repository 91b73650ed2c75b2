//! Control socket of Open vSwitch: JSON-RPC with a line for each request and each reply.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

/// Time limit for a reply.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Connection to the daemon.
pub(crate) struct Control {
    stream: UnixStream,
}

#[derive(Deserialize)]
struct ControlReply {
    #[serde(default)]
    result: Value,
    #[serde(default)]
    error: Value,
}

impl Control {
    /// Connects to the daemon's socket.
    pub(crate) fn connect(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { stream })
    }

    /// Executes a command, and returns its output.
    pub(crate) fn execute(&mut self, method: &str, parameters: &[&str]) -> Result<String, String> {
        let request = json!({ "id": 0, "method": method, "params": parameters });
        let failure = |error: io::Error| format!("{method}: {error}");
        self.stream
            .write_all(request.to_string().as_bytes())
            .map_err(failure)?;
        let replies = serde_json::Deserializer::from_reader(&self.stream);
        let reply: Option<Result<ControlReply, _>> = replies.into_iter().next();
        let reply = reply.ok_or_else(|| format!("{method}: no reply"))?;
        let ControlReply { result, error } = reply.map_err(|error| format!("{method}: {error}"))?;
        match error {
            Value::Null => Ok(result.as_str().unwrap_or_default().to_owned()),
            error => Err(format!("{method}: {error}")),
        }
    }
}
