//! What was found: about what, how bad it is, what it costs, how it is mended.

use std::fmt;
use std::path::PathBuf;

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// As it should be.
    Fine,
    /// It costs something, or may.
    Costs,
    /// A switch cannot run so, or not with what it is asked to use.
    Fails,
}

/// How it is mended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mend {
    /// It need not be.
    Nothing,
    /// By a word in a file of the kernel, which takes the old one back: it can be done at
    /// once and undone.
    Write {
        /// The file, from the root.
        file: PathBuf,
        /// The word.
        word: String,
    },
    /// By a command, which may interrupt what is running, or takes something away.
    Command(String),
    /// By parameters of the kernel, at the next boot.
    Boot(String),
    /// By what no program can do.
    Advice(&'static str),
}

/// Something that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about: `core 1`, `eth1`, `kernel`.
    pub subject: String,
    /// How it is.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What it costs; nothing if it is as it should be.
    pub cost: &'static str,
    /// How it is mended.
    pub mend: Mend,
}

impl Finding {
    /// It is as it should be.
    pub(crate) fn fine(subject: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            state: State::Fine,
            found: found.into(),
            cost: "",
            mend: Mend::Nothing,
        }
    }

    /// It costs something.
    pub(crate) fn costs(
        subject: impl Into<String>,
        found: impl Into<String>,
        cost: &'static str,
        mend: Mend,
    ) -> Self {
        Self {
            state: State::Costs,
            cost,
            mend,
            ..Self::fine(subject, found)
        }
    }

    /// A switch cannot run so.
    pub(crate) fn fails(
        subject: impl Into<String>,
        found: impl Into<String>,
        cost: &'static str,
        mend: Mend,
    ) -> Self {
        Self {
            state: State::Fails,
            ..Self::costs(subject, found, cost, mend)
        }
    }
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Costs => "costs",
            Self::Fails => "fails",
        }
    }
}

impl fmt::Display for Mend {
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

/// All of them for a person to read.
#[must_use]
pub fn table(findings: &[Finding]) -> String {
    use fmt::Write;
    let widest = findings.iter().map(|finding| finding.subject.len()).max();
    let width = widest.unwrap_or(0);
    let mut text = String::new();
    for finding in findings {
        let (state, subject) = (finding.state.name(), &finding.subject);
        let _ = writeln!(text, "{state:5}  {subject:width$}  {}", finding.found);
        if finding.state != State::Fine {
            let _ = writeln!(text, "{:5}  {:width$}    cost: {}", "", "", finding.cost);
            let _ = writeln!(text, "{:5}  {:width$}    mend: {}", "", "", finding.mend);
        }
    }
    text
}
