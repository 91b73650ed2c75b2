//! Suggestions for misspelt names.

/// Longest name that is compared; no valid name is longer.
const LENGTH_MAX: usize = 32;

/// Returns the valid name with the smallest edit distance from `name`, if it is small enough for a
/// spelling mistake.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LENGTH_MAX {
        return None;
    }
    let far = name.len() / 3;
    let with_distance = known
        .into_iter()
        .map(|known| (distance(name, known), known));
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

/// Returns the edit distance with changes, insertions, deletions and transpositions (Damerau and
/// Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let changed = row[j] + usize::from(a != b);
            let mut least = changed.min(row[j + 1] + 1).min(next[j] + 1);
            let swapped = i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b;
            if swapped {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[other.len()]
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
