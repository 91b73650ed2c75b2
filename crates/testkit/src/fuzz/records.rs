//! Records of the lab: any text, as the journal of a session. An entry that is parsed is written and
//! parsed as the same entry.

use record::journal::parse;

/// Parses `data` as records.
///
/// # Panics
/// If an entry cannot be written, or differs after it is parsed again.
pub fn records(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(entries) = parse(text, "text") else {
        return;
    };
    let lines = |entries: &[record::Entry]| -> String {
        let lines = entries.iter().map(serde_json::to_string);
        let lines = lines.map(|line| line.expect("an entry has a JSON form") + "\n");
        lines.collect()
    };
    let written = lines(&entries);
    let again = parse(&written, "text").expect("a written entry is valid");
    assert_eq!(lines(&again), written);
}
