//! Unknown names, and the nearest known name.

use strsim::levenshtein;

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
        .map(|name| (levenshtein(text, name), name));
    let nearest = distances.min_by_key(|(distance, _)| *distance);
    let is_near = |distance: usize| distance <= EDITS_MAX && distance < text.len();
    match nearest {
        Some((distance, name)) if is_near(distance) => format!(" (did you mean '{name}'?)"),
        _ => String::new(),
    }
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
}
