//! Tests of `comporta lab` on completed runs: output and exit codes.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A session and one trial of each scenario.
const RECORDS: &str = include_str!("../../record/records/schema-1.jsonl");

/// A directory with a run, removed on drop.
struct Run(PathBuf);

impl Run {
    /// Creates five runs of TCP streams with the recorded rate times `factor`.
    fn of(name: &str, factor: f64) -> Self {
        let directory =
            std::env::temp_dir().join(format!("lab-results-{}-{name}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let session = RECORDS.lines().next().unwrap();
        let stream = RECORDS
            .lines()
            .find(|line| line.contains("tcp-throughput/"))
            .unwrap();
        let (head, tail) = stream.split_once("\"bits_per_second\":").unwrap();
        let (_, tail) = tail.split_once(',').unwrap();
        let runs = (1..=5).map(|run| {
            let head = head
                .replace("/1\",", &format!("/{run}\","))
                .replace("\"run\":1,", &format!("\"run\":{run},"));
            let rate = 1e10 * factor * (1.0 + f64::from(run) * 0.001);
            format!("{head}\"bits_per_second\":{rate:.1},{tail}")
        });
        let lines: Vec<String> = std::iter::once(session.to_owned()).chain(runs).collect();
        fs::write(directory.join("records.jsonl"), lines.join("\n") + "\n").unwrap();
        Self(directory)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn lab(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_comporta"));
    command.arg("lab").args(words).output().unwrap()
}

fn output_of(words: &[&str], code: i32) -> String {
    let output = lab(words);
    let text =
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{words:?}: {text}");
    text
}

#[test]
fn comparison_fails_on_a_regression_only_with_fail_on() {
    let (fast, slow) = (Run::of("fast", 1.0), Run::of("slow", 0.8));
    let worse = output_of(&["compare", fast.path(), slow.path()], 0);
    assert!(worse.starts_with("**1 worse, 0 better**"), "{worse}");
    assert!(worse.contains("−20.0 %"), "{worse}");
    let fail_on = ["--fail-on", "regression"];
    output_of(
        &[&["compare", fast.path(), slow.path()], &fail_on[..]].concat(),
        1,
    );
    output_of(
        &[&["compare", slow.path(), fast.path()], &fail_on[..]].concat(),
        0,
    );
    let json = output_of(&["compare", fast.path(), slow.path(), "--json"], 0);
    assert!(json.contains("\"finding\": \"worse\""), "{json}");
    // One run of each is inconclusive.
    fs::write(fast.0.join("records.jsonl"), RECORDS).unwrap();
    output_of(
        &[&["compare", fast.path(), slow.path()], &fail_on[..]].concat(),
        4,
    );
    output_of(&["compare", fast.path(), slow.path(), "--margin", "2"], 2);
    assert!(output_of(&["compare", "/nonexistent", slow.path()], 1).contains("/nonexistent"));
}

#[test]
fn thresholds_decide_the_exit_code() {
    let run = Run::of("check", 1.0);
    let check =
        |threshold: &str, code| output_of(&["check", run.path(), "--threshold", threshold], code);
    assert!(
        check("tcp-throughput.bit_s > 9e9", 0).starts_with("**0 not met**, 0 inconclusive, 1 met.")
    );
    check("tcp-throughput.bit_s > 11e9", 1);
    check("tcp-throughput.bit_s > 10.03e9", 4);
    check("echo.p50_us < 5", 4);
    let slip = check("tcp-throughput.bits_s > 1", 2);
    assert!(
        slip.contains("did you mean 'bit_s'?") && slip.contains("\n                 ^"),
        "{slip}"
    );
    assert!(output_of(&["check", run.path()], 1).contains("expected --threshold or --slo"));
    let rules = run.0.join("slo.toml");
    fs::write(
        &rules,
        "[[rule]]\nscenario = \"*\"\nmetric = \"bit_s\"\nmin = 11e9\n",
    )
    .unwrap();
    let junit = run.0.join("junit.xml");
    let [rules, junit] = [&rules, &junit].map(|path| path.to_str().unwrap());
    output_of(&["check", run.path(), "--slo", rules, "--junit", junit], 1);
    assert!(
        fs::read_to_string(junit)
            .unwrap()
            .contains("<failure message=")
    );
}

#[test]
fn export_writes_to_the_selected_directory() {
    let run = Run::of("export", 1.0);
    let files = output_of(&["export", run.path()], 0);
    for file in files.lines() {
        assert!(Path::new(file).exists(), "{file}");
    }
    assert!(
        files.contains("tcp-throughput.csv") && files.contains("report.md"),
        "{files}"
    );
    let out = run.0.join("elsewhere");
    let out = out.to_str().unwrap();
    let page = output_of(&["export", run.path(), "--markdown", "--out", out], 0);
    assert_eq!(page.trim(), format!("{out}/report.md"));
    assert!(!Path::new(&format!("{out}/tcp-throughput.csv")).exists());
}
