//! Suggestions for misspelt names.

use strsim::osa_distance;

/// Longest name that is compared; no valid name is longer.
const LENGTH_MAX: usize = 32;

/// Returns the valid name with the smallest edit distance from `name`, if it is small enough for a
/// spelling mistake. A transposition of neighbours is one edit.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LENGTH_MAX {
        return None;
    }
    let far = name.len() / 3;
    let with_distance = known
        .into_iter()
        .map(|known| (osa_distance(name, known), known));
    let near = with_distance.filter(|(distance, _)| *distance <= far.clamp(1, 3));
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Returns `problem` with a suggestion, if there is one.
pub(super) fn with_nearest<'a>(
    problem: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> String {
    match nearest(name, known) {
        Some(meant) => format!("{problem}; did you mean `{meant}`?"),
        None => problem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_spelling_mistake_is_corrected() {
        let known = ["in_port", "tp_dst", "tcp", "drop"];
        for meant in ["in_prot", "in_por", "inport", "in_portt", "im_port"] {
            assert_eq!(nearest(meant, known), Some("in_port"), "{meant}");
        }
        assert_eq!(nearest("dorp", known), Some("drop"));
        assert_eq!(nearest("tcp_dst", known), Some("tp_dst"));
        for far in ["", "x", "output", "abcdefg"] {
            assert_eq!(nearest(far, known), None, "{far}");
        }
    }
}
