//! A session with a database server: requests the schema, the lock and the rows, applies updates of
//! the rows, and sends transactions.
//!
//! It does no I/O and reads no clock. A violation of the protocol closes the session with the
//! reason; the owner of the socket reconnects.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use base::Instant;
use serde_json::{Value, json};

use crate::{Database, Framing, Malformed, Operation, RpcMessage, Schema, UpdateFormat, excerpt};

/// The time without a message from the server after which the session sends an echo request, and
/// then the time limit for its reply: Open vSwitch's probe interval.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// The maximum number of unsent bytes, for a server that does not read: about a hundred times the
/// size of an update of a thousand ports.
const PENDING_MAX: usize = 64 << 20;

/// The maximum number of transactions without a reply.
const TRANSACTIONS_MAX: usize = 256;

/// The identifier of the monitor in notifications.
const MONITOR: &str = "rows";

/// The monitor methods, the preferred first; a server without a method returns an error.
const MONITORS: [(&str, UpdateFormat); 3] = [
    ("monitor_cond_since", UpdateFormat::Differences),
    ("monitor_cond", UpdateFormat::Differences),
    ("monitor", UpdateFormat::Values),
];

/// Options of a session.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// The name of the database.
    pub database: String,
    /// The lock to acquire.
    pub lock: String,
    /// The tables and columns to monitor.
    pub tables: &'static [(&'static str, &'static [&'static str])],
}

/// The identifier of a transaction in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransactionId(u64);

/// An event of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// The initial rows are complete.
    Ready,
    /// Rows have changed.
    Changed,
    /// The session has the lock.
    Locked,
    /// Another client has the lock; the session acquires it when that client releases it.
    Contended,
    /// A transaction was committed, or was refused without any change.
    Done(TransactionId, Result<(), String>),
    /// The session ended for this reason. It is the last event.
    Closed(String),
}

/// A request without a reply yet.
#[derive(Clone, Copy, Debug)]
enum PendingRequest {
    Schema,
    Lock,
    /// A monitor request with the method of this index.
    Rows(usize),
    Transaction(TransactionId),
    Echo,
}

/// A session.
#[derive(Debug)]
pub struct Session {
    options: SessionOptions,
    framing: Framing,
    output: Vec<u8>,
    next_id: u64,
    pending: BTreeMap<u64, PendingRequest>,
    database: Database,
    /// The format of updates; none before the initial rows.
    form: Option<UpdateFormat>,
    events: VecDeque<SessionEvent>,
    last_heard: Instant,
    /// The time of the last echo request, if no message arrived since.
    probe_sent: Option<Instant>,
    /// True if a silent server is probed.
    probes: bool,
    closed: bool,
}

impl Session {
    /// Returns a session that begins at `now`, on a stream to the server.
    #[must_use]
    pub fn new(options: SessionOptions, now: Instant) -> Self {
        let mut session = Self {
            options,
            framing: Framing::default(),
            output: Vec::new(),
            next_id: 0,
            pending: BTreeMap::new(),
            database: Database::default(),
            form: None,
            events: VecDeque::new(),
            last_heard: now,
            probe_sent: None,
            probes: true,
            closed: false,
        };
        let params = json!([session.options.database]);
        session.request("get_schema", params, PendingRequest::Schema);
        session
    }

    /// Returns the session without probes, for a server on this machine, whose end closes the
    /// stream. Open vSwitch does not probe Unix sockets, either.
    #[must_use]
    pub fn without_probes(mut self) -> Self {
        self.probes = false;
        self
    }

    /// Handles received bytes.
    pub fn handle_input(&mut self, bytes: &[u8], now: Instant) {
        (self.last_heard, self.probe_sent) = (now, None);
        self.framing.handle_input(bytes);
        while !self.closed {
            let message = match self.framing.poll_message() {
                Ok(None) => return,
                Ok(Some(message)) => RpcMessage::from_json(message),
                Err(error) => Err(error),
            };
            if let Err(error) = message.and_then(|message| self.handle_message(message)) {
                self.close(error.0);
            }
        }
    }

    /// Sends an echo request to a silent server, and closes the session if the reply is late.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.next_timeout().is_none_or(|due| now < due) {
            return;
        }
        if self.probe_sent.is_some() {
            return self.close("the server does not answer".to_owned());
        }
        self.probe_sent = Some(now);
        self.request("echo", json!([]), PendingRequest::Echo);
    }

    /// Returns the time at which [`Session::handle_timeout`] must be called.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        // A probe that was sent late still has the full time limit for its reply.
        let since = self.probe_sent.unwrap_or(self.last_heard);
        (self.probes && !self.closed).then(|| since + PROBE_INTERVAL)
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<SessionEvent> {
        self.events.pop_front()
    }

    /// Returns the bytes to send to the server.
    #[must_use]
    pub fn pending(&self) -> &[u8] {
        &self.output
    }

    /// Removes `count` sent bytes from the pending ones.
    pub fn transmitted(&mut self, count: usize) {
        self.output.drain(..count);
    }

    /// Returns the rows received so far.
    #[must_use]
    pub const fn database(&self) -> &Database {
        &self.database
    }

    /// Sends a transaction, which takes effect as a whole or not at all. Returns none if the
    /// session has ended or too many transactions are pending.
    pub fn transact(&mut self, operations: &[Operation]) -> Option<TransactionId> {
        if self.closed || self.pending.len() >= TRANSACTIONS_MAX {
            return None;
        }
        let mut params = vec![json!(self.options.database)];
        params.extend(operations.iter().map(Operation::to_json));
        let id = TransactionId(self.next_id);
        self.request(
            "transact",
            Value::Array(params),
            PendingRequest::Transaction(id),
        );
        Some(id)
    }

    fn request(&mut self, method: &str, params: Value, pending: PendingRequest) {
        let Value::Array(params) = params else {
            unreachable!("parameters are written as a list");
        };
        let id = self.next_id;
        self.next_id += 1;
        self.pending.insert(id, pending);
        self.send(&RpcMessage::Request {
            id: json!(id),
            method: method.to_owned(),
            params,
        });
    }

    fn send(&mut self, message: &RpcMessage) {
        let text = message.to_json().to_string();
        if self.output.len() + text.len() > PENDING_MAX {
            return self.close("the server does not read".to_owned());
        }
        self.output.extend_from_slice(text.as_bytes());
    }

    fn close(&mut self, reason: String) {
        if !self.closed {
            self.closed = true;
            self.events.push_back(SessionEvent::Closed(reason));
        }
    }

    fn handle_message(&mut self, message: RpcMessage) -> Result<(), Malformed> {
        match message {
            RpcMessage::Request { id, method, params } => {
                let reply = if method == "echo" {
                    let result = Value::Array(params);
                    RpcMessage::Reply { id, result }
                } else {
                    let error = json!("unknown method");
                    RpcMessage::Failure { id, error }
                };
                self.send(&reply);
                Ok(())
            }
            RpcMessage::Notification { method, params } => {
                self.handle_notification(&method, &params)
            }
            RpcMessage::Reply { id, result } => {
                let pending = self.take_pending(&id)?;
                self.handle_reply(pending, &result)
            }
            RpcMessage::Failure { id, error } => {
                let pending = self.take_pending(&id)?;
                self.handle_failure(pending, &error)
            }
        }
    }

    fn take_pending(&mut self, id: &Value) -> Result<PendingRequest, Malformed> {
        let pending = id.as_u64().and_then(|id| self.pending.remove(&id));
        pending.ok_or_else(|| Malformed(format!("reply without a request: {}", excerpt(id))))
    }

    fn handle_notification(&mut self, method: &str, params: &[Value]) -> Result<(), Malformed> {
        let about = params.first().unwrap_or(&Value::Null);
        let form = match method {
            "locked" | "stolen" => {
                if *about == json!(self.options.lock) {
                    let locked = method == "locked";
                    self.events.push_back(match locked {
                        true => SessionEvent::Locked,
                        false => SessionEvent::Contended,
                    });
                }
                return Ok(());
            }
            "update" => UpdateFormat::Values,
            "update2" | "update3" => UpdateFormat::Differences,
            // Notifications of newer servers are ignored.
            _ => return Ok(()),
        };
        if *about != json!(MONITOR) || self.form != Some(form) {
            return Err(Malformed(format!("{method} of an unknown monitor")));
        }
        let updates = params.get(if method == "update3" { 2 } else { 1 });
        let updates = updates.ok_or_else(|| Malformed(format!("{method} without rows")))?;
        self.database.apply(updates, form)?;
        self.events.push_back(SessionEvent::Changed);
        Ok(())
    }

    fn handle_reply(&mut self, pending: PendingRequest, result: &Value) -> Result<(), Malformed> {
        match pending {
            PendingRequest::Schema => {
                let schema = Schema::from_json(result)?;
                self.database = Database::monitoring(&schema, self.options.tables.iter().copied());
                let lock = json!([self.options.lock]);
                self.request("lock", lock, PendingRequest::Lock);
                self.request_rows(0);
            }
            PendingRequest::Lock => {
                let locked = result.get("locked").and_then(Value::as_bool);
                let locked = locked.ok_or_else(|| Malformed::new("lock reply without 'locked'"))?;
                self.events.push_back(match locked {
                    true => SessionEvent::Locked,
                    false => SessionEvent::Contended,
                });
            }
            PendingRequest::Rows(attempt) => {
                let (method, form) = MONITORS[attempt];
                let rows = match method {
                    "monitor_cond_since" => result.get(2),
                    _ => Some(result),
                };
                let rows = rows.ok_or_else(|| Malformed(format!("{method} without rows")))?;
                self.database.apply(rows, form)?;
                self.form = Some(form);
                self.events.push_back(SessionEvent::Ready);
            }
            PendingRequest::Transaction(id) => {
                let done = transaction_result(result)?;
                self.events.push_back(SessionEvent::Done(id, done));
            }
            PendingRequest::Echo => {}
        }
        Ok(())
    }

    fn handle_failure(&mut self, pending: PendingRequest, error: &Value) -> Result<(), Malformed> {
        match pending {
            PendingRequest::Rows(attempt) if attempt + 1 < MONITORS.len() => {
                self.request_rows(attempt + 1)
            }
            PendingRequest::Transaction(id) => {
                let done = Err(error_text(error));
                self.events.push_back(SessionEvent::Done(id, done));
            }
            PendingRequest::Echo => {}
            PendingRequest::Schema | PendingRequest::Lock | PendingRequest::Rows(_) => {
                self.close(error_text(error))
            }
        }
        Ok(())
    }

    /// Requests the rows of all tables with the method of this index.
    fn request_rows(&mut self, attempt: usize) {
        let (method, _) = MONITORS[attempt];
        let table = |(name, columns): (&str, Vec<&str>)| {
            let request = json!([{"columns": columns}]);
            (name.to_owned(), request)
        };
        let tables: serde_json::Map<_, _> = self.database.columns().map(table).collect();
        let mut params = vec![json!(self.options.database), json!(MONITOR), json!(tables)];
        if method == "monitor_cond_since" {
            // No known last transaction: the server sends all rows.
            params.push(json!("00000000-0000-0000-0000-000000000000"));
        }
        self.request(method, Value::Array(params), PendingRequest::Rows(attempt));
    }
}

/// Returns the result of a transaction: the first error of an operation, or of the commit (RFC
/// 7047, 4.1.3).
fn transaction_result(result: &Value) -> Result<Result<(), String>, Malformed> {
    let results = result.as_array();
    let results = results.ok_or_else(|| Malformed::new("transaction reply without results"))?;
    let refused = |result: &&Value| result.get("error").is_some_and(|error| !error.is_null());
    let refused = results.iter().find(refused);
    Ok(refused.map_or(Ok(()), |result| Err(error_text(result))))
}

/// Formats an `<error>` as a line.
fn error_text(error: &Value) -> String {
    let part = |name| error.get(name).and_then(Value::as_str);
    match (part("error"), part("details")) {
        (Some(error), Some(details)) => format!("{error}: {details}"),
        (Some(error), None) => error.to_owned(),
        (None, _) => excerpt(error),
    }
}

#[cfg(test)]
mod tests;
