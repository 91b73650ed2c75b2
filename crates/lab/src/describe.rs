//! Experiments and plans in words, for a terminal.

use std::fmt::Write;
use std::time::Duration;

use record::Profile;
use record::{BadOption, Family};

use crate::catalogue::{Description, Parameter, Role, Values};
use crate::{Options, Scenario, plan};

/// Tests that a plan lists one by one.
const LISTED_MAX: usize = 40;

/// Every experiment, a line each, under its family.
#[must_use]
pub fn scenarios() -> String {
    let mut text = String::new();
    for family in Family::ALL {
        let mut members = Scenario::all().filter(|one| one.family() == family);
        let Some(first) = members.next() else {
            continue;
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{} ({})", family.title(), family.name());
        for scenario in [first].into_iter().chain(members) {
            let _ = writeln!(text, "  {:<18} {}", scenario.name(), scenario.about());
        }
    }
    text
}

/// An experiment's method.
#[must_use]
pub fn method(scenario: Scenario) -> String {
    let Scenario::Catalogued(one) = scenario else {
        return format!("{scenario}: {}\n", scenario.about());
    };
    let experiment = &one.experiment().description;
    let mut text = format!(
        "{}: {}\n\n  {}\n  After {}.\n\nMethod\n",
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
        "\nParameters, to be set by --set NAME=VALUE,... (in brackets: quick, paper, rfc)\n",
    );
    for parameter in experiment.parameters {
        let role = match parameter.role {
            Role::Axis => "a test for each",
            Role::Constant => "one value",
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
        Values::Numbers { .. } | Values::Choice { .. } => Profile::ALL.map(of).join(" | "),
    }
}

/// The tests of a run, and about how long they take in all.
///
/// # Errors
/// The options make no sense.
pub fn planned(options: &Options) -> Result<String, BadOption> {
    options.check()?;
    let steps = plan(options);
    let mut text = String::new();
    for step in steps.iter().take(LISTED_MAX) {
        let seconds = step.estimate(options).as_secs_f64();
        let _ = writeln!(text, "{seconds:>7.1} s  {}", step.id());
    }
    if let Some(more) = steps.len().checked_sub(LISTED_MAX).filter(|more| *more > 0) {
        let _ = writeln!(text, "           and {more} more");
    }
    let total: Duration = steps.iter().map(|step| step.estimate(options)).sum();
    let _ = writeln!(
        text,
        "{} tests in {} runs, about {}",
        steps.len(),
        options.runs,
        duration(total)
    );
    Ok(text)
}

/// Hours and minutes, or seconds.
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
    fn every_experiment_is_listed_and_told() {
        let listed = scenarios();
        for scenario in Scenario::all() {
            assert!(listed.contains(&format!("  {scenario} ")), "{scenario}");
            assert!(method(scenario).starts_with(scenario.name()));
        }
        let told = method("echo-rewrite".parse().unwrap());
        assert!(told.contains("  1. One rule a direction"), "{told}");
        assert!(told.contains("one value [2000 | 10000 | 10000]"), "{told}");
    }

    #[test]
    fn a_plan_says_how_long_it_takes() {
        let mut options = Options::of(Profile::Quick);
        options.scenarios = vec!["echo-rewrite".parse().unwrap()];
        options.devices = vec![crate::DeviceKind::Comporta];
        let told = planned(&options).unwrap();
        assert!(
            told.contains("echo-rewrite/rewrite=ip-tos/size=64/comporta/1"),
            "{told}"
        );
        assert!(told.contains("18 tests in 3 runs, about"), "{told}");
        assert_eq!(duration(Duration::from_secs(3_725)), "1 h 2 min");
        assert_eq!(duration(Duration::from_secs(125)), "2 min 5 s");
    }
}
