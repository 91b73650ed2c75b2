//! Text of peers in log lines: control characters are escaped and long values are truncated, so
//! that no peer forges a line, controls a terminal or fills a disk with one message.

/// The limit of bytes of a field's value.
pub(super) const FIELD_LEN_MAX: usize = 1024;

/// The limit of bytes of a message: the longest OpenFlow message as text, mostly.
pub(super) const MESSAGE_LEN_MAX: usize = 64 * 1024;

/// Returns the value of a field, on one line.
pub(super) fn field(value: &str) -> String {
    escape(value, FIELD_LEN_MAX, |_| false)
}

/// Returns a message. Messages of several lines are written by the switch itself.
pub(super) fn message(text: &str) -> String {
    escape(text, MESSAGE_LEN_MAX, |next| matches!(next, '\n' | '\t'))
}

fn escape(text: &str, len_max: usize, keeps: fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len().min(len_max));
    for next in text.chars() {
        if escaped.len() >= len_max {
            escaped.push_str("...");
            break;
        }
        match is_unsafe(next) && !keeps(next) {
            true => escaped.extend(next.escape_default()),
            false => escaped.push(next),
        }
    }
    escaped
}

/// Returns true for control characters, line separators and characters that reverse the direction
/// of the text after them.
fn is_unsafe(next: char) -> bool {
    next.is_control()
        || matches!(next, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_peers_is_escaped_and_truncated() {
        let forged = "no version\n2026-11-27T21:00:00Z|00001|bridge|INFO|\x1b[2Jforged\u{202e}";
        assert_eq!(
            field(forged),
            "no version\\n2026-11-27T21:00:00Z|00001|bridge|INFO|\\u{1b}[2Jforged\\u{202e}"
        );
        assert_eq!(field("héllo {x} \\"), "héllo {x} \\");
        let long = field(&"y".repeat(65_535));
        assert_eq!(long.len(), FIELD_LEN_MAX + 3);
        assert!(long.ends_with("y..."));
        assert_eq!(message("two\nlines\r\x07"), "two\nlines\\r\\u{7}");
    }
}
