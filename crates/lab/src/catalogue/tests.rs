//! What the catalogue says of itself is so. What experiments do is tested beside them.

use std::collections::BTreeSet;

use record::{Profile, Settings};
use report::Language;

use super::*;

/// Whatever the catalogue says of itself must be so: a name that a view or a threshold uses
/// has to be declared.
#[test]
fn every_experiment_is_described_whole() {
    let mut names = BTreeSet::new();
    for experiment in CATALOGUE.iter().skip(own::DESCRIPTIONS.len()) {
        let name = experiment.name;
        assert!(names.insert(name), "{name} is there twice");
        for text in [experiment.title, experiment.question, experiment.source] {
            assert!(!text.is_empty(), "{name}");
        }
        assert!(experiment.question.ends_with('?'), "{name}");
        assert!(experiment.steps.len() >= 2, "{name}");
        assert!(!experiment.figures.is_empty() && !experiment.views.is_empty());
        for step in experiment.steps {
            assert!(step.ends_with('.'), "{name}: {step}");
        }
    }
}

#[test]
fn views_show_what_is_declared() {
    for experiment in CATALOGUE.iter() {
        let name = experiment.name;
        for view in experiment.views {
            let (figures, parameter) = match *view {
                View::Matrix { figure, across, .. } | View::Bars { figure, across, .. } => {
                    (vec![figure], Some(across))
                }
                View::Runs { figure, across, .. } => (vec![figure], Some(across)),
                View::Lines { figure, along, .. } => (vec![figure], Some(along)),
                View::Load {
                    delay, lost, along, ..
                } => (vec![delay, lost], Some(along)),
                View::Ratio {
                    figure, parameter, ..
                } => (vec![figure], Some(parameter)),
                View::Table { figures, .. } => (figures.to_vec(), None),
                View::Shares { .. } | View::Percentiles { .. } => (Vec::new(), None),
            };
            for figure in figures {
                assert!(experiment.figure(figure).is_some(), "{name}: {figure}");
            }
            if let Some(parameter) = parameter {
                assert!(
                    experiment.parameter(parameter).is_some(),
                    "{name}: {parameter}"
                );
            }
        }
    }
}

#[test]
fn every_profile_has_points_within_bounds_and_a_forecast() {
    for profile in Profile::ALL {
        let settings = Settings {
            profile,
            ..Settings::default()
        };
        let all: Vec<&Description> = CATALOGUE.iter().collect();
        assert_eq!(settings.check(&all), Ok(()));
        for experiment in EXPERIMENTS {
            let description = &experiment.description;
            let name = description.name;
            for parameter in description.parameters {
                for value in parameter.defaults(profile) {
                    let read = parameter.read(&value.to_string());
                    assert_eq!(read, Ok(value), "{name}.{}", parameter.name);
                }
            }
            let points = settings.points(description).unwrap();
            assert!(!points.is_empty(), "{name}");
            let labels: BTreeSet<String> = points.iter().map(|p| p.label(description)).collect();
            assert_eq!(labels.len(), points.len(), "{name}");
            assert!(
                points.iter().all(|point| (experiment.seconds)(point) > 0.0),
                "{name}"
            );
        }
    }
}

#[test]
fn a_setting_that_makes_no_sense_is_told_with_what_would() {
    let all: Vec<&Description> = CATALOGUE.iter().collect();
    let told = |text: &str| {
        let mut settings = Settings::default();
        let outcome = settings.read(text).and_then(|()| settings.check(&all));
        outcome.map_err(|error| error.to_string())
    };
    assert_eq!(
        told("packets"),
        Err("'packets' is no setting: NAME=VALUE,... is wanted".to_owned())
    );
    assert_eq!(told("packets=100"), Ok(()));
    let told = told("pakets=100").unwrap_err();
    assert!(told.contains("did you mean 'packets'?"), "{told}");
}

/// An experiment whose title is translated has all its texts translated.
#[test]
fn experiments_are_translated_whole() {
    let mut halves = Vec::new();
    for language in [Language::Portuguese, Language::Japanese] {
        for experiment in CATALOGUE.iter().skip(own::DESCRIPTIONS.len()) {
            if !language.translates(experiment.title) {
                continue;
            }
            let mut texts = vec![experiment.question];
            texts.extend(experiment.steps);
            texts.extend(experiment.parameters.iter().map(|one| one.about));
            texts.extend(experiment.figures.iter().map(|one| one.title));
            texts.retain(|text| !language.translates(text));
            let missing = texts.into_iter();
            halves.extend(missing.map(|text| format!("{language}, {}: {text}", experiment.name)));
        }
    }
    assert!(halves.is_empty(), "{halves:#?}");
}

/// Experiments that had all their phrases when this was last counted. New ones may be without for
/// a while; none loses them.
const TRANSLATED_LEAST: usize = 50;

#[test]
fn catalogue_is_translated() {
    for language in [Language::Portuguese, Language::Japanese] {
        let titles = EXPERIMENTS.iter().map(|one| one.description.title);
        let missing: Vec<&str> = titles.filter(|one| !language.translates(one)).collect();
        let translated = EXPERIMENTS.len() - missing.len();
        assert!(
            translated >= TRANSLATED_LEAST,
            "{language} lacks {missing:#?}"
        );
    }
}

#[test]
fn published_curves_name_figures_and_parameters_of_their_experiments() {
    let mut spans = 0;
    for (name, drawn) in report::published().curves {
        let Some(experiment) = CATALOGUE.find(&name) else {
            continue;
        };
        for curve in &drawn.curves {
            assert!(experiment.parameter(&curve.along).is_some(), "{name}");
            for figure in &curve.figures {
                assert!(experiment.figure(figure).is_some(), "{name}: {figure}");
            }
            assert!(curve.spans.iter().all(|span| span.at[0] < span.at[1]));
            spans += curve.spans.len();
        }
    }
    assert!(spans > 0, "some experiment has curves");
}
