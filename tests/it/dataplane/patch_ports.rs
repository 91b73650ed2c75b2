//! Patch ports between bridges of one process.

use std::fmt::Write;

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    patch_ports_connect_ten_bridges_of_the_database,
    patch_ports_of_the_command_line_carry_streams_and_packet_outs,
];

/// Arguments of `ovs-vsctl` that connect two bridges by patch ports named after them.
fn patch_arguments(one: &str, other: &str) -> String {
    let add_end = |here: &str, there: &str| {
        format!(
            " -- add-port {here} {here}-to-{there} -- set Interface {here}-to-{there} type=patch options:peer={there}-to-{here}"
        )
    };
    format!("{}{}", add_end(one, other), add_end(other, one))
}

fn patch_ports_connect_ten_bridges_of_the_database(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let mut arguments = "add-br bridge0 -- add-port bridge0 p1".to_owned();
    for bridge in 1..10 {
        write!(arguments, " -- add-br bridge{bridge}")
            .expect("formatting into a String cannot fail");
        arguments += &patch_arguments(&format!("bridge{}", bridge - 1), &format!("bridge{bridge}"));
    }
    deployment.vsctl(&format!("{arguments} -- add-port bridge9 p2"))?;
    let (one, two) = network.host_pair();
    one.ping_until_reply(two.address)?;
    one.ping(two.address, 10)?;
    // Both ends count frames, and both links are up.
    let output = deployment.run_tool("ovs-ofctl dump-ports bridge4 2")?;
    assert!(
        !output.contains("rx pkts=0") && !output.contains("tx pkts=0"),
        "{output}"
    );
    deployment.wait_for_column("get Interface bridge4-to-bridge5 link_state", "up")?;
    assert_eq!(
        deployment.vsctl("get Interface bridge4-to-bridge5 error")?,
        "[]"
    );
    // The host port of one bridge is reachable from all others.
    network
        .run("ip address add 10.1.0.99/24 dev bridge7")?
        .expect_success()?;
    network.run("ip link set bridge7 up")?.expect_success()?;
    one.ping_until_reply([10, 1, 0, 99].into())?;
    two.ping_until_reply([10, 1, 0, 99].into())?;
    // A patch port whose peer is another port is down, and reports an error.
    deployment.vsctl("set Interface bridge4-to-bridge5 options:peer=other")?;
    deployment.wait_for_column("get Interface bridge4-to-bridge5 link_state", "down")?;
    deployment.wait_for_column("get Interface bridge5-to-bridge4 link_state", "down")?;
    let error = deployment.vsctl("get Interface bridge5-to-bridge4 error")?;
    assert!(
        error.contains("bridge4-to-bridge5 has other as its own peer"),
        "{error}"
    );
    assert!(!one.can_ping(two.address)?);
    deployment.vsctl("set Interface bridge4-to-bridge5 options:peer=bridge5-to-bridge4")?;
    one.ping_until_reply(two.address)?;
    one.ping(two.address, 3)?;
    let refused = deployment.vsctl_output("add-port bridge0 x -- set Interface x type=patch")?;
    assert!(
        refused
            .stderr
            .contains("x: patch type requires valid 'peer' argument"),
        "{refused:?}"
    );
    Ok(())
}

fn patch_ports_of_the_command_line_carry_streams_and_packet_outs(
    context: &TestContext,
) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(
        "--bridge br0 --port p1 --port patch:a,b=9 --bridge br1 --port patch:b,a --port p2",
    )?;
    let (one, two) = network.host_pair();
    one.ping_until_reply(two.address)?;
    one.iperf(two, "")?;
    one.iperf(two, "--reverse")?;
    // Rules, groups and controllers send by patch ports as by other ports.
    switch.ofctl("-O OpenFlow13 add-group br0 group_id=1,type=all,bucket=output:9")?;
    switch.ofctl("-O OpenFlow13 add-flow br0 priority=9,in_port=1,actions=group:1")?;
    one.ping_until_reply(two.address)?;
    one.ping(two.address, 5)?;
    let mut capture = two.capture_frames()?;
    let frame = "ffffffffffff02000000000188b5aabbccdd00000000000000000000000000000000";
    switch.ofctl(&format!(
        "packet-out br0 in_port=LOCAL,packet={frame},actions=output:9"
    ))?;
    let sent = |bytes: &[u8]| bytes[12..18] == [0x88, 0xb5, 0xaa, 0xbb, 0xcc, 0xdd];
    while !sent(capture.next_frame()?.bytes()) {}
    Ok(())
}
