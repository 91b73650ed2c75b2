//! The arguments of `comporta doctor`, and the output of its findings.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use doctor::{Attempt, CpuList, Finding, Host, Remedy, Severity, SwitchSetup};
use vswitchd::MigrationSource;

use crate::dump_args::ToolOutput;

/// Check the host for settings that cause drops or latency, and show how to fix them.
#[derive(Args)]
#[command(
    after_help = "Without --fix or --undo nothing is changed. Exit code 2: problems were \
                  found.\n\nExamples:\n  \
    comporta doctor --cores 1,2 --port eth1 --port eth2\n  \
    comporta doctor --cores 1 --fix\n  \
    comporta doctor --undo\n  \
    comporta doctor --from-ovs"
)]
pub(crate) struct DoctorArgs {
    /// The cores of the switch's workers, as in 1,4-7 [default: no check of cores].
    #[arg(long, value_name = "CORES")]
    cores: Option<CpuList>,
    /// An interface that will be a port (repeatable).
    #[arg(long = "port", value_name = "INTERFACE")]
    ports: Vec<String>,
    /// Fix the settings that can be changed at once and undone.
    #[arg(long, conflicts_with = "undo")]
    fix: bool,
    /// Restore the settings that --fix changed.
    #[arg(long, conflicts_with_all = ["cores", "ports"])]
    undo: bool,
    /// Read the database of an Open vSwitch, and list the settings that Comporta applies, maps,
    /// ignores or refuses: unix:PATH, tcp:HOST:PORT or a file [default: of this machine].
    #[arg(long, value_name = "DATABASE", num_args = 0..=1, conflicts_with_all = ["cores", "ports", "fix", "undo"])]
    from_ovs: Option<Option<MigrationSource>>,
    /// The file with the settings before --fix.
    #[arg(long, value_name = "FILE", default_value = "/run/comporta/doctor.json")]
    journal: PathBuf,
}

impl DoctorArgs {
    /// Returns the findings and the changes, and whether problems remain.
    pub(crate) fn examine(self) -> Result<ToolOutput, Box<dyn std::error::Error>> {
        if let Some(source) = self.from_ovs {
            let source = source.unwrap_or_else(MigrationSource::of_this_machine);
            let review = vswitchd::review(&source)?;
            return Ok(ToolOutput {
                text: format!("database {source}\n{review}"),
                differs: review.has_losses(),
            });
        }
        let host = Host::here()?;
        if self.undo {
            let done = doctor::undo(&host, &self.journal)?;
            let differs = done.iter().any(Result::is_err);
            return Ok(ToolOutput {
                text: changes_text(&done),
                differs,
            });
        }
        let request = SwitchSetup {
            cores: self.cores.unwrap_or_default(),
            ports: self.ports,
        };
        let findings = doctor::examine(&host, &request);
        if !self.fix {
            return Ok(report(&findings, String::new()));
        }
        let done = doctor::apply_remedies(&host, &findings, &self.journal)?;
        let rest: Vec<_> = findings.into_iter().filter(is_left(&done)).collect();
        Ok(report(&rest, changes_text(&done)))
    }
}

/// Returns a filter of the findings that the changes did not fix.
fn is_left(done: &[Attempt]) -> impl Fn(&Finding) -> bool {
    |finding| match &finding.remedy {
        Remedy::Write { file, .. } => {
            let fixed = |done: &Attempt| done.as_ref().is_ok_and(|done| done.file == *file);
            !done.iter().any(fixed)
        }
        _ => true,
    }
}

fn report(findings: &[Finding], mut text: String) -> ToolOutput {
    text.push_str(&doctor::table(findings));
    let left = findings
        .iter()
        .filter(|finding| finding.severity != Severity::Fine);
    let left = left.count();
    let _ = match left {
        0 => writeln!(text, "no problems found"),
        _ => writeln!(text, "problems found: {left}"),
    };
    ToolOutput {
        text,
        differs: left > 0,
    }
}

fn changes_text(done: &[Attempt]) -> String {
    let mut text = String::new();
    for done in done {
        let _ = match done {
            Ok(done) => writeln!(
                text,
                "wrote  {}: {} instead of {}",
                done.file.display(),
                done.after,
                done.before
            ),
            Err((file, error)) => writeln!(text, "cannot write {}: {error}", file.display()),
        };
    }
    text
}
