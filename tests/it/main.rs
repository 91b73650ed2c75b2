//! System tests: the real binary as a process between network namespaces, with real hosts, tools
//! and controllers. A folder for each subject; the name of a test is the rule that it proves.
//!
//! Codecs, tables and state machines have tests in their crates.

mod conntrack;
mod daemon;
mod dataplane;
mod export;
mod l2;
mod lab;
mod openflow;
mod ovn;
mod ovsdb;
mod qos;
mod support;
mod tools;
mod tunnels;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use support::context::{SystemTest, capture_panics, remove_run_directory};

/// Tests of all folders.
const FOLDERS: &[&[&[SystemTest]]] = &[
    openflow::TESTS,
    dataplane::TESTS,
    conntrack::TESTS,
    l2::TESTS,
    tunnels::TESTS,
    qos::TESTS,
    export::TESTS,
    ovsdb::TESTS,
    ovn::TESTS,
    daemon::TESTS,
    tools::TESTS,
    lab::TESTS,
];

/// Separates alternatives of the filter: the harness takes one word.
const OR: char = '|';

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    capture_panics();
    let files = FOLDERS.concat();
    let mut trials: Vec<Trial> = files.concat().into_iter().map(SystemTest::trial).collect();
    if let Some(words) = arguments.filter.take_if(|words| words.contains(OR)) {
        trials.retain(|trial| words.split(OR).any(|word| trial.name().contains(word)));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    remove_run_directory();
    conclusion.exit_code()
}
