//! Which worker takes which port's frames: as it was asked for, and changed while frames
//! move.

use openflow::Version;
use testbed::Failure;

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::controller::TestController;
use crate::support::network::TestNetwork;
use crate::support::switch::SwitchProcess;

pub(crate) const TESTS: &[SystemTest] = tests![
    a_ports_frames_are_taken_by_the_workers_it_is_given_to,
    a_port_moves_from_worker_to_worker_and_no_frame_is_lost,
    cores_that_cannot_be_a_ports_are_refused_by_name,
];

/// Two workers, each with a port of its own.
const APART: &str = "--cores 0,1 --bridge br0 --fail-mode secure --port p1 --port p2 \
                     --affinity p1=0 --affinity p2=1";

fn a_ports_frames_are_taken_by_the_workers_it_is_given_to(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(APART)?;
    forward(context, &switch)?;
    network.add_static_neighbours(1, 2)?;
    network.host(1).ping(network.host(2).address, 20)?;
    for (place, takes, sends) in [(0, 1, 2), (1, 2, 1)] {
        let seats = seats(&switch, place)?;
        let of = |port: u32| {
            let name = format!("{port}(p{port}): ");
            let found = seats.iter().find_map(|seat| seat.strip_prefix(&name));
            found.map(str::to_owned).expect("each port has a line")
        };
        let (taken, sent) = (of(takes), of(sends));
        assert!(taken.contains(" frames taken, 0 sent"), "{seats:?}");
        assert!(
            sent.starts_with("takes none, ") && !sent.ends_with(" 0 sent"),
            "{seats:?}"
        );
    }
    // Both queues of a port count for it.
    let told = switch.ofctl("dump-ports br0 1")?;
    assert!(told.contains("tx pkts=20,"), "{told}");
    let told = switch.ofctl("dump-flows br0 in_port=1")?;
    assert!(told.contains("n_packets=20,"), "{told}");
    Ok(())
}

/// Has host 1 send frames while ports go from worker to worker, in each round the one to the
/// core that `goes` says, and host 2 see all of them in order. Answers how many they were.
#[track_caller]
pub(crate) fn cross_while_ports_move(
    network: &TestNetwork<'_>,
    switch: &SwitchProcess<'_>,
    goes: impl Fn(usize) -> (&'static str, usize),
) -> Result<usize, Failure> {
    const MOVES: usize = 40;
    const FRAMES: usize = 25;
    let mut capture = network.host(2).capture_frames()?;
    let frame = |number: usize| format!("eth / ipv4(id={number}) / udp");
    for round in 0..MOVES {
        let frames: Vec<_> = (0..FRAMES).map(|n| frame(round * FRAMES + n)).collect();
        let frames: Vec<_> = frames.iter().map(String::as_str).collect();
        network.host(1).send(&frames)?;
        // Some of them are under way.
        let (port, core) = goes(round);
        switch.appctl(&format!("comporta/affinity br0 {port} {core}"))?;
    }
    (0..MOVES * FRAMES).for_each(|number| capture.expect_frame(&frame(number)));
    Ok(MOVES * FRAMES)
}

fn a_port_moves_from_worker_to_worker_and_no_frame_is_lost(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(APART)?;
    forward(context, &switch)?;
    let frames = cross_while_ports_move(&network, &switch, |round| ("p1", (round + 1) % 2))?;
    switch.wait_until("the last worker to take the port", |switch| {
        let at = |place| Ok::<_, Failure>(seats(switch, place)?.join("\n"));
        let none = "1(p1): takes none";
        Ok(!at(0)?.contains(none) && at(1)?.contains(none))
    })?;
    let told = switch.ofctl("dump-ports br0 1")?;
    assert!(told.contains(&format!("rx pkts={frames},")), "{told}");
    // The other way each worker sends, whichever took the port.
    network.add_static_neighbours(1, 2)?;
    network.host(1).ping(network.host(2).address, 20)?;
    Ok(())
}

fn cores_that_cannot_be_a_ports_are_refused_by_name(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(APART)?;
    for (words, wanted) in [
        ("br0 p1 7", "no worker runs on core 7"),
        ("br0 p9 0", "no such port: p9"),
        ("br9 p1 0", "no such bridge: br9"),
        ("br0 p1 0,0", "0,0: not cores, each once"),
        (
            "br0 p1 0,1",
            "the port was opened with 1 queues to receive by",
        ),
        ("br0 p1", "command requires at least 3 arguments"),
    ] {
        let refused = switch.appctl_failure(&format!("comporta/affinity {words}"))?;
        assert!(refused.contains(wanted), "{words}: {refused}");
    }
    drop(switch);
    for (words, wanted) in [
        (
            "--affinity p1=2",
            "no worker runs on core 2: add it to --cores",
        ),
        ("--affinity p3=0", "br0 has no port p3"),
        ("--affinity p1=0 --affinity p1=1", "the port is named twice"),
        ("--affinity p1", "use PORT=CORE[,CORE].."),
    ] {
        let ran = network.run_switch(&format!("--cores 0,1 --bridge br0 --port p1 {words}"))?;
        let said = ran.expect_failure()?;
        assert!(
            said.contains("--affinity") && said.contains(wanted),
            "{words}: {said}"
        );
    }
    Ok(())
}

/// Has frames of each port leave by the other.
fn forward(context: &TestContext, switch: &SwitchProcess<'_>) -> Result<(), Failure> {
    let mut controller = TestController::connect(context, &switch.file("br0.mgmt"), Version::V13)?;
    controller.add_flow("in_port=1,actions=output:2")?;
    controller.add_flow("in_port=2,actions=output:1")?;
    controller.barrier();
    Ok(())
}

/// What a worker serves, a line for each port of `br0`.
fn seats(switch: &SwitchProcess<'_>, place: usize) -> Result<Vec<String>, Failure> {
    let told = switch.appctl("comporta/workers")?;
    let head = format!("worker {place} on core {place}:");
    let lines = told.lines().skip_while(|line| *line != head).skip(1);
    let lines = lines.map_while(|line| line.strip_prefix("  br0 "));
    Ok(lines.map(str::to_owned).collect())
}
