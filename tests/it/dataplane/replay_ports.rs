//! Ports of memory, whose frames come out of a file.

use std::fs;

use openflow::Version;
use testbed::Failure;

use crate::support::command::number_after;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::controller::TestController;
use crate::support::network::TestNetwork;
use crate::support::pcap::pcap_file;
use crate::support::switch::SwitchProcess;

pub(crate) const TESTS: &[SystemTest] = tests![
    frames_of_a_file_are_forwarded_and_counted,
    no_frame_meets_an_older_rule_though_workers_never_rest,
];

fn frames_of_a_file_are_forwarded_and_counted(context: &TestContext) -> TestResult {
    let file = context.unique_path("two.pcap");
    let frames = ["eth / ipv4 / udp(dst=1)", "eth / ipv4 / udp(dst=2)"];
    fs::write(&file, pcap_file(&frames)).map_err(Failure::to("write a file of frames"))?;
    let network = TestNetwork::new(context, 0)?;
    let switch = network.start_switch(&format!(
        "--bridge br0 --fail-mode secure --port replay:m1,{} --port replay:m2=7",
        file.display()
    ))?;
    switch.ofctl("add-flow br0 in_port=1,udp,tp_dst=2,actions=output:7")?;
    switch.wait_until("frames to leave", |switch| {
        let told = switch.ofctl("dump-ports br0 7")?;
        Ok(number_after(&told, "tx pkts=") > 1000)
    })?;
    // Down it is silent, and what it has received is counted to the last.
    switch.ofctl("mod-port br0 m1 down")?;
    switch.wait_until("no frames to come", |switch| {
        let came = number_after(&switch.ofctl("dump-ports br0 1")?, "rx pkts=");
        let again = number_after(&switch.ofctl("dump-ports br0 1")?, "rx pkts=");
        Ok(came == again)
    })?;
    let came = number_after(&switch.ofctl("dump-ports br0 1")?, "rx pkts=");
    let left = number_after(&switch.ofctl("dump-ports br0 7")?, "tx pkts=");
    assert!(left <= came / 2, "every other frame is for the rule");
    let told = switch.ofctl("dump-aggregate br0")?;
    assert_eq!(number_after(&told, "packet_count="), left, "{told}");
    drop(switch);
    let told = network.run_switch("--bridge br0 --port replay:m1,no-such-file.pcap")?;
    assert!(
        told.expect_failure()?
            .contains("cannot replay no-such-file.pcap")
    );
    Ok(())
}

/// Changes of the rule.
const ROUNDS: u64 = 100;

/// Workers that always have frames leave the cores to whoever changes rules, and give way
/// between two batches: whether a barrier takes that for rest too early, the counts of
/// rules that were to meet no more frames tell.
fn no_frame_meets_an_older_rule_though_workers_never_rest(context: &TestContext) -> TestResult {
    let file = context.unique_path("many.pcap");
    let frames: Vec<_> = (0..64)
        .map(|n| format!("eth / ipv4 / udp(dst={n})"))
        .collect();
    let frames: Vec<_> = frames.iter().map(String::as_str).collect();
    fs::write(&file, pcap_file(&frames)).map_err(Failure::to("write a file of frames"))?;
    let network = TestNetwork::new(context, 0)?;
    let switch = network.start_switch(&format!(
        "--cores 0,1 --bridge br0 --fail-mode secure --port replay:m1,{} --port replay:m2",
        file.display()
    ))?;
    let mut controller = TestController::connect(context, &switch.file("br0.mgmt"), Version::V13)?;
    let mut met = Vec::new();
    for round in 0..ROUNDS {
        let number = round + 1;
        controller.add_flow(&format!(
            "cookie={number},priority={number},in_port=1,actions=output:2"
        ))?;
        controller.barrier();
        // The rule of the last round is behind this one: its count is final.
        if round > 0 {
            met.push(count(&switch, round)?);
        }
    }
    for (cookie, met) in (1..).zip(&met) {
        assert_eq!(count(&switch, cookie)?, *met, "the rule of round {cookie}");
    }
    assert!(met.iter().any(|met| *met > 0), "{met:?}");
    Ok(())
}

/// How many frames have met the rule with this cookie.
fn count(switch: &SwitchProcess<'_>, cookie: u64) -> Result<u64, Failure> {
    let told = switch.ofctl(&format!("dump-flows br0 cookie={cookie}/-1"))?;
    Ok(number_after(&told, "n_packets="))
}
