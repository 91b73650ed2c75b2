//! Whole runs, small ones: their records, interruption and resumption.

use record::MatchSet;
use record::Outcome;
use testbed::DeviceKind;

use super::*;
use crate::Scenario;
use crate::progress::Silent;

/// A whole run of a few seconds, on devices that need nothing but the kernel, and
/// on Open vSwitch where that is installed.
fn short(name: &str) -> Options {
    let mut options = Options {
        scenarios: Scenario::OWN.to_vec(),
        devices: vec![DeviceKind::Direct, DeviceKind::LinuxBridge],
        runs: 1,
        directory: std::env::temp_dir().join(format!("lab-{}-{name}", std::process::id())),
        ..Options::default()
    };
    options.parameters.echo.packets = 100;
    options.parameters.echo.warm_up = 10;
    options.parameters.echo.frame_bytes = vec![64];
    options.parameters.echo.match_sets = vec![MatchSet::Udp, MatchSet::Exact];
    options.parameters.tcp_throughput.seconds = 1;
    options.parameters.forwarding_rate.milliseconds = 100;
    options.parameters.forwarding_rate.paced_pps = vec![2_000];
    options.parameters.flow_table.flows = 500;
    options.parameters.meters.seconds = 2;
    options.parameters.meters.pps = vec![1_000];
    options.parameters.changes.milliseconds = 500;
    options.parameters.changes.pps = Some(5_000);
    options.parameters.changes.dump_flows = 500;
    options
}

/// Whether this machine can do `options`; says what it lacks if not.
fn possible(options: &Options) -> bool {
    match testbed::check(&requirements(options)) {
        Ok(()) => true,
        Err(missing) => {
            println!("skipped: {missing}");
            false
        }
    }
}

fn trials(options: &Options) -> Vec<Trial> {
    let entries = journal::read(&options.directory).unwrap();
    Results::new(entries, CATALOGUE).trials().to_vec()
}

#[test]
fn a_run_measures_records_and_reports_and_can_be_gone_on_with() {
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
        // A busy machine may make a rate be missed; nothing else may go wrong.
        let busy = ["the generator offered", "the hypervisor gave"];
        let excused =
            |flaw: &Flaw| !flaw.void || busy.iter().any(|text| flaw.reason.starts_with(text));
        assert!(trial.flaws.iter().all(excused), "{trial:?}");
        if let Some(Outcome::Echo(echo)) = &trial.outcome {
            assert_eq!(echo.openflow.is_some(), trial.device == "ovs");
            assert_eq!(echo.round_trip_ns.len(), 100);
        }
    }
    let report = fs::read_to_string(&summary.report).unwrap();
    assert!(report.contains("linux-bridge"));

    let again = run(&options, &interrupt, &mut Silent).unwrap_err();
    assert!(matches!(again, LabError::Taken(_)), "{again}");
    options.resume = true;
    let resumed = run(&options, &interrupt, &mut Silent).unwrap();
    assert_eq!(resumed.trials, tests);
    options.parameters.echo.packets = 200;
    let other = run(&options, &interrupt, &mut Silent).unwrap_err();
    assert!(matches!(other, LabError::OtherParameters { .. }), "{other}");
    fs::remove_dir_all(&options.directory).unwrap();
}

/// Asks to stop when the second test begins.
struct StopsAtSecond {
    interrupt: Interrupt,
    begun: usize,
}

impl Progress for StopsAtSecond {
    fn begin(&mut self, _: usize, _: Duration) {}
    fn test(&mut self, _: &str, _: Duration) {
        self.begun += 1;
        if self.begun == 2 {
            self.interrupt.ask();
        }
    }
    fn result(&mut self, _: &str) {}
    fn note(&mut self, _: &str) {}
    fn end(&mut self) {}
}

#[test]
fn an_interrupted_run_keeps_and_reports_what_it_has() {
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
fn there_is_nothing_to_go_on_with_in_an_empty_directory() {
    let options = Options {
        resume: true,
        directory: PathBuf::from("/nonexistent"),
        ..Options::default()
    };
    let error = open(&options).unwrap_err().to_string();
    assert_eq!(
        error,
        "/nonexistent holds no run to go on with: leave out --resume"
    );
}
