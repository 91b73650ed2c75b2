//! `ofproto/trace` and `comporta trace`.

use crate::support::command::{CommandOutput, comporta_program, program};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    trace_reports_each_table_and_has_no_effect,
    trace_of_normal_uses_learned_addresses,
    trace_errors_name_the_reason,
];

fn trace_reports_each_table_and_has_no_effect(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    let options = "-O OpenFlow13";
    switch.ofctl(&format!(
        "{options} add-flow br0 table=0,priority=9,tcp,nw_dst=10.0.0.0/8,actions=dec_ttl,goto_table:3"
    ))?;
    switch.ofctl(&format!(
        "{options} add-flow br0 table=3,cookie=0x5,tcp,tp_dst=80,actions=output:2"
    ))?;
    let mut capture = network.host(2).capture_frames()?;
    let command = "ofproto/trace br0 in_port=1,tcp,nw_dst=10.0.0.1,nw_ttl=64,tp_dst=80";
    let output = switch.appctl(command)?;
    let expected = "\
bridge(\"br0\")
-------------
 0. tcp,nw_dst=10.0.0.0/8, priority 9
    dec_ttl
    goto_table:3
 3. tcp,tp_dst=80, priority 32768, cookie 0x5
    output:2

Final flow: tcp,in_port=1,";
    assert!(output.contains(expected), "{output}");
    assert!(output.contains("nw_ttl=63"), "{output}");
    assert!(
        output.ends_with("\nDatapath actions: set(ipv4(ttl=63)),3\n"),
        "{output}"
    );
    for flow in switch.flows("dump-flows br0")? {
        assert!(flow.contains("n_packets=0, "), "{flow}");
    }
    // The trace sends no frame: the first received frame is the one sent here.
    network
        .host(1)
        .send(&["eth / ipv4(dst=10.0.0.1) / tcp(dst=80)"])?;
    capture.expect_frame("eth / ipv4(dst=10.0.0.1,ttl=63) / tcp");
    // The same by `comporta trace`.
    let comporta = comporta_program()
        .args(["trace", "br0"])
        .args(command.split_whitespace().skip(2))
        .env("OVS_RUNDIR", switch.file(""));
    assert_eq!(
        CommandOutput::run(context, comporta)?.expect_success()?,
        output
    );
    Ok(())
}

fn trace_of_normal_uses_learned_addresses(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let switch = network.start_switch("--bridge br0 --port p1 --port p2 --port p3")?;
    let command = format!("ofproto/trace br0 in_port=1,dl_dst={}", mac(2));
    let output = switch.appctl(&command)?;
    assert!(output.ends_with("\nDatapath actions: 3,4\n"), "{output}");
    network.host(1).ping_until_reply(network.host(2).address)?;
    let output = switch.appctl(&command)?;
    assert!(output.ends_with("\nDatapath actions: 3\n"), "{output}");
    // A frame given as bytes, to the port that it comes from.
    let frame = "020000000001020000000009ffff0000";
    let output = switch.appctl(&format!("ofproto/trace br0 in_port=1 {frame}"))?;
    assert!(output.ends_with("\nDatapath actions: drop\n"), "{output}");
    Ok(())
}

fn mac(number: u8) -> String {
    format!("02:00:00:00:00:{number:02x}")
}

fn trace_errors_name_the_reason(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 1)?;
    let switch = network.start_switch("--bridge br0 --port p1")?;
    let refusals = [
        (
            "br0",
            "syntax error at br0 (or the bridge name was omitted)",
        ),
        ("br1 in_port=1", "br1: unknown bridge"),
        ("br0 in_prt=1", "unknown key; did you mean `in_port`?"),
        ("br0 in_port=1 02zz", "Trailing garbage in packet data"),
        ("br0 in_port=1 020", "Trailing garbage in packet data"),
        ("br0 in_port=1 --dance", "--dance: unknown option"),
    ];
    for (words, reason) in refusals {
        let appctl = program("ovs-appctl -t")
            .arg(switch.file("br0.ctl"))
            .arg("ofproto/trace")
            .args(words.split_whitespace());
        let stderr = CommandOutput::run(context, appctl)?.expect_failure()?;
        assert!(stderr.contains(reason), "{words}: {stderr}");
    }
    let unknown_bridge = comporta_program()
        .args(["trace", "br7", "in_port=1", "--rundir"])
        .arg(switch.file(""));
    let result = CommandOutput::run(context, unknown_bridge)?;
    assert_eq!(result.status.code(), Some(1));
    assert!(result.stderr.starts_with("comporta: no switch answers at "));
    Ok(())
}
