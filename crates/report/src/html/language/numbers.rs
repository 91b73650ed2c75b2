//! Numbers and dates in the conventions of a language.

use super::Language;
use crate::format::GROUP;

/// Names whose number stays as it is.
const NAMES: [&str; 8] = [
    "OpenFlow", "RFC", "Linux", "vSwitch", "iperf", "lab", "Core", "GHz",
];

/// Returns `text` with its numbers and dates in the conventions of `language`, except those of
/// versions, addresses and names.
pub(super) fn localized(text: &str, language: Language) -> String {
    let mut localized = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(at);
        localized.push_str(before);
        let (number, after) = token(from);
        let is_name = is_part_of_a_name(&localized, after);
        match (date(from), is_name) {
            (Some((parts, left)), false) => {
                localized.push_str(&dated(parts, language));
                rest = left;
                continue;
            }
            (_, true) => localized.push_str(number),
            (_, false) => localized.push_str(&written(number, language)),
        }
        rest = after;
    }
    localized.push_str(rest);
    localized
}

/// Splits a number from the text after it.
fn token(text: &str) -> (&str, &str) {
    let within = |c: char| c.is_ascii_digit() || c == '.' || c == GROUP;
    let end = text.find(|c| !within(c)).unwrap_or(text.len());
    let number = text[..end].trim_end_matches(['.', GROUP]);
    text.split_at(number.len())
}

fn is_part_of_a_name(before: &str, after: &str) -> bool {
    let is_joined = |c: char| c.is_alphanumeric() || matches!(c, '-' | '/' | '_' | '=');
    let follows_name = before.ends_with(is_joined);
    let precedes_name = after.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let word = before.trim_end().rsplit(' ').next().unwrap_or_default();
    follows_name || precedes_name || (before.ends_with(' ') && NAMES.contains(&word))
}

fn written(number: &str, language: Language) -> String {
    if number.matches('.').count() > 1 {
        return number.to_owned();
    }
    let (point, group) = match language {
        Language::English => return number.to_owned(),
        Language::Portuguese => (',', '.'),
        Language::Japanese => ('.', ','),
    };
    let each = number.chars().map(|c| match c {
        '.' => point,
        GROUP => group,
        digit => digit,
    });
    each.collect()
}

/// Splits a date, `2026-01-02`, from the text after it: year, month, day.
fn date(text: &str) -> Option<([&str; 3], &str)> {
    let parts = [text.get(..4)?, text.get(5..7)?, text.get(8..10)?];
    let dashes = text.get(4..5)? == "-" && text.get(7..8)? == "-";
    let digits = parts
        .iter()
        .all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    (dashes && digits).then_some((parts, &text[10..]))
}

fn dated([year, month, day]: [&str; 3], language: Language) -> String {
    match language {
        Language::English => format!("{year}-{month}-{day}"),
        Language::Portuguese => format!("{day}/{month}/{year}"),
        Language::Japanese => {
            let plain = |part: &str| part.trim_start_matches('0').to_owned();
            format!("{year}年{}月{}日", plain(month), plain(day))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, portuguese: &str, japanese: &str) {
        assert_eq!(localized(text, Language::Portuguese), portuguese);
        assert_eq!(localized(text, Language::Japanese), japanese);
        assert_eq!(localized(text, Language::English), text);
    }

    #[test]
    fn points_and_groups_are_localized() {
        check(
            "1\u{202f}069.5 – 2.25 µs",
            "1.069,5 – 2,25 µs",
            "1,069.5 – 2.25 µs",
        );
    }

    #[test]
    fn dates_are_localized() {
        check(
            "2026-01-02 03:04 UTC",
            "02/01/2026 03:04 UTC",
            "2026年1月2日 03:04 UTC",
        );
    }

    #[test]
    fn versions_addresses_and_names_are_unchanged() {
        for text in [
            "OpenFlow 1.0",
            "10.98.0.1",
            "RFC 5481",
            "Linux 6.18.0",
            "x460-24p",
            "IPv4",
        ] {
            check(text, text, text);
        }
        check("at 0.5.", "at 0,5.", "at 0.5.");
    }
}
