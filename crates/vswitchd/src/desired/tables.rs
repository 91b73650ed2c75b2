//! Rows of the table `Flow_Table`.

use base::TableId;
use flow::Subfield;
use ovsdb::{Atom, Database, Datum};

use super::BridgeOutcome;
use crate::rows::Record;
use config::{BridgeConfig, TableConfig};

/// Returns the prefix fields of a table, sorted by name; none if the column is empty. The word
/// `none` stands for no field.
fn prefixes(row: Record<'_>) -> Option<Vec<String>> {
    let Some(Datum::Set(names)) = row.datum("prefixes") else {
        return None;
    };
    let names = names.iter().filter_map(|name| match name {
        Atom::String(name) => Some(name.clone()),
        _ => None,
    });
    let names: Vec<_> = names.collect();
    let fields = names.iter().filter(|name| *name != "none").cloned();
    (!names.is_empty()).then(|| fields.collect())
}

/// Reads the table settings of a bridge.
pub(super) fn read_tables(
    database: &Database,
    row: Record<'_>,
    config: &mut BridgeConfig,
    outcome: &mut BridgeOutcome,
) {
    let Some(Datum::Map(tables)) = row.datum("flow_tables") else {
        return;
    };
    let mut notes = Vec::new();
    for (number, uuid) in tables {
        let (Atom::Integer(number), Atom::Uuid(uuid)) = (number, uuid) else {
            continue;
        };
        let table = u8::try_from(*number).ok().map(TableId);
        let Some(table) = table.filter(|table| *table <= TableId::LAST) else {
            notes.push(format!("there is no table {number}"));
            continue;
        };
        let Some(row) = Record::of(database, "Flow_Table", *uuid) else {
            continue;
        };
        let groups = read_groups(row, *number, &mut notes);
        let limit = row.integer("flow_limit");
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        let table_config = TableConfig {
            name: row.text("name").unwrap_or_default().to_owned(),
            limit,
            eviction: row.text("overflow_policy") == Some("evict"),
            prefixes: prefixes(row),
            groups,
        };
        config.tables.insert(table, table_config);
    }
    if !notes.is_empty() {
        outcome
            .notes
            .insert("flow_tables".to_owned(), notes.join("; "));
    }
}

/// Reads the subfields by which a table divides its rules for eviction. An unusable one is ignored,
/// with a note.
fn read_groups(row: Record<'_>, table: i64, notes: &mut Vec<String>) -> Vec<Subfield> {
    let mut groups = Vec::new();
    for text in row.texts("groups") {
        match flow::text::parse_subfield(text) {
            Ok(subfield) if !subfield.is_tunnel_option() => groups.push(subfield),
            Ok(_) => notes.push(format!(
                "groups of table {table}: ignoring {text}: a tunnel option cannot divide rules"
            )),
            Err(error) => notes.push(format!("groups of table {table}: ignoring {text}: {error}")),
        }
    }
    groups
}
