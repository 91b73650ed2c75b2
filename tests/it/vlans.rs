//! VLANs of ports, as the database says them: what an ordinary switch does with tags.

use packet::build::Stack;

use crate::eye::Eye;
use crate::ground::{Ground, Outcome, Rule, rules};
use crate::rig::Rig;
use crate::site::Site;

pub(crate) const RULES: &[Rule] = rules![
    access_ports_reach_their_vlan_and_trunks_carry_its_tag,
    native_vlans_protected_ports_and_bridges_in_a_vlan,
];

/// What is seen next that holds `part`.
fn next_with(eye: &mut Eye<'_>, part: &str) -> Result<String, testbed::Failure> {
    loop {
        let seen = Stack::dissect(&eye.next()?).to_string();
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

fn access_ports_reach_their_vlan_and_trunks_carry_its_tag(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 4)?;
    let site = Site::new(&rig)?;
    let _daemon = site.daemon()?;
    site.vsctl(
        "add-br br0 -- add-port br0 p1 tag=10 -- add-port br0 p2 tag=10 \
         -- add-port br0 p3 tag=20 -- add-port br0 p4 trunks=10,20",
    )?;
    let (one, two) = rig.pair();
    let three = rig.host(3);
    one.reach(two.address)?;
    one.ping(two.address, 5)?;
    assert!(!one.answers(three.address)?, "VLANs are apart");
    // Stations are known in their VLAN.
    let known = site.tool("ovs-appctl fdb/show br0")?;
    let is_known = |line: &str| line.split_whitespace().nth(1) == Some("10");
    assert!(known.lines().any(is_known), "{known}");
    // The trunk hears each VLAN with its tag, and says in which it speaks.
    let mut trunk = rig.host(4).eye()?;
    assert!(!one.answers([10, 1, 0, 99].into())?);
    let seen = next_with(&mut trunk, "tpa=10.1.0.99")?;
    assert!(seen.contains("vlan(vid=10)"), "{seen}");
    let mut first = one.eye()?;
    rig.host(4).send(&[&question("/vlan(vid=20)", 3)])?;
    let answer = next_with(&mut trunk, "arp(op=2")?;
    assert!(answer.contains("vlan(vid=20)"), "{answer}");
    // Neither of a VLAN that the trunk does not carry nor without one does anything come in.
    rig.host(4)
        .send(&[&question("/vlan(vid=30)", 1), &question("", 1)])?;
    rig.host(4).send(&[&question("/vlan(vid=10)", 1)])?;
    let answer = next_with(&mut trunk, "arp(op=2")?;
    assert!(answer.contains("vlan(vid=10)"), "{answer}");
    let heard = next_with(&mut first, "spa=10.1.0.44")?;
    assert!(!heard.contains("vlan"), "{heard}");
    // What is said of a frame is what becomes of it.
    let story = site.tool(
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
    site.vsctl("set Port p3 tag=10")?;
    one.reach(three.address)?;
    site.vsctl("set Port p1 tag=20")?;
    assert!(!one.answers(three.address)?);
    Ok(())
}

fn native_vlans_protected_ports_and_bridges_in_a_vlan(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 3)?;
    let site = Site::new(&rig)?;
    let _daemon = site.daemon()?;
    site.vsctl(
        "add-br br0 -- add-port br0 p1 tag=10 -- add-port br0 p2 tag=10 vlan_mode=native-untagged \
         -- add-port br0 p3 tag=20 -- add-br vlan10 br0 10",
    )?;
    let (one, two) = rig.pair();
    one.reach(two.address)?;
    // A bridge in a VLAN is an interface of the host in it.
    rig.ran("ip address add 10.1.0.99/24 dev vlan10")?.good()?;
    rig.ran("ip link set vlan10 up")?.good()?;
    one.reach([10, 1, 0, 99].into())?;
    assert!(
        !rig.host(3).answers([10, 1, 0, 99].into())?,
        "VLANs are apart"
    );
    assert_eq!(site.vsctl("br-to-vlan vlan10")?, "10");
    // Ports that are protected do not reach each other, but all others.
    site.vsctl("set Port p1 protected=true -- set Port p2 protected=true")?;
    assert!(!one.answers(two.address)?);
    one.reach([10, 1, 0, 99].into())?;
    site.vsctl("set Port p2 protected=false")?;
    one.reach(two.address)?;
    // Where frames of the native VLAN have a tag, a host without VLANs is not met.
    let mut eye = two.eye()?;
    site.vsctl("set Port p2 vlan_mode=native-tagged")?;
    assert!(!one.answers([10, 1, 0, 98].into())?);
    let seen = next_with(&mut eye, "tpa=10.1.0.98")?;
    assert!(seen.contains("vlan(vid=10)"), "{seen}");
    // In VLANs that are flooded nobody is known.
    site.vsctl("set Bridge br0 flood_vlans=10")?;
    site.tool("ovs-appctl fdb/flush br0")?;
    one.reach([10, 1, 0, 99].into())?;
    let known = site.tool("ovs-appctl fdb/show br0")?;
    assert!(!known.contains("02:00:00:00:00:01"), "{known}");
    Ok(())
}
