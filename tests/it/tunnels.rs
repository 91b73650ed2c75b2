//! Tunnels: with the kernel's own VXLAN and with Open vSwitch at the other end, by IPv4 and IPv6.

use std::net::Ipv4Addr;

use testbed::Failure;

use crate::ground::{Ground, Outcome, Rule, rules};
use crate::host::{Host, noise};
use crate::rig::Rig;

pub(crate) const RULES: &[Rule] = rules![vxlan_meets_the_kernels_own_by_ipv4_and_ipv6,];

/// The end of a tunnel that is the kernel's: host 2, whose other address is within.
fn kernels_vxlan(host: &Host<'_>, words: &str, outer: &str) -> Result<(), Failure> {
    for words in [
        "ip address flush dev eth0".to_owned(),
        format!("ip address add {outer} dev eth0 nodad"),
        format!("ip link add vx0 type vxlan dev eth0 {words}"),
        "ip link set vx0 mtu 1400 up".to_owned(),
        format!("ip address add {}/24 dev vx0", host.address),
    ] {
        host.ran(&words)?.good()?;
    }
    Ok(())
}

/// Gives the bridge `br-phy` an address.
fn address(rig: &Rig<'_>, outer: &str) -> Result<(), Failure> {
    rig.ran(&format!("ip address add {outer} dev br-phy nodad"))?
        .good()?;
    rig.ran("ip link set br-phy up")?.good()?;
    Ok(())
}

/// Streams both ways, whose segments are cut and summed on the way, and bytes that must be those
/// that were sent.
fn stream(one: &Host<'_>, two: &Host<'_>) -> Result<(), Failure> {
    one.reach(two.address)?;
    one.ping(two.address, 5)?;
    let bytes = noise(3_000_000);
    assert!(one.transfer(two, &bytes)? == bytes, "other bytes came");
    assert!(two.transfer(one, &bytes)? == bytes, "other bytes came");
    Ok(())
}

fn vxlan_meets_the_kernels_own_by_ipv4_and_ipv6(ground: &Ground) -> Outcome {
    for (ours, theirs, words, remote) in [
        (
            "172.16.0.1/24",
            "172.16.0.2/24",
            "remote 172.16.0.1",
            "172.16.0.2",
        ),
        ("fd00::1/64", "fd00::2/64", "remote fd00::1", "fd00::2"),
    ] {
        let rig = Rig::new(ground, 2)?;
        let (one, two) = rig.pair();
        kernels_vxlan(two, &format!("id 42 {words} dstport 4789 udpcsum"), theirs)?;
        one.ran("ip link set eth0 mtu 1400")?.good()?;
        let switch = rig.start(&format!(
            "--bridge br-phy --port p2 --bridge br0 --port p1 --port vxlan:v0,remote={remote},key=42"
        ))?;
        address(&rig, ours)?;
        stream(one, two)?;
        let shown = switch.appctl("tnl/ports/show")?;
        assert!(shown.contains("vxlan_sys_4789 (4789) ref_cnt=1"), "{shown}");
        let shown = switch.appctl("tnl/neigh/show")?;
        assert!(
            shown.contains(remote) && shown.contains("br-phy"),
            "{shown}"
        );
        let shown = switch.appctl(&format!("ovs/route/lookup {remote}"))?;
        assert!(shown.contains("dev br-phy"), "{shown}");
        // Another key is another's.
        two.ran("ip link del vx0")?.good()?;
        kernels_vxlan(two, &format!("id 43 {words} dstport 4789 udpcsum"), theirs)?;
        assert!(!two.answers(Ipv4Addr::new(10, 1, 0, 1))?);
        ground.wait_until("packets of no tunnel to be counted", || {
            two.answers(one.address)?;
            Ok(switch.counter("tunnel_no_port")? > 0)
        })?;
    }
    Ok(())
}
