//! Expected failures: the cases that are known to fail, each with its reason.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::Deserialize;
use testbed::Failure;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    difference: Vec<Difference>,
}

/// Cases that fail for the same reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    /// Reason for the switch's behaviour.
    reason: String,
    /// True if the cases sometimes pass.
    #[serde(default)]
    may_pass: bool,
    /// Names of cases as they are printed; the name of a file includes all its cases, the name of a
    /// directory all its files.
    cases: Vec<String>,
}

/// Reasons of the expected failures, by name of the case.
#[derive(Debug, Default)]
pub struct ExpectedFailures {
    reasons: BTreeMap<String, String>,
    may_pass: BTreeSet<String>,
}

impl ExpectedFailures {
    /// Reads `list`; each of its names must match one of `cases`.
    pub fn read(list: &str, cases: &BTreeSet<String>) -> Result<Self, Failure> {
        Self::parse(list, cases)
            .map_err(|what| Failure::to("read the list of expected differences")(invalid(what)))
    }

    fn parse(text: &str, cases: &BTreeSet<String>) -> Result<Self, String> {
        let list: List = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut expected = Self::default();
        for difference in list.difference {
            let Difference {
                reason,
                may_pass,
                cases: of,
            } = difference;
            for name in of {
                let meant: Vec<_> = cases.iter().filter(|case| includes(&name, case)).collect();
                if meant.is_empty() {
                    return Err(format!("there is no case {name}"));
                }
                for case in meant {
                    let earlier = expected.reasons.insert(case.clone(), reason.clone());
                    if earlier.is_some() {
                        return Err(format!("{case} is listed twice"));
                    }
                    if may_pass {
                        expected.may_pass.insert(case.clone());
                    }
                }
            }
        }
        Ok(expected)
    }

    /// Returns true if `case` sometimes passes.
    pub fn may_pass(&self, case: &str) -> bool {
        self.may_pass.contains(case)
    }

    /// Returns the reason if `case` is known to fail.
    pub fn reason(&self, case: &str) -> Option<&str> {
        self.reasons.get(case).map(String::as_str)
    }

    /// Returns the names of the cases for each reason.
    pub fn by_reason(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut cases: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (case, reason) in &self.reasons {
            cases.entry(reason).or_default().push(case);
        }
        cases
    }
}

/// Returns true if `name` is that of the case, of its file, or of one of its directories.
fn includes(name: &str, case: &str) -> bool {
    let rest = case.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases() -> BTreeSet<String> {
        [
            "of13/action/00_OUTPUT:1",
            "of13/action/00_OUTPUT:11",
            "of13/meter/01_DROP:1",
        ]
        .map(str::to_owned)
        .into()
    }

    fn known(list: &str) -> Result<Vec<String>, String> {
        let text = format!("[[difference]]\nreason = \"so\"\ncases = {list}");
        let expected = ExpectedFailures::parse(&text, &cases())?;
        Ok(expected.reasons.into_keys().collect())
    }

    #[test]
    fn name_matches_a_case_a_file_or_a_directory() {
        let one = known(r#"["of13/action/00_OUTPUT:1"]"#);
        assert_eq!(one.unwrap(), ["of13/action/00_OUTPUT:1"]);
        let file = known(r#"["of13/action/00_OUTPUT"]"#);
        assert_eq!(file.unwrap().len(), 2);
        assert_eq!(known(r#"["of13"]"#).unwrap().len(), 3);
    }

    #[test]
    fn reason_has_the_cases_of_its_files() {
        let text = "[[difference]]\nreason = \"so\"\ncases = [\"of13/action\"]";
        let expected = ExpectedFailures::parse(text, &cases()).unwrap();
        let action = ["of13/action/00_OUTPUT:1", "of13/action/00_OUTPUT:11"];
        let by_reason = BTreeMap::from([("so", action.to_vec())]);
        assert_eq!(expected.by_reason(), by_reason);
    }

    #[test]
    fn names_of_expected_failures_are_known_and_unique() {
        assert!(known(r#"["of13/act"]"#).is_err_and(|text| text.contains("no case")));
        let twice = known(r#"["of13/meter", "of13/meter/01_DROP:1"]"#);
        assert!(twice.is_err_and(|text| text.contains("twice")));
    }
}
