//! Messages of a database server: arbitrary bytes, from the first byte on or after a valid
//! beginning. The session continues or ends; it never panics, and its events do not depend on the
//! segmentation of the stream.

use base::Instant;
use ovsdb::{Database, Session, SessionEvent, SessionOptions};

/// The monitored tables and columns.
const TABLES: &[(&str, &[&str])] = &[
    ("Open_vSwitch", &["bridges", "next_cfg"]),
    (
        "Bridge",
        &["name", "ports", "fail_mode", "other_config", "share"],
    ),
];

/// A valid beginning: the schema, the lock, and the initial rows.
const BEGINNING: [&str; 3] = [
    r#"{"id":0,"error":null,"result":{"name":"Open_vSwitch","version":"8.3.1","tables":{
        "Open_vSwitch":{"columns":{
            "bridges":{"type":{"key":{"type":"uuid","refTable":"Bridge"},"min":0,"max":"unlimited"}},
            "next_cfg":{"type":"integer"}}},
        "Bridge":{"columns":{
            "name":{"type":"string","mutable":false},
            "ports":{"type":{"key":{"type":"uuid"},"min":0,"max":3}},
            "fail_mode":{"type":{"key":{"type":"string"},"min":0,"max":1}},
            "other_config":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
            "share":{"type":"real"}}}}}}"#,
    r#"{"id":1,"error":null,"result":{"locked":true}}"#,
    r#"{"id":2,"error":null,"result":[false,"00000000-0000-0000-0000-000000000000",{
        "Open_vSwitch":{"00000000-0000-0000-0000-00000000000a":{"initial":{"next_cfg":1}}},
        "Bridge":{"00000000-0000-0000-0000-00000000000b":{"initial":{
            "name":"br0","other_config":["map",[["a","b"]]]}}}}]}"#,
];

/// Feeds `data` to a session as the server's messages. The first byte selects whether a valid
/// beginning precedes it, the second the size of the pieces.
///
/// # Panics
/// If the result depends on the pieces.
pub fn ovsdb(data: &[u8]) {
    let Some(([flags, piece], data)) = data.split_first_chunk() else {
        return;
    };
    let has_beginning = flags % 2 == 1;
    let whole = follow(has_beginning, std::iter::once(data));
    let pieces = follow(has_beginning, data.chunks(usize::from(*piece) + 1));
    assert_eq!(whole, pieces, "the result depends on the pieces");
}

/// Returns the events, and the rows at the end.
fn follow<'a>(
    has_beginning: bool,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> (Vec<SessionEvent>, Database) {
    let now = Instant::START;
    let options = SessionOptions {
        database: "Open_vSwitch".to_owned(),
        lock: "ovs_vswitchd".to_owned(),
        tables: TABLES,
    };
    let mut session = Session::new(options, now);
    let beginning = BEGINNING
        .into_iter()
        .filter(|_| has_beginning)
        .map(str::as_bytes);
    for piece in beginning.chain(pieces) {
        session.handle_input(piece, now);
    }
    let events = std::iter::from_fn(|| session.poll_event()).collect();
    (events, session.database().clone())
}
