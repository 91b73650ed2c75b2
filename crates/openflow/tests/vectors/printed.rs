//! What we print of a vector beside what `ovs-ofctl ofp-print` is recorded to print.

use openflow::{Detail, print};

/// Digits before a line of bytes.
const DUMP: usize = 8;

/// Bytes of a line that are recorded; the rest of a longer one is not.
const RECORDED: usize = 180;

/// What stands for what was not recorded.
const CUT: &str = "...";

/// The first line that differs, if there is one that nothing explains of the vector with this
/// head in `file`. Blanks around lines and lines of bytes are not recorded, nor the rest of a
/// long text.
pub(crate) fn difference(file: &str, head: &str, bytes: &[u8]) -> Option<String> {
    let recorded = head.lines().filter_map(|line| line.strip_prefix(':'));
    let recorded = recorded.map(str::trim).filter(|line| says_something(line));
    let printed = print(bytes, Detail::BRIEF);
    let printed = printed.lines().map(str::trim);
    let mut printed = printed.filter(|line| says_something(line));
    for theirs in recorded.take_while(|line| *line != CUT) {
        let ours = printed.next().unwrap_or_default();
        let is_cut = theirs.len() >= RECORDED && ours.starts_with(theirs);
        if theirs != ours && !is_cut {
            let explained = is_listed(file, head) || explained(theirs, ours);
            return (!explained).then(|| format!("{head}  theirs: {theirs}\n  ours:   {ours}\n"));
        }
    }
    None
}

/// Whether `vectors/otherwise.txt` names the vector.
fn is_listed(file: &str, head: &str) -> bool {
    let text = include_str!("../../vectors/otherwise.txt");
    let name = head.lines().find_map(|line| line.strip_prefix("-- "));
    let name = format!("{file}: {}", name.unwrap_or_default());
    text.lines().any(|line| line == name)
}

/// Whether a row of `vectors/printed.txt` that is for vectors has pieces of both lines.
fn explained(theirs: &str, ours: &str) -> bool {
    let text = include_str!("../../vectors/printed.txt");
    let rows = text.lines().filter(|line| !line.starts_with(['#', '~']));
    rows.filter_map(|line| line.split_once('|'))
        .any(|(their, our)| theirs.contains(their.trim()) && ours.contains(our.trim()))
}

/// Whether a line is neither empty nor one of bytes.
fn says_something(line: &str) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_hexdigit).count();
    let is_dump = digits == DUMP && line[DUMP..].starts_with("  ");
    !line.is_empty() && !is_dump
}
