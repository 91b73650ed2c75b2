//! VLANs of ports, as the database says them: what an ordinary switch does with tags.

use packet::build::Stack;

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::frames::FrameCapture;
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    access_ports_reach_their_vlan_and_trunks_carry_its_tag,
    native_vlans_protected_ports_and_bridges_in_a_vlan,
];

/// What is seen next that holds `part`.
fn next_with(capture: &mut FrameCapture<'_>, part: &str) -> Result<String, testbed::Failure> {
    loop {
        let seen = Stack::dissect(&capture.next_frame()?).to_string();
        if seen.contains(part) {
            return Ok(seen);
        }
    }
}

/// A question by ARP after `wanted`, from a station behind a trunk.
fn question(tag: &str, wanted: u8) -> String {
    format!(
        "eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:00:44){tag}/arp(op=1,spa=10.1.0.44,tpa=10.1.0.{wanted},sha=02:00:00:00:00:44)"
    )
}

fn access_ports_reach_their_vlan_and_trunks_carry_its_tag(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 4)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(
        "add-br br0 -- add-port br0 p1 tag=10 -- add-port br0 p2 tag=10 \
         -- add-port br0 p3 tag=20 -- add-port br0 p4 trunks=10,20",
    )?;
    let (one, two) = network.host_pair();
    let three = network.host(3);
    one.ping_until_reply(two.address)?;
    one.ping(two.address, 5)?;
    assert!(!one.can_ping(three.address)?, "VLANs are apart");
    // Stations are known in their VLAN.
    let known = deployment.run_tool("ovs-appctl fdb/show br0")?;
    let is_known = |line: &str| line.split_whitespace().nth(1) == Some("10");
    assert!(known.lines().any(is_known), "{known}");
    // The trunk hears each VLAN with its tag, and says in which it speaks.
    let mut trunk = network.host(4).capture_frames()?;
    assert!(!one.can_ping([10, 1, 0, 99].into())?);
    let seen = next_with(&mut trunk, "tpa=10.1.0.99")?;
    assert!(seen.contains("vlan(vid=10)"), "{seen}");
    let mut first = one.capture_frames()?;
    network.host(4).send(&[&question("/vlan(vid=20)", 3)])?;
    let answer = next_with(&mut trunk, "arp(op=2")?;
    assert!(answer.contains("vlan(vid=20)"), "{answer}");
    // Neither of a VLAN that the trunk does not carry nor without one does anything come in.
    network
        .host(4)
        .send(&[&question("/vlan(vid=30)", 1), &question("", 1)])?;
    network.host(4).send(&[&question("/vlan(vid=10)", 1)])?;
    let answer = next_with(&mut trunk, "arp(op=2")?;
    assert!(answer.contains("vlan(vid=10)"), "{answer}");
    let heard = next_with(&mut first, "spa=10.1.0.44")?;
    assert!(!heard.contains("vlan"), "{heard}");
    // What is said of a frame is what becomes of it.
    let story = deployment.run_tool(
        "ovs-appctl ofproto/trace br0 in_port=p1,dl_src=02:00:00:00:00:01,dl_dst=ff:ff:ff:ff:ff:ff",
    )?;
    let actions = story
        .lines()
        .find(|line| line.starts_with("Datapath actions: "));
    assert!(
        actions.is_some_and(|actions| actions.contains("push_vlan(vid=10")),
        "{story}"
    );
    // A port that changes its VLAN is in the other at once.
    deployment.vsctl("set Port p3 tag=10")?;
    one.ping_until_reply(three.address)?;
    deployment.vsctl("set Port p1 tag=20")?;
    assert!(!one.can_ping(three.address)?);
    Ok(())
}

fn native_vlans_protected_ports_and_bridges_in_a_vlan(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(
        "add-br br0 -- add-port br0 p1 tag=10 -- add-port br0 p2 tag=10 vlan_mode=native-untagged \
         -- add-port br0 p3 tag=20 -- add-br vlan10 br0 10",
    )?;
    let (one, two) = network.host_pair();
    one.ping_until_reply(two.address)?;
    // A bridge in a VLAN is an interface of the host in it.
    network
        .run("ip address add 10.1.0.99/24 dev vlan10")?
        .expect_success()?;
    network.run("ip link set vlan10 up")?.expect_success()?;
    one.ping_until_reply([10, 1, 0, 99].into())?;
    assert!(
        !network.host(3).can_ping([10, 1, 0, 99].into())?,
        "VLANs are apart"
    );
    assert_eq!(deployment.vsctl("br-to-vlan vlan10")?, "10");
    // Ports that are protected do not reach each other, but all others.
    deployment.vsctl("set Port p1 protected=true -- set Port p2 protected=true")?;
    assert!(!one.can_ping(two.address)?);
    one.ping_until_reply([10, 1, 0, 99].into())?;
    deployment.vsctl("set Port p2 protected=false")?;
    one.ping_until_reply(two.address)?;
    // Where frames of the native VLAN have a tag, a host without VLANs is not met.
    let mut capture = two.capture_frames()?;
    deployment.vsctl("set Port p2 vlan_mode=native-tagged")?;
    assert!(!one.can_ping([10, 1, 0, 98].into())?);
    let seen = next_with(&mut capture, "tpa=10.1.0.98")?;
    assert!(seen.contains("vlan(vid=10)"), "{seen}");
    // In VLANs that are flooded nobody is known.
    deployment.vsctl("set Bridge br0 flood_vlans=10")?;
    deployment.run_tool("ovs-appctl fdb/flush br0")?;
    one.ping_until_reply([10, 1, 0, 99].into())?;
    let known = deployment.run_tool("ovs-appctl fdb/show br0")?;
    assert!(!known.contains("02:00:00:00:00:01"), "{known}");
    Ok(())
}
