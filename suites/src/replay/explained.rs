//! Why Open vSwitch does otherwise: `crates/pipeline/cases/open_vswitch.toml`.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use serde::Deserialize;
use testbed::Failure;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    difference: Vec<Difference>,
}

/// Cases that differ for the same reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    reason: String,
    cases: Vec<String>,
}

/// The reasons by case.
#[derive(Debug)]
pub(crate) struct Explained(BTreeMap<String, String>);

impl Explained {
    /// Reads the list.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let failure = || Failure::to(format!("read {}", path.display()));
        let text = fs::read_to_string(path).map_err(failure())?;
        let invalid = |what| failure()(io::Error::new(io::ErrorKind::InvalidData, what));
        Self::parse(&text).map_err(invalid)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let list: List = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut reasons = BTreeMap::new();
        for Difference { reason, cases } in list.difference {
            for case in cases {
                if reasons.contains_key(&case) {
                    return Err(format!("{case} is listed twice"));
                }
                reasons.insert(case, reason.clone());
            }
        }
        Ok(Self(reasons))
    }

    /// Why this case differs, if it is known to.
    pub(crate) fn reason(&self, case: &str) -> Option<&str> {
        self.0.get(case).map(String::as_str)
    }

    /// The names that are those of no case.
    pub(crate) fn of_nothing<'a>(&self, cases: impl Iterator<Item = &'a str>) -> Vec<String> {
        let cases: Vec<&str> = cases.collect();
        let unknown = self.0.keys().filter(|name| !cases.contains(&name.as_str()));
        unknown.cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = include_str!("../../../crates/pipeline/cases/open_vswitch.toml");

    #[test]
    fn the_document_tells_of_each_difference() {
        let list: List = toml::from_str(LIST).expect("a list");
        let row = |difference: Difference| {
            let cases = difference.cases.iter().map(|case| format!("`{case}`"));
            let cases: Vec<String> = cases.collect();
            vec![difference.reason, cases.join(", ")]
        };
        let rows: Vec<_> = list.difference.into_iter().map(row).collect();
        let text = testkit::document::table(&["Open vSwitch", "case"], &rows);
        testkit::document::check_part("docs/conformance.md", "differences", &text);
    }

    #[test]
    fn a_case_has_one_reason_and_is_there() {
        let text = "[[difference]]\nreason = \"so\"\ncases = [\"a\", \"b\"]";
        let explained = Explained::parse(text).expect("a list");
        assert_eq!(explained.reason("a"), Some("so"));
        assert_eq!(explained.reason("c"), None);
        assert_eq!(explained.of_nothing(["a"].into_iter()), ["b"]);
        let twice = "[[difference]]\nreason = \"so\"\ncases = [\"a\", \"a\"]";
        assert!(Explained::parse(twice).is_err_and(|text| text.contains("twice")));
    }
}
