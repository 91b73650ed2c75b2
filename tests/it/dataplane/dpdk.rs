//! DPDK ports, by virtual devices. The binary has them only if it is built with the feature `dpdk`,
//! as `cargo xtask test` does; otherwise these tests fail, and the binary's error says how to build
//! it.

use std::fs;

use testbed::Failure;

use crate::support::command::number_after;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::host::TestHost;
use crate::support::network::TestNetwork;
use crate::support::pcap::pcap_file;

pub(crate) const TESTS: &[SystemTest] = tests![
    dpdk_pcap_port_forwards_and_counts_frames_of_a_file,
    hosts_communicate_by_dpdk_packet_sockets,
    hosts_communicate_by_dpdk_af_xdp,
    host_stack_communicates_by_a_dpdk_tap,
    switches_communicate_by_dpdk_memif,
    dpdk_ring_returns_its_frames,
    workers_share_a_dpdk_device_with_one_queue,
    dpdk_port_reopens_when_its_interface_returns,
    dpdk_device_errors_name_the_cause,
];

/// Turns off segmentation offload on hosts: drivers without a virtio-net header cannot pass on a
/// frame that still needs segmentation, but can pass on a partial checksum.
fn disable_segmentation_offload(hosts: &[&TestHost<'_>]) -> Result<(), Failure> {
    for host in hosts {
        host.run("ethtool -K eth0 tso off gso off")?
            .expect_success()?;
    }
    Ok(())
}

fn dpdk_pcap_port_forwards_and_counts_frames_of_a_file(context: &TestContext) -> TestResult {
    let file = context.unique_path("two.pcap");
    let frames = ["eth / ipv4 / udp(dst=1)", "eth / ipv4 / udp(dst=2)"];
    fs::write(&file, pcap_file(&frames)).map_err(Failure::to("write a capture file"))?;
    let network = TestNetwork::new(context, 0)?;
    let words = format!(
        "--bridge br0 --fail-mode secure --port dpdk:net_pcap0,rx_pcap={},infinite_rx=1 \
         --port dpdk:net_null0=7,no-rx=1",
        file.display()
    );
    let mut switch = network.start_switch(&words)?;
    switch.ofctl("add-flow br0 in_port=1,udp,tp_dst=2,actions=output:7")?;
    switch.wait_until("transmitted frames", |switch| {
        Ok(number_after(&switch.ofctl("dump-ports br0 7")?, "tx pkts=") > 1000)
    })?;
    assert!(switch.ofctl("show br0")?.contains(" 7(net_null0)"));
    // A port that is down receives nothing, and all frames that it received are counted.
    switch.ofctl("mod-port br0 net_pcap0 down")?;
    switch.wait_until("the end of received frames", |switch| {
        let received = number_after(&switch.ofctl("dump-ports br0 1")?, "rx pkts=");
        Ok(received == number_after(&switch.ofctl("dump-ports br0 1")?, "rx pkts="))
    })?;
    let received = number_after(&switch.ofctl("dump-ports br0 1")?, "rx pkts=");
    let sent = number_after(&switch.ofctl("dump-ports br0 7")?, "tx pkts=");
    assert!(sent <= received / 2, "the rule matches every other frame");
    let output = switch.ofctl("dump-aggregate br0")?;
    assert_eq!(number_after(&output, "packet_count="), sent, "{output}");
    assert!(switch.process.stop()?.success(), "{}", switch.log()?);
    Ok(())
}

fn hosts_communicate_by_dpdk_packet_sockets(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(
        "--bridge br0 --port dpdk:net_af_packet1,iface=p1 --port dpdk:net_af_packet2,iface=p2",
    )?;
    let (one, two) = network.host_pair();
    disable_segmentation_offload(&[one, two])?;
    one.ping(two.address, 20)?;
    one.exchange_files(two, 8 << 20)?;
    // These hosts leave checksums to the device by default.
    assert!(switch.counter("br0 port 2 tx_checksummed")? > 0);
    Ok(())
}

fn hosts_communicate_by_dpdk_af_xdp(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let _switch = network.start_switch(
        "--bridge br0 --port dpdk:net_af_xdp1,iface=p1 --port dpdk:net_af_xdp2,iface=p2",
    )?;
    let (one, two) = network.host_pair();
    disable_segmentation_offload(&[one, two])?;
    one.ping(two.address, 20)?;
    one.exchange_files(two, 8 << 20)?;
    Ok(())
}

fn host_stack_communicates_by_a_dpdk_tap(context: &TestContext) -> TestResult {
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

fn switches_communicate_by_dpdk_memif(context: &TestContext) -> TestResult {
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
    one.exchange_files(two, 8 << 20)?;
    Ok(())
}

fn dpdk_ring_returns_its_frames(context: &TestContext) -> TestResult {
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

fn workers_share_a_dpdk_device_with_one_queue(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network
        .start_switch("--cores 0,1 --bridge br0 --port p1 --port dpdk:net_af_packet2,iface=p2")?;
    let output = "net_af_packet2 has 1 receive queues for 2 workers";
    assert!(switch.log()?.contains(output), "{}", switch.log()?);
    let (one, two) = network.host_pair();
    two.run("ethtool -K eth0 tso off gso off")?
        .expect_success()?;
    one.ping(two.address, 20)?;
    // Frames from Comporta's packet sockets still need segmentation.
    one.exchange_files(two, 8 << 20)?;
    assert!(switch.counter("br0 port 2 tx_segmented")? > 0);
    Ok(())
}

fn dpdk_port_reopens_when_its_interface_returns(context: &TestContext) -> TestResult {
    let mut network = TestNetwork::new(context, 2)?;
    let words = "--bridge br0 --port p1 --port dpdk:net_af_packet2,iface=p2";
    let switch = network.start_switch(words)?;
    for _ in 0..2 {
        network.host(1).ping_until_reply(network.host(2).address)?;
        network.switch_namespace.remove("p2")?;
        switch.wait_until("the port to be removed", |switch| {
            Ok(!switch.ofctl("show br0")?.contains("(net_af_packet2)"))
        })?;
        network.hosts[1] = TestHost::attach(context, 2, &network.switch_namespace)?;
        network.host(1).ping_until_reply(network.host(2).address)?;
        network.host(1).ping(network.host(2).address, 10)?;
    }
    Ok(())
}

fn dpdk_device_errors_name_the_cause(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let refused = |port: &str| {
        network
            .run_switch(&format!("--bridge br0 --port dpdk:{port}"))?
            .expect_failure()
    };
    let output = refused("net_af_packet0,iface=nowhere")?;
    assert!(
        output.contains("net_af_packet0: probing the device: "),
        "{output}"
    );
    assert!(
        output.contains("No such device"),
        "the driver's message: {output}"
    );
    let output = refused("net_nonsense0")?;
    assert!(
        output.contains("net_nonsense0: probing the device: "),
        "{output}"
    );
    let output = refused("net_null0,buffers=0")?;
    assert!(output.contains("buffers takes a number from 1"), "{output}");
    let output = refused("0000:ff:1f.7")?;
    assert!(
        output.contains("0000:ff:1f.7: probing the device: "),
        "{output}"
    );
    Ok(())
}
