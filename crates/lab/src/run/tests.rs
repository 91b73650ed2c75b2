//! Whole runs, short ones: their records, interruption and resumption.

use record::{Profile, Trial};
use testbed::DeviceKind;

use super::*;
use crate::names::ExperimentId;
use crate::progress::Silent;

/// Experiments of a short run.
const EXPERIMENTS: [&str; 7] = [
    "echo",
    "tcp-throughput",
    "forwarding-rate",
    "flow-table",
    "meters",
    "changes",
    "tcp-requests",
];

/// Returns a run of a few seconds, on devices that need the kernel only.
fn short(name: &str) -> RunOptions {
    let experiments = EXPERIMENTS.map(|name| name.parse::<ExperimentId>().unwrap());
    let mut options = RunOptions {
        experiments: experiments.to_vec(),
        devices: vec![DeviceKind::Direct, DeviceKind::LinuxBridge],
        runs: 1,
        directory: std::env::temp_dir().join(format!("lab-{}-{name}", std::process::id())),
        ..RunOptions::of(Profile::Quick)
    };
    for setting in [
        "packets=100",
        "echo.warm-up=10",
        "echo.frame_bytes=64",
        "match_set=udp,exact",
        "tcp-throughput.seconds=1",
        "forwarding-rate.millis=100",
        "offer=2000,flat-out",
        "flows=500",
        "meters.seconds=2",
        "meters.pps=1000",
        "changes.millis=500",
        "rate=5000",
        "dump-flows=500",
    ] {
        options.settings.parse(setting).unwrap();
    }
    options
}

/// Returns true if this machine meets the requirements of `options`; prints missing ones.
fn possible(options: &RunOptions) -> bool {
    match testbed::check(&requirements(options)) {
        Ok(()) => true,
        Err(missing) => {
            println!("skipped: {missing}");
            false
        }
    }
}

fn trials(options: &RunOptions) -> Vec<Trial> {
    let entries = journal::read(&options.directory).unwrap();
    Results::new(entries, CATALOGUE).trials().to_vec()
}

#[test]
fn run_measures_records_reports_and_resumes() {
    let mut options = short("whole");
    if !possible(&options) {
        return;
    }
    if testbed::check(&DeviceKind::Ovs.requirements(&options.comporta)).is_ok() {
        options.devices.push(DeviceKind::Ovs);
    }
    let with_flows = options
        .devices
        .iter()
        .filter(|device| device.speaks_openflow());
    // One flow table, a meter of packets and one of bits, and four tests of changes.
    let tests = options.devices.len() * 6 + with_flows.count() * 7;
    let interrupt = Interrupt::never();
    let summary = run(&options, &interrupt, &mut Silent).unwrap();
    assert_eq!((summary.trials, summary.exit_code()), (tests, 0));
    for trial in trials(&options) {
        // A busy machine may miss a rate; other flaws are errors.
        let busy = ["the generator offered", "steal time"];
        let excused =
            |flaw: &Flaw| !flaw.void || busy.iter().any(|text| flaw.reason.starts_with(text));
        assert!(trial.flaws.iter().all(excused), "{trial:?}");
        if trial.experiment == "echo" {
            let reading = trial.reading.as_ref().unwrap();
            assert_eq!(reading.openflow.is_some(), trial.device == "ovs");
            assert_eq!(reading.samples["round_trip_ns"].len(), 100);
        }
    }
    let report = fs::read_to_string(&summary.report).unwrap();
    assert!(report.contains("linux-bridge"));

    let again = run(&options, &interrupt, &mut Silent).unwrap_err();
    assert!(matches!(again, LabError::Taken(_)), "{again}");
    options.resume = true;
    let resumed = run(&options, &interrupt, &mut Silent).unwrap();
    assert_eq!(resumed.trials, tests);
    options.settings.parse("packets=200").unwrap();
    let other = run(&options, &interrupt, &mut Silent).unwrap_err();
    assert!(matches!(other, LabError::OtherParameters { .. }), "{other}");
    fs::remove_dir_all(&options.directory).unwrap();
}

/// Progress that interrupts the run when the second trial begins.
struct StopsAtSecond {
    interrupt: Interrupt,
    begun: usize,
}

impl Progress for StopsAtSecond {
    fn begin(&mut self, _: usize, _: Duration) {}
    fn test(&mut self, _: &str, _: Duration) {
        self.begun += 1;
        if self.begun == 2 {
            self.interrupt.request();
        }
    }
    fn result(&mut self, _: &str) {}
    fn note(&mut self, _: &str) {}
    fn end(&mut self) {}
}

#[test]
fn interrupted_run_keeps_and_reports_completed_trials() {
    let options = short("interrupted");
    if !possible(&options) {
        return;
    }
    let interrupt = Interrupt::never();
    let mut progress = StopsAtSecond {
        interrupt: interrupt.clone(),
        begun: 0,
    };
    let summary = run(&options, &interrupt, &mut progress).unwrap();
    assert_eq!((summary.trials, summary.exit_code()), (1, 130));
    let report = fs::read_to_string(&summary.report).unwrap();
    assert!(report.contains("The run is not complete"));
    fs::remove_dir_all(&options.directory).unwrap();
}

#[test]
fn empty_directory_has_no_run_to_resume() {
    let options = RunOptions {
        resume: true,
        directory: PathBuf::from("/nonexistent"),
        ..RunOptions::default()
    };
    let error = open(&options).unwrap_err().to_string();
    assert_eq!(error, "/nonexistent has no run to resume: omit --resume");
}
