//! Devices from description files, and suggestions for misspelled names.

use std::path::Path;

use strsim::levenshtein;

/// A device's description file. The path is leaked, so that `DeviceKind` is `Copy`; a command line
/// bounds their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DescriptionFile {
    name: &'static str,
    path: &'static str,
}

impl DescriptionFile {
    /// The file at `path`. The device's name is the file name without extension; `None` if that is
    /// empty.
    #[must_use]
    pub fn new(path: &str) -> Option<Self> {
        Path::new(path).file_stem()?;
        let path: &'static str = Box::leak(path.to_owned().into_boxed_str());
        let name = Path::new(path).file_stem()?.to_str()?;
        Some(Self { name, path })
    }

    /// The name of the device.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// The path of the file.
    #[must_use]
    pub fn path(self) -> &'static Path {
        Path::new(self.path)
    }
}

/// The most similar of `known` to `text`, if their edit distance is at most a third of its length.
#[must_use]
pub fn near<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let far = |name: &str| levenshtein(text, name);
    let nearest = known.into_iter().min_by_key(|name| far(name))?;
    let most = text
        .chars()
        .count()
        .max(nearest.chars().count())
        .div_ceil(3);
    (far(nearest) <= most).then_some(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn described_device_has_the_name_of_its_file() {
        let description_file = DescriptionFile::new("switches/hp-2920.toml").unwrap();
        assert_eq!(description_file.name(), "hp-2920");
        assert_eq!(description_file.path(), Path::new("switches/hp-2920.toml"));
        assert_eq!(
            (DescriptionFile::new(""), DescriptionFile::new("/")),
            (None, None)
        );
    }

    #[test]
    fn misspelled_names_are_suggested() {
        let known = ["brand", "model", "firmware"];
        assert_eq!(near("modle", known), Some("model"));
        assert_eq!(near("firm", known), None);
        assert_eq!(near("frimware", known), Some("firmware"));
        assert_eq!(near("x", []), None);
    }
}
