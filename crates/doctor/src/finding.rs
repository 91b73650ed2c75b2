//! Findings: the subject, the severity, the cost and the remedy.

use std::fmt;
use std::path::PathBuf;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// No problem.
    Fine,
    /// The setting costs performance, or may.
    Costs,
    /// A switch cannot run with the setting, or not with the requested cores and ports.
    Fails,
}

/// The remedy of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// None is needed.
    Nothing,
    /// A value written to a file of the kernel, which accepts the old value again: takes effect at
    /// once and can be undone.
    Write {
        /// The absolute path of the file.
        file: PathBuf,
        /// The value.
        word: String,
    },
    /// A command, which may interrupt running programs or remove a resource.
    Command(String),
    /// Kernel parameters for the next boot.
    Boot(String),
    /// Advice about a change that no program can make.
    Advice(&'static str),
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The subject: `core 1`, `eth1`, `kernel`.
    pub subject: String,
    /// The severity.
    pub severity: Severity,
    /// The observed state.
    pub found: String,
    /// The cost; empty if there is no problem.
    pub cost: &'static str,
    /// The remedy.
    pub remedy: Remedy,
}

impl Finding {
    /// Returns a finding without a problem.
    pub(crate) fn fine(subject: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            severity: Severity::Fine,
            found: found.into(),
            cost: "",
            remedy: Remedy::Nothing,
        }
    }

    /// Returns a finding with a cost.
    pub(crate) fn costs(
        subject: impl Into<String>,
        found: impl Into<String>,
        cost: &'static str,
        remedy: Remedy,
    ) -> Self {
        Self {
            severity: Severity::Costs,
            cost,
            remedy,
            ..Self::fine(subject, found)
        }
    }

    /// Returns a finding that prevents a switch from running.
    pub(crate) fn fails(
        subject: impl Into<String>,
        found: impl Into<String>,
        cost: &'static str,
        remedy: Remedy,
    ) -> Self {
        Self {
            severity: Severity::Fails,
            ..Self::costs(subject, found, cost, remedy)
        }
    }
}

impl Severity {
    const fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Costs => "costs",
            Self::Fails => "fails",
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => Ok(()),
            Self::Write { file, word } => {
                write!(f, "--fix, or: echo {word} > {}", file.display())
            }
            Self::Command(command) => f.write_str(command),
            Self::Boot(parameters) => write!(f, "boot the kernel with {parameters}"),
            Self::Advice(advice) => f.write_str(advice),
        }
    }
}

/// Formats the findings as text.
#[must_use]
pub fn table(findings: &[Finding]) -> String {
    use fmt::Write;
    let widest = findings.iter().map(|finding| finding.subject.len()).max();
    let width = widest.unwrap_or(0);
    let mut text = String::new();
    for finding in findings {
        let (state, subject) = (finding.severity.name(), &finding.subject);
        let _ = writeln!(text, "{state:5}  {subject:width$}  {}", finding.found);
        if finding.severity != Severity::Fine {
            let _ = writeln!(text, "{:5}  {:width$}    cost: {}", "", "", finding.cost);
            let _ = writeln!(
                text,
                "{:5}  {:width$}    remedy: {}",
                "", "", finding.remedy
            );
        }
    }
    text
}
