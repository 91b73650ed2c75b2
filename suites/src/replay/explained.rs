//! Explained differences between a running switch and the cases:
//! `crates/pipeline/cases/open_vswitch.toml` and `comporta.toml`.

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
    /// True if the difference prevents the end of the case.
    #[serde(default)]
    cut_short: bool,
    cases: Vec<String>,
}

/// Explanation of a case's difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) text: String,
    /// True if the difference prevents the end of the case.
    pub(crate) cut_short: bool,
}

/// Explanations by case.
#[derive(Debug)]
pub(crate) struct Explanations(BTreeMap<String, Reason>);

impl Explanations {
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
        for difference in list.difference {
            let reason = Reason {
                text: difference.reason,
                cut_short: difference.cut_short,
            };
            for case in difference.cases {
                if reasons.contains_key(&case) {
                    return Err(format!("{case} is listed twice"));
                }
                reasons.insert(case, reason.clone());
            }
        }
        Ok(Self(reasons))
    }

    /// Returns the explanation of this case, if it is known to differ.
    pub(crate) fn reason(&self, case: &str) -> Option<&Reason> {
        self.0.get(case)
    }

    /// Returns the names of the list that are not among `cases`.
    pub(crate) fn unknown_names<'a>(&self, cases: impl Iterator<Item = &'a str>) -> Vec<String> {
        let cases: Vec<&str> = cases.collect();
        let unknown = self.0.keys().filter(|name| !cases.contains(&name.as_str()));
        unknown.cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use testkit::document::{check_part, table};

    use super::*;

    const OPEN_VSWITCH: &str = include_str!("../../../crates/pipeline/cases/open_vswitch.toml");
    const COMPORTA: &str = include_str!("../../../crates/pipeline/cases/comporta.toml");

    const DOCUMENT: &str = "docs/conformance.md";

    // One test, because all parts are in one file.
    #[test]
    fn document_explains_every_difference() {
        let read = |text| toml::from_str::<List>(text).expect("a list");
        let (open_vswitch, comporta) = (read(OPEN_VSWITCH), read(COMPORTA));
        check_part(DOCUMENT, "cases", &peers(&open_vswitch, &comporta));
        check_part(
            DOCUMENT,
            "differences",
            &differences("Open vSwitch", open_vswitch),
        );
        check_part(
            DOCUMENT,
            "wires",
            &differences("`comporta switch`", comporta),
        );
    }

    /// Returns the table of cases by switch and result.
    fn peers(open_vswitch: &List, comporta: &List) -> String {
        let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/pipeline/cases");
        let cases = fs::read_dir(cases).expect("the folder of cases");
        let is_case = |path: &Path| path.extension().is_some_and(|end| end == "case");
        let all = cases.filter(|entry| is_case(&entry.as_ref().expect("readable").path()));
        let all = all.count();
        let explained = |list: &List, cut_short| {
            let list = list.difference.iter();
            let list = list.filter(|difference| difference.cut_short == cut_short);
            list.map(|difference| difference.cases.len()).sum::<usize>()
        };
        let counts = |list| {
            let (cut, other) = (explained(list, true), explained(list, false));
            [all, all - cut - other, other, cut]
        };
        let row = |peer: &str, counts: [usize; 4]| {
            let counts = counts.iter().map(ToString::to_string);
            [peer.to_owned()].into_iter().chain(counts).collect()
        };
        let rows: [Vec<String>; 3] = [
            row(
                "`cargo test -p pipeline`, interpreted and compiled",
                [all, all, 0, 0],
            ),
            row("`comporta switch`, on veth pairs", counts(comporta)),
            row("Open vSwitch 3.1.0", counts(open_vswitch)),
        ];
        let heads = ["", "cases", "as specified", "different", "incomplete"];
        table(&heads, &rows)
    }

    fn differences(switch: &str, list: List) -> String {
        let row = |difference: Difference| {
            let cases = difference.cases.iter().map(|case| format!("`{case}`"));
            let cases: Vec<String> = cases.collect();
            let end = match difference.cut_short {
                true => " Incomplete.",
                false => "",
            };
            vec![difference.reason + end, cases.join(", ")]
        };
        let rows: Vec<_> = list.difference.into_iter().map(row).collect();
        table(&[switch, "case"], &rows)
    }

    #[test]
    fn explained_case_exists_and_has_one_reason() {
        let text = "[[difference]]\nreason = \"so\"\ncut_short = true\ncases = [\"a\", \"b\"]";
        let explained = Explanations::parse(text).expect("a list");
        let so = Reason {
            text: "so".to_owned(),
            cut_short: true,
        };
        assert_eq!(explained.reason("a"), Some(&so));
        assert_eq!(explained.reason("c"), None);
        assert_eq!(explained.unknown_names(["a"].into_iter()), ["b"]);
        let twice = "[[difference]]\nreason = \"so\"\ncases = [\"a\", \"a\"]";
        assert!(Explanations::parse(twice).is_err_and(|text| text.contains("twice")));
    }
}
