//! Access to the columns of a row by name. A column that the schema lacks is empty.

use std::collections::BTreeMap;

use ovsdb::{Atom, Database, DatabaseRow, Datum, Uuid};

/// A row of a table.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) uuid: Uuid,
    row: &'a DatabaseRow,
}

impl<'a> Record<'a> {
    /// Returns the row with this UUID, if it exists.
    pub(crate) fn of(database: &'a Database, table: &str, uuid: Uuid) -> Option<Self> {
        let row = database.row(table, uuid)?;
        Some(Self { uuid, row })
    }

    /// Returns the rows of `table` that `column` refers to.
    pub(crate) fn named_by(
        self,
        database: &'a Database,
        column: &str,
        table: &'static str,
    ) -> impl Iterator<Item = Self> {
        let uuids = self.datum(column).into_iter().flat_map(Datum::uuids);
        uuids.filter_map(move |uuid| Self::of(database, table, uuid))
    }

    /// Returns the value of a column.
    pub(crate) fn datum(self, column: &str) -> Option<&'a Datum> {
        self.row.get(column)
    }

    /// Returns true if a column is not empty.
    pub(crate) fn has(self, column: &str) -> bool {
        self.datum(column).is_some_and(|datum| !datum.is_empty())
    }

    /// Returns true if a column is set: to true, or to a value that is no boolean.
    pub(crate) fn is_set(self, column: &str) -> bool {
        let is_truth = |atom: &Atom| matches!(atom, Atom::Boolean(_));
        let is_set = |datum: &Datum| datum.is_true() || !datum.atoms().all(is_truth);
        self.datum(column).is_some_and(is_set)
    }

    /// Returns the string in a column.
    pub(crate) fn text(self, column: &str) -> Option<&'a str> {
        self.datum(column)?.strings().next()
    }

    /// Returns the strings in a column.
    pub(crate) fn texts(self, column: &str) -> impl Iterator<Item = &'a str> {
        self.datum(column).into_iter().flat_map(Datum::strings)
    }

    /// Returns the integer in a column.
    pub(crate) fn integer(self, column: &str) -> Option<i64> {
        self.datum(column)?.integers().next()
    }

    /// Returns the integers in a column.
    pub(crate) fn integers(self, column: &str) -> impl Iterator<Item = i64> {
        self.datum(column).into_iter().flat_map(Datum::integers)
    }

    /// Returns true if a column is true.
    pub(crate) fn is_true(self, column: &str) -> bool {
        self.datum(column).is_some_and(Datum::is_true)
    }

    /// Returns the pairs of strings in a column.
    pub(crate) fn map(self, column: &str) -> BTreeMap<&'a str, &'a str> {
        self.datum(column)
            .into_iter()
            .flat_map(Datum::texts)
            .collect()
    }
}

/// Returns the row of the table `Open_vSwitch`.
pub(crate) fn root(database: &Database) -> Option<Record<'_>> {
    let (uuid, row) = database.rows("Open_vSwitch").next()?;
    Some(Record { uuid, row })
}
