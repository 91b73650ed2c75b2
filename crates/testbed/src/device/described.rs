//! Devices that a file describes, and names that are nearly right.

use std::path::Path;

/// A file that describes a device, as its user names it. It lives as long as the process,
/// so that a kind of device can be copied: there are as many as a command line has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Described {
    name: &'static str,
    path: &'static str,
}

impl Described {
    /// The file at `path`; the device is called as that is, without what follows the last
    /// dot. None if that leaves nothing.
    #[must_use]
    pub fn by(path: &str) -> Option<Self> {
        Path::new(path).file_stem()?;
        let path: &'static str = Box::leak(path.to_owned().into_boxed_str());
        let name = Path::new(path).file_stem()?.to_str()?;
        Some(Self { name, path })
    }

    /// What the device is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// The file.
    #[must_use]
    pub fn path(self) -> &'static Path {
        Path::new(self.path)
    }
}

/// Of `known`, the one that `text` is most likely meant to be: with at most a third of its
/// letters wrong, missing, too many or changed in place.
#[must_use]
pub fn near<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let far = |name: &str| distance(text, name);
    let nearest = known.into_iter().min_by_key(|name| far(name))?;
    let most = text
        .chars()
        .count()
        .max(nearest.chars().count())
        .div_ceil(3);
    (far(nearest) <= most).then_some(nearest)
}

/// How many letters must be put in, taken out or replaced to make `one` of `other`
/// (Levenshtein's distance).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (place, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = place + 1;
        for (column, same) in other.iter().map(|far| *far == letter).enumerate() {
            let replaced = diagonal + usize::from(!same);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_called_as_its_file() {
        let described = Described::by("switches/hp-2920.toml").unwrap();
        assert_eq!(described.name(), "hp-2920");
        assert_eq!(described.path(), Path::new("switches/hp-2920.toml"));
        assert_eq!((Described::by(""), Described::by("/")), (None, None));
    }

    #[test]
    fn what_is_nearly_right_is_found() {
        let known = ["brand", "model", "firmware"];
        assert_eq!(near("modle", known), Some("model"));
        assert_eq!(near("firm", known), None);
        assert_eq!(near("frimware", known), Some("firmware"));
        assert_eq!(near("x", []), None);
    }

    #[test]
    fn distances_are_those_of_the_textbooks() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!((distance("", "abc"), distance("abc", "")), (3, 3));
        assert_eq!(distance("same", "same"), 0);
    }
}
