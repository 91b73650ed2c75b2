//! Exports of a run that never happened.

use record::fixture;
use record::{Entry, Flaw};

use super::*;
use crate::figures::{declared, observe};

fn results() -> Results {
    fixture::results(fixture::entries())
}

/// The cells of a table, read as the RFC has them.
fn cells(text: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    let mut quoted = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let row = rows.last_mut().unwrap();
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                row.last_mut().unwrap().push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(String::new()),
            '\r' if !quoted => (),
            '\n' if !quoted => rows.push(vec![String::new()]),
            other => row.last_mut().unwrap().push(other),
        }
    }
    rows.pop();
    rows
}

#[test]
fn each_table_has_a_row_for_each_trial_and_figure() {
    let results = results();
    let tables = csv(&results);
    for (name, text) in &tables {
        let rows = cells(text);
        let width = rows[0].len();
        assert!(rows.iter().all(|row| row.len() == width), "{name}");
        let of_scenario = || {
            results
                .trials()
                .iter()
                .filter(|one| one.experiment.as_str() == *name)
        };
        let figures: usize = of_scenario()
            .map(|trial| declared(results.description(trial).unwrap()).len())
            .sum();
        assert_eq!(
            rows.len() - 1,
            figures,
            "{name}: a value or a reason for each"
        );
    }
    let scenarios = results
        .trials()
        .iter()
        .map(|trial| trial.experiment.as_str());
    let scenarios: std::collections::BTreeSet<&str> = scenarios.collect();
    assert!(tables.keys().map(String::as_str).eq(scenarios));
}

#[test]
fn a_table_has_the_very_numbers_that_were_measured() {
    let results = results();
    let rows = cells(&csv(&results)["tcp-throughput"]);
    let column = |name: &str| rows[0].iter().position(|head| head == name).unwrap();
    for trial in results
        .trials()
        .iter()
        .filter(|one| one.experiment.as_str() == "tcp-throughput")
    {
        let wanted = observe(trial, results.catalogue()).measures[0].value;
        let row = rows
            .iter()
            .find(|row| row[column("trial")] == trial.id && row[column("figure")] == "bit_s");
        let value: f64 = row.unwrap()[column("value")].parse().unwrap();
        assert_eq!(value.to_bits(), wanted.to_bits());
    }
}

#[test]
fn a_trial_without_outcome_has_a_row_with_its_reason() {
    let mut trial = fixture::echo_trial("ovs", 1, record::MatchSet::Ip, 64);
    trial.outcome = None;
    trial.flaws.push(Flaw {
        void: true,
        reason: "it said \"no\", and left\nat once".to_owned(),
    });
    let results = fixture::results(vec![Entry::Trial(Box::new(trial))]);
    let rows = cells(&csv(&results)["echo"]);
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[1].last().unwrap(), "it said \"no\", and left\nat once");
    assert_eq!(rows[1][5], "false");
}

#[test]
fn the_page_is_a_page_whatever_was_measured() {
    let page = summary(&results());
    assert!(page.lines().count() <= SUMMARY_LINES_MAX, "{page}");
    for text in [
        "| tcp-throughput | bit_s, bit/s |",
        "| echo frame_bytes=64 match_set=exact prober=solo | mean_us, µs |",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(page.contains("1 are void"), "{page}");
    // Many more points than fit.
    let many = (64..500).map(|bytes| {
        let trial = fixture::echo_trial("ovs", 1, record::MatchSet::Ip, bytes);
        Entry::Trial(Box::new(trial))
    });
    let page = summary(&fixture::results(
        fixture::entries().into_iter().chain(many).collect(),
    ));
    assert!(page.lines().count() <= SUMMARY_LINES_MAX, "{page}");
    assert!(
        page.contains("| tcp-requests") && page.contains("rows and 0 devices more"),
        "{page}"
    );
    assert!(summary(&fixture::results(Vec::new())).lines().count() < 12);
}

#[test]
fn files_are_named_after_their_scenarios() {
    let directory = std::env::temp_dir().join(format!("export-{}", std::process::id()));
    let files = write_csv(&results(), &directory).unwrap();
    assert!(files.contains(&directory.join("echo.csv")));
    let page = write_markdown(&results(), &directory).unwrap();
    assert!(
        fs::read_to_string(page)
            .unwrap()
            .starts_with("# comporta lab\n")
    );
    fs::remove_dir_all(&directory).unwrap();
    assert!(write_markdown(&results(), Path::new("/dev/null/x")).is_err());
}
