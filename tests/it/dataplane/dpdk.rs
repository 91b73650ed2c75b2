//! Ports of DPDK, by its virtual devices. The binary has them only if it is built with
//! the feature `dpdk`, as `cargo xtask test` does; otherwise these tests fail, and it says
//! how.

use std::fs;

use testbed::Failure;

use crate::support::command::number_after;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::host::{TestHost, pseudo_random_bytes};
use crate::support::network::TestNetwork;
use crate::support::pcap::pcap_file;

pub(crate) const TESTS: &[SystemTest] = tests![
    frames_of_a_dpdk_file_are_forwarded_and_counted,
    hosts_talk_by_packet_sockets_of_dpdk,
    hosts_talk_by_af_xdp_of_dpdk,
    the_machine_talks_by_a_tap_of_dpdk,
    two_switches_talk_through_memory_of_dpdk,
    a_dpdk_ring_hands_back_what_it_is_given,
    workers_share_a_dpdk_device_of_one_queue,
    a_dpdk_device_that_goes_and_returns_is_followed,
    a_dpdk_device_says_what_it_lacks,
];

/// Drivers without a header beside the frame cannot hand a segment on that is still to
/// be cut; checksums they can leave unfinished.
fn cut_at_home(hosts: &[&TestHost<'_>]) -> Result<(), Failure> {
    for host in hosts {
        host.run("ethtool -K eth0 tso off gso off")?
            .expect_success()?;
    }
    Ok(())
}

fn exchange(one: &TestHost<'_>, two: &TestHost<'_>) -> TestResult {
    let file = pseudo_random_bytes(8 << 20);
    assert!(one.transfer(two, &file)? == file, "harmed on the way there");
    assert!(two.transfer(one, &file)? == file, "harmed on the way back");
    Ok(())
}

fn frames_of_a_dpdk_file_are_forwarded_and_counted(context: &TestContext) -> TestResult {
    let file = context.unique_path("two.pcap");
    let frames = ["eth / ipv4 / udp(dst=1)", "eth / ipv4 / udp(dst=2)"];
    fs::write(&file, pcap_file(&frames)).map_err(Failure::to("write a file of frames"))?;
    let network = TestNetwork::new(context, 0)?;
    let words = format!(
        "--bridge br0 --fail-mode secure --port dpdk:net_pcap0,rx_pcap={},infinite_rx=1 \
         --port dpdk:net_null0=7,no-rx=1",
        file.display()
    );
    let mut switch = network.start_switch(&words)?;
    switch.ofctl("add-flow br0 in_port=1,udp,tp_dst=2,actions=output:7")?;
    switch.wait_until("frames to leave", |switch| {
        Ok(number_after(&switch.ofctl("dump-ports br0 7")?, "tx pkts=") > 1000)
    })?;
    assert!(switch.ofctl("show br0")?.contains(" 7(net_null0)"));
    // Down it is silent, and what it has received is counted to the last.
    switch.ofctl("mod-port br0 net_pcap0 down")?;
    switch.wait_until("no frames to come", |switch| {
        let came = number_after(&switch.ofctl("dump-ports br0 1")?, "rx pkts=");
        Ok(came == number_after(&switch.ofctl("dump-ports br0 1")?, "rx pkts="))
    })?;
    let came = number_after(&switch.ofctl("dump-ports br0 1")?, "rx pkts=");
    let left = number_after(&switch.ofctl("dump-ports br0 7")?, "tx pkts=");
    assert!(left <= came / 2, "every other frame is for the rule");
    let told = switch.ofctl("dump-aggregate br0")?;
    assert_eq!(number_after(&told, "packet_count="), left, "{told}");
    assert!(switch.process.stop()?.success(), "{}", switch.log()?);
    Ok(())
}

fn hosts_talk_by_packet_sockets_of_dpdk(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(
        "--bridge br0 --port dpdk:net_af_packet1,iface=p1 --port dpdk:net_af_packet2,iface=p2",
    )?;
    let (one, two) = network.host_pair();
    cut_at_home(&[one, two])?;
    one.ping(two.address, 20)?;
    exchange(one, two)?;
    // Checksums are left unfinished by these hosts, as is their habit.
    assert!(switch.counter("br0 port 2 tx_finished")? > 0);
    Ok(())
}

fn hosts_talk_by_af_xdp_of_dpdk(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let _switch = network.start_switch(
        "--bridge br0 --port dpdk:net_af_xdp1,iface=p1 --port dpdk:net_af_xdp2,iface=p2",
    )?;
    let (one, two) = network.host_pair();
    cut_at_home(&[one, two])?;
    one.ping(two.address, 20)?;
    exchange(one, two)
}

fn the_machine_talks_by_a_tap_of_dpdk(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 1)?;
    let mut switch =
        network.start_switch("--bridge br0 --port p1 --port dpdk:net_tap0,iface=t0")?;
    for words in ["ip addr add 10.1.0.9/24 dev t0", "ip link set t0 up"] {
        network.run(words)?.expect_success()?;
    }
    let host = network.host(1).address;
    network
        .run(&format!("fping -q -r 50 -t 500 {host}"))?
        .expect_success()?;
    network.host(1).ping([10, 1, 0, 9].into(), 20)?;
    assert!(switch.process.stop()?.success(), "{}", switch.log()?);
    network.run("ip link show t0")?.expect_failure()?;
    Ok(())
}

fn two_switches_talk_through_memory_of_dpdk(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let socket = context.unique_path("memif");
    let words = |port: u8, role: &str| {
        format!(
            "--bridge br{port} --port p{port} --port dpdk:net_memif0,role={role},socket={}",
            socket.display()
        )
    };
    let _server = network.start_switch(&words(1, "server"))?;
    let _client =
        network.start_switch_in(&context.directory().join("run2"), &words(2, "client"))?;
    let (one, two) = network.host_pair();
    one.ping_until_reply(two.address)?;
    one.ping(two.address, 20)?;
    exchange(one, two)
}

fn a_dpdk_ring_hands_back_what_it_is_given(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let words = "--bridge br0 --fail-mode secure --port p1 --port p2 --port dpdk:net_ring0";
    let switch = network.start_switch(words)?;
    switch.ofctl("add-flow br0 in_port=1,actions=output:3")?;
    switch.ofctl("add-flow br0 in_port=3,actions=output:2")?;
    let mut capture = network.host(2).capture_frames()?;
    network.host(1).send(&["eth / ipv4 / udp(dst=9)"])?;
    capture.expect_frame("eth / ipv4 / udp(dst=9)");
    Ok(())
}

fn workers_share_a_dpdk_device_of_one_queue(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network
        .start_switch("--cores 0,1 --bridge br0 --port p1 --port dpdk:net_af_packet2,iface=p2")?;
    let told = "net_af_packet2 has 1 receive queues for 2 workers";
    assert!(switch.log()?.contains(told), "{}", switch.log()?);
    let (one, two) = network.host_pair();
    two.run("ethtool -K eth0 tso off gso off")?
        .expect_success()?;
    one.ping(two.address, 20)?;
    // From packet sockets of ours frames come that are still to be cut.
    exchange(one, two)?;
    assert!(switch.counter("br0 port 2 tx_segmented")? > 0);
    Ok(())
}

fn a_dpdk_device_that_goes_and_returns_is_followed(context: &TestContext) -> TestResult {
    let mut network = TestNetwork::new(context, 2)?;
    let words = "--bridge br0 --port p1 --port dpdk:net_af_packet2,iface=p2";
    let switch = network.start_switch(words)?;
    for _ in 0..2 {
        network.host(1).ping_until_reply(network.host(2).address)?;
        network.switch_namespace.remove("p2")?;
        switch.wait_until("the port to be gone", |switch| {
            Ok(!switch.ofctl("show br0")?.contains("(net_af_packet2)"))
        })?;
        network.hosts[1] = TestHost::attach(context, 2, &network.switch_namespace)?;
        network.host(1).ping_until_reply(network.host(2).address)?;
        network.host(1).ping(network.host(2).address, 10)?;
    }
    Ok(())
}

fn a_dpdk_device_says_what_it_lacks(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let refused = |port: &str| {
        network
            .run_switch(&format!("--bridge br0 --port dpdk:{port}"))?
            .expect_failure()
    };
    let told = refused("net_af_packet0,iface=nowhere")?;
    assert!(
        told.contains("net_af_packet0: probing the device: "),
        "{told}"
    );
    assert!(
        told.contains("No such device"),
        "the driver's words: {told}"
    );
    let told = refused("net_nonsense0")?;
    assert!(
        told.contains("net_nonsense0: probing the device: "),
        "{told}"
    );
    let told = refused("net_null0,buffers=0")?;
    assert!(told.contains("buffers takes a number from 1"), "{told}");
    let told = refused("0000:ff:1f.7")?;
    assert!(
        told.contains("0000:ff:1f.7: probing the device: "),
        "{told}"
    );
    Ok(())
}
