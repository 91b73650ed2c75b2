//! Cost of rule lists under several kinds of traffic: the cost should depend on the rules alone.

use testkit::workload::{TrafficPattern, Workload};

use crate::forms::FRAMES;
use crate::sample::Sample;
use crate::select::select;
use crate::trace::Trace;
use crate::{Failure, Rounds};

/// A rule list by name.
struct TrafficList {
    name: &'static str,
    workload: fn(TrafficPattern) -> Workload,
}

#[rustfmt::skip]
const LISTS: [TrafficList; 4] = {
    const fn row(name: &'static str, workload: fn(TrafficPattern) -> Workload) -> TrafficList {
        TrafficList { name, workload }
    }
    [
        row("acl-3",     |traffic| Workload::three_rules_with_frames("a list of 3", traffic, FRAMES)),
        row("acl-10",    |traffic| Workload::access_list_with_frames("a list of 10", 10, traffic, FRAMES)),
        row("acl-1000",  |traffic| Workload::access_list_with_frames("a list of 1,000", 1000, traffic, FRAMES)),
        row("acl-10000", |traffic| Workload::access_list_with_frames("a list of 10,000", 10_000, traffic, FRAMES)),
    ]
};

/// Takes `rounds` of samples of each kind of traffic, interleaved.
pub(crate) fn measure(names: &[String], rounds: Rounds) -> Result<(), Failure> {
    for list in select(names, &LISTS, |list| list.name)? {
        let mut traces = TrafficPattern::ALL.map(|traffic| Trace::load(&(list.workload)(traffic)));
        for _ in 0..rounds.runs {
            let times = traces.each_mut().map(|trace| trace.time(rounds.millis));
            let print = |column, value| {
                let row = list.name;
                Sample { row, column, value }.print();
            };
            for (traffic, time) in TrafficPattern::ALL.iter().zip(times) {
                print(traffic.name(), time);
            }
            let fastest = times.into_iter().fold(f64::MAX, f64::min);
            let slowest = times.into_iter().fold(0.0, f64::max);
            print("slowest / fastest", fastest / slowest);
        }
    }
    Ok(())
}
