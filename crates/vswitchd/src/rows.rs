//! Reading columns of a row by their names. A column that the schema does not have holds
//! nothing.

use std::collections::BTreeMap;

use ovsdb::{Atom, Database, DatabaseRow, Datum, Uuid};

/// A row of a table, to be read.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) uuid: Uuid,
    row: &'a DatabaseRow,
}

impl<'a> Record<'a> {
    /// The row of this name, if it is there.
    pub(crate) fn of(database: &'a Database, table: &str, uuid: Uuid) -> Option<Self> {
        let row = database.row(table, uuid)?;
        Some(Self { uuid, row })
    }

    /// The rows of `table` that `column` names.
    pub(crate) fn named_by(
        self,
        database: &'a Database,
        column: &str,
        table: &'static str,
    ) -> impl Iterator<Item = Self> {
        let uuids = self.datum(column).into_iter().flat_map(Datum::uuids);
        uuids.filter_map(move |uuid| Self::of(database, table, uuid))
    }

    /// What a column holds.
    pub(crate) fn datum(self, column: &str) -> Option<&'a Datum> {
        self.row.get(column)
    }

    /// Whether a column holds anything.
    pub(crate) fn has(self, column: &str) -> bool {
        self.datum(column).is_some_and(|datum| !datum.is_empty())
    }

    /// Whether a column asks for anything: it says yes, or holds what is no yes or no.
    pub(crate) fn asks(self, column: &str) -> bool {
        let is_truth = |atom: &Atom| matches!(atom, Atom::Boolean(_));
        let asks = |datum: &Datum| datum.is_true() || !datum.atoms().all(is_truth);
        self.datum(column).is_some_and(asks)
    }

    /// The string in a column.
    pub(crate) fn text(self, column: &str) -> Option<&'a str> {
        self.datum(column)?.strings().next()
    }

    /// The strings in a column.
    pub(crate) fn texts(self, column: &str) -> impl Iterator<Item = &'a str> {
        self.datum(column).into_iter().flat_map(Datum::strings)
    }

    /// The number in a column.
    pub(crate) fn integer(self, column: &str) -> Option<i64> {
        self.datum(column)?.integers().next()
    }

    /// The numbers in a column.
    pub(crate) fn integers(self, column: &str) -> impl Iterator<Item = i64> {
        self.datum(column).into_iter().flat_map(Datum::integers)
    }

    /// Whether a column says yes.
    pub(crate) fn is_true(self, column: &str) -> bool {
        self.datum(column).is_some_and(Datum::is_true)
    }

    /// The pairs of strings in a column.
    pub(crate) fn map(self, column: &str) -> BTreeMap<&'a str, &'a str> {
        self.datum(column)
            .into_iter()
            .flat_map(Datum::texts)
            .collect()
    }
}

/// The one row of the table that stands above all.
pub(crate) fn root(database: &Database) -> Option<Record<'_>> {
    let (uuid, row) = database.rows("Open_vSwitch").next()?;
    Some(Record { uuid, row })
}
