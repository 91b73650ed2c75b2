//! Ports by AF_XDP, in the driver and in the kernel's generic path.

use std::fs;

use testbed::Failure;

use crate::dataplane::rxq_assignment::cross_while_ports_move;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::host::{TestHost, pseudo_random_bytes};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    hosts_talk_by_xdp_in_the_driver,
    hosts_talk_by_generic_xdp,
    ports_of_all_kinds_talk_to_each_other,
    a_killed_switch_leaves_no_program_behind,
    an_xdp_port_that_goes_and_returns_is_followed,
    xdp_ports_go_from_worker_to_worker_and_no_frame_is_lost,
    a_change_of_mode_is_a_new_port,
    an_xdp_port_says_what_it_lacks,
];

const TWO: &str = "--bridge br0 --port xdp:p1,native --port xdp:p2,native";

fn hosts_talk_by_xdp_in_the_driver(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(TWO)?;
    let (one, two) = network.host_pair();
    one.ping(two.address, 78)?;
    // Checksums are left unfinished by these hosts, as is their habit.
    let file = pseudo_random_bytes(32 << 20);
    assert!(one.transfer(two, &file)? == file, "harmed on the way there");
    assert!(two.transfer(one, &file)? == file, "harmed on the way back");
    assert!(switch.log()?.contains("p1: AF_XDP, native, copied"));
    assert!(switch.counter("br0 port 2 tx_finished")? > 0);
    // But for what was flooded, all left as it had come.
    for port in 1..=2 {
        let count = |name: &str| switch.counter(&format!("br0 port {port} {name}"));
        let (moved, copied) = (count("tx_moved")?, count("tx_copied")?);
        assert!(moved > 1000 && copied < 100, "{moved}, {copied}");
        assert_eq!(count("rx_copied")?, 0);
    }
    let shown = switch.appctl("comporta/workers")?;
    assert!(shown.contains("(AF_XDP, native, copied)"), "{shown}");
    Ok(())
}

fn hosts_talk_by_generic_xdp(context: &TestContext) -> TestResult {
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
    let file = pseudo_random_bytes(32 << 20);
    assert!(one.transfer(two, &file)? == file, "harmed on the way there");
    assert!(two.transfer(one, &file)? == file, "harmed on the way back");
    Ok(())
}

/// From packet sockets frames come that are still to be cut.
fn ports_of_all_kinds_talk_to_each_other(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let _switch = network.start_switch("--cores 0,1 --bridge br0 --port xdp:p1 --port p2")?;
    let (one, two) = network.host_pair();
    one.ping(two.address, 10)?;
    let file = pseudo_random_bytes(32 << 20);
    assert!(one.transfer(two, &file)? == file, "harmed on the way there");
    assert!(two.transfer(one, &file)? == file, "harmed on the way back");
    Ok(())
}

fn a_killed_switch_leaves_no_program_behind(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let link = || network.run("ip -d -o link show p1")?.expect_success();
    let before = link()?;
    for end in ["kill", "kill", "stop"] {
        let mut switch = network.start_switch(TWO)?;
        assert!(link()?.contains("prog/xdp"), "{}", link()?);
        network.host(1).ping_until_reply(network.host(2).address)?;
        match end {
            "stop" => assert!(switch.process.stop()?.success()),
            _ => drop(switch.process.kill()?),
        }
        assert_eq!(link()?, before);
    }
    Ok(())
}

fn an_xdp_port_that_goes_and_returns_is_followed(context: &TestContext) -> TestResult {
    let mut network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(TWO)?;
    for _ in 0..2 {
        network.host(1).ping_until_reply(network.host(2).address)?;
        network.switch_namespace.remove("p2")?;
        switch.wait_until("the port to be gone", |switch| {
            Ok(!switch.ofctl("show br0")?.contains("(p2)"))
        })?;
        network.hosts[1] = TestHost::attach(context, 2, &network.switch_namespace)?;
        network.host(1).ping_until_reply(network.host(2).address)?;
        network.host(1).ping(network.host(2).address, 10)?;
    }
    Ok(())
}

/// Two workers. Each has memory of its own, and takes the queues of the other's memory over;
/// in half of the moves both ports are with one worker, and frames leave as they came.
fn xdp_ports_go_from_worker_to_worker_and_no_frame_is_lost(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let words = "--cores 0,1 --bridge br0 --fail-mode secure --port xdp:p1 --port xdp:p2 \
                 --affinity p1=0 --affinity p2=0";
    let switch = network.start_switch(words)?;
    switch.ofctl("add-flow br0 in_port=1,actions=output:2")?;
    let goes = |round| [("p1", 1), ("p2", 1), ("p1", 0), ("p2", 0)][round % 4];
    let frames = cross_while_ports_move(&network, &switch, goes)?;
    let told = switch.ofctl("dump-ports br0 2")?;
    assert!(told.contains(&format!("tx pkts={frames},")), "{told}");
    assert!(switch.counter("br0 port 2 tx_moved")? > 0);
    Ok(())
}

/// The new port is opened while a worker may still have the old one.
fn a_change_of_mode_is_a_new_port(context: &TestContext) -> TestResult {
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
    for (count, (port, way)) in (2..).zip(changes) {
        write(port)?;
        switch.process.hang_up()?;
        switch.wait_until(port, |switch| {
            let log = switch.log()?;
            let mut steps = log.split("br0: add port p1 (1)").skip(count);
            let opened = steps.next().is_some_and(|rest| rest.contains(way));
            Ok(opened && switch.ofctl("show br0")?.contains(" 1(p1)"))
        })?;
        one.ping_until_reply(two.address)?;
    }
    Ok(())
}

fn an_xdp_port_says_what_it_lacks(context: &TestContext) -> TestResult {
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
