//! The formats of row updates: `update` (RFC 7047, 4.1.6), and `update2` of ovsdb-server(7), which
//! contains differences instead of values.

use serde_json::Value;

use crate::database::{DatabaseRow, MonitoredColumns, read_row};
use crate::{Datum, Malformed, excerpt};

/// The format of updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateFormat {
    /// The old and the new values of a row.
    Values,
    /// The differences of a row.
    Differences,
}

/// A change of a row.
pub(crate) enum RowChange {
    /// A new row with all columns.
    Insert(DatabaseRow),
    /// A deleted row.
    Delete,
    /// New values of these columns.
    Replace(DatabaseRow),
    /// Differences of these columns.
    Differ(DatabaseRow),
}

/// Reads `<row-update>` or `<row-update2>`.
pub(crate) fn read_change(
    value: &Value,
    form: UpdateFormat,
    columns: &MonitoredColumns,
) -> Result<RowChange, Malformed> {
    let part = |name: &str| value.get(name).filter(|part| !part.is_null());
    let malformed = || Malformed(format!("not a row update: {}", excerpt(value)));
    match form {
        UpdateFormat::Values => match (part("old"), part("new")) {
            (None, Some(new)) => Ok(RowChange::Insert(whole(new, columns)?)),
            (Some(_), Some(new)) => {
                let row = read_row(new, columns, Datum::from_json)?;
                Ok(RowChange::Replace(row))
            }
            (Some(_), None) => Ok(RowChange::Delete),
            (None, None) => Err(malformed()),
        },
        UpdateFormat::Differences => {
            // The member `delete` has the value null, so the name of the only member determines the
            // change.
            let object = value.as_object().filter(|object| object.len() == 1);
            let (kind, row) = object
                .and_then(|object| object.iter().next())
                .ok_or_else(malformed)?;
            match kind.as_str() {
                "initial" | "insert" => Ok(RowChange::Insert(whole(row, columns)?)),
                "delete" => Ok(RowChange::Delete),
                "modify" => {
                    let row = read_row(row, columns, Datum::difference_from_json)?;
                    Ok(RowChange::Differ(row))
                }
                _ => Err(malformed()),
            }
        }
    }
}

/// Parses a row and fills in the default values of missing columns.
fn whole(row: &Value, columns: &MonitoredColumns) -> Result<DatabaseRow, Malformed> {
    let mut row = read_row(row, columns, Datum::from_json)?;
    for (name, of) in columns {
        if !row.contains_key(name) {
            row.insert(name.clone(), Datum::initial(of));
        }
    }
    Ok(row)
}
