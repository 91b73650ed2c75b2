//! Assignment of receive queues to workers (`--affinity`), also changed while frames arrive.

use openflow::Version;
use testbed::Failure;

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::controller::TestController;
use crate::support::network::TestNetwork;
use crate::support::switch::SwitchProcess;

pub(crate) const TESTS: &[SystemTest] = tests![
    ports_are_polled_by_their_assigned_workers,
    port_moves_between_workers_without_loss,
    affinity_errors_name_the_reason,
];

/// Two workers, each with one port.
const SEPARATE_WORKERS: &str = "--cores 0,1 --bridge br0 --fail-mode secure --port p1 --port p2 \
                     --affinity p1=0 --affinity p2=1";

fn ports_are_polled_by_their_assigned_workers(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SEPARATE_WORKERS)?;
    add_forwarding_rules(context, &switch)?;
    network.add_static_neighbours(1, 2)?;
    network.host(1).ping(network.host(2).address, 20)?;
    for (worker, receive_port, send_port) in [(0, 1, 2), (1, 2, 1)] {
        let worker_ports = worker_ports(&switch, worker)?;
        let of = |port: u32| {
            let name = format!("{port}(p{port}): ");
            let found = worker_ports
                .iter()
                .find_map(|line| line.strip_prefix(&name));
            found.map(str::to_owned).expect("each port has a line")
        };
        let (receiving, sent) = (of(receive_port), of(send_port));
        assert!(
            receiving.contains(" frames received, 0 sent"),
            "{worker_ports:?}"
        );
        assert!(
            sent.starts_with("receives none, ") && !sent.ends_with(" 0 sent"),
            "{worker_ports:?}"
        );
    }
    // The statistics of a port include its queues of both workers.
    let output = switch.ofctl("dump-ports br0 1")?;
    assert!(output.contains("tx pkts=20,"), "{output}");
    let output = switch.ofctl("dump-flows br0 in_port=1")?;
    assert!(output.contains("n_packets=20,"), "{output}");
    Ok(())
}

/// Sends frames from host 1 while ports move between workers: in each round `target` returns a port
/// and its new core. Asserts that host 2 receives all frames in order, and returns their number.
#[track_caller]
pub(crate) fn send_while_ports_move(
    network: &TestNetwork<'_>,
    switch: &SwitchProcess<'_>,
    target: impl Fn(usize) -> (&'static str, usize),
) -> Result<usize, Failure> {
    const MOVES: usize = 40;
    const FRAMES: usize = 25;
    let mut capture = network.host(2).capture_frames()?;
    let frame = |number: usize| format!("eth / ipv4(id={number}) / udp");
    for round in 0..MOVES {
        let frames: Vec<_> = (0..FRAMES).map(|n| frame(round * FRAMES + n)).collect();
        let frames: Vec<_> = frames.iter().map(String::as_str).collect();
        network.host(1).send(&frames)?;
        // Some of the frames are still in queues.
        let (port, core) = target(round);
        switch.appctl(&format!("comporta/affinity br0 {port} {core}"))?;
    }
    (0..MOVES * FRAMES).for_each(|number| capture.expect_frame(&frame(number)));
    Ok(MOVES * FRAMES)
}

fn port_moves_between_workers_without_loss(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SEPARATE_WORKERS)?;
    add_forwarding_rules(context, &switch)?;
    let frames = send_while_ports_move(&network, &switch, |round| ("p1", (round + 1) % 2))?;
    switch.wait_until("the last worker to take the port", |switch| {
        let lines_of = |worker| Ok::<_, Failure>(worker_ports(switch, worker)?.join("\n"));
        let none = "1(p1): receives none";
        Ok(!lines_of(0)?.contains(none) && lines_of(1)?.contains(none))
    })?;
    let output = switch.ofctl("dump-ports br0 1")?;
    assert!(output.contains(&format!("rx pkts={frames},")), "{output}");
    // In the other direction both workers send.
    network.add_static_neighbours(1, 2)?;
    network.host(1).ping(network.host(2).address, 20)?;
    Ok(())
}

fn affinity_errors_name_the_reason(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SEPARATE_WORKERS)?;
    for (words, expected) in [
        ("br0 p1 7", "no worker runs on core 7"),
        ("br0 p9 0", "no such port: p9"),
        ("br9 p1 0", "no such bridge: br9"),
        ("br0 p1 0,0", "0,0: not cores, each once"),
        ("br0 p1 0,1", "the port was opened with 1 receive queues"),
        ("br0 p1", "command requires at least 3 arguments"),
    ] {
        let refused = switch.appctl_failure(&format!("comporta/affinity {words}"))?;
        assert!(refused.contains(expected), "{words}: {refused}");
    }
    drop(switch);
    for (words, expected) in [
        (
            "--affinity p1=2",
            "no worker runs on core 2: add it to --cores",
        ),
        ("--affinity p3=0", "br0 has no port p3"),
        ("--affinity p1=0 --affinity p1=1", "the port is named twice"),
        ("--affinity p1", "use PORT=CORE[,CORE].."),
    ] {
        let result = network.run_switch(&format!("--cores 0,1 --bridge br0 --port p1 {words}"))?;
        let stderr = result.expect_failure()?;
        assert!(
            stderr.contains("--affinity") && stderr.contains(expected),
            "{words}: {stderr}"
        );
    }
    Ok(())
}

/// Forwards between the two ports.
fn add_forwarding_rules(context: &TestContext, switch: &SwitchProcess<'_>) -> Result<(), Failure> {
    let mut controller = TestController::connect(context, &switch.file("br0.mgmt"), Version::V13)?;
    controller.add_flow("in_port=1,actions=output:2")?;
    controller.add_flow("in_port=2,actions=output:1")?;
    controller.barrier();
    Ok(())
}

/// Lines of `comporta/workers` for one worker, one for each port of `br0`.
fn worker_ports(switch: &SwitchProcess<'_>, worker: usize) -> Result<Vec<String>, Failure> {
    let output = switch.appctl("comporta/workers")?;
    let heading = format!("worker {worker} on core {worker}:");
    let lines = output.lines().skip_while(|line| *line != heading).skip(1);
    let lines = lines.map_while(|line| line.strip_prefix("  br0 "));
    Ok(lines.map(str::to_owned).collect())
}
