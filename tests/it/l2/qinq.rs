//! 802.1Q tunnels (`vlan_mode=dot1q-tunnel`) compared with Open vSwitch.

use testbed::Failure;

use crate::support::comparison::{NetworkPair, SideBySide};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::frames::encode_frames;
use crate::support::open_vswitch::appctl;

pub(crate) const TESTS: &[SystemTest] = tests![
    dot1q_tunnels_forward_like_open_vswitch,
    traces_of_dot1q_tunnels_match_open_vswitch,
];

/// Tags of the sent frames.
const TAGS: [&str; 13] = [
    "",
    "/vlan(vid=5)",
    "/vlan(vid=6)",
    "/vlan(vid=5,pcp=3)",
    "/vlan(vid=0,pcp=3)",
    "/vlan(vid=0)",
    "/vlan(vid=10)",
    "/vlan(tpid=0x88a8,vid=5)",
    "/vlan(tpid=0x88a8,vid=10)",
    "/vlan(tpid=0x88a8,vid=10,pcp=4)",
    "/vlan(tpid=0x88a8,vid=10)/vlan(vid=5)",
    "/vlan(tpid=0x88a8,vid=10,pcp=2)/vlan(vid=6,pcp=3)",
    "/vlan(tpid=0x88a8,vid=10)/vlan(vid=0,pcp=3)",
];

/// Number of leading frames with room for a tag: Open vSwitch supports two tags, and removes the
/// inner one to push a third.
const WITH_TAG_ROOM: usize = 10;

/// Configuration of the four ports, in each round.
const PORTS: [[&str; 4]; 4] = [
    [
        "tag=10 vlan_mode=dot1q-tunnel",
        "tag=10 vlan_mode=dot1q-tunnel cvlans=5",
        "vlan_mode=trunk",
        "tag=10 vlan_mode=access",
    ],
    [
        "tag=10 vlan_mode=dot1q-tunnel other_config:qinq-ethtype=802.1q",
        "tag=10 vlan_mode=native-untagged",
        "vlan_mode=trunk trunks=10",
        "tag=10 vlan_mode=native-tagged cvlans=7",
    ],
    [
        "tag=10 vlan_mode=dot1q-tunnel other_config:priority-tags=if-nonzero",
        "tag=10 vlan_mode=dot1q-tunnel cvlans=0,5,6",
        "vlan_mode=trunk other_config:priority-tags=if-nonzero",
        "tag=10 vlan_mode=access other_config:priority-tags=if-nonzero",
    ],
    [
        "tag=10 vlan_mode=dot1q-tunnel other_config:priority-tags=always",
        "tag=11 vlan_mode=dot1q-tunnel",
        "vlan_mode=trunk other_config:priority-tags=always",
        "tag=10 vlan_mode=native-untagged other_config:priority-tags=always",
    ],
];

const CLEAR: &str = "tag trunks cvlans vlan_mode other_config";

/// Sends frames with these tags, each with its own source address: Open vSwitch caches the result
/// for a frame with two tags, and applies it to frames with one tag from the same source.
#[track_caller]
fn deliver_tagged(
    both: &SideBySide<'_, '_>,
    from: usize,
    tags: &[&str],
) -> Result<Vec<String>, Failure> {
    let frame = |(number, tags)| {
        format!("eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:01:{number:02x}){tags}/data(50)")
    };
    let stacks: Vec<_> = (from * 16..).zip(tags).map(frame).collect();
    let stacks: Vec<_> = stacks.iter().map(String::as_str).collect();
    // Open vSwitch removes the flows of the earlier configuration only after some time.
    let [_, ovs] = both.deployments();
    appctl(ovs, "dpctl/del-flows")?;
    both.deliver(from, &stacks)
}

fn configure_ports(both: &SideBySide<'_, '_>, ports: &[&str; 4]) -> TestResult {
    for (port, number) in ports.iter().zip(1..) {
        both.vsctl(&format!(
            "clear Port p{number} {CLEAR} -- set Port p{number} {port}"
        ))?;
    }
    Ok(())
}

fn dot1q_tunnels_forward_like_open_vswitch(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let [comporta, ovs] = pair.deploy()?;
    let both = SideBySide::start(&comporta, &ovs)?;
    for limit in 1..=2 {
        both.vsctl(&format!(
            "set Open_vSwitch . other_config:vlan-limit={limit}"
        ))?;
        for ports in &PORTS {
            configure_ports(&both, ports)?;
            for (port, number) in ports.iter().zip(1..) {
                let count = match port.contains("dot1q-tunnel") && limit == 2 {
                    true => WITH_TAG_ROOM,
                    false => TAGS.len(),
                };
                deliver_tagged(&both, number, &TAGS[..count])?;
            }
        }
    }
    // Between two sites of a customer, by a provider's trunk.
    configure_ports(&both, &PORTS[0])?;
    let delivered = deliver_tagged(&both, 1, &["/vlan(vid=5,pcp=3)"])?;
    let delivered: Vec<_> = delivered.iter().map(String::as_str).collect();
    let [at_customer, at_trunk] = &delivered[..] else {
        panic!("{delivered:?}");
    };
    assert!(
        at_customer.starts_with("2 ") && !at_customer.contains("88a8"),
        "{delivered:?}"
    );
    let tags = "vlan(tpid=0x88a8,vid=10) / vlan(vid=5,pcp=3)";
    assert!(
        at_trunk.starts_with("3 ") && at_trunk.contains(tags),
        "{delivered:?}"
    );
    // Addresses are learned in the provider's VLAN.
    let entries = both
        .appctl("fdb/stats-show br0")
        .and_then(|_| appctl(&comporta, "fdb/show br0"))?;
    let is_learned = |line: &str| line.split_whitespace().nth(1) == Some("10");
    assert!(entries.lines().any(is_learned), "{entries}");
    // A tunnel keeps all of the customer's tags, whatever their number.
    let tags_of_three = "/vlan(vid=5)/vlan(vid=6)/vlan(vid=7)";
    let frame = format!("eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:01:01){tags_of_three}/data(50)");
    let mut capture = pair.comporta.host(2).capture_frames()?;
    pair.comporta.host(1).send(&[&frame])?;
    capture.expect_frame("eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:01:01) / vlan(vid=5) / vlan(vid=6) / vlan(vid=7) / data(50)");
    Ok(())
}

fn traces_of_dot1q_tunnels_match_open_vswitch(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let [comporta, ovs] = pair.deploy()?;
    let both = SideBySide::start(&comporta, &ovs)?;
    // The host port of one bridge is up, the other's is down.
    both.vsctl("set Open_vSwitch . other_config:vlan-limit=2 -- set Port br0 tag=99")?;
    configure_ports(&both, &PORTS[0])?;
    let trace = |deployment, port: usize, bytes: &[u8]| {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let output = appctl(
            deployment,
            &format!("ofproto/trace br0 in_port={port} {hex}"),
        )?;
        let lines = output.lines().filter(|line| line.starts_with("     >"));
        let actions = output.lines().last().unwrap_or_default();
        let actions = actions
            .split_once(": ")
            .map(|(_, actions)| actions.to_owned());
        Ok::<_, Failure>((lines.map(str::to_owned).collect::<Vec<_>>(), actions))
    };
    let frame =
        |tags: &str| format!("eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:01:01){tags}/data(50)");
    let mut skipped = 0;
    for port in 1..=4 {
        for tags in &TAGS[..WITH_TAG_ROOM] {
            let bytes = encode_frames(&[&frame(tags)]).remove(0);
            let (lines, actions) = trace(&comporta, port, &bytes)?;
            let (ovs_lines, ovs_actions) = trace(&ovs, port, &bytes)?;
            assert_eq!(lines, ovs_lines, "port {port}: {tags}");
            skipped += lines.len();
            let drops = |actions: &Option<String>| actions.as_deref() == Some("drop");
            assert_eq!(drops(&actions), drops(&ovs_actions), "port {port}: {tags}");
        }
    }
    assert_eq!(skipped, 28);
    let bytes = encode_frames(&[&frame("/vlan(vid=5)")]).remove(0);
    let (_, actions) = trace(&comporta, 1, &bytes)?;
    let actions = actions.unwrap_or_default();
    let pushed = actions.matches("push_vlan(tpid=0x88a8,vid=10,pcp=0)");
    assert_eq!(pushed.count(), 1, "{actions}");
    Ok(())
}
