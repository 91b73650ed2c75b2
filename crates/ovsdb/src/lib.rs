//! A client of the Open vSwitch database protocol (RFC 7047, with the extensions of
//! ovsdb-server(7)): JSON-RPC messages in a stream of bytes, the types of a schema, typed rows, and
//! the state machine of a session.
//!
//! The crate does no I/O and reads no clock: bytes and the time are inputs, bytes and events are
//! outputs. It does not interpret the contents of tables.

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

/// A violation of the protocol by the peer, with an excerpt of the message and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub String);

impl Malformed {
    /// Returns an error with this message.
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    /// Adds the location `place` to the message.
    #[must_use]
    pub fn within(self, place: &str) -> Self {
        Self(format!("{place}: {}", self.0))
    }
}

/// The maximum length of an excerpt in an error message, in characters.
const EXCERPT_LEN: usize = 120;

/// Returns the beginning of `value`, for an error message.
fn excerpt(value: &serde_json::Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(EXCERPT_LEN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
