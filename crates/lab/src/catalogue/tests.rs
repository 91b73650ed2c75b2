//! Consistency of all descriptions. The measurements have tests of their own.

use std::collections::BTreeSet;

use record::{Description, Entry, Profile, Settings, View, fixture};
use report::Language;

use super::*;

#[test]
fn descriptions_are_complete() {
    let mut names = BTreeSet::new();
    for experiment in CATALOGUE.iter() {
        let name = experiment.name;
        assert!(names.insert(name), "{name} is used twice");
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

/// Returns the figures and the parameters of a view.
fn shown(view: &View) -> (Vec<&'static str>, Vec<&'static str>) {
    match *view {
        View::Matrix { figure, across, .. }
        | View::Bars { figure, across, .. }
        | View::Runs { figure, across, .. }
        | View::AboveLink { figure, across, .. } => (vec![figure], vec![across]),
        View::Lines { figure, along, .. } => (vec![figure], vec![along]),
        View::Against { x, y, along, .. } => (vec![x, y], vec![along]),
        View::Load {
            delay, lost, along, ..
        } => (vec![delay, lost], vec![along]),
        View::Ratio {
            figure, parameter, ..
        } => (vec![figure], vec![parameter]),
        View::Table { figures, .. } => (figures.to_vec(), Vec::new()),
        View::Precision { at, .. } => (
            Vec::new(),
            at.iter().map(|(parameter, _)| *parameter).collect(),
        ),
        View::Shares { .. } | View::Percentiles { .. } | View::Variations { .. } => {
            (Vec::new(), Vec::new())
        }
    }
}

#[test]
fn views_and_headlines_have_declared_figures_and_parameters() {
    for experiment in CATALOGUE.iter() {
        let name = experiment.name;
        let mut all: Vec<_> = experiment.views.iter().map(shown).collect();
        for headline in experiment.headlines {
            let mut parameters: Vec<_> = headline.at.iter().map(|(one, _)| *one).collect();
            let figure = match headline.figure {
                record::HeadlineFigure::Figure(figure) => figure,
                record::HeadlineFigure::Highest { along, figure, .. } => {
                    parameters.push(along);
                    figure
                }
            };
            all.push((vec![figure], parameters));
        }
        for (figures, parameters) in all {
            for figure in figures {
                assert!(experiment.figure(figure).is_some(), "{name}: {figure}");
            }
            for parameter in parameters {
                assert!(
                    experiment.parameter(parameter).is_some(),
                    "{name}: {parameter}"
                );
            }
        }
    }
}

#[test]
fn profiles_have_points_within_bounds_and_a_forecast() {
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
                    let parsed = parameter.parse(&value.to_string());
                    assert_eq!(parsed, Ok(value), "{name}.{}", parameter.name);
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
fn invalid_setting_is_rejected_with_a_hint() {
    let all: Vec<&Description> = CATALOGUE.iter().collect();
    let error = |text: &str| {
        let mut settings = Settings::default();
        let parsed = settings.parse(text).and_then(|()| settings.check(&all));
        parsed.map_err(|error| error.to_string())
    };
    assert_eq!(
        error("packets"),
        Err("invalid setting 'packets': expected NAME=VALUE,...".to_owned())
    );
    assert_eq!(error("packets=100"), Ok(()));
    let hint = error("pakets=100").unwrap_err();
    assert!(hint.contains("did you mean 'packets'?"), "{hint}");
}

/// Records of the lab before its experiments had one form are read as declared figures and
/// parameters, so that a report shows them.
#[test]
fn old_records_have_declared_figures_and_parameters() {
    let mut names = BTreeSet::new();
    for records in [fixture::OLD_SHAPES, fixture::SCHEMA_1] {
        for entry in record::journal::entries(records) {
            let Entry::Trial(trial) = entry else { continue };
            let name = trial.experiment.as_str();
            let description = CATALOGUE.find(name).unwrap();
            let Some(reading) = &trial.reading else {
                continue;
            };
            let figures = reading.figures.keys().chain(reading.absent.keys());
            for figure in figures.chain(reading.of.keys()) {
                assert!(description.figure(figure).is_some(), "{name}: {figure}");
            }
            for (parameter, value) in reading.point.iter() {
                let declared = description.parameter(parameter);
                let declared = declared.unwrap_or_else(|| panic!("{name}: {parameter}"));
                let parsed = declared.parse(&value.to_string());
                assert_eq!(parsed.as_ref(), Ok(value), "{name}: {parameter}");
            }
            names.insert(name.to_owned());
        }
    }
    for name in [
        "changes",
        "echo",
        "flow-table",
        "forwarding-rate",
        "meters",
        "tcp-requests",
        "tcp-throughput",
    ] {
        assert!(names.contains(name), "{name}");
    }
}

/// If the title of an experiment is translated, all its texts are.
#[test]
fn experiments_are_translated_whole() {
    let mut missing = Vec::new();
    for language in [Language::Portuguese, Language::Japanese] {
        for experiment in CATALOGUE.iter() {
            if !language.translates(experiment.title) {
                continue;
            }
            let mut texts = vec![experiment.question, experiment.source];
            texts.extend(experiment.steps);
            texts.extend(experiment.parameters.iter().map(|one| one.about));
            texts.extend(experiment.figures.iter().map(|one| one.title));
            texts.extend(experiment.headlines.iter().map(|one| one.title));
            texts.retain(|text| !language.translates(text));
            let texts = texts.into_iter();
            missing.extend(texts.map(|text| format!("{language}, {}: {text}", experiment.name)));
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Least number of translated experiments. New ones may lack a translation for a while.
const TRANSLATED_MIN: usize = 63;

#[test]
fn catalogue_is_translated() {
    for language in [Language::Portuguese, Language::Japanese] {
        let titles = EXPERIMENTS.iter().map(|one| one.description.title);
        let missing: Vec<&str> = titles.filter(|one| !language.translates(one)).collect();
        let translated = EXPERIMENTS.len() - missing.len();
        assert!(
            translated >= TRANSLATED_MIN,
            "{language} lacks {missing:#?}"
        );
    }
}

#[test]
fn published_curves_name_figures_and_parameters_of_their_experiments() {
    let published = report::published();
    assert!(!published.curves.is_empty());
    for (name, drawn) in published.curves {
        let experiment = CATALOGUE.find(&name).unwrap_or_else(|| panic!("{name}"));
        for curve in &drawn.curves {
            assert!(experiment.parameter(&curve.along).is_some(), "{name}");
            for figure in &curve.figures {
                assert!(experiment.figure(figure).is_some(), "{name}: {figure}");
            }
            assert!(curve.spans.iter().all(|span| span.at[0] < span.at[1]));
        }
    }
}

#[test]
fn published_tables_and_results_belong_to_experiments() {
    let published = report::published();
    let mut keys = BTreeSet::new();
    for experiment in CATALOGUE.iter() {
        for view in experiment.views {
            if let View::Matrix { published: key, .. } | View::Ratio { published: key, .. } = *view
                && !key.is_empty()
            {
                let table = published.tables.get(key);
                let table = table.unwrap_or_else(|| panic!("{}: {key}", experiment.name));
                for parameter in table.at.keys() {
                    assert!(experiment.parameter(parameter).is_some(), "{key}");
                }
                keys.insert(key.to_owned());
            }
        }
    }
    assert!(published.tables.keys().eq(&keys), "{keys:?}");
    for name in published.results.keys() {
        assert!(CATALOGUE.find(name).is_some(), "{name}");
    }
}
