//! The body of the fuzz target of database rows: any rows that the schema permits become a
//! configuration, and the same rows become the same one.

use std::sync::LazyLock;

use base::PortNo;
use config::Config;
use config::reconcile::reconcile;
use ovsdb::{Database, UpdateFormat};
use serde_json::{Map, Value, json};

use crate::desired::convert_rows;
use crate::testing;

/// The most rows. More only cost time.
const ROWS_MAX: usize = 48;
/// The names of rows: few, so that rows refer to each other.
const NAMES: u8 = 3;

/// Strings and keys of columns; the input has others.
#[rustfmt::skip]
const WORDS: [&str; 64] = [
    "", "br0", "br1", "p0", "p1", "internal", "patch", "vxlan", "geneve", "gre", "tap", "dummy",
    "system", "true", "false", "active", "balance-slb", "balance-tcp", "active-backup", "passive",
    "off", "access", "trunk", "native-untagged", "dot1q-tunnel", "secure", "standalone", "netdev",
    "OpenFlow13", "OpenFlow15", "peer", "remote_ip", "local_ip", "key", "flow", "dst_port", "tos",
    "inherit", "10.0.0.1", "2001:db8::1", "tcp:127.0.0.1:6653", "ptcp:6653", "punix:br0.mgmt",
    "02:00:00:00:00:01", "ff:ff:ff:ff:ff:ff", "0", "1", "-1", "65535", "4294967296", "stp-priority",
    "rstp-priority", "hwaddr", "datapath-id", "disable-in-band", "in-band-queue", "bond-hash-basis",
    "lacp-time", "lacp-system-id", "mac-aging-time", "enable", "min_tx", "cfm_interval", "max-rate",
];

/// The columns of a table and their types.
type TypedColumns = Vec<(String, Value)>;

/// The tables of the schema.
static COLUMNS: LazyLock<Vec<(String, TypedColumns)>> = LazyLock::new(|| {
    let tables = testing::tables();
    let tables = tables.as_object().expect("the schema has tables");
    let columns = |table: &Value| {
        let columns = table["columns"].as_object().expect("a table has columns");
        let columns = columns.iter();
        let typed = columns.map(|(name, column)| (name.clone(), column["type"].clone()));
        typed.collect()
    };
    let tables = tables.iter();
    tables
        .map(|(name, table)| (name.clone(), columns(table)))
        .collect()
});

/// Choices that the input makes.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    /// Returns a byte; zero at the end of the input.
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn below(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count
    }

    /// Returns a word of the list, or bytes of the input.
    fn text(&mut self) -> String {
        if !self.byte().is_multiple_of(4) {
            return WORDS[self.below(WORDS.len())].to_owned();
        }
        let len = self.below(12).min(self.0.len());
        let (text, rest) = self.0.split_at(len);
        self.0 = rest;
        String::from_utf8_lossy(text).into_owned()
    }

    fn atom(&mut self, kind: &Value) -> Value {
        let name = kind["type"].as_str().or(kind.as_str()).unwrap_or_default();
        match name {
            "integer" => match self.byte() % 4 {
                0 => json!(self.byte()),
                1 => json!(i64::from(self.byte()) - 128),
                2 => json!(i64::from(self.byte()) << 9),
                _ => json!(i64::MAX - i64::from(self.byte())),
            },
            "boolean" => json!(self.byte() % 2 == 1),
            "uuid" => {
                let table = kind["refTable"].as_str().unwrap_or_default();
                let row = self.row();
                json!(["uuid", testing::uuid(table, &row).to_string()])
            }
            _ => json!(self.text()),
        }
    }

    fn row(&mut self) -> String {
        (self.byte() % NAMES).to_string()
    }

    /// Returns a value of a column's type.
    fn value(&mut self, kind: &Value) -> Value {
        if kind["key"].is_null() {
            return self.atom(kind);
        }
        let count = match kind["max"].as_str() {
            None => self.below(2),
            Some(_) => self.below(5),
        };
        let (key, value) = (&kind["key"], &kind["value"]);
        if value.is_null() {
            let atoms: Vec<_> = (0..count).map(|_| self.atom(key)).collect();
            return json!(["set", atoms]);
        }
        let pairs: Vec<_> = (0..count)
            .map(|_| json!([self.atom(key), self.atom(value)]))
            .collect();
        json!(["map", pairs])
    }
}

/// Converts the rows that `data` selects.
///
/// # Panics
/// If the same rows become another configuration the second time, or a port has no number.
pub fn database_rows(data: &[u8]) {
    let mut choices = Choices(data);
    let mut database = testing::empty();
    for _ in 0..ROWS_MAX {
        if choices.0.is_empty() {
            break;
        }
        insert(&mut database, &mut choices);
    }
    let first = convert_rows(&database, &Config::default());
    for bridge in &first.config.bridges {
        let numbers = bridge.ports.iter().map(|port| port.number);
        assert!(numbers.flatten().all(|number| number != PortNo::ANY));
    }
    let _ = reconcile(&Config::default(), &first.config);
    let second = convert_rows(&database, &first.config);
    let steps = reconcile(&first.config, &second.config);
    assert!(steps.is_empty(), "{steps:?}");
}

/// Inserts a row. The database refuses rows with duplicates in a set, and rows that exist.
fn insert(database: &mut Database, choices: &mut Choices<'_>) {
    let (table, columns) = &COLUMNS[choices.below(COLUMNS.len())];
    let name = match table.as_str() {
        "Open_vSwitch" => "0".to_owned(),
        _ => choices.row(),
    };
    let mut row = Map::new();
    for (column, kind) in columns {
        let is_name = column == "name";
        if is_name || choices.byte().is_multiple_of(3) {
            row.insert(column.clone(), choices.value(kind));
        }
    }
    let uuid = testing::uuid(table, &name).to_string();
    let change = json!({table.as_str(): {uuid: {"insert": row}}});
    let _ = database.apply(&change, UpdateFormat::Differences);
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn corpus_of_database_rows_passes() {
        let corpus = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../fuzz/corpus/database_rows"
        );
        for file in fs::read_dir(corpus).expect("the corpus exists") {
            let path = file.expect("it can be listed").path();
            database_rows(&fs::read(path).expect("it can be read"));
        }
    }
}
