//! Exports of the fixture.

use record::{Entry, Flaw, fixture};

use super::*;
use crate::figures::observe;

fn results() -> Results {
    fixture::results(fixture::entries())
}

/// Parses a table by RFC 4180.
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
fn table_has_a_row_for_each_trial_and_figure() {
    let results = results();
    let tables = csv(&results);
    for (name, text) in &tables {
        let rows = cells(text);
        let width = rows[0].len();
        assert!(rows.iter().all(|row| row.len() == width), "{name}");
        let of_experiment = || {
            results
                .trials()
                .iter()
                .filter(|one| one.experiment.as_str() == *name)
        };
        let figures: usize = of_experiment()
            .map(|trial| {
                let observation = observe(trial, results.catalogue());
                (observation.measures.len() + observation.absent.len()).max(1)
            })
            .sum();
        assert_eq!(rows.len() - 1, figures, "{name}");
    }
    let experiments = results
        .trials()
        .iter()
        .map(|trial| trial.experiment.as_str());
    let experiments: std::collections::BTreeSet<&str> = experiments.collect();
    assert!(tables.keys().map(String::as_str).eq(experiments));
}

#[test]
fn table_has_exact_values() {
    let results = results();
    let rows = cells(&csv(&results)["tcp-throughput"]);
    let column = |name: &str| rows[0].iter().position(|head| head == name).unwrap();
    for trial in results
        .trials()
        .iter()
        .filter(|one| one.experiment.as_str() == "tcp-throughput")
    {
        let expected = trial.reading.as_ref().unwrap().figures["bit_s"];
        let row = rows
            .iter()
            .find(|row| row[column("trial")] == trial.id && row[column("figure")] == "bit_s");
        let value: f64 = row.unwrap()[column("value")].parse().unwrap();
        assert_eq!(value.to_bits(), expected.to_bits());
    }
}

#[test]
fn trial_without_a_reading_has_a_row_with_its_reason() {
    let mut trial = fixture::echo_trial("ovs", 1, "ip", 64);
    trial.reading = None;
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
fn summary_has_at_most_one_page() {
    let page = summary(&results());
    assert!(page.lines().count() <= SUMMARY_LINES_MAX, "{page}");
    for text in [
        "| tcp-throughput | bit_s, bit/s |",
        "| echo match_set=exact frame_bytes=64 | mean_us, µs |",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(page.contains("1 are void"), "{page}");
    // More points than lines.
    let many = (64..500).map(|bytes| {
        let trial = fixture::echo_trial("ovs", 1, "ip", bytes);
        Entry::Trial(Box::new(trial))
    });
    let page = summary(&fixture::results(
        fixture::entries().into_iter().chain(many).collect(),
    ));
    assert!(page.lines().count() <= SUMMARY_LINES_MAX, "{page}");
    assert!(
        page.contains("| tcp-requests") && page.contains("more rows and 0 more devices"),
        "{page}"
    );
    assert!(summary(&fixture::results(Vec::new())).lines().count() < 12);
}

#[test]
fn files_have_the_names_of_their_experiments() {
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
