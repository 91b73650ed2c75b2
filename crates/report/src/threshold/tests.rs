//! Thresholds as they are typed and held against runs that never happened.

use std::path::Path;

use record::fixture;
use record::{Entry, Flaw};

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
fn what_is_typed_is_read_and_printed_again() {
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
fn what_cannot_be_read_is_pointed_at_with_the_nearest_name() {
    let told = refused("echo.p99us<50");
    assert!(
        told.starts_with("echo has no figure 'p99us' (did you mean 'p99_us'?): one of mean_us,"),
        "{told}"
    );
    assert!(told.ends_with("\n  echo.p99us<50\n       ^"), "{told}");
    let told = refused("ecko.p99_us<50");
    assert!(told.contains("did you mean 'echo'?"), "{told}");
    let told = refused("echo[match_sets=ip].p99_us<50");
    assert!(told.starts_with("echo has no parameter 'match_sets' (did you mean 'match_set'?)"));
    assert!(told.ends_with("\n       ^"), "{told}");
    for (text, reason, at) in [
        ("", "a scenario, as echo, or * is expected", 0),
        ("echo", "'.' and a figure, as .p99_us is expected", 4),
        ("echo.p99_us", "one of <, <=, >, >= is expected", 11),
        ("echo.p99_us = 5", "one of <, <=, >, >= is expected", 12),
        (
            "echo.p99_us <",
            "a number, or a device, as 2.5 * ovs is expected",
            13,
        ),
        ("echo.p99_us < 5 us", "nothing more is expected here", 16),
        (
            "echo.p99_us < 0 * ovs",
            "a device is multiplied by more than 0",
            14,
        ),
        (
            "echo[device=ovs,device=x].p99_us<1",
            "device is given twice",
            16,
        ),
        ("echo[device=ovs.p99_us<1", "',' or ']' is expected", 15),
        ("écho.p99", "there is no scenario 'écho'", 0),
    ] {
        let told = refused(text);
        assert!(told.starts_with(reason), "{text}: {told}");
        let caret = told.lines().last().unwrap();
        assert_eq!(caret.len(), 2 + at + 1, "{text}: {told}");
    }
}

#[test]
fn whatever_is_typed_is_read_or_refused_at_a_place_within_it() {
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

/// The fixture's devices, and their verdicts on `text`.
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
fn a_limit_is_met_by_the_whole_interval_or_not_at_all() {
    use Verdict::{Inconclusive, Met, NotMet};
    // About 41, 106 and 12 microseconds, and some per cent from run to run; the cable is no device.
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
fn another_device_is_a_measure_run_by_run() {
    use Verdict::{Met, NotMet};
    assert_eq!(
        verdicts("tcp-throughput.bit_s >= 2.5 * ovs"),
        each(&[("comporta", Met), ("linux-bridge", Met)])
    );
    assert_eq!(
        verdicts("tcp-throughput[device=comporta].bit_s >= 25 * ovs"),
        each(&[("comporta", NotMet)])
    );
    // Neither lost anything, which is no more than nothing.
    assert_eq!(
        verdicts("echo[device=comporta,match_set=exact,frame_bytes=64].loss <= ovs"),
        each(&[("comporta", Met)])
    );
}

#[test]
fn what_was_not_measured_is_inconclusive_and_says_why() {
    let results = fixture::results(fixture::entries());
    let said = |text: &str| {
        let judged = judge(&[read(text)], &results).unwrap();
        assert!(
            judged
                .iter()
                .all(|one| one.verdict == Verdict::Inconclusive),
            "{judged:?}"
        );
        assert_eq!(exit_code(&judged), INCONCLUSIVE);
        judged[0].said.clone()
    };
    assert_eq!(
        said("echo[device=comport].p50_us < 1"),
        "nothing of the kind was measured"
    );
    assert!(
        said("tcp-throughput[device=comporta].bit_s > 2 * ovss").contains("did you mean 'ovs'?")
    );
    // Two hundred echoes have no 99.9th percentile.
    assert!(said("echo[device=ovs,match_set=ip].p999_us < 1").contains("too few came back"));
}

#[test]
fn void_runs_do_not_count_and_too_few_make_no_interval() {
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
    let said: Vec<&str> = judged.iter().map(|one| one.said.as_str()).collect();
    assert_eq!(said, ["2 runs, where 3 at least make an interval"; 3]);
}

#[test]
fn the_worst_verdict_is_the_exit_code() {
    let judgement = |verdict| Judgement {
        threshold: "echo.p99_us < 5".to_owned(),
        cell: None,
        verdict,
        interval: None,
        said: "a \"<&>\" | of\nthings".to_owned(),
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
fn a_file_of_rules_says_the_same_as_lines() {
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
fn a_rule_that_makes_no_sense_is_refused_by_its_number() {
    let told = |rule: &str| {
        let text = format!("[[rule]]\nscenario = \"echo\"\nmetric = \"p99_us\"\n{rule}");
        rules::thresholds(&text, Path::new(""), fixture::CATALOGUE).unwrap_err()
    };
    assert!(told("").starts_with("rule 1: one of min, max,"));
    assert!(told("dut = \"ovs\"\nmax = 1.0").contains("unknown field `dut`"));
    assert!(
        told("max = 1.0\nwhere = { size = 64 }")
            .starts_with("rule 1: echo has no parameter 'size'")
    );
    assert!(told("max = 1.0\nwhere = { frame_bytes = 6.5 }").contains("a whole number is wanted"));
    assert!(told("max_regression = \"5%\"").contains("against which run"));
    assert!(told("baseline = \"x\"\nmax_regression = \"5\"").contains("as '5%'"));
    assert!(told("max = 1.0\nratio = 2.0").contains("to what"));
    assert!(
        rules::thresholds("", Path::new(""), fixture::CATALOGUE)
            .unwrap_err()
            .contains("no [[rule]]")
    );
    let missing = read_rules(Path::new("/nonexistent/slo.toml"), fixture::CATALOGUE).unwrap_err();
    assert!(missing.to_string().starts_with("/nonexistent/slo.toml: "));
}

#[test]
fn a_run_is_no_worse_than_itself_and_worse_than_a_better_one() {
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
            && let Some(record::Outcome::Requests(requests)) = &mut trial.outcome
        {
            requests.seconds *= 1.2;
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
