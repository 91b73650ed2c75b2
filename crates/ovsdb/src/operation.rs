//! Operations of transactions (RFC 7047, 5.2): only those of a client that updates columns of
//! existing rows.

use serde_json::{Map, Value, json};

use crate::{Datum, Uuid};

/// An operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Sets columns of a row (5.2.3). Has no effect if the row was deleted.
    Update {
        /// The table.
        table: String,
        /// The row.
        row: Uuid,
        /// Columns and their new values.
        columns: Vec<(String, Datum)>,
    },
    /// Aborts the transaction unless this client has the lock (5.2.10).
    Assert {
        /// The lock.
        lock: String,
    },
    /// Adds a comment to the database's log (5.2.9).
    Comment(String),
}

impl Operation {
    /// Converts the operation to JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Update {
                table,
                row,
                columns,
            } => {
                let columns = columns.iter();
                let columns: Map<_, _> = columns
                    .map(|(name, datum)| (name.clone(), datum.to_json()))
                    .collect();
                let this = json!([["_uuid", "==", ["uuid", row.to_string()]]]);
                json!({"op": "update", "table": table, "where": this, "row": columns})
            }
            Self::Assert { lock } => json!({"op": "assert", "lock": lock}),
            Self::Comment(text) => json!({"op": "comment", "comment": text}),
        }
    }
}
