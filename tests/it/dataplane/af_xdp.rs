//! AF_XDP ports, in native and generic mode.

use std::fs;

use testbed::Failure;

use crate::dataplane::rxq_assignment::send_while_ports_move;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::host::TestHost;
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    hosts_communicate_by_native_xdp,
    hosts_communicate_by_generic_xdp,
    af_xdp_and_packet_socket_ports_exchange_files,
    xdp_program_is_removed_when_the_switch_is_killed,
    xdp_port_reopens_when_its_interface_returns,
    xdp_ports_move_between_workers_without_loss,
    port_mode_change_reopens_the_port,
    xdp_port_errors_name_the_missing_requirement,
];

const NATIVE_2: &str = "--bridge br0 --port xdp:p1,native --port xdp:p2,native";

fn hosts_communicate_by_native_xdp(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(NATIVE_2)?;
    let (one, two) = network.host_pair();
    one.ping(two.address, 78)?;
    // Checksums are left unfinished by these hosts, as is their habit.
    one.exchange_files(two, 32 << 20)?;
    assert!(switch.log()?.contains("p1: AF_XDP, native, copied"));
    assert!(switch.counter("br0 port 2 tx_checksummed")? > 0);
    // Except for flooded frames, all were sent without a copy or a modification.
    for port in 1..=2 {
        let count = |name: &str| switch.counter(&format!("br0 port {port} {name}"));
        let (zero_copy, copied) = (count("tx_zero_copy")?, count("tx_copied")?);
        assert!(zero_copy > 1000 && copied < 100, "{zero_copy}, {copied}");
        assert_eq!(count("rx_copied")?, 0);
    }
    let output = switch.appctl("comporta/workers")?;
    assert!(output.contains("(AF_XDP, native, copied)"), "{output}");
    Ok(())
}

fn hosts_communicate_by_generic_xdp(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network
        .start_switch("--bridge br0 --port xdp:p1,generic --port xdp:p2,generic,busy-poll")?;
    let advice = "`ethtool -K PEER tx off` there";
    assert!(switch.log()?.contains(advice), "{}", switch.log()?);
    let (one, two) = network.host_pair();
    for host in [one, two] {
        host.run("ethtool -K eth0 tx off")?.expect_success()?;
    }
    one.ping(two.address, 78)?;
    one.exchange_files(two, 32 << 20)?;
    Ok(())
}

/// Frames from packet sockets may still need segmentation.
fn af_xdp_and_packet_socket_ports_exchange_files(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let _switch = network.start_switch("--cores 0,1 --bridge br0 --port xdp:p1 --port p2")?;
    let (one, two) = network.host_pair();
    one.ping(two.address, 10)?;
    one.exchange_files(two, 32 << 20)?;
    Ok(())
}

fn xdp_program_is_removed_when_the_switch_is_killed(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let link = || network.run("ip -d -o link show p1")?.expect_success();
    let before = link()?;
    for ending in ["kill", "kill", "stop"] {
        let mut switch = network.start_switch(NATIVE_2)?;
        assert!(link()?.contains("prog/xdp"), "{}", link()?);
        network.host(1).ping_until_reply(network.host(2).address)?;
        match ending {
            "stop" => assert!(switch.process.stop()?.success()),
            _ => drop(switch.process.kill()?),
        }
        assert_eq!(link()?, before);
    }
    Ok(())
}

fn xdp_port_reopens_when_its_interface_returns(context: &TestContext) -> TestResult {
    let mut network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(NATIVE_2)?;
    for _ in 0..2 {
        network.host(1).ping_until_reply(network.host(2).address)?;
        network.switch_namespace.remove("p2")?;
        switch.wait_until("the port to be removed", |switch| {
            Ok(!switch.ofctl("show br0")?.contains("(p2)"))
        })?;
        network.hosts[1] = TestHost::attach(context, 2, &network.switch_namespace)?;
        network.host(1).ping_until_reply(network.host(2).address)?;
        network.host(1).ping(network.host(2).address, 10)?;
    }
    Ok(())
}

/// Two workers, each with its own memory, which takes over the queues of the other's memory. In
/// half of the moves both ports belong to one worker, and frames are sent without a copy.
fn xdp_ports_move_between_workers_without_loss(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let words = "--cores 0,1 --bridge br0 --fail-mode secure --port xdp:p1 --port xdp:p2 \
                 --affinity p1=0 --affinity p2=0";
    let switch = network.start_switch(words)?;
    switch.ofctl("add-flow br0 in_port=1,actions=output:2")?;
    let target = |round| [("p1", 1), ("p2", 1), ("p1", 0), ("p2", 0)][round % 4];
    let frames = send_while_ports_move(&network, &switch, target)?;
    let output = switch.ofctl("dump-ports br0 2")?;
    assert!(output.contains(&format!("tx pkts={frames},")), "{output}");
    assert!(switch.counter("br0 port 2 tx_zero_copy")? > 0);
    Ok(())
}

/// The new port is opened while a worker may still own the old one.
fn port_mode_change_reopens_the_port(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let file = context.unique_path("comporta.toml");
    let write = |port: &str| {
        let text = format!("[[bridge]]\nname = \"br0\"\nports = [\"{port}\", \"p2\"]\n");
        fs::write(&file, text).map_err(Failure::to("write the configuration"))
    };
    let (one, two) = network.host_pair();
    one.run("ethtool -K eth0 tx off")?.expect_success()?;
    write("xdp:p1")?;
    let switch = network.start_switch(&format!("--config {}", file.display()))?;
    one.ping(two.address, 3)?;
    let changes = [
        ("xdp:p1,generic", "AF_XDP, generic"),
        ("p1", ""),
        ("xdp:p1,copy", "AF_XDP, native"),
    ];
    for (count, (port, mode)) in (2..).zip(changes) {
        write(port)?;
        switch.process.hang_up()?;
        switch.wait_until(port, |switch| {
            let log = switch.log()?;
            let steps: Vec<_> = log
                .split("bridge br0: added interface p1 on port 1")
                .collect();
            let opened = steps.len() > count && steps[count - 1].contains(mode);
            Ok(opened && switch.ofctl("show br0")?.contains(" 1(p1)"))
        })?;
        one.ping_until_reply(two.address)?;
    }
    Ok(())
}

fn xdp_port_errors_name_the_missing_requirement(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 1)?;
    let refused = network
        .run_switch("--bridge br0 --port xdp:p1,zero-copy")?
        .expect_failure()?;
    assert!(refused.contains("omit `zero-copy`"), "{refused}");
    network.run("ip link set p1 mtu 9000")?.expect_success()?;
    let refused = network
        .run_switch("--bridge br0 --port xdp:p1")?
        .expect_failure()?;
    assert!(
        refused.contains("p1 has an MTU of 9000, and the maximum for AF_XDP is 3818"),
        "{refused}"
    );
    Ok(())
}
