//! The forms in which changes of rows are told: `update` (RFC 7047, 4.1.6), and
//! `update2`, which ovsdb-server(7) added, with differences in the place of values.

use serde_json::Value;

use crate::database::{DatabaseRow, MonitoredColumns, read_row};
use crate::{Datum, Malformed, excerpt};

/// In which form changes are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateFormat {
    /// What a row was and what it is.
    Values,
    /// How a row differs from what it was.
    Differences,
}

/// What has become of a row.
pub(crate) enum RowChange {
    /// It has come, with all columns.
    Insert(DatabaseRow),
    /// It is gone.
    Delete,
    /// These columns hold something else now.
    Replace(DatabaseRow),
    /// These columns differ by this much.
    Differ(DatabaseRow),
}

/// Reads `<row-update>` or `<row-update2>`.
pub(crate) fn read_change(
    value: &Value,
    form: UpdateFormat,
    columns: &MonitoredColumns,
) -> Result<RowChange, Malformed> {
    let part = |name: &str| value.get(name).filter(|part| !part.is_null());
    let malformed = || Malformed(format!("no change of a row: {}", excerpt(value)));
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
            // What is deleted stands there as null, so it is the member that counts.
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

/// A row with all its columns: what is not told holds what it holds at first.
fn whole(row: &Value, columns: &MonitoredColumns) -> Result<DatabaseRow, Malformed> {
    let mut row = read_row(row, columns, Datum::from_json)?;
    for (name, of) in columns {
        if !row.contains_key(name) {
            row.insert(name.clone(), Datum::initial(of));
        }
    }
    Ok(row)
}
