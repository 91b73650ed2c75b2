//! Report of a run: one JSON object per case, and a table.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::fs;
use std::path::Path;

use serde::Serialize;
use testbed::Failure;

use crate::catalogue::{Case, Catalogue};
use crate::expected::ExpectedFailures;
use crate::run::Outcomes;

/// Reason for the failure of a case without verdict.
const NO_VERDICT: &str = "no verdict: the judge did not reach this case";

/// Result of a case, compared with the expected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Judgement {
    /// Passed.
    Passed,
    /// Failed, as expected.
    FailedAsExpected,
    /// Failed.
    Failed,
    /// Passed, although a failure was expected.
    PassedUnexpectedly,
}

/// Line of a case.
#[derive(Debug, Serialize)]
struct ReportLine {
    case: String,
    title: String,
    verdict: Judgement,
    /// Reason for the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Reason for the expected failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<String>,
    #[serde(skip)]
    group: String,
}

/// Report of a whole run.
pub(crate) struct Report {
    lines: Vec<ReportLine>,
}

impl Report {
    /// Compares `outcomes` with the expected failures.
    pub(crate) fn new(
        catalogue: &Catalogue,
        mut outcomes: Outcomes,
        expected: &ExpectedFailures,
    ) -> Self {
        let line = |(case, title): (Case, &str)| {
            let outcome = outcomes.remove(&case);
            let reason = outcome.unwrap_or_else(|| Some(NO_VERDICT.to_owned()));
            let expected = expected.reason(&case).map(str::to_owned);
            ReportLine {
                verdict: judge(reason.is_none(), expected.is_some()),
                group: case.group().to_owned(),
                case: case.to_string(),
                title: title.to_owned(),
                reason,
                expected,
            }
        };
        let mut lines: Vec<_> = catalogue.cases().map(line).collect();
        lines.sort_by(|a, b| a.case.cmp(&b.case));
        Self { lines }
    }

    /// Returns true if all cases ended as expected.
    pub(crate) fn is_as_expected(&self) -> bool {
        self.unexpected().next().is_none()
    }

    /// Writes a line of JSON for each case.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let failure = || Failure::to(format!("write {}", path.display()));
        let mut text = String::new();
        for line in &self.lines {
            let json = serde_json::to_string(line).expect("the line can be serialized");
            text.push_str(&json);
            text.push('\n');
        }
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        fs::create_dir_all(folder).map_err(failure())?;
        fs::write(path, text).map_err(failure())
    }

    fn unexpected(&self) -> impl Iterator<Item = &ReportLine> {
        let is_unexpected = |line: &&ReportLine| match line.verdict {
            Judgement::Passed | Judgement::FailedAsExpected => false,
            Judgement::Failed | Judgement::PassedUnexpectedly => true,
        };
        self.lines.iter().filter(is_unexpected)
    }

    /// Returns the results of each group.
    fn groups(&self) -> BTreeMap<&str, Vec<Judgement>> {
        let mut groups: BTreeMap<&str, Vec<Judgement>> = BTreeMap::new();
        for line in &self.lines {
            groups.entry(&line.group).or_default().push(line.verdict);
        }
        groups
    }
}

const fn judge(passed: bool, expected_to_fail: bool) -> Judgement {
    match (passed, expected_to_fail) {
        (true, false) => Judgement::Passed,
        (false, true) => Judgement::FailedAsExpected,
        (false, false) => Judgement::Failed,
        (true, true) => Judgement::PassedUnexpectedly,
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.unexpected() {
            let why = line.reason.as_deref().or(line.expected.as_deref());
            let how = match line.verdict {
                Judgement::PassedUnexpectedly => "passes, although it is listed as failing",
                _ => "fails",
            };
            writeln!(f, "{} {how}: {}", line.case, line.title)?;
            writeln!(f, "    {}", why.unwrap_or_default())?;
        }
        writeln!(f, "{}", table(&self.groups()))
    }
}

fn table(groups: &BTreeMap<&str, Vec<Judgement>>) -> String {
    let mut text = format!(
        "{:12} {:>6} {:>7} {:>7} {:>9} {:>11}",
        "group", "cases", "passed", "of 100", "expected", "unexpected"
    );
    for (group, judgements) in groups {
        let count = |wanted: &[Judgement]| {
            let is_wanted = |judgement: &&Judgement| wanted.contains(judgement);
            judgements.iter().filter(is_wanted).count()
        };
        let cases = judgements.len();
        let passed = count(&[Judgement::Passed, Judgement::PassedUnexpectedly]);
        write!(
            text,
            "\n{group:12} {cases:6} {passed:7} {:7} {:9} {:11}",
            passed * 100 / cases,
            count(&[Judgement::FailedAsExpected]),
            count(&[Judgement::Failed, Judgement::PassedUnexpectedly]),
        )
        .expect("a string has room");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unexpected_result_is_reported() {
        assert_eq!(judge(true, true), Judgement::PassedUnexpectedly);
        assert_eq!(judge(false, false), Judgement::Failed);
        assert_eq!(judge(false, true), Judgement::FailedAsExpected);
        assert_eq!(judge(true, false), Judgement::Passed);
    }

    #[test]
    fn table_counts_cases_by_group() {
        use Judgement::{Failed, FailedAsExpected, Passed};
        let groups = [(
            "of13/action",
            vec![Passed, Passed, Failed, FailedAsExpected],
        )];
        let text = table(&groups.into());
        let row: Vec<_> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(row, ["of13/action", "4", "2", "50", "1", "1"]);
    }
}
