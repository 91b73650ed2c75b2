//! Cost of a frame by the lookup form of its table: nanoseconds by the clock, or instructions under
//! callgrind.

use testkit::workload::{TrafficPattern, Workload};

use crate::sample::Sample;
use crate::select::{find, select};
use crate::trace::Trace;
use crate::{Failure, Rounds};

/// Frames of a trace with many flows: more than the branch predictor and the L1 cache can hold.
pub(crate) const FRAMES: u64 = 16_384;

/// Tables by name.
struct FormTable {
    name: &'static str,
    workload: fn() -> Workload,
}

#[rustfmt::skip]
const FORMS: [FormTable; 12] = {
    const fn row(name: &'static str, workload: fn() -> Workload) -> FormTable {
        FormTable { name, workload }
    }
    [
        row("one-port",       Workload::one_rule),
        row("one-tcp-port",   Workload::tcp_port_rule),
        row("twelve-fields",  Workload::twelve_fields),
        row("macs-1000",      || Workload::mac_addresses("1,000 stations", 1000)),
        row("flows-1000",     || Workload::exact_with_step("1,000 flows", 1000, 1)),
        row("flows-100000",   || Workload::exact_with_step("100,000 flows", 100_000, 1)),
        row("networks-1000",  || Workload::networks_with_frames("1,000 networks", 1000, FRAMES)),
        row("networks-10000", || Workload::networks_with_frames("10,000 networks", 10_000, FRAMES)),
        row("acl-1000",       || Workload::access_list_with_frames("a list of 1,000", 1000, TrafficPattern::Fitting, FRAMES)),
        row("acl-10000",      || Workload::access_list_with_frames("a list of 10,000", 10_000, TrafficPattern::Fitting, FRAMES)),
        row("tables-repeated", || Workload::routed("ten tables, 1,000 flows", TrafficPattern::Fitting, FRAMES)),
        row("tables-random",  || Workload::routed("ten tables, each frame of another flow", TrafficPattern::Random, FRAMES)),
    ]
};

/// Takes `rounds` of samples of each table, interleaved.
pub(crate) fn measure(names: &[String], rounds: Rounds) -> Result<(), Failure> {
    let selected = select(names, &FORMS, |form| form.name)?;
    let load = |form: &&FormTable| (form.name, Trace::load(&(form.workload)()));
    let mut traces: Vec<(&str, Trace)> = selected.iter().map(load).collect();
    for _ in 0..rounds.runs {
        for (row, trace) in &mut traces {
            Sample {
                row,
                column: "time",
                value: trace.time(rounds.millis),
            }
            .print();
        }
    }
    Ok(())
}

/// Runs frames through the tables of this name, and prints their number.
pub(crate) fn count(name: &str) -> Result<(), Failure> {
    let mut trace = Trace::load(&(find(name, &FORMS, |form| form.name)?.workload)());
    counted(&mut trace);
    Sample {
        row: name,
        column: "frames",
        value: trace.each() as f64,
    }
    .print();
    Ok(())
}

/// The function whose instructions are counted: callgrind toggles collection at its entry and exit.
#[inline(never)]
fn counted(trace: &mut Trace) {
    trace.run_each();
}
