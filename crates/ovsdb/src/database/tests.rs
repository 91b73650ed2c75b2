//! Rows after updates: handwritten and random ones.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Atom;

fn schema() -> Schema {
    let schema = json!({"name": "Test", "version": "1.0.0", "tables": {"T": {"columns": {
        "name": {"type": "string"},
        "tag": {"type": {"key": {"type": "integer", "maxInteger": 4095}, "min": 0, "max": 1}},
        "trunks": {"type": {"key": "integer", "min": 0, "max": 4}},
        "rows": {"type": {"key": {"type": "uuid", "refTable": "T"}, "min": 0, "max": "unlimited"}},
        "options": {"type": {"key": "string", "value": "integer", "min": 0, "max": "unlimited"}},
        "up": {"type": "boolean"},
        "share": {"type": "real"},
    }}}});
    Schema::from_json(&schema).expect("a schema")
}

const COLUMNS: &[&str] = &[
    "name", "tag", "trunks", "rows", "options", "up", "share", "newer",
];

fn empty() -> Database {
    Database::monitoring(&schema(), [("T", COLUMNS), ("Newer", COLUMNS)])
}

const ROW: &str = "00000000-0000-0000-0000-000000000001";

fn one_row(change: Value) -> Value {
    json!({"T": {ROW: change}})
}

fn holds(database: &Database, column: &str) -> Datum {
    let (_, row) = database.rows("T").next().expect("a row");
    row[column].clone()
}

#[test]
fn tables_missing_in_older_schema_are_not_monitored() {
    let database = empty();
    let columns: Vec<_> = database.columns().collect();
    assert_eq!(columns.len(), 1, "{columns:?}");
    assert!(database.has("T", "options"));
    assert!(!database.has("T", "newer") && !database.has("Newer", "name"));
}

#[test]
fn inserted_row_has_default_columns() {
    let mut database = empty();
    let row = one_row(json!({"insert": {"name": "a"}}));
    database
        .apply(&row, UpdateFormat::Differences)
        .expect("legal");
    assert_eq!(holds(&database, "name"), Datum::one("a"));
    assert_eq!(holds(&database, "up"), Datum::one(false));
    assert_eq!(holds(&database, "tag"), Datum::none());
    assert_eq!(holds(&database, "options"), Datum::Map(BTreeMap::new()));
    assert_eq!(holds(&database, "share"), Datum::one(Atom::Real(0.0)));
}

#[test]
fn differences_toggle_set_members_and_replace_single_values() {
    let mut database = empty();
    let apply = |database: &mut Database, kind: &str, columns: Value| {
        let change = one_row(json!({kind: columns}));
        database
            .apply(&change, UpdateFormat::Differences)
            .expect("legal");
    };
    let first = json!({
        "name": "a", "tag": 7, "trunks": ["set", [1, 2]],
        "options": ["map", [["x", 1], ["y", 2]]],
    });
    apply(&mut database, "initial", first);
    let change = json!({
        "tag": 7, "trunks": ["set", [2, 3]],
        "options": ["map", [["x", 1], ["y", 5], ["z", 9]]],
    });
    apply(&mut database, "modify", change);
    assert_eq!(holds(&database, "tag"), Datum::one(7));
    assert_eq!(holds(&database, "trunks"), Datum::set([1, 3]));
    assert_eq!(
        holds(&database, "options"),
        Datum::map([("y", 5), ("z", 9)])
    );
    apply(&mut database, "modify", json!({"tag": ["set", []]}));
    assert_eq!(holds(&database, "tag"), Datum::none());
    apply(&mut database, "delete", Value::Null);
    assert_eq!(database.rows("T").count(), 0);
}

#[test]
fn modified_columns_replace_old_values() {
    let mut database = empty();
    let apply = |database: &mut Database, change| {
        database
            .apply(&one_row(change), UpdateFormat::Values)
            .expect("legal");
    };
    apply(
        &mut database,
        json!({"new": {"name": "a", "trunks": ["set", [1, 2]]}}),
    );
    let changed = json!({"old": {"trunks": ["set", [1, 2]]}, "new": {"name": "a", "trunks": 3}});
    apply(&mut database, changed);
    assert_eq!(holds(&database, "trunks"), Datum::one(3));
    apply(&mut database, json!({"old": {"name": "a"}}));
    assert_eq!(database.rows("T").count(), 0);
}

#[test]
fn inconsistent_update_is_refused_with_location() {
    let refused = |change: Value, form| {
        let mut database = empty();
        let row = one_row(json!({"insert": {"name": "a"}}));
        database
            .apply(&row, UpdateFormat::Differences)
            .expect("legal");
        database.apply(&change, form).expect_err("a lie").0
    };
    let differs = |columns| {
        refused(
            one_row(json!({"modify": columns})),
            UpdateFormat::Differences,
        )
    };
    assert!(
        differs(json!({"name": 7})).contains("T: ") && differs(json!({"name": 7})).contains("name")
    );
    assert!(differs(json!({"trunks": ["set", [1, 2, 3, 4, 5]]})).contains("5 values"));
    assert!(differs(json!({"trunks": ["set", [1, 1]]})).contains("duplicate value"));
    assert!(differs(json!({"name": ["set", []]})).contains("0 values"));
    assert!(differs(json!({"newer": 1})).contains("unmonitored column"));
    assert!(differs(json!(7)).contains("not a row"));
    let twice = one_row(json!({"insert": {"name": "a"}}));
    assert!(refused(twice, UpdateFormat::Differences).contains("duplicate row"));
    let neither = one_row(json!({"old": null, "new": null}));
    assert!(refused(neither, UpdateFormat::Values).contains("not a row update"));
    assert!(refused(json!({"U": {}}), UpdateFormat::Values).contains("unmonitored table: U"));
    assert!(
        refused(
            json!({"T": {"7": {"delete": null}}}),
            UpdateFormat::Differences
        )
        .contains("not a UUID")
    );
    let other = ROW.replace('1', "2");
    let unknown = json!({"T": {other: {"modify": {"name": "b"}}}});
    assert!(refused(unknown, UpdateFormat::Differences).contains("unknown row"));
}

#[test]
fn rows_beyond_memory_limit_are_refused() {
    let mut database = empty();
    let long = "x".repeat(MEMORY_MAX / 16);
    let received = (1..=20_u128).map(|row| {
        let row = json!({"T": {Uuid(row).to_string(): {"insert": {"name": long}}}});
        database.apply(&row, UpdateFormat::Differences)
    });
    let accepted = received.take_while(Result::is_ok).count();
    assert_eq!(accepted, 15);
}

/// Rows with a map, a set, and a column of at most one value.
type Plain = BTreeMap<u8, (BTreeMap<u8, i64>, Vec<i64>, Option<i64>)>;

fn plain() -> impl Strategy<Value = Plain> {
    let map = proptest::collection::btree_map(0..4_u8, 0..3_i64, 0..4);
    let set = proptest::collection::btree_set(0..5_i64, 0..4);
    let set = set.prop_map(|set| set.into_iter().collect::<Vec<_>>());
    let row = (map, set, proptest::option::of(0..3_i64));
    proptest::collection::btree_map(0..4_u8, row, 0..4)
}

fn row_of(plain: &(BTreeMap<u8, i64>, Vec<i64>, Option<i64>)) -> [(&'static str, Datum); 3] {
    let (map, set, one) = plain;
    let options = map.iter().map(|(key, value)| (key.to_string(), *value));
    [
        ("options", Datum::map(options)),
        ("trunks", Datum::set(set.iter().copied())),
        ("tag", Datum::optional(*one)),
    ]
}

/// Returns the difference as a server sends it.
fn difference(old: &Datum, new: &Datum, of: &ColumnType) -> Datum {
    match (old, new) {
        _ if !of.holds_several() => new.clone(),
        (Datum::Set(old), Datum::Set(new)) => {
            Datum::Set(old.symmetric_difference(new).cloned().collect())
        }
        (Datum::Map(old), Datum::Map(new)) => {
            let removed = old.iter().filter(|(key, _)| !new.contains_key(*key));
            let changed = new
                .iter()
                .filter(|(key, value)| old.get(*key) != Some(*value));
            let pairs = removed.chain(changed);
            Datum::Map(
                pairs
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect(),
            )
        }
        _ => unreachable!("a column keeps its type"),
    }
}

fn as_json(columns: &[(&str, Datum)]) -> Value {
    let columns = columns.iter();
    columns
        .map(|(name, datum)| ((*name).to_owned(), datum.to_json()))
        .collect()
}

/// Returns the updates with which a server leads from `old` to `new`.
fn updates(old: &Plain, new: &Plain, form: UpdateFormat) -> Value {
    let schema = schema();
    let mut rows = serde_json::Map::new();
    for key in old.keys().chain(new.keys()) {
        let uuid = Uuid(u128::from(*key)).to_string();
        let (before, after) = (old.get(key).map(row_of), new.get(key).map(row_of));
        let change = match (before, after, form) {
            (None, Some(row), UpdateFormat::Differences) => json!({"insert": as_json(&row)}),
            (None, Some(row), UpdateFormat::Values) => json!({"new": as_json(&row)}),
            (Some(_), None, UpdateFormat::Differences) => json!({"delete": null}),
            (Some(row), None, UpdateFormat::Values) => json!({"old": as_json(&row)}),
            (Some(before), Some(after), UpdateFormat::Values) => {
                json!({"old": as_json(&before), "new": as_json(&after)})
            }
            (Some(before), Some(after), UpdateFormat::Differences) => {
                let pairs = before
                    .into_iter()
                    .zip(after)
                    .filter(|(old, new)| old != new);
                let differing = pairs.map(|((name, old), (_, new))| {
                    let of = schema.column("T", name).expect("a column");
                    (name, difference(&old, &new, of))
                });
                let differing: Vec<_> = differing.collect();
                json!({"modify": as_json(&differing)})
            }
            (None, None, _) => continue,
        };
        rows.insert(uuid, change);
    }
    json!({"T": rows})
}

proptest! {
    #[test]
    fn incremental_updates_equal_fresh_dump(
        states in proptest::collection::vec(plain(), 1..8),
        in_differences in any::<bool>(),
    ) {
        let form = if in_differences { UpdateFormat::Differences } else { UpdateFormat::Values };
        let (mut database, mut before) = (empty(), Plain::new());
        for state in states {
            database.apply(&updates(&before, &state, form), form).expect("legal");
            let mut fresh = empty();
            fresh.apply(&updates(&Plain::new(), &state, form), form).expect("legal");
            prop_assert_eq!(&database, &fresh);
            before = state;
        }
    }

    #[test]
    fn datum_round_trips_as_json(rows in plain()) {
        let schema = schema();
        for (name, datum) in rows.values().flat_map(row_of) {
            let of = schema.column("T", name).expect("a column");
            prop_assert_eq!(Datum::from_json(&datum.to_json(), of), Ok(datum));
        }
    }
}
