//! Rust code without comments, strings and characters, for rules about code. Line numbers stay.
//!
//! It is no parser: it knows the lexical grammar (Rust reference, "Tokens") as far as it is needed
//! to find where these begin and end.

/// Returns `text` with a space in place of each character that is not code.
pub(super) fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let len = match c {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => string(rest),
            '\'' => character(rest),
            'r' | 'b' | 'c' if !ends_in_word(&code) => prefixed(rest),
            _ => 0,
        };
        let (gone, kept) = match len {
            0 => ("", &rest[..c.len_utf8()]),
            len => (&rest[..len], ""),
        };
        code.extend(gone.chars().map(|c| if c == '\n' { c } else { ' ' }));
        code.push_str(kept);
        rest = &rest[gone.len() + kept.len()..];
    }
    code
}

/// True if the next character continues a word.
fn ends_in_word(code: &str) -> bool {
    code.ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Returns the length of a block comment, which may be nested.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Returns the length of a string with escapes.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of a character, or zero for a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            chars.next();
            chars
                .find(|(_, c)| *c == '\'')
                .map_or(text.len(), |(at, _)| at + 1)
        }
        Some(_) => match chars.next() {
            Some((at, '\'')) => at + 1,
            _ => 0,
        },
        None => 0,
    }
}

/// Returns the length of a raw, byte or C string, or zero. Raw identifiers (`r#type`) and bytes
/// (`b'x'`) are none.
fn prefixed(text: &str) -> usize {
    let prefix = text.find(|c| !matches!(c, 'r' | 'b' | 'c')).unwrap_or(0);
    let rest = &text[prefix..];
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    if prefix > 2 || !rest[hashes..].starts_with('"') {
        return 0;
    }
    if !text[..prefix].contains('r') {
        return match hashes {
            0 => prefix + string(rest),
            _ => 0,
        };
    }
    let open = prefix + hashes + 1;
    let close = format!("\"{}", "#".repeat(hashes));
    let len = text[open..].find(&close);
    len.map_or(text.len(), |len| open + len + close.len())
}

/// Returns the lines of `code` that contain the whole word `word`.
pub(super) fn lines_with_word<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    (1..).zip(code.lines()).filter_map(move |(number, line)| {
        let found = line.match_indices(word).any(|(at, _)| {
            !line[..at].ends_with(is_part) && !line[at + word.len()..].starts_with(is_part)
        });
        found.then_some(number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        code_of(text)
            .split_whitespace()
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn comments_and_strings_are_removed() {
        assert_eq!(words("a // unsafe\nb /* x /* y */ z */ c"), ["a", "b", "c"]);
        assert_eq!(words(r#"a "unsafe \" x" b"#), ["a", "b"]);
        assert_eq!(
            words("a r\"x\\\" b r#\"x \" y\"# c br\"z\" d c\"e\" f"),
            ["a", "b", "c", "d", "f"]
        );
        assert_eq!(words("a \"never closed"), ["a"]);
    }

    #[test]
    fn characters_and_lifetimes_differ() {
        assert_eq!(
            words(r"'x' a '\'' b '\u{41}' c '/' d"),
            ["a", "b", "c", "d"]
        );
        assert_eq!(
            words("fn f<'a>(x: &'a str)"),
            ["fn", "f<'a>(x:", "&'a", "str)"]
        );
        assert_eq!(words("'\"' a '\"' b"), ["a", "b"]);
    }

    #[test]
    fn line_numbers_stay() {
        let text = "\"one\ntwo\" /*\n*/ x r#type /* ü */\n";
        let code = code_of(text);
        assert_eq!(code.lines().count(), 3);
        assert_eq!(lines_with_word(&code, "x").collect::<Vec<_>>(), [3]);
        assert_eq!(lines_with_word(&code, "r").count(), 1);
    }

    #[test]
    fn word_search_matches_whole_words() {
        let code = "unsafe_code\nan unsafe block\nunsafety\nunsafe{}";
        assert_eq!(lines_with_word(code, "unsafe").collect::<Vec<_>>(), [2, 4]);
    }
}
