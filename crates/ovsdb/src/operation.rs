//! What a transaction is made of (RFC 7047, 5.2): of the operations there are, those that
//! a client needs which fills in columns of rows that others made.

use serde_json::{Map, Value, json};

use crate::{Datum, Uuid};

/// One operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Have these columns of a row hold these values (5.2.3). A row that is gone is left so.
    Update {
        /// The table.
        table: String,
        /// The row.
        row: Uuid,
        /// Columns, and what they are to hold.
        columns: Vec<(String, Datum)>,
    },
    /// Do nothing at all unless this client has the lock (5.2.10).
    Assert {
        /// The lock.
        lock: String,
    },
    /// Have the database's log say this (5.2.9).
    Comment(String),
}

impl Operation {
    /// The same as JSON.
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
