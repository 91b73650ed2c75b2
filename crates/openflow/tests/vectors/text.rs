//! Parsing of bytes and formatting of values.

/// Parses hexadecimal digits and skips blanks.
pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex
        .chars()
        .filter(|digit| !digit.is_whitespace())
        .map(|digit| digit.to_digit(16).expect("a hexadecimal digit"))
        .collect();
    let pairs = digits.chunks_exact(2);
    assert!(pairs.remainder().is_empty(), "half a byte in {hex}");
    pairs
        .map(|pair| u8::try_from(pair[0] << 4 | pair[1]).expect("two digits"))
        .collect()
}

/// Formats the debug text of a value in few lines: numbers in hexadecimal, without members that are
/// zero, empty or none, and with structures in one line if they fit.
pub(crate) fn pretty(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:#x?}");
    let lines: Vec<&str> = text.lines().collect();
    fold(&lines).join("\n")
}

const WIDTH: usize = 100;

/// Folds lines of pretty debug text.
fn fold(lines: &[&str]) -> Vec<String> {
    let mut folded = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let end = end_of(lines, at);
        let inside = if end > at {
            fold(&lines[at + 1..end])
        } else {
            Vec::new()
        };
        let joined = if end > at {
            join(lines[at], &inside, lines[end])
        } else {
            lines[at].to_owned()
        };
        if is_default(&joined) {
        } else if joined.len() <= WIDTH || end == at {
            folded.push(joined);
        } else {
            folded.push(lines[at].to_owned());
            folded.extend(wrap(inside));
            folded.push(lines[end].to_owned());
        }
        at = end + 1;
    }
    folded
}

/// The index of the last line of the structure that begins in line `at`.
fn end_of(lines: &[&str], at: usize) -> usize {
    if !lines[at].ends_with(['{', '(', '[']) {
        return at;
    }
    let indent = |line: &str| line.len() - line.trim_start().len();
    (at + 1..lines.len())
        .find(|next| indent(lines[*next]) == indent(lines[at]))
        .expect("every bracket is closed")
}

/// Joins a structure into one line.
fn join(open: &str, inside: &[String], close: &str) -> String {
    let inside: Vec<&str> = inside.iter().map(|line| line.trim()).collect();
    let inside = inside.join(" ");
    let space = if open.ends_with('{') && !inside.is_empty() {
        " "
    } else {
        ""
    };
    let inside = inside.trim_end_matches(',');
    format!("{open}{space}{inside}{space}{}", close.trim())
}

/// Returns true for a member that is zero, empty or none, or a list of zeros.
fn is_default(line: &str) -> bool {
    let Some((_, value)) = line.trim_end_matches(',').split_once(": ") else {
        return false;
    };
    let inside = value
        .split_once(['(', '{'])
        .map_or(value, |(_, inside)| inside.trim_end_matches([')', '}']));
    let zeros = inside.strip_prefix('[').is_some_and(|list| {
        list.trim_end_matches(']')
            .split(", ")
            .all(|item| item == "0x0")
    });
    zeros || ["None", "false", "0x0", "[]", "\"\"", "0ns", "Ignore", ""].contains(&inside)
}

/// Wraps numbers of a list into full lines; returns other lines unchanged.
fn wrap(lines: Vec<String>) -> Vec<String> {
    if !lines.iter().all(|line| line.trim_start().starts_with("0x")) {
        return lines;
    }
    let indent = lines[0].len() - lines[0].trim_start().len();
    let mut wrapped: Vec<String> = Vec::new();
    for number in lines.iter().map(|line| line.trim_start()) {
        match wrapped.last_mut() {
            Some(line) if line.len() + 1 + number.len() <= WIDTH => {
                line.push(' ');
                line.push_str(number);
            }
            _ => wrapped.push(" ".repeat(indent) + number),
        }
    }
    wrapped
}
