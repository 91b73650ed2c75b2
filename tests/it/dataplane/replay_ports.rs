//! Replay ports, which receive the frames of a capture file.

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
    replay_port_forwards_and_counts_frames_of_a_file,
    frames_match_no_replaced_rule_with_busy_workers,
];

fn replay_port_forwards_and_counts_frames_of_a_file(context: &TestContext) -> TestResult {
    let file = context.unique_path("two.pcap");
    let frames = ["eth / ipv4 / udp(dst=1)", "eth / ipv4 / udp(dst=2)"];
    fs::write(&file, pcap_file(&frames)).map_err(Failure::to("write a capture file"))?;
    let network = TestNetwork::new(context, 0)?;
    let switch = network.start_switch(&format!(
        "--bridge br0 --fail-mode secure --port replay:m1,{} --port replay:m2=7",
        file.display()
    ))?;
    switch.ofctl("add-flow br0 in_port=1,udp,tp_dst=2,actions=output:7")?;
    switch.wait_until("transmitted frames", |switch| {
        let output = switch.ofctl("dump-ports br0 7")?;
        Ok(number_after(&output, "tx pkts=") > 1000)
    })?;
    // A port that is down receives nothing, and all frames that it received are counted.
    switch.ofctl("mod-port br0 m1 down")?;
    switch.wait_until("the end of received frames", |switch| {
        let received = number_after(&switch.ofctl("dump-ports br0 1")?, "rx pkts=");
        let received_again = number_after(&switch.ofctl("dump-ports br0 1")?, "rx pkts=");
        Ok(received == received_again)
    })?;
    let received = number_after(&switch.ofctl("dump-ports br0 1")?, "rx pkts=");
    let sent = number_after(&switch.ofctl("dump-ports br0 7")?, "tx pkts=");
    assert!(sent <= received / 2, "the rule matches every other frame");
    let output = switch.ofctl("dump-aggregate br0")?;
    assert_eq!(number_after(&output, "packet_count="), sent, "{output}");
    drop(switch);
    let output = network.run_switch("--bridge br0 --port replay:m1,no-such-file.pcap")?;
    assert!(
        output
            .expect_failure()?
            .contains("cannot replay no-such-file.pcap")
    );
    Ok(())
}

/// Number of rule changes.
const ROUNDS: u64 = 100;

/// Workers that are always busy share their cores with the control thread, and yield between two
/// batches. If a barrier takes such a pause for the end of a batch, the counters of replaced rules
/// still grow after the barrier reply.
fn frames_match_no_replaced_rule_with_busy_workers(context: &TestContext) -> TestResult {
    let file = context.unique_path("many.pcap");
    let frames: Vec<_> = (0..64)
        .map(|n| format!("eth / ipv4 / udp(dst={n})"))
        .collect();
    let frames: Vec<_> = frames.iter().map(String::as_str).collect();
    fs::write(&file, pcap_file(&frames)).map_err(Failure::to("write a capture file"))?;
    let network = TestNetwork::new(context, 0)?;
    let switch = network.start_switch(&format!(
        "--cores 0,1 --bridge br0 --fail-mode secure --port replay:m1,{} --port replay:m2",
        file.display()
    ))?;
    let mut controller = TestController::connect(context, &switch.file("br0.mgmt"), Version::V13)?;
    let mut counts = Vec::new();
    for round in 0..ROUNDS {
        let number = round + 1;
        controller.add_flow(&format!(
            "cookie={number},priority={number},in_port=1,actions=output:2"
        ))?;
        controller.barrier();
        // The rule of the previous round is replaced: its counter is final.
        if round > 0 {
            counts.push(frames_matched(&switch, round)?);
        }
    }
    for (cookie, counts) in (1..).zip(&counts) {
        assert_eq!(
            frames_matched(&switch, cookie)?,
            *counts,
            "the rule of round {cookie}"
        );
    }
    assert!(counts.iter().any(|counts| *counts > 0), "{counts:?}");
    Ok(())
}

/// Number of frames that matched the rule with this cookie.
fn frames_matched(switch: &SwitchProcess<'_>, cookie: u64) -> Result<u64, Failure> {
    let output = switch.ofctl(&format!("dump-flows br0 cookie={cookie}/-1"))?;
    Ok(number_after(&output, "n_packets="))
}
