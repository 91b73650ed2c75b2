//! Unknown names, and the nearest known name.

/// Text that names nothing of its kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} '{text}'{hint}: expected one of {known}")]
pub struct UnknownName {
    kind: &'static str,
    text: String,
    hint: String,
    known: String,
}

impl UnknownName {
    /// Returns the error for `text`, which is none of the `known` names of `kind`.
    pub fn new<'a>(
        kind: &'static str,
        text: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        Self {
            kind,
            text: text.to_owned(),
            hint: nearest(text, known.iter().copied()),
            known: known.join(", "),
        }
    }
}

/// Greatest edit distance of a name that is suggested.
const EDITS_MAX: usize = 3;

/// Returns ` (did you mean 'x'?)` with the nearest of `known`, or an empty text if none is near.
#[must_use]
pub fn nearest<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let distances = known
        .into_iter()
        .map(|name| (edit_distance(text, name), name));
    let nearest = distances.min_by_key(|(distance, _)| *distance);
    let is_near = |distance: usize| distance <= EDITS_MAX && distance < text.len();
    match nearest {
        Some((distance, name)) if is_near(distance) => format!(" (did you mean '{name}'?)"),
        _ => String::new(),
    }
}

/// Returns the least number of insertions, deletions and substitutions between two words
/// (Levenshtein distance, 1965).
fn edit_distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.chars().enumerate() {
        let mut diagonal = above;
        row[0] = above + 1;
        for (column, candidate) in other.iter().enumerate() {
            let substituted = diagonal + usize::from(*candidate != letter);
            diagonal = row[column + 1];
            row[column + 1] = substituted.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_name_error_lists_known_names() {
        let error = UnknownName::new("prober", "xyz", ["solo", "pair"]);
        let expected = "unknown prober 'xyz': expected one of solo, pair";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn edit_distance_counts_insertions_deletions_and_substitutions() {
        assert_eq!(edit_distance("echo", "echo"), 0);
        assert_eq!(edit_distance("ecko", "echo"), 1);
        assert_eq!(edit_distance("", "echo"), 4);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }
}
