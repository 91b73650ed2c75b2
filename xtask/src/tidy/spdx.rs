//! SPDX licence expressions (SPDX 3.0.1, annex B): `MIT OR (Apache-2.0 AND BSD-3-Clause)`.
//! Operators are in upper case or in lower case, not mixed.

/// The result for an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LicenceVerdict {
    /// Every licence that applies is allowed.
    Allowed,
    /// A licence that applies is not allowed.
    Refused,
    /// The text is no expression.
    Unreadable,
}

/// Judges `expression` by the `allowed` licences. A licence with an exception is allowed if it is
/// allowed without it, or with it.
pub(super) fn judge(expression: &str, allowed: &[&str]) -> LicenceVerdict {
    // Cargo's older notation of OR.
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words = spaced.split_whitespace().map(|word| match word {
        "or" => "OR",
        "and" => "AND",
        "with" => "WITH",
        word => word,
    });
    let mut parser = Parser {
        words: words.peekable(),
        allowed,
    };
    match parser.any() {
        Some(verdict) if parser.words.next().is_none() => match verdict {
            true => LicenceVerdict::Allowed,
            false => LicenceVerdict::Refused,
        },
        _ => LicenceVerdict::Unreadable,
    }
}

/// A parser that evaluates the expression; it returns `None` for invalid text.
struct Parser<'a, W: Iterator<Item = &'a str>> {
    words: std::iter::Peekable<W>,
    allowed: &'a [&'a str],
}

impl<'a, W: Iterator<Item = &'a str>> Parser<'a, W> {
    /// `all {"OR" all}`
    fn any(&mut self) -> Option<bool> {
        let mut verdict = self.all()?;
        while self.words.next_if_eq(&"OR").is_some() {
            verdict |= self.all()?;
        }
        Some(verdict)
    }

    /// `one {"AND" one}`
    fn all(&mut self) -> Option<bool> {
        let mut verdict = self.one()?;
        while self.words.next_if_eq(&"AND").is_some() {
            verdict &= self.one()?;
        }
        Some(verdict)
    }

    /// `"(" any ")" | licence ["WITH" exception]`
    fn one(&mut self) -> Option<bool> {
        let word = self.words.next()?;
        if word == "(" {
            let verdict = self.any()?;
            return self.words.next_if_eq(&")").map(|_| verdict);
        }
        if matches!(word, ")" | "OR" | "AND" | "WITH") {
            return None;
        }
        // `+` means "or any later version", which includes this one.
        let licence = word.strip_suffix('+').unwrap_or(word);
        let mut verdict = self.allowed.contains(&licence);
        if self.words.next_if_eq(&"WITH").is_some() {
            let whole = format!("{word} WITH {}", self.words.next()?);
            verdict |= self.allowed.contains(&whole.as_str());
        }
        Some(verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: [&str; 3] = ["MIT", "Apache-2.0", "GPL-2.0 WITH Classpath-exception-2.0"];

    #[test]
    fn or_needs_one_licence_and_and_needs_all() {
        for expression in [
            "MIT",
            "MIT OR GPL-3.0",
            "GPL-3.0 OR MIT",
            "GPL-3.0 or MIT and Apache-2.0",
            "MIT/GPL-3.0",
            "MIT AND Apache-2.0",
            "(MIT OR GPL-3.0) AND Apache-2.0",
            "GPL-3.0 AND GPL-2.0 OR MIT",
            "Apache-2.0 WITH LLVM-exception",
            "GPL-2.0 WITH Classpath-exception-2.0",
        ] {
            assert_eq!(
                judge(expression, &ALLOWED),
                LicenceVerdict::Allowed,
                "{expression}"
            );
        }
        for expression in [
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(MIT OR GPL-3.0) AND GPL-3.0",
            "GPL-2.0",
            "GPL-2.0 WITH LLVM-exception",
            "mit",
        ] {
            assert_eq!(
                judge(expression, &ALLOWED),
                LicenceVerdict::Refused,
                "{expression}"
            );
        }
    }

    #[test]
    fn invalid_expression_is_unreadable() {
        for expression in [
            "",
            "MIT OR",
            "OR MIT",
            "MIT Or Apache-2.0",
            "(MIT",
            "MIT)",
            "MIT Apache-2.0",
            "MIT WITH",
            "()",
        ] {
            assert_eq!(
                judge(expression, &ALLOWED),
                LicenceVerdict::Unreadable,
                "{expression}"
            );
        }
    }
}
