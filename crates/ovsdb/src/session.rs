//! One session with a database: asks for its schema, then for its lock and its rows,
//! follows the rows, and hands in transactions.
//!
//! It does no I/O and reads no clock. What breaks the protocol closes it, with the
//! reason; going back is up to whoever has the socket.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use base::Instant;
use serde_json::{Value, json};

use crate::{Database, Framing, Malformed, Operation, RpcMessage, Schema, UpdateFormat, excerpt};

/// How long the server may be silent before it is asked whether it is there, and then
/// before it is given up: Open vSwitch's probe interval.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// The most bytes that may wait for a server which does not read: some hundred times
/// what is written of a thousand ports at once.
const PENDING_MAX: usize = 64 << 20;

/// The most transactions that may wait for an answer.
const TRANSACTIONS_MAX: usize = 256;

/// How the monitor is called in notifications.
const MONITOR: &str = "rows";

/// The ways to ask for rows, the best first; a server that does not know one says so.
const MONITORS: [(&str, UpdateFormat); 3] = [
    ("monitor_cond_since", UpdateFormat::Differences),
    ("monitor_cond", UpdateFormat::Differences),
    ("monitor", UpdateFormat::Values),
];

/// What is wanted of the database.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Its name.
    pub database: String,
    /// The lock to have, or to wait for.
    pub lock: String,
    /// The tables to follow, and their columns.
    pub tables: &'static [(&'static str, &'static [&'static str])],
}

/// Names a transaction of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransactionId(u64);

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// The rows are there.
    Ready,
    /// Rows have changed.
    Changed,
    /// The lock is ours.
    Locked,
    /// Another client has the lock; it will be ours when that one lets it go.
    Contended,
    /// A transaction is done, or was refused and has changed nothing.
    Done(TransactionId, Result<(), String>),
    /// The session is over, and why. Nothing comes after it.
    Closed(String),
}

/// What an answer is awaited for.
#[derive(Clone, Copy, Debug)]
enum PendingRequest {
    Schema,
    Lock,
    /// Rows, asked for in this of the ways.
    Rows(usize),
    Transaction(TransactionId),
    Echo,
}

/// One session.
#[derive(Debug)]
pub struct Session {
    options: SessionOptions,
    framing: Framing,
    output: Vec<u8>,
    next_id: u64,
    pending: BTreeMap<u64, PendingRequest>,
    database: Database,
    /// The form in which changes come; none until the rows are there.
    form: Option<UpdateFormat>,
    events: VecDeque<SessionEvent>,
    last_heard: Instant,
    /// When the server was asked whether it is there, if it was since.
    probe_sent: Option<Instant>,
    closed: bool,
}

impl Session {
    /// A session that begins at `now`, on a stream to the server.
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
            closed: false,
        };
        let params = json!([session.options.database]);
        session.request("get_schema", params, PendingRequest::Schema);
        session
    }

    /// Takes in what the server sent.
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

    /// Does what is due: asks a silent server whether it is there, and gives it up.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.next_timeout().is_none_or(|due| now < due) {
            return;
        }
        if self.probe_sent.is_some() {
            return self.close("the database does not answer".to_owned());
        }
        self.probe_sent = Some(now);
        self.request("echo", json!([]), PendingRequest::Echo);
    }

    /// When [`Session::handle_timeout`] has something to do.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        // Who was busy with something else asks late, and waits for the answer all the same.
        let since = self.probe_sent.unwrap_or(self.last_heard);
        (!self.closed).then(|| since + PROBE_INTERVAL)
    }

    /// What has happened since.
    pub fn poll_event(&mut self) -> Option<SessionEvent> {
        self.events.pop_front()
    }

    /// What is to be sent to the server.
    #[must_use]
    pub fn pending(&self) -> &[u8] {
        &self.output
    }

    /// Takes note that so many bytes of it were sent.
    pub fn transmitted(&mut self, count: usize) {
        self.output.drain(..count);
    }

    /// The rows, as far as they were told.
    #[must_use]
    pub const fn database(&self) -> &Database {
        &self.database
    }

    /// Hands in a transaction: all of it is done or nothing. None, if the session is over
    /// or too many wait for an answer.
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
            return self.close("the database does not read".to_owned());
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
        pending.ok_or_else(|| Malformed(format!("an answer to no question: {}", excerpt(id))))
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
            // Newer servers tell of more.
            _ => return Ok(()),
        };
        if *about != json!(MONITOR) || self.form != Some(form) {
            return Err(Malformed(format!("{method} of what nobody follows")));
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
                let locked = locked.ok_or_else(|| Malformed::new("a lock neither had nor not"))?;
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

    /// Asks for the rows of all tables in this of the ways.
    fn request_rows(&mut self, attempt: usize) {
        let (method, _) = MONITORS[attempt];
        let table = |(name, columns): (&str, Vec<&str>)| {
            let request = json!([{"columns": columns}]);
            (name.to_owned(), request)
        };
        let tables: serde_json::Map<_, _> = self.database.columns().map(table).collect();
        let mut params = vec![json!(self.options.database), json!(MONITOR), json!(tables)];
        if method == "monitor_cond_since" {
            // Since nothing that was: all rows.
            params.push(json!("00000000-0000-0000-0000-000000000000"));
        }
        self.request(method, Value::Array(params), PendingRequest::Rows(attempt));
    }
}

/// What came of a transaction: the first complaint of an operation, or of the whole
/// (RFC 7047, 4.1.3).
fn transaction_result(result: &Value) -> Result<Result<(), String>, Malformed> {
    let results = result.as_array();
    let results = results.ok_or_else(|| Malformed::new("a transaction without results"))?;
    let refused = |result: &&Value| result.get("error").is_some_and(|error| !error.is_null());
    let refused = results.iter().find(refused);
    Ok(refused.map_or(Ok(()), |result| Err(error_text(result))))
}

/// An `<error>` in a line.
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
