//! Report of a run: one JSON object per case, and a table.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::fs;
use std::path::Path;

use serde::Serialize;
use testbed::Failure;

use crate::expected::ExpectedFailures;

/// Reason for the failure of a case without verdict.
const NO_VERDICT: &str = "no verdict: the judge did not reach this case";

/// Case of a suite.
#[derive(Clone, Debug)]
pub struct SuiteCase {
    /// Unique name.
    pub name: String,
    /// Description.
    pub title: String,
    /// Row of the table.
    pub group: String,
}

/// End of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseOutcome {
    /// Passed.
    Passed,
    /// Failed, with the reason.
    Failed(String),
    /// The suite skipped the case, with the reason.
    Skipped(String),
}

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
    /// The suite skipped the case.
    Skipped,
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
#[derive(Debug)]
pub struct SuiteReport {
    lines: Vec<ReportLine>,
}

impl SuiteReport {
    /// Compares the outcomes, by name of the case, with the expected failures.
    pub fn new(
        cases: impl IntoIterator<Item = SuiteCase>,
        outcomes: &BTreeMap<String, CaseOutcome>,
        expected: &ExpectedFailures,
    ) -> Self {
        let line = |case: SuiteCase| {
            let outcome = outcomes
                .get(&case.name)
                .cloned()
                .unwrap_or_else(|| CaseOutcome::Failed(NO_VERDICT.to_owned()));
            let must_fail = !expected.may_pass(&case.name);
            let expected = expected.reason(&case.name).map(str::to_owned);
            let verdict = match judge(&outcome, expected.is_some()) {
                Judgement::PassedUnexpectedly if !must_fail => Judgement::Passed,
                verdict => verdict,
            };
            ReportLine {
                verdict,
                group: case.group,
                case: case.name,
                title: case.title,
                reason: match outcome {
                    CaseOutcome::Passed => None,
                    CaseOutcome::Failed(reason) | CaseOutcome::Skipped(reason) => Some(reason),
                },
                expected,
            }
        };
        let mut lines: Vec<_> = cases.into_iter().map(line).collect();
        lines.sort_by(|a, b| a.case.cmp(&b.case));
        Self { lines }
    }

    /// Returns true if all cases ended as expected.
    pub fn is_as_expected(&self) -> bool {
        self.unexpected().next().is_none()
    }

    /// Writes a line of JSON for each case.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
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

    /// Returns the names of the cases that did not end as expected.
    pub fn unexpected_cases(&self) -> impl Iterator<Item = &str> {
        self.unexpected().map(|line| line.case.as_str())
    }

    fn unexpected(&self) -> impl Iterator<Item = &ReportLine> {
        let is_unexpected = |line: &&ReportLine| match line.verdict {
            Judgement::Passed | Judgement::FailedAsExpected | Judgement::Skipped => false,
            Judgement::Failed | Judgement::PassedUnexpectedly => true,
        };
        self.lines.iter().filter(is_unexpected)
    }

    /// Returns the numbers of cases that passed and that were not skipped, by group.
    pub fn scores(&self) -> BTreeMap<&str, (usize, usize)> {
        let mut scores: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for line in &self.lines {
            let (passed, all) = scores.entry(&line.group).or_default();
            *all += usize::from(line.verdict != Judgement::Skipped);
            let has_passed = matches!(
                line.verdict,
                Judgement::Passed | Judgement::PassedUnexpectedly
            );
            *passed += usize::from(has_passed);
        }
        scores
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

const fn judge(outcome: &CaseOutcome, expected_to_fail: bool) -> Judgement {
    match (outcome, expected_to_fail) {
        (CaseOutcome::Passed, false) => Judgement::Passed,
        (CaseOutcome::Failed(_), true) => Judgement::FailedAsExpected,
        (CaseOutcome::Failed(_), false) => Judgement::Failed,
        (CaseOutcome::Passed, true) => Judgement::PassedUnexpectedly,
        (CaseOutcome::Skipped(_), _) => Judgement::Skipped,
    }
}

impl fmt::Display for SuiteReport {
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
        "{:20} {:>6} {:>7} {:>7} {:>9} {:>11} {:>8}",
        "group", "cases", "passed", "of 100", "expected", "unexpected", "skipped"
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
            "\n{group:20} {cases:6} {passed:7} {:7} {:9} {:11} {:8}",
            passed * 100 / cases,
            count(&[Judgement::FailedAsExpected]),
            count(&[Judgement::Failed, Judgement::PassedUnexpectedly]),
            count(&[Judgement::Skipped]),
        )
        .expect("a string has room");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed() -> CaseOutcome {
        CaseOutcome::Failed("so".to_owned())
    }

    #[test]
    fn unexpected_result_is_reported() {
        assert_eq!(
            judge(&CaseOutcome::Passed, true),
            Judgement::PassedUnexpectedly
        );
        assert_eq!(judge(&failed(), false), Judgement::Failed);
        assert_eq!(judge(&failed(), true), Judgement::FailedAsExpected);
        assert_eq!(judge(&CaseOutcome::Passed, false), Judgement::Passed);
    }

    #[test]
    fn skipped_case_is_outside_the_score() {
        let case = |name: &str| SuiteCase {
            name: name.to_owned(),
            title: String::new(),
            group: "a".to_owned(),
        };
        let outcomes = [
            ("1".to_owned(), CaseOutcome::Passed),
            ("2".to_owned(), failed()),
            ("3".to_owned(), CaseOutcome::Skipped("no IPv6".to_owned())),
        ];
        let cases = ["1", "2", "3"].map(case);
        let report = SuiteReport::new(cases, &outcomes.into(), &ExpectedFailures::default());
        assert_eq!(report.scores(), [("a", (1, 2))].into());
        assert!(!report.is_as_expected());
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
        assert_eq!(row, ["of13/action", "4", "2", "50", "1", "1", "0"]);
    }
}
