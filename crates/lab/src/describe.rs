//! Descriptions of experiments and plans as text, for a terminal.

use std::fmt::Write;
use std::time::Duration;

use record::{Description, Family, Parameter, Profile, Role, Values};

use crate::failure::BadOption;
use crate::names::ExperimentId;
use crate::options::RunOptions;
use crate::plan::{PlannedTrial, plan};

/// Greatest number of trials that a plan lists.
const LISTED_MAX: usize = 40;

/// Returns a list of every experiment, with a line each, by family.
#[must_use]
pub fn experiments() -> String {
    let mut text = String::new();
    for family in Family::ALL {
        let mut members = ExperimentId::all().filter(|one| one.family() == family);
        let Some(first) = members.next() else {
            continue;
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{} ({})", family.title(), family.name());
        for experiment in [first].into_iter().chain(members) {
            let question = experiment.description().question;
            let _ = writeln!(text, "  {:<18} {question}", experiment.name());
        }
    }
    text
}

/// Returns the method of an experiment, as a paper describes it.
#[must_use]
pub fn method(experiment: ExperimentId) -> String {
    let experiment = experiment.description();
    let mut text = format!(
        "{}: {}\n\n  {}\n  Source: {}.\n\nMethod\n",
        experiment.name, experiment.title, experiment.question, experiment.source
    );
    for (number, step) in (1..).zip(experiment.steps) {
        let _ = writeln!(text, "  {number}. {step}");
    }
    parameters(&mut text, experiment);
    text.push_str("\nFigures\n");
    for figure in experiment.figures {
        let unit = match figure.unit {
            "" => String::new(),
            unit => format!(", {unit}"),
        };
        let _ = writeln!(text, "  {:<18} {}{unit}", figure.name, figure.title);
    }
    text
}

fn parameters(text: &mut String, experiment: &Description) {
    text.push_str(
        "\nParameters (--set NAME=VALUE,...; defaults of the profiles quick | paper | rfc in brackets)\n",
    );
    for parameter in experiment.parameters {
        let role = match parameter.role {
            Role::Axis => "one trial per value",
            Role::Constant => "constant",
        };
        let _ = writeln!(
            text,
            "  {:<18} {}; {role} [{}]",
            parameter.name,
            parameter.about,
            defaults(parameter)
        );
    }
}

fn defaults(parameter: &Parameter) -> String {
    let of = |profile| {
        let values = parameter.defaults(profile).into_iter();
        values
            .map(|value| value.to_string())
            .collect::<Vec<_>>()
            .join(",")
    };
    match parameter.values {
        Values::Words { .. } => of(Profile::Paper),
        Values::Numbers { .. } | Values::NumbersAndWord { .. } | Values::Choice { .. } => {
            Profile::ALL.map(of).join(" | ")
        }
    }
}

/// Returns a list of the trials of a run, with their approximate duration.
///
/// # Errors
/// The options are invalid.
pub fn planned(options: &RunOptions) -> Result<String, BadOption> {
    options.check()?;
    let trials = plan(options);
    let mut text = String::new();
    for trial in trials.iter().take(LISTED_MAX) {
        let seconds = trial.estimate().as_secs_f64();
        let _ = writeln!(text, "{seconds:>7.1} s  {}", trial.id());
    }
    if let Some(more) = trials
        .len()
        .checked_sub(LISTED_MAX)
        .filter(|more| *more > 0)
    {
        let _ = writeln!(text, "           and {more} more");
    }
    let total: Duration = trials.iter().map(PlannedTrial::estimate).sum();
    let _ = writeln!(
        text,
        "{} trials in {} runs, about {}",
        trials.len(),
        options.runs,
        duration(total)
    );
    Ok(text)
}

/// Returns hours and minutes, or seconds.
fn duration(total: Duration) -> String {
    let seconds = total.as_secs().max(1);
    match (seconds / 3_600, seconds / 60 % 60) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_are_listed_and_described() {
        let listed = experiments();
        for experiment in ExperimentId::all() {
            assert!(listed.contains(&format!("  {experiment} ")), "{experiment}");
            assert!(method(experiment).starts_with(experiment.name()));
        }
        let text = method("echo-rewrite".parse().unwrap());
        assert!(text.contains("  1. "), "{text}");
        assert!(text.contains("constant [2000 | 10000 | 10000]"), "{text}");
    }

    #[test]
    fn planned_trials_have_a_forecast() {
        let mut options = RunOptions::of(Profile::Quick);
        options.experiments = vec!["echo-rewrite".parse().unwrap()];
        options.devices = vec![crate::DeviceKind::Comporta];
        let text = planned(&options).unwrap();
        assert!(
            text.contains("echo-rewrite/rewrite=ip-tos/size=64/comporta/1"),
            "{text}"
        );
        assert!(text.contains("18 trials in 3 runs, about"), "{text}");
        assert_eq!(duration(Duration::from_secs(3_725)), "1 h 2 min");
        assert_eq!(duration(Duration::from_secs(125)), "2 min 5 s");
    }
}
