//! What would become of a frame, as operators ask it of Open vSwitch.

use crate::support::command::{CommandOutput, comporta_binary, program};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    a_frames_way_is_told_table_by_table_and_nothing_is_done,
    a_learned_station_is_where_normal_forwards_to,
    what_cannot_be_traced_is_refused_with_a_reason,
];

fn a_frames_way_is_told_table_by_table_and_nothing_is_done(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    let form = "-O OpenFlow13";
    switch.ofctl(&format!(
        "{form} add-flow br0 table=0,priority=9,tcp,nw_dst=10.0.0.0/8,actions=dec_ttl,goto_table:3"
    ))?;
    switch.ofctl(&format!(
        "{form} add-flow br0 table=3,cookie=0x5,tcp,tp_dst=80,actions=output:2"
    ))?;
    let mut heard = network.host(2).capture_frames()?;
    let question = "ofproto/trace br0 in_port=1,tcp,nw_dst=10.0.0.1,nw_ttl=64,tp_dst=80";
    let told = switch.appctl(question)?;
    let wanted = "\
bridge(\"br0\")
-------------
 0. tcp,nw_dst=10.0.0.0/8, priority 9
    dec_ttl
    goto_table:3
 3. tcp,tp_dst=80, priority 32768, cookie 0x5
    output:2

Final flow: tcp,in_port=1,";
    assert!(told.contains(wanted), "{told}");
    assert!(told.contains("nw_ttl=63"), "{told}");
    assert!(
        told.ends_with("\nDatapath actions: set(ipv4(ttl=63)),2\n"),
        "{told}"
    );
    for flow in switch.flows("dump-flows br0")? {
        assert!(flow.contains("n_packets=0, "), "{flow}");
    }
    // The first frame that comes is one that was sent.
    network
        .host(1)
        .send(&["eth / ipv4(dst=10.0.0.1) / tcp(dst=80)"])?;
    heard.expect_frame("eth / ipv4(dst=10.0.0.1,ttl=63) / tcp");
    // The same by our own command.
    let own = program(comporta_binary().to_str().expect("a path is text"))
        .args(["trace", "br0"])
        .args(question.split_whitespace().skip(2))
        .env("OVS_RUNDIR", switch.file(""));
    assert_eq!(CommandOutput::run(context, own)?.expect_success()?, told);
    Ok(())
}

fn a_learned_station_is_where_normal_forwards_to(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let switch = network.start_switch("--bridge br0 --port p1 --port p2 --port p3")?;
    let question = format!("ofproto/trace br0 in_port=1,dl_dst={}", mac(2));
    let told = switch.appctl(&question)?;
    assert!(told.ends_with("\nDatapath actions: 2,3\n"), "{told}");
    network.host(1).ping_until_reply(network.host(2).address)?;
    let told = switch.appctl(&question)?;
    assert!(told.ends_with("\nDatapath actions: 2\n"), "{told}");
    // Given as bytes, to a station that is where the frame comes from.
    let frame = "020000000001020000000009ffff0000";
    let told = switch.appctl(&format!("ofproto/trace br0 in_port=1 {frame}"))?;
    assert!(told.ends_with("\nDatapath actions: drop\n"), "{told}");
    Ok(())
}

fn mac(number: u8) -> String {
    format!("02:00:00:00:00:{number:02x}")
}

fn what_cannot_be_traced_is_refused_with_a_reason(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 1)?;
    let switch = network.start_switch("--bridge br0 --port p1")?;
    let refusals = [
        (
            "br0",
            "syntax error at br0 (or the bridge name was omitted)",
        ),
        ("br1 in_port=1", "br1: unknown bridge"),
        ("br0 in_prt=1", "unknown key: neither a match field"),
        ("br0 in_port=1,metadata=4", "leave them out"),
        ("br0 in_port=1 02zz", "Trailing garbage in packet data"),
        ("br0 in_port=1 020", "Trailing garbage in packet data"),
        ("br0 ipv6,ipv6_exthdr=2", "no frame can be put together"),
    ];
    for (words, reason) in refusals {
        let asked = program("ovs-appctl -t")
            .arg(switch.file("br0.ctl"))
            .arg("ofproto/trace")
            .args(words.split_whitespace());
        let said = CommandOutput::run(context, asked)?.expect_failure()?;
        assert!(said.contains(reason), "{words}: {said}");
    }
    let nobody = program(comporta_binary().to_str().expect("a path is text"))
        .args(["trace", "br7", "in_port=1", "--rundir"])
        .arg(switch.file(""));
    let ran = CommandOutput::run(context, nobody)?;
    assert_eq!(ran.status.code(), Some(1));
    assert!(ran.stderr.starts_with("comporta: no switch answers at "));
    Ok(())
}
