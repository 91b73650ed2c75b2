//! VLANs of ports, as configured in the database.

use packet::build::Stack;

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::frames::FrameCapture;
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    access_ports_and_trunks_carry_their_vlans,
    native_vlans_protected_ports_and_fake_bridges_forward_as_configured,
];

/// Next captured frame whose text contains `part`.
fn next_frame_containing(
    capture: &mut FrameCapture<'_>,
    part: &str,
) -> Result<String, testbed::Failure> {
    loop {
        let frame = Stack::dissect(&capture.next_frame()?).to_string();
        if frame.contains(part) {
            return Ok(frame);
        }
    }
}

/// ARP request for host `number`, from a station behind a trunk.
fn arp_request(tag: &str, number: u8) -> String {
    format!(
        "eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:00:44){tag}/arp(op=1,spa=10.1.0.44,tpa=10.1.0.{number},sha=02:00:00:00:00:44)"
    )
}

fn access_ports_and_trunks_carry_their_vlans(context: &TestContext) -> TestResult {
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
    assert!(!one.can_ping(three.address)?, "VLANs are separate");
    // Addresses are learned in their VLAN.
    let entries = deployment.run_tool("ovs-appctl fdb/show br0")?;
    let is_learned = |line: &str| line.split_whitespace().nth(1) == Some("10");
    assert!(entries.lines().any(is_learned), "{entries}");
    // The trunk carries each VLAN with its tag, in both directions.
    let mut trunk = network.host(4).capture_frames()?;
    assert!(!one.can_ping([10, 1, 0, 99].into())?);
    let frame = next_frame_containing(&mut trunk, "tpa=10.1.0.99")?;
    assert!(frame.contains("vlan(vid=10)"), "{frame}");
    let mut first = one.capture_frames()?;
    network.host(4).send(&[&arp_request("/vlan(vid=20)", 3)])?;
    let reply = next_frame_containing(&mut trunk, "arp(op=2")?;
    assert!(reply.contains("vlan(vid=20)"), "{reply}");
    // Frames without a tag, or of a VLAN that the trunk does not carry, are dropped.
    network
        .host(4)
        .send(&[&arp_request("/vlan(vid=30)", 1), &arp_request("", 1)])?;
    network.host(4).send(&[&arp_request("/vlan(vid=10)", 1)])?;
    let reply = next_frame_containing(&mut trunk, "arp(op=2")?;
    assert!(reply.contains("vlan(vid=10)"), "{reply}");
    let request = next_frame_containing(&mut first, "spa=10.1.0.44")?;
    assert!(!request.contains("vlan"), "{request}");
    // A trace agrees with the forwarding.
    let trace = deployment.run_tool(
        "ovs-appctl ofproto/trace br0 in_port=p1,dl_src=02:00:00:00:00:01,dl_dst=ff:ff:ff:ff:ff:ff",
    )?;
    let actions = trace
        .lines()
        .find(|line| line.starts_with("Datapath actions: "));
    assert!(
        actions.is_some_and(|actions| actions.contains("push_vlan(vid=10")),
        "{trace}"
    );
    // A change of a port's VLAN takes effect immediately.
    deployment.vsctl("set Port p3 tag=10")?;
    one.ping_until_reply(three.address)?;
    deployment.vsctl("set Port p1 tag=20")?;
    assert!(!one.can_ping(three.address)?);
    Ok(())
}

fn native_vlans_protected_ports_and_fake_bridges_forward_as_configured(
    context: &TestContext,
) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(
        "add-br br0 -- add-port br0 p1 tag=10 -- add-port br0 p2 tag=10 vlan_mode=native-untagged \
         -- add-port br0 p3 tag=20 -- add-br vlan10 br0 10",
    )?;
    let (one, two) = network.host_pair();
    one.ping_until_reply(two.address)?;
    // A fake bridge is an interface of the host in its VLAN.
    network
        .run("ip address add 10.1.0.99/24 dev vlan10")?
        .expect_success()?;
    network.run("ip link set vlan10 up")?.expect_success()?;
    one.ping_until_reply([10, 1, 0, 99].into())?;
    assert!(
        !network.host(3).can_ping([10, 1, 0, 99].into())?,
        "VLANs are separate"
    );
    assert_eq!(deployment.vsctl("br-to-vlan vlan10")?, "10");
    // Protected ports reach all ports except each other.
    deployment.vsctl("set Port p1 protected=true -- set Port p2 protected=true")?;
    assert!(!one.can_ping(two.address)?);
    one.ping_until_reply([10, 1, 0, 99].into())?;
    deployment.vsctl("set Port p2 protected=false")?;
    one.ping_until_reply(two.address)?;
    // With a tagged native VLAN, a host without VLANs is not reachable.
    let mut capture = two.capture_frames()?;
    deployment.vsctl("set Port p2 vlan_mode=native-tagged")?;
    assert!(!one.can_ping([10, 1, 0, 98].into())?);
    let frame = next_frame_containing(&mut capture, "tpa=10.1.0.98")?;
    assert!(frame.contains("vlan(vid=10)"), "{frame}");
    // No address is learned in flooded VLANs.
    deployment.vsctl("set Bridge br0 flood_vlans=10")?;
    deployment.run_tool("ovs-appctl fdb/flush br0")?;
    one.ping_until_reply([10, 1, 0, 99].into())?;
    let entries = deployment.run_tool("ovs-appctl fdb/show br0")?;
    assert!(!entries.contains("02:00:00:00:00:01"), "{entries}");
    Ok(())
}
