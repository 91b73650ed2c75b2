//! Cost of a table with rules that are hard to compile, beside that of the same table without them:
//! no rule makes the others expensive.

use testkit::workload::Workload;

use crate::sample::Sample;
use crate::select::select;
use crate::trace::Trace;
use crate::{Failure, Rounds};

/// A table, and the rules that are added to it.
struct Cliff {
    name: &'static str,
    without: fn() -> Workload,
    with: fn(Workload) -> Workload,
}

#[rustfmt::skip]
const CLIFFS: [Cliff; 5] = {
    const fn row(name: &'static str, without: fn() -> Workload, with: fn(Workload) -> Workload) -> Cliff {
        Cliff { name, without, with }
    }
    [
        row("option",       ten_thousand, |base| base.with_flows([OPTION.to_owned()])),
        row("gtpu",         ten_thousand, |base| base.with_flows((0..100).map(gtpu))),
        row("conjunctions", ten_thousand, |base| base.with_flows([conjunctions(20)])),
        row("priorities",   Workload::tcp_port_rule, |base| base.with_flows((0..1000).map(priority))),
        row("rewritten",    Workload::tcp_port_rule, |base| base.with_flows((0..1000).map(version))),
    ]
};

/// A rule on a tunnel option, which no frame of the workloads has.
const OPTION: &str = "priority=40000,tun_metadata0=7,actions=drop";

fn ten_thousand() -> Workload {
    Workload::exact_with_step("10,000 flows", 10_000, 1)
}

/// A rule on a message type of GTP-U, which no frame of the workloads has.
fn gtpu(number: u32) -> String {
    format!(
        "priority=40000,tun_gtpu_msgtype={},actions=drop",
        number + 1
    )
}

/// A clause of so many conjunctions, which every frame satisfies.
fn conjunctions(count: u32) -> String {
    let actions = (1..=count).map(|id| format!("conjunction({id},1/2)"));
    let actions: Vec<_> = actions.collect();
    format!("priority=40000,udp,actions={}", actions.join(","))
}

/// A rule with the match of the workload and a lower priority.
fn priority(number: u32) -> String {
    format!("priority={number},tcp,tp_dst=80,actions=drop")
}

/// A version of the workload's rule; the last one is the rule itself.
fn version(number: u32) -> String {
    let port = 3 - number % 2;
    format!("tcp,tp_dst=80,actions=output:{port}")
}

/// Takes `rounds` of samples of each table without and with the rules, interleaved.
pub(crate) fn measure(names: &[String], rounds: Rounds) -> Result<(), Failure> {
    for cliff in select(names, &CLIFFS, |cliff| cliff.name)? {
        let without = Trace::load(&(cliff.without)());
        let with = Trace::load(&(cliff.with)((cliff.without)()));
        let mut columns = [("without", without), ("with", with)];
        for _ in 0..rounds.runs {
            for (column, trace) in &mut columns {
                Sample {
                    row: cliff.name,
                    column,
                    value: trace.time(rounds.millis),
                }
                .print();
            }
        }
    }
    Ok(())
}
