//! Parsing of thresholds, and verdicts on the fixture.

use std::path::Path;

use record::{Entry, Flaw, fixture};

use super::*;

fn read(text: &str) -> Threshold {
    Threshold::parse(text, fixture::CATALOGUE).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> String {
    Threshold::parse(text, fixture::CATALOGUE)
        .unwrap_err()
        .to_string()
}

#[test]
fn threshold_is_parsed_and_printed() {
    for text in [
        "echo.p99_us < 50",
        "echo[device=comporta,match_set=ip].p99_us <= 50.5",
        "forwarding-rate[device=comporta,offer=flat-out].received_pps >= 2.5 * ovs",
        "*.device_cpu_percent > 0.001",
        "*.* < 1 * linux-bridge",
    ] {
        assert_eq!(read(text).to_string(), text);
    }
    assert_eq!(read("echo.p99_us<50"), read(" echo . p99_us < 5e1 "));
    assert_eq!(read("echo.loss<=0.1%"), read("echo.loss <= 0.001"));
    assert_eq!(read("echo.p99_us<=ovs"), read("echo.p99_us <= 1*ovs"));
    assert_eq!(
        read("forwarding-rate.received_pps>2_000_000").limit,
        Limit::Number {
            side: Side::More,
            number: 2e6
        }
    );
}

#[test]
fn syntax_error_has_its_position_and_the_nearest_name() {
    let error = refused("echo.p99us<50");
    assert!(
        error.starts_with(
            "echo has no figure 'p99us' (did you mean 'p99_us'?): expected one of mean_us,"
        ),
        "{error}"
    );
    assert!(error.ends_with("\n  echo.p99us<50\n       ^"), "{error}");
    let error = refused("ecko.p99_us<50");
    assert!(error.contains("did you mean 'echo'?"), "{error}");
    let error = refused("echo[match_sets=ip].p99_us<50");
    assert!(error.starts_with("echo has no parameter 'match_sets' (did you mean 'match_set'?)"));
    assert!(error.ends_with("\n       ^"), "{error}");
    for (text, reason, at) in [
        ("", "expected an experiment, as echo, or *", 0),
        ("echo", "expected '.' and a figure, as .p99_us", 4),
        ("echo.p99_us", "expected one of <, <=, >, >=", 11),
        ("echo.p99_us = 5", "expected one of <, <=, >, >=", 12),
        (
            "echo.p99_us <",
            "expected a number, or a device, as 2.5 * ovs",
            13,
        ),
        (
            "echo.p99_us < 5 us",
            "expected the end of the threshold",
            16,
        ),
        (
            "echo.p99_us < 0 * ovs",
            "the factor of a device must be above 0",
            14,
        ),
        (
            "echo[device=ovs,device=x].p99_us<1",
            "device is set twice",
            16,
        ),
        ("echo[device=ovs.p99_us<1", "expected ',' or ']'", 15),
        ("écho.p99", "unknown experiment 'écho'", 0),
    ] {
        let error = refused(text);
        assert!(error.starts_with(reason), "{text}: {error}");
        let caret = error.lines().last().unwrap();
        assert_eq!(caret.len(), 2 + at + 1, "{text}: {error}");
    }
}

#[test]
fn threshold_text_is_parsed_or_rejected_at_valid_position() {
    let mut random = base::SplitMix64::new(12);
    let parts = [
        "echo", "*", ".", "p99_us", "[", "]", "device", "=", ",", "<", ">=", "5", "%", "µ", " ",
        "ovs", "-", "1e", "\n", "é",
    ];
    let mut read = 0;
    for _ in 0..50_000 {
        // A threshold with up to three of its parts exchanged for others.
        let mut all = [
            "echo", "[", "device", "=", "ovs", "]", ".", "p99_us", "<", "5", "%",
        ];
        for _ in 0..random.below(4) {
            all[random.below(all.len())] = parts[random.below(parts.len())];
        }
        let text = all.concat();
        match Threshold::parse(&text, fixture::CATALOGUE) {
            Ok(threshold) => {
                let printed = Threshold::parse(&threshold.to_string(), fixture::CATALOGUE);
                assert_eq!(printed, Ok(threshold), "{text:?}");
                read += 1;
            }
            Err(error) => assert!(error.at <= text.chars().count(), "{text:?}: {error}"),
        }
    }
    assert!(
        (12_000..40_000).contains(&read),
        "{read} of them are thresholds"
    );
}

/// Returns the fixture's devices, and the verdicts on `text`.
fn verdicts(text: &str) -> Vec<(String, Verdict)> {
    let results = fixture::results(fixture::entries());
    let judged = judge(&[read(text)], &results).unwrap();
    let device = |one: &Judgement| one.cell.as_ref().map(|key| key.device.clone());
    judged
        .iter()
        .map(|one| (device(one).unwrap_or_default(), one.verdict))
        .collect()
}

fn each(wanted: &[(&str, Verdict)]) -> Vec<(String, Verdict)> {
    let wanted = wanted.iter();
    wanted
        .map(|(device, verdict)| ((*device).to_owned(), *verdict))
        .collect()
}

#[test]
fn limit_is_met_by_the_whole_interval() {
    use Verdict::{Inconclusive, Met, NotMet};
    // About 41, 12 and 106 microseconds, and some per cent from run to run.
    let point = "echo[match_set=exact,frame_bytes=64]";
    assert_eq!(
        verdicts(&format!("{point}.p50_us < 60")),
        each(&[("comporta", Met), ("linux-bridge", Met), ("ovs", NotMet)])
    );
    let mean = 9.4e9;
    assert_eq!(
        verdicts(&format!("tcp-throughput[device=comporta].bit_s >= {mean}")),
        each(&[("comporta", Inconclusive)])
    );
    assert_eq!(
        verdicts("tcp-throughput[device=direct].bit_s >= 1e9"),
        each(&[("direct", Met)])
    );
}

#[test]
fn limit_relative_to_a_device_is_judged_run_by_run() {
    use Verdict::{Met, NotMet};
    assert_eq!(
        verdicts("tcp-throughput.bit_s >= 2.5 * ovs"),
        each(&[("comporta", Met), ("linux-bridge", Met)])
    );
    assert_eq!(
        verdicts("tcp-throughput[device=comporta].bit_s >= 25 * ovs"),
        each(&[("comporta", NotMet)])
    );
    // Neither has losses, and zero is not above zero.
    assert_eq!(
        verdicts("echo[device=comporta,match_set=exact,frame_bytes=64].loss <= ovs"),
        each(&[("comporta", Met)])
    );
}

#[test]
fn missing_figure_is_inconclusive_with_the_reason() {
    let results = fixture::results(fixture::entries());
    let reason = |text: &str| {
        let judged = judge(&[read(text)], &results).unwrap();
        assert!(
            judged
                .iter()
                .all(|one| one.verdict == Verdict::Inconclusive),
            "{judged:?}"
        );
        assert_eq!(exit_code(&judged), INCONCLUSIVE);
        judged[0].measured.clone()
    };
    assert_eq!(reason("echo[device=comport].p50_us < 1"), "not measured");
    assert!(
        reason("tcp-throughput[device=comporta].bit_s > 2 * ovss").contains("did you mean 'ovs'?")
    );
    // Two hundred echoes have no 99.9th percentile.
    assert!(reason("echo[device=ovs,match_set=ip].p999_us < 1").contains("too few packets"));
}

#[test]
fn void_runs_are_excluded_and_two_have_no_interval() {
    let mut entries = fixture::entries();
    for entry in &mut entries {
        if let Entry::Trial(trial) = entry
            && trial.run == 2
        {
            let reason = "why".to_owned();
            trial.flaws.push(Flaw { void: true, reason });
        }
    }
    let judged = judge(
        &[read("tcp-throughput.bit_s > 1")],
        &fixture::results(entries),
    )
    .unwrap();
    let reasons: Vec<&str> = judged.iter().map(|one| one.measured.as_str()).collect();
    assert_eq!(reasons, ["2 runs; an interval needs 3"; 3]);
}

#[test]
fn exit_code_is_that_of_the_worst_verdict() {
    let judgement = |verdict| Judgement {
        threshold: "echo.p99_us < 5".to_owned(),
        cell: None,
        verdict,
        interval: None,
        measured: "a \"<&>\" | of\nthings".to_owned(),
    };
    let of = |verdicts: &[Verdict]| {
        exit_code(&verdicts.iter().copied().map(judgement).collect::<Vec<_>>())
    };
    assert_eq!(
        of(&[Verdict::Met, Verdict::Inconclusive, Verdict::NotMet]),
        NOT_MET
    );
    assert_eq!(of(&[Verdict::Met, Verdict::Inconclusive]), INCONCLUSIVE);
    assert_eq!(of(&[Verdict::Met]), 0);
    let all = [Verdict::Met, Verdict::NotMet, Verdict::Inconclusive].map(judgement);
    let page = markdown(&all);
    assert!(
        page.starts_with("**1 not met**, 1 inconclusive, 1 met."),
        "{page}"
    );
    assert!(page.contains(r#"| a "<&>" \| of things |"#), "{page}");
    let xml = junit(&all);
    assert!(
        xml.contains(r#"tests="3" failures="1" errors="1""#),
        "{xml}"
    );
    assert!(
        xml.contains(r#"<failure message="a &quot;&lt;&amp;&gt;&quot; | of things"/>"#),
        "{xml}"
    );
    assert!(xml.contains(r#"name="echo.p99_us &lt; 5"/>"#), "{xml}");
}

const RULES: &str = r#"
[[rule]]
scenario = "forwarding-rate"
device = "comporta"
where = { offer = "flat-out", frame_bytes = 64 }
metric = "received_pps"
min = 1.0e5
max = 1e7

[[rule]]
scenario = "echo"
metric = "p50_us"
max_ratio_to = "ovs"

[[rule]]
scenario = "*"
metric = "*"
baseline = "main"
max_regression = "5%"
"#;

#[test]
fn rules_of_a_file_are_thresholds() {
    let all = rules::thresholds(RULES, Path::new("runs"), fixture::CATALOGUE).unwrap();
    let texts: Vec<String> = all.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "forwarding-rate[device=comporta,frame_bytes=64,offer=flat-out].received_pps >= 100000",
            "forwarding-rate[device=comporta,frame_bytes=64,offer=flat-out].received_pps <= 10000000",
            "echo.p50_us <= 1 * ovs",
            "*.* no worse than in runs/main by 5 %",
        ]
    );
}

#[test]
fn invalid_rule_is_rejected_with_its_number() {
    let error = |rule: &str| {
        let text = format!("[[rule]]\nscenario = \"echo\"\nmetric = \"p99_us\"\n{rule}");
        rules::thresholds(&text, Path::new(""), fixture::CATALOGUE).unwrap_err()
    };
    assert!(error("").starts_with("rule 1: expected one of min, max,"));
    assert!(error("dut = \"ovs\"\nmax = 1.0").contains("unknown field `dut`"));
    assert!(
        error("max = 1.0\nwhere = { size = 64 }")
            .starts_with("rule 1: echo has no parameter 'size'")
    );
    assert!(error("max = 1.0\nwhere = { frame_bytes = 6.5 }").contains("or an integer"));
    assert!(error("max_regression = \"5%\"").contains("needs baseline"));
    assert!(error("baseline = \"x\"\nmax_regression = \"5\"").contains("as '5%'"));
    assert!(error("max = 1.0\nratio = 2.0").contains("needs min_ratio_to"));
    assert!(
        rules::thresholds("", Path::new(""), fixture::CATALOGUE)
            .unwrap_err()
            .contains("no [[rule]]")
    );
    let missing = read_rules(Path::new("/nonexistent/slo.toml"), fixture::CATALOGUE).unwrap_err();
    assert!(missing.to_string().starts_with("/nonexistent/slo.toml: "));
}

#[test]
fn baseline_finds_a_regression_and_none_in_the_same_run() {
    let directory = std::env::temp_dir().join(format!("threshold-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let entries = fixture::entries();
    let mut journal = record::journal::Journal::create(&directory).unwrap();
    entries
        .iter()
        .for_each(|entry| journal.append(entry).unwrap());
    let mut threshold = read("tcp-requests.requests_s < 1");
    threshold.limit = Limit::Baseline {
        directory: directory.clone(),
        regression: 0.05,
    };
    let same = judge(&[threshold.clone()], &fixture::results(entries.clone())).unwrap();
    assert!(same.len() == 3 && exit_code(&same) == 0, "{same:?}");
    let mut slower = entries;
    for entry in &mut slower {
        if let Entry::Trial(trial) = entry
            && let Some(reading) = &mut trial.reading
            && let Some(rate) = reading.figures.get_mut("requests_s")
        {
            *rate /= 1.2;
        }
    }
    let worse = judge(&[threshold.clone()], &fixture::results(slower)).unwrap();
    assert!(
        worse.iter().all(|one| one.verdict == Verdict::NotMet),
        "{worse:?}"
    );
    std::fs::remove_dir_all(directory).unwrap();
    assert!(judge(&[threshold], &fixture::results(Vec::new())).is_err());
}
