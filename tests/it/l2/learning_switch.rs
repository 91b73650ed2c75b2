//! A switch without a controller: address learning, VLANs, and the host port.

use std::net::Ipv4Addr;

use testbed::{DeviceOffload, Failure};

use crate::support::context::{SystemTest, TestContext, TestError, TestResult, tests};
use crate::support::network::TestNetwork;
use crate::support::switch::{STANDALONE_2, STANDALONE_3, SwitchProcess};

pub(crate) const TESTS: &[SystemTest] = tests![
    learning_switch_forwards_pings,
    files_cross_unchanged_in_both_directions,
    tcp_streams_cross_with_offloads_enabled,
    learned_address_is_forwarded_to_its_port_only,
    moved_address_is_relearned,
    flushed_forwarding_database_floods_again,
    tags_are_unchanged_and_addresses_are_learned_per_vlan,
    host_port_communicates_with_hosts,
    vlan_sub_interfaces_can_be_ports,
];

fn learning_switch_forwards_pings(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let _switch = network.start_switch(STANDALONE_3)?;
    for (from, to) in [(1, 2), (2, 3), (3, 1)] {
        network.host(from).ping(network.host(to).address, 10)?;
    }
    Ok(())
}

fn files_cross_unchanged_in_both_directions(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let _switch = network.start_switch(STANDALONE_2)?;
    let (one, two) = network.host_pair();
    one.exchange_files(two, 64 << 20)?;
    Ok(())
}

/// Segments of up to 64 KB and partial checksums are forwarded as they are: a frame on the veth
/// pair stands for many frames on a wire.
fn tcp_streams_cross_with_offloads_enabled(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(STANDALONE_2)?;
    let (one, two) = network.host_pair();
    for offload in [DeviceOffload::TxChecksum, DeviceOffload::TcpSegmentation] {
        assert!(one.namespace.offload(one.interface, offload)?);
    }
    one.iperf(two, "")?;
    two.iperf(one, "")?;
    one.iperf(two, "--reverse")?;
    for port in ["p1", "p2"] {
        let crossed = network.switch_namespace.counters(port)?;
        let number = &port[1..];
        let counted = switch.counter(&format!("br0 port {number} rx_packets"))?;
        assert!(
            counted > 5 * crossed.rx_packets,
            "{port}: {counted} frames counted, {} crossed",
            crossed.rx_packets
        );
    }
    Ok(())
}

fn learned_address_is_forwarded_to_its_port_only(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let switch = network.start_switch(STANDALONE_3)?;
    let (mut two, mut three) = (
        network.host(2).capture_frames()?,
        network.host(3).capture_frames()?,
    );
    network.host(1).send(&[TO_TWO])?;
    two.expect_frame(TO_TWO);
    three.expect_frame(TO_TWO);
    network.host(2).send(&[TO_ONE])?;
    wait_for_entry(context, &switch, 1, 0, "02:00:00:00:00:01")?;
    wait_for_entry(context, &switch, 2, 0, "02:00:00:00:00:02")?;
    network.host(1).send(&[TO_TWO, TO_ALL])?;
    two.expect_frame(TO_TWO);
    two.expect_frame(TO_ALL);
    three.expect_frame(TO_ALL);
    Ok(())
}

fn moved_address_is_relearned(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let switch = network.start_switch(STANDALONE_3)?;
    let (mut two, mut three) = (
        network.host(2).capture_frames()?,
        network.host(3).capture_frames()?,
    );
    network.host(2).send(&[TO_ONE])?;
    wait_for_entry(context, &switch, 2, 0, "02:00:00:00:00:02")?;
    three.expect_frame(TO_ONE);
    network.host(3).send(&[TO_ONE])?;
    wait_for_entry(context, &switch, 3, 0, "02:00:00:00:00:02")?;
    two.expect_frame(TO_ONE);
    network.host(1).send(&[TO_TWO, TO_ALL])?;
    three.expect_frame(TO_TWO);
    three.expect_frame(TO_ALL);
    two.expect_frame(TO_ALL);
    Ok(())
}

fn flushed_forwarding_database_floods_again(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let switch = network.start_switch(STANDALONE_3)?;
    network.host(2).send(&[TO_ONE])?;
    wait_for_entry(context, &switch, 2, 0, "02:00:00:00:00:02")?;
    assert_eq!(
        switch.appctl("fdb/flush br0")?,
        "table successfully flushed\n"
    );
    assert_eq!(switch.appctl("fdb/show br0")?.lines().count(), 1);
    let mut three = network.host(3).capture_frames()?;
    network.host(1).send(&[TO_TWO])?;
    three.expect_frame(TO_TWO);
    Ok(())
}

/// One tag, two tags of different types (QinQ), a priority tag: frames keep their tags. Addresses
/// are learned per VLAN.
fn tags_are_unchanged_and_addresses_are_learned_per_vlan(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let switch = network.start_switch(STANDALONE_3)?;
    let tagged = [
        "eth / vlan(vid=10,pcp=5) / ipv4 / udp / data(20)",
        "eth / vlan(vid=4095,dei=true) / ipv4 / udp / data(20)",
        "eth / vlan(tpid=0x88a8,vid=20) / vlan(vid=10) / ipv4 / tcp / data(20)",
        "eth / vlan(vid=20) / vlan(vid=10) / vlan(vid=30) / arp",
        "eth / vlan(vid=0,pcp=3) / ipv4 / udp / data(20)",
    ];
    let mut two = network.host(2).capture_frames()?;
    network.host(1).send(&tagged)?;
    for stack in tagged {
        two.expect_frame(stack);
    }
    network
        .host(2)
        .send(&["eth(dst=02:00:00:00:00:01,src=02:00:00:00:00:02) / vlan(vid=10) / data(50)"])?;
    wait_for_entry(context, &switch, 2, 10, "02:00:00:00:00:02")?;
    wait_for_entry(context, &switch, 1, 0, "02:00:00:00:00:01")?;
    wait_for_entry(context, &switch, 1, 20, "02:00:00:00:00:01")?;
    let mut three = network.host(3).capture_frames()?;
    network.host(1).send(&tagged)?;
    for stack in &tagged[1..] {
        three.expect_frame(stack);
    }
    Ok(())
}

fn host_port_communicates_with_hosts(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(STANDALONE_2)?;
    let local = Ipv4Addr::new(10, 1, 0, 100);
    network.switch_namespace.add_address("br0", local, 24)?;
    network.switch_namespace.set_up("br0")?;
    // The host's stack receives frames of ports too. With the sysctl `rp_filter`, as operators set
    // it, it ignores requests that it would answer by another interface; without it there are two
    // replies.
    for port in ["p1", "p2"] {
        let sysctl = format!("net/ipv4/conf/{port}/rp_filter");
        network.switch_namespace.set_sysctl(&sysctl, "1")?;
    }
    // Netlink notifies the switch that the interface is up.
    network.host(1).ping_until_reply(local)?;
    network.host(1).ping(local, 10)?;
    network
        .run(&format!(
            "ping -n -q -c 3 -i 0.01 {}",
            network.host(2).address
        ))?
        .expect_success()?;
    let output = switch.ofctl("-O OpenFlow13 show br0")?;
    assert!(output.contains("LOCAL(br0)"), "{output}");
    assert!(switch.counter("br0 port LOCAL rx_packets")? > 10);
    Ok(())
}

/// A trunk, whose VLAN sub-interfaces are the ports of the switch.
fn vlan_sub_interfaces_can_be_ports(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 1)?;
    let host = network.host(1);
    for vid in [10, 20] {
        let result = network.run(&format!(
            "ip link add link p1 name p1.{vid} type vlan id {vid}"
        ))?;
        if result.stderr.contains("Unknown device type") || result.stderr.contains("not supported")
        {
            let reason = "the kernel has no 8021q: ip link add type vlan fails";
            return Err(TestError::Skip(reason.to_owned()));
        }
        result.expect_success()?;
        network.switch_namespace.set_up(&format!("p1.{vid}"))?;
    }
    let _switch = network.start_switch("--bridge br0 --port p1.10 --port p1.20")?;
    let mut capture = host.capture_frames()?;
    host.send(&["eth / vlan(vid=10) / ipv4 / udp / data(20)"])?;
    capture.expect_frame("eth / vlan(vid=20) / ipv4 / udp / data(20)");
    Ok(())
}

/// From host 1 to host 2.
const TO_TWO: &str = "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01) / data(50)";
/// From host 2 to host 1.
const TO_ONE: &str = "eth(dst=02:00:00:00:00:01,src=02:00:00:00:00:02) / data(50)";
/// From host 1 to the broadcast address.
const TO_ALL: &str = "eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:00:01) / data(60)";

/// Waits until the forwarding database contains an entry.
fn wait_for_entry(
    context: &TestContext,
    switch: &SwitchProcess<'_>,
    port: u32,
    vid: u16,
    mac: &str,
) -> Result<(), Failure> {
    let row = format!("{port:>5}  {vid:>4}  {mac}");
    context.wait_until(&format!("the row '{row}'"), || {
        Ok(switch.appctl("fdb/show br0")?.contains(&row))
    })
}
