//! Tunnels of customers' VLANs (`vlan_mode=dot1q-tunnel`), beside Open vSwitch.

use testbed::Failure;

use crate::support::comparison::{NetworkPair, SideBySide};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::frames::encode_frames;
use crate::support::open_vswitch::appctl;

pub(crate) const TESTS: &[SystemTest] = tests![
    customers_vlans_pass_a_provider_as_through_open_vswitch,
    what_would_become_of_a_customers_frame_is_told_as_by_open_vswitch,
];

/// The tags that frames come with.
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

/// Those that come with no more tags than a tunnel may add another to: Open vSwitch keeps two,
/// and takes off the innermost for a third.
const WITH_ROOM: usize = 10;

/// What the four ports are, one after the other.
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

/// Sends frames with these tags, each from a station of its own: of a frame with two tags Open
/// vSwitch takes what becomes of it for that of others of its station with one.
#[track_caller]
fn come(both: &SideBySide<'_, '_>, from: usize, tags: &[&str]) -> Result<Vec<String>, Failure> {
    let frame = |(number, tags)| {
        format!("eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:01:{number:02x}){tags}/data(50)")
    };
    let stacks: Vec<_> = (from * 16..).zip(tags).map(frame).collect();
    let stacks: Vec<_> = stacks.iter().map(String::as_str).collect();
    // It forgets by and by only what became of flows by what the ports were before.
    let [_, other] = both.deployments();
    appctl(other, "dpctl/del-flows")?;
    both.deliver(from, &stacks)
}

fn set(both: &SideBySide<'_, '_>, ports: &[&str; 4]) -> TestResult {
    for (port, number) in ports.iter().zip(1..) {
        both.vsctl(&format!(
            "clear Port p{number} {CLEAR} -- set Port p{number} {port}"
        ))?;
    }
    Ok(())
}

fn customers_vlans_pass_a_provider_as_through_open_vswitch(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let (ours, other) = (
        Deployment::in_directory(&pair.comporta, "ours")?,
        Deployment::in_directory(&pair.ovs, "theirs")?,
    );
    let both = SideBySide::start(&ours, &other)?;
    for limit in 1..=2 {
        both.vsctl(&format!(
            "set Open_vSwitch . other_config:vlan-limit={limit}"
        ))?;
        for ports in &PORTS {
            set(&both, ports)?;
            for (port, number) in ports.iter().zip(1..) {
                let count = match port.contains("dot1q-tunnel") && limit == 2 {
                    true => WITH_ROOM,
                    false => TAGS.len(),
                };
                come(&both, number, &TAGS[..count])?;
            }
        }
    }
    // Between two sites of a customer, by a provider's trunk.
    set(&both, &PORTS[0])?;
    let seen = come(&both, 1, &["/vlan(vid=5,pcp=3)"])?;
    let seen: Vec<_> = seen.iter().map(String::as_str).collect();
    let [at_customers, at_trunk] = &seen[..] else {
        panic!("{seen:?}");
    };
    assert!(
        at_customers.starts_with("2 ") && !at_customers.contains("88a8"),
        "{seen:?}"
    );
    let tags = "vlan(tpid=0x88a8,vid=10) / vlan(vid=5,pcp=3)";
    assert!(
        at_trunk.starts_with("3 ") && at_trunk.contains(tags),
        "{seen:?}"
    );
    // Stations are known in the provider's VLAN.
    let known = both
        .appctl("fdb/stats-show br0")
        .and_then(|_| appctl(&ours, "fdb/show br0"))?;
    let is_known = |line: &str| line.split_whitespace().nth(1) == Some("10");
    assert!(known.lines().any(is_known), "{known}");
    // No tag of a customer's is ever lost, however many there are.
    let deep = "/vlan(vid=5)/vlan(vid=6)/vlan(vid=7)";
    let frame = format!("eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:01:01){deep}/data(50)");
    let mut capture = pair.comporta.host(2).capture_frames()?;
    pair.comporta.host(1).send(&[&frame])?;
    capture.expect_frame("eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:01:01) / vlan(vid=5) / vlan(vid=6) / vlan(vid=7) / data(50)");
    Ok(())
}

fn what_would_become_of_a_customers_frame_is_told_as_by_open_vswitch(
    context: &TestContext,
) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let (ours, other) = (
        Deployment::in_directory(&pair.comporta, "ours")?,
        Deployment::in_directory(&pair.ovs, "theirs")?,
    );
    let both = SideBySide::start(&ours, &other)?;
    // Of the bridges' own interfaces one is up, the other is not.
    both.vsctl("set Open_vSwitch . other_config:vlan-limit=2 -- set Port br0 tag=99")?;
    set(&both, &PORTS[0])?;
    let told = |deployment, port: usize, bytes: &[u8]| {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let story = appctl(
            deployment,
            &format!("ofproto/trace br0 in_port={port} {hex}"),
        )?;
        let lines = story.lines().filter(|line| line.starts_with("     >"));
        let changes = story.lines().last().unwrap_or_default();
        let changes = changes
            .split_once(": ")
            .map(|(_, changes)| changes.to_owned());
        Ok::<_, Failure>((lines.map(str::to_owned).collect::<Vec<_>>(), changes))
    };
    let frame =
        |tags: &str| format!("eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:01:01){tags}/data(50)");
    let mut refused = 0;
    for port in 1..=4 {
        for tags in &TAGS[..WITH_ROOM] {
            let bytes = encode_frames(&[&frame(tags)]).remove(0);
            let (lines, changes) = told(&ours, port, &bytes)?;
            let (their_lines, their_changes) = told(&other, port, &bytes)?;
            assert_eq!(lines, their_lines, "port {port}: {tags}");
            refused += lines.len();
            let drops = |changes: &Option<String>| changes.as_deref() == Some("drop");
            assert_eq!(
                drops(&changes),
                drops(&their_changes),
                "port {port}: {tags}"
            );
        }
    }
    assert_eq!(refused, 28);
    let bytes = encode_frames(&[&frame("/vlan(vid=5)")]).remove(0);
    let (_, changes) = told(&ours, 1, &bytes)?;
    let changes = changes.unwrap_or_default();
    let pushed = changes.matches("push_vlan(tpid=0x88a8,vid=10,pcp=0)");
    assert_eq!(pushed.count(), 1, "{changes}");
    Ok(())
}
