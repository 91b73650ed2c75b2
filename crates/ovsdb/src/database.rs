//! A client's replica of the monitored tables, with typed columns.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::schema::ColumnType;
use crate::update::{RowChange, UpdateFormat, read_change};
use crate::{Datum, Malformed, Schema, Uuid, excerpt};

/// The maximum size of all rows in bytes, as [`Datum::memory`] counts them: a hundred times the
/// size of a thousand ports. Updates beyond it are rejected as malformed.
const MEMORY_MAX: usize = 512 << 20;

/// The size of a row in addition to its columns' values: its UUID and the column names.
const ROW_OVERHEAD: usize = 2048;

/// A row: its columns by name.
pub type DatabaseRow = BTreeMap<Arc<str>, Datum>;

/// The monitored columns of a table.
pub(crate) type MonitoredColumns = BTreeMap<Arc<str>, ColumnType>;

/// The monitored tables with their rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Database {
    tables: BTreeMap<String, MonitoredTable>,
    /// The size of all rows in bytes.
    memory: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct MonitoredTable {
    columns: MonitoredColumns,
    rows: BTreeMap<Uuid, DatabaseRow>,
}

impl Database {
    /// Returns a database without rows that monitors these tables and columns, as far as the schema
    /// has them.
    pub fn monitoring<'a>(
        schema: &Schema,
        monitored: impl IntoIterator<Item = (&'a str, &'a [&'a str])>,
    ) -> Self {
        let columns = |table: &str, names: &[&str]| {
            let column = |name: &&str| Some((Arc::from(*name), *schema.column(table, name)?));
            names.iter().filter_map(column).collect()
        };
        let known = monitored
            .into_iter()
            .filter(|(table, _)| schema.tables.contains_key(*table));
        let table = |(name, names): (&str, &[&str])| {
            let table = MonitoredTable {
                columns: columns(name, names),
                rows: BTreeMap::new(),
            };
            (name.to_owned(), table)
        };
        Self {
            tables: known.map(table).collect(),
            memory: 0,
        }
    }

    /// Returns the rows of a table; none if it is not monitored.
    pub fn rows(&self, table: &str) -> impl Iterator<Item = (Uuid, &DatabaseRow)> {
        let table = self.tables.get(table).into_iter();
        table.flat_map(|table| table.rows.iter().map(|(uuid, row)| (*uuid, row)))
    }

    /// Returns a row.
    #[must_use]
    pub fn row(&self, table: &str, uuid: Uuid) -> Option<&DatabaseRow> {
        self.tables.get(table)?.rows.get(&uuid)
    }

    /// Returns whether this column is monitored: an older schema may not have it.
    #[must_use]
    pub fn has(&self, table: &str, column: &str) -> bool {
        let table = self.tables.get(table);
        table.is_some_and(|table| table.columns.contains_key(column))
    }

    /// Returns the monitored tables and their columns.
    pub fn columns(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.tables.iter().map(|(name, table)| {
            let columns = table.columns.keys().map(|column| &**column);
            (name.as_str(), columns.collect())
        })
    }

    /// Applies `<table-updates>` of this format.
    ///
    /// # Errors
    /// They are inconsistent with the schema or with earlier updates; the rows are no longer valid.
    pub fn apply(&mut self, updates: &Value, form: UpdateFormat) -> Result<(), Malformed> {
        let updates = updates.as_object();
        let updates = updates.ok_or_else(|| Malformed::new("updates are not an object"))?;
        for (name, rows) in updates {
            let table = self.tables.get_mut(name);
            let table = table
                .ok_or_else(|| Malformed(format!("update of an unmonitored table: {name}")))?;
            let applied = table.apply(rows, form, &mut self.memory);
            applied.map_err(|error| error.within(name))?;
        }
        Ok(())
    }
}

/// Returns the size of a whole row in bytes.
fn row_memory(row: &DatabaseRow) -> usize {
    ROW_OVERHEAD + row.values().map(Datum::memory).sum::<usize>()
}

impl MonitoredTable {
    fn apply(
        &mut self,
        rows: &Value,
        form: UpdateFormat,
        memory: &mut usize,
    ) -> Result<(), Malformed> {
        let rows = rows.as_object();
        let rows = rows.ok_or_else(|| Malformed::new("rows are not an object"))?;
        for (uuid, change) in rows {
            let uuid: Uuid = uuid
                .parse()
                .map_err(|error| Malformed(format!("{error}")))?;
            let change = read_change(change, form, &self.columns);
            let applied = change.and_then(|change| self.apply_change(uuid, change, memory));
            applied.map_err(|error| error.within(&uuid.to_string()))?;
            if *memory > MEMORY_MAX {
                return Err(Malformed::new("rows exceed the memory limit"));
            }
        }
        Ok(())
    }

    fn apply_change(
        &mut self,
        uuid: Uuid,
        change: RowChange,
        memory: &mut usize,
    ) -> Result<(), Malformed> {
        let unknown = || Malformed::new("change of an unknown row");
        match change {
            RowChange::Insert(row) => {
                *memory += row_memory(&row);
                if self.rows.insert(uuid, row).is_some() {
                    return Err(Malformed::new("duplicate row"));
                }
            }
            RowChange::Delete => {
                let row = self.rows.remove(&uuid).ok_or_else(unknown)?;
                *memory = memory.saturating_sub(row_memory(&row));
            }
            RowChange::Replace(columns) => {
                let row = self.rows.get_mut(&uuid).ok_or_else(unknown)?;
                for (name, after) in columns {
                    *memory += after.memory();
                    let before = row.insert(name, after);
                    let before = before.as_ref().map_or(0, Datum::memory);
                    *memory = memory.saturating_sub(before);
                }
            }
            RowChange::Differ(columns) => {
                let row = self.rows.get_mut(&uuid).ok_or_else(unknown)?;
                for (name, difference) in columns {
                    let of = &self.columns[&name];
                    let before = row.remove(&name).unwrap_or_else(|| Datum::initial(of));
                    *memory = memory.saturating_sub(before.memory());
                    let after = before.with_difference(difference, of);
                    if !of.allows(after.len()) {
                        let len = after.len();
                        return Err(Malformed(format!("{len} values of {name}")));
                    }
                    *memory += after.memory();
                    row.insert(name, after);
                }
            }
        }
        Ok(())
    }
}

/// Parses the columns of a row.
pub(crate) fn read_row(
    row: &Value,
    columns: &MonitoredColumns,
    read: impl Fn(&Value, &ColumnType) -> Result<Datum, Malformed>,
) -> Result<DatabaseRow, Malformed> {
    let row_columns = row.as_object();
    let row_columns =
        row_columns.ok_or_else(|| Malformed(format!("{} is not a row", excerpt(row))))?;
    let column = |(name, value): (&String, &Value)| {
        // Some formats include the columns `_uuid` and `_version`.
        let known = columns.get_key_value(name.as_str());
        let (name, of) = known.ok_or_else(|| Malformed(format!("unmonitored column: {name}")))?;
        let datum = read(value, of).map_err(|error| error.within(name))?;
        Ok((Arc::clone(name), datum))
    };
    let received = row_columns.iter();
    let received = received.filter(|(name, _)| !matches!(name.as_str(), "_uuid" | "_version"));
    received.map(column).collect()
}

#[cfg(test)]
mod tests;
