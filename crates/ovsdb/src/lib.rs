//! A client of the Open vSwitch database protocol (RFC 7047, and what
//! ovsdb-server(7) adds): JSON-RPC messages out of a stream of bytes, the schema's
//! types, rows as typed values, and the state machine of a session.
//!
//! Bytes and the time go in, bytes and events come out: no socket, no clock, and
//! nothing of what any table means.

mod atom;
mod database;
mod datum;
mod framing;
mod message;
mod operation;
mod schema;
mod session;
mod update;

pub use atom::{Atom, ParseUuidError, Uuid};
pub use database::{Database, DatabaseRow};
pub use datum::Datum;
pub use framing::{Framing, MESSAGE_LEN_MAX};
pub use message::RpcMessage;
pub use operation::Operation;
pub use schema::{AtomicType, ColumnType, MaxCount, Schema};
pub use session::{Session, SessionEvent, SessionOptions, TransactionId};
pub use update::UpdateFormat;

/// The peer broke the protocol: what it said, and why that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub String);

impl Malformed {
    /// `what` cannot be.
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    /// The same, said of a part of `place`.
    #[must_use]
    pub fn within(self, place: &str) -> Self {
        Self(format!("{place}: {}", self.0))
    }
}

/// The longest excerpt of what a peer said that is repeated in a complaint, in letters.
const EXCERPT_LEN: usize = 120;

/// The beginning of `value`, to complain about it.
fn excerpt(value: &serde_json::Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(EXCERPT_LEN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
