//! The switch with one worker and with two, forwarding frames between ports in memory: the rate
//! that the second worker adds, and the memory that it requires.

use std::time::Duration;

use testbed::Namespace;
use testkit::workload::{TrafficPattern, Workload};

use crate::forms::FRAMES;
use crate::sample::Sample;
use crate::select::select;
use crate::switch::{BenchSwitch, Site, word};
use crate::{Failure, Programs, Rounds, pcap};

/// Tables by name.
struct WorkerTable {
    name: &'static str,
    workload: fn() -> Workload,
}

#[rustfmt::skip]
const TABLES: [WorkerTable; 3] = {
    const fn row(name: &'static str, workload: fn() -> Workload) -> WorkerTable {
        WorkerTable { name, workload }
    }
    [
        row("macs-1000",     || Workload::mac_addresses("1,000 stations", 1000)),
        row("acl-1000",      || Workload::access_list_with_frames("a list of 1,000", 1000, TrafficPattern::Fitting, FRAMES)),
        row("tables-random", || Workload::routed("ten tables, each frame of another flow", TrafficPattern::Random, FRAMES)),
    ]
};

/// The cores, by number of workers.
const CORES: [&str; 2] = ["0", "0,1"];

/// The columns, by number of workers.
const COLUMNS: [&str; 2] = ["one worker", "two workers"];

/// The row with the memory.
const MEMORY: &str = "memory";

/// Time with traffic before the measurement.
const WARM_UP: Duration = Duration::from_millis(300);

/// Takes `rounds` of samples, alternating between one worker and two.
pub(crate) fn measure(
    names: &[String],
    programs: &Programs,
    rounds: Rounds,
) -> Result<(), Failure> {
    let selected = select(names, &TABLES, |table| table.name)?;
    let site = Site::new(programs)?;
    for table in selected {
        let workload = (table.workload)();
        pcap::write(&site.directory.join(FILE), &workload.frames())?;
        for _ in 0..rounds.runs {
            let one = run(&site, &workload, 0, rounds.millis)?;
            let two = run(&site, &workload, 1, rounds.millis)?;
            let print = |row, column, value| Sample { row, column, value }.print();
            print(table.name, COLUMNS[0], one.frames_a_second);
            print(table.name, COLUMNS[1], two.frames_a_second);
            print(
                MEMORY,
                "a worker",
                (two.bytes - one.bytes) / f64::from(1 << 20),
            );
        }
    }
    Ok(())
}

/// The file with the frames.
const FILE: &str = "frames.pcap";

/// The result of one switch.
struct WorkerRates {
    frames_a_second: f64,
    /// Resident memory in bytes.
    bytes: f64,
}

/// Starts the switch with the workers of `cores`, measures it, and stops it.
fn run(
    site: &Site,
    workload: &Workload,
    cores: usize,
    millis: u32,
) -> Result<WorkerRates, Failure> {
    let file = word(&site.directory.join(FILE));
    // Frames received on the first port leave by one of the others.
    let ports = (2..=4).map(|number| format!("replay:p{number}={number}"));
    let ports = [format!("replay:p1,{file}=1")].into_iter().chain(ports);
    let mut arguments: Vec<String> = ports.flat_map(|port| ["--port".to_owned(), port]).collect();
    arguments.extend(["--cores".to_owned(), CORES[cores].to_owned()]);
    let switch = BenchSwitch::start(site, "workers", Namespace::new()?, &arguments)?;
    switch.bridge.add_flows(workload.flow_lines())?;
    let frames_a_second = switch
        .bridge
        .rate(WARM_UP, Duration::from_millis(millis.into()))?;
    #[expect(
        clippy::cast_precision_loss,
        reason = "memory in bytes is exact in 52 bits"
    )]
    let bytes = switch.usage()?.resident_bytes as f64;
    Ok(WorkerRates {
        frames_a_second,
        bytes,
    })
}
