//! What a frame costs by the form that its table has: nanoseconds by the clock, and
//! instructions for whoever runs this under callgrind.

use testkit::bed::{Scene, Traffic};

use crate::chosen::{chosen, find};
use crate::sample::Sample;
use crate::trace::Trace;
use crate::{Failure, Rounds};

/// Frames of a trace of many flows: more than the branch predictor and the first cache
/// remember.
pub(crate) const FRAMES: u64 = 16_384;

/// Tables by the name that they are asked for.
struct Form {
    name: &'static str,
    scene: fn() -> Scene,
}

#[rustfmt::skip]
const FORMS: [Form; 12] = {
    const fn row(name: &'static str, scene: fn() -> Scene) -> Form {
        Form { name, scene }
    }
    [
        row("one-port",       Scene::one_rule),
        row("one-tcp-port",   Scene::one_port),
        row("twelve-fields",  Scene::twelve_fields),
        row("macs-1000",      || Scene::stations("1,000 stations", 1000)),
        row("flows-1000",     || Scene::exact_met("1,000 flows", 1000, 1)),
        row("flows-100000",   || Scene::exact_met("100,000 flows", 100_000, 1)),
        row("networks-1000",  || Scene::networks_met("1,000 networks", 1000, FRAMES)),
        row("networks-10000", || Scene::networks_met("10,000 networks", 10_000, FRAMES)),
        row("acl-1000",       || Scene::access_list_met("a list of 1,000", 1000, Traffic::Fitting, FRAMES)),
        row("acl-10000",      || Scene::access_list_met("a list of 10,000", 10_000, Traffic::Fitting, FRAMES)),
        row("tables-repeated", || Scene::routed("ten tables, 1,000 flows", Traffic::Fitting, FRAMES)),
        row("tables-random",  || Scene::routed("ten tables, each frame of another flow", Traffic::Random, FRAMES)),
    ]
};

/// Takes `rounds` of samples of each, turn and turn about.
pub(crate) fn measure(names: &[String], rounds: Rounds) -> Result<(), Failure> {
    let chosen = chosen(names, &FORMS, |form| form.name)?;
    let lay = |form: &&Form| (form.name, Trace::lay(&(form.scene)()));
    let mut traces: Vec<(&str, Trace)> = chosen.iter().map(lay).collect();
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

/// Runs frames by the tables of this name, and prints how many.
pub(crate) fn count(name: &str) -> Result<(), Failure> {
    let mut trace = Trace::lay(&(find(name, &FORMS, |form| form.name)?.scene)());
    counted(&mut trace);
    Sample {
        row: name,
        column: "frames",
        value: trace.each() as f64,
    }
    .print();
    Ok(())
}

/// What is counted: callgrind is told to begin where this begins and to end where it ends.
#[inline(never)]
fn counted(trace: &mut Trace) {
    trace.run_each();
}
