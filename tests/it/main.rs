//! The binary as its users meet it: a process between network namespaces, under
//! real hosts, tools and controllers. A file for each theme; a test's name is the
//! rule that it proves.
//!
//! Not for what a smaller test can prove: codecs, tables and state machines have
//! theirs beside them.

mod actions;
mod bond_settings;
mod bonds;
mod bundles;
mod capture;
mod changes;
mod churn;
mod controllers;
mod daemon;
mod devices;
mod dpdk;
mod dummies;
mod endings;
mod equipment;
mod exporters;
mod eye;
mod faucet;
mod forms;
mod ground;
mod groups;
mod host;
mod in_band;
mod instrument;
mod lab;
mod learning;
mod liar;
mod lifecycle;
mod managed;
mod many;
mod mininet;
mod mirrors;
mod monitors;
mod multicast;
mod netflow;
mod nicira;
mod normal;
mod ofctl;
mod ofp_print;
mod oskenapps;
mod ovs_tools;
mod packages;
mod patches;
mod peer;
mod printing;
mod protected;
mod qinq;
mod queueing;
mod queues;
mod replay;
mod report;
mod rig;
mod robustness;
mod sampled;
mod schema;
mod site;
mod spanning;
mod standalone;
mod storm;
mod tables;
mod tap;
mod text;
mod tls;
mod tlv;
mod tools;
mod trace;
mod truth;
mod tunnels;
mod unixctl;
mod vlans;
mod vswitchd;
mod walk;
mod watching;
mod workers;
mod xdp;
mod zeros;

use std::process::ExitCode;

use ground::Rule;
use libtest_mimic::{Arguments, Trial};

/// All themes.
const THEMES: &[&[Rule]] = &[
    standalone::RULES,
    tap::RULES,
    queueing::RULES,
    queues::RULES,
    replay::RULES,
    storm::RULES,
    xdp::RULES,
    dpdk::RULES,
    lab::RULES,
    instrument::RULES,
    learning::RULES,
    devices::RULES,
    endings::RULES,
    report::RULES,
    ofctl::RULES,
    printing::RULES,
    zeros::RULES,
    ofp_print::RULES,
    tlv::RULES,
    tools::RULES,
    text::RULES,
    spanning::RULES,
    vlans::RULES,
    mirrors::RULES,
    bonds::RULES,
    bond_settings::RULES,
    normal::RULES,
    protected::RULES,
    qinq::RULES,
    multicast::RULES,
    vswitchd::RULES,
    daemon::RULES,
    dummies::RULES,
    in_band::RULES,
    managed::RULES,
    schema::RULES,
    liar::RULES,
    equipment::RULES,
    tls::RULES,
    patches::RULES,
    tunnels::RULES,
    mininet::RULES,
    packages::RULES,
    faucet::RULES,
    ovs_tools::RULES,
    oskenapps::RULES,
    exporters::RULES,
    unixctl::RULES,
    walk::RULES,
    watching::RULES,
    capture::RULES,
    workers::RULES,
    actions::RULES,
    trace::RULES,
    forms::RULES,
    netflow::RULES,
    sampled::RULES,
    nicira::RULES,
    groups::RULES,
    truth::RULES,
    bundles::RULES,
    monitors::RULES,
    tables::RULES,
    controllers::RULES,
    robustness::RULES,
    many::RULES,
    changes::RULES,
    churn::RULES,
    lifecycle::RULES,
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    ground::keep_panics_for_the_report();
    let trials: Vec<Trial> = THEMES.concat().into_iter().map(Rule::trial).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    ground::clear_up();
    conclusion.exit_code()
}
