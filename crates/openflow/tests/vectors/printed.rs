//! Compares the text of a vector with the recorded output of `ovs-ofctl ofp-print`.

use openflow::{Detail, print};

/// Digits before a line of a dump.
const DUMP: usize = 8;

/// The number of recorded bytes of a longer line.
const RECORDED: usize = 180;

/// The mark of a truncated record.
const CUT: &str = "...";

/// The first differing line without an explanation for the vector with this head in `file`, if
/// there is one. Leading and trailing blanks, dumps and the end of a long text are not recorded.
pub(crate) fn difference(file: &str, head: &str, bytes: &[u8]) -> Option<String> {
    let recorded = head.lines().filter_map(|line| line.strip_prefix(':'));
    let recorded = recorded.map(str::trim).filter(|line| is_text(line));
    let printed = print(bytes, Detail::BRIEF);
    let printed = printed.lines().map(str::trim);
    let mut printed = printed.filter(|line| is_text(line));
    for recorded_line in recorded.take_while(|line| *line != CUT) {
        let printed_line = printed.next().unwrap_or_default();
        let is_cut = recorded_line.len() >= RECORDED && printed_line.starts_with(recorded_line);
        if recorded_line != printed_line && !is_cut {
            let explained = is_listed(file, head) || is_explained(recorded_line, printed_line);
            return (!explained)
                .then(|| format!("{head}  theirs: {recorded_line}\n  ours:   {printed_line}\n"));
        }
    }
    None
}

/// Returns true if `vectors/otherwise.txt` lists the vector.
fn is_listed(file: &str, head: &str) -> bool {
    let text = include_str!("../../vectors/otherwise.txt");
    let name = head.lines().find_map(|line| line.strip_prefix("-- "));
    let name = format!("{file}: {}", name.unwrap_or_default());
    text.lines().any(|line| line == name)
}

/// Returns true if a row of `vectors/printed.txt` about vectors has parts of both lines.
fn is_explained(recorded_line: &str, printed_line: &str) -> bool {
    let text = include_str!("../../vectors/printed.txt");
    let rows = text.lines().filter(|line| !line.starts_with(['#', '~']));
    rows.filter_map(|line| line.split_once('|'))
        .any(|(their, our)| {
            recorded_line.contains(their.trim()) && printed_line.contains(our.trim())
        })
}

/// Returns true for a line that is neither empty nor a dump.
fn is_text(line: &str) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_hexdigit).count();
    let is_dump = digits == DUMP && line[DUMP..].starts_with("  ");
    !line.is_empty() && !is_dump
}
