//! Peers that send what multiplies work or memory: the switch stays within its bounds and serves
//! others.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use base::{PortNo, Xid};
use flow::{Action, PacketOut, PipelineFields};
use openflow::{Message, Version};
use testbed::Failure;

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::controller::TestController;
use crate::support::network::TestNetwork;
use crate::support::switch::SwitchProcess;

pub(crate) const TESTS: &[SystemTest] = tests![
    packet_out_to_all_ports_takes_bounded_memory,
    memory_stays_bounded_with_long_messages_behind_barriers,
];

/// Longest barrier of another bridge meanwhile: some 0.1 s are usual, and without limits 15 s.
const BARRIER_MAX: Duration = Duration::from_secs(2);

/// Returns the largest memory of the switch so far, in bytes.
fn peak_memory(switch: &SwitchProcess<'_>) -> Result<u64, Failure> {
    let path = format!("/proc/{}/status", switch.process.id());
    let status = fs::read_to_string(path).map_err(Failure::to("read the memory of the switch"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kilobytes.unwrap_or(u64::MAX / 1024) * 1024)
}

/// Sends a barrier request, and asserts that the reply does not wait for other bridges.
fn expect_prompt_barrier(context: &TestContext, controller: &mut TestController<'_>) {
    let begin = context.clock.now();
    controller.barrier();
    let waited = context.clock.now() - begin;
    assert!(waited < BARRIER_MAX, "a barrier of {waited:?}");
}

fn packet_out_to_all_ports_takes_bounded_memory(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let taps: String = (0..100).map(|tap| format!(" --port tap:t{tap}")).collect();
    let switch = network.start_switch(&format!(
        "--bridge br0 --fail-mode secure --port p1{taps} --bridge br1 --fail-mode secure --port p2"
    ))?;
    let connect = |socket| TestController::connect(context, &switch.file(socket), Version::V13);
    let (mut hostile, mut good) = (connect("br0.mgmt")?, connect("br1.mgmt")?);
    let message = |outputs| {
        Message::PacketOut(PacketOut {
            buffer: None,
            registers: PipelineFields::new(PortNo::CONTROLLER),
            actions: vec![Action::output(PortNo::ALL); outputs],
            data: vec![2; 42_000],
        })
    };
    for controller in [&mut hostile, &mut good] {
        controller.barrier();
    }
    let before = peak_memory(&switch)?;
    for outputs in [1000, 100, 1000, 100] {
        hostile.send(&message(outputs))?;
        expect_prompt_barrier(context, &mut good);
    }
    hostile.barrier();
    let growth = peak_memory(&switch)?.saturating_sub(before);
    assert!(growth < 64 << 20, "{growth} bytes of growth");
    // A thousand outputs to all ports exceed the outputs of a packet already.
    assert_eq!(switch.counter("br0 packet_out_limited ")?, 2);
    Ok(())
}

fn memory_stays_bounded_with_long_messages_behind_barriers(context: &TestContext) -> TestResult {
    const PEERS: usize = 64;
    let network = TestNetwork::new(context, 1)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1")?;
    let mut good = TestController::connect(context, &switch.file("br0.mgmt"), Version::V13)?;
    good.barrier();
    let before = peak_memory(&switch)?;
    let mut burst = vec![4, 0, 0, 8, 0, 0, 0, 1];
    let long = Message::PacketOut(PacketOut {
        buffer: None,
        registers: PipelineFields::new(PortNo::CONTROLLER),
        actions: vec![Action::output(PortNo(999)); 3900],
        data: vec![2; 60],
    });
    for xid in 2..40 {
        Message::BarrierRequest.encode(Xid(xid), Version::V13, &mut burst)?;
        long.encode(Xid(xid), Version::V13, &mut burst)?;
    }
    let mut peers = Vec::new();
    for _ in 0..PEERS {
        let peer = UnixStream::connect(switch.file("br0.mgmt"))?;
        peer.set_nonblocking(true)?;
        peers.push((peer, 0));
    }
    let end = context.clock.now() + Duration::from_secs(3);
    while context.clock.now() < end {
        for (peer, sent) in &mut peers {
            match peer.write(&burst[*sent..]) {
                // Later rounds have no hello.
                Ok(count) if *sent + count == burst.len() => *sent = 8,
                Ok(count) => *sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(Failure::to("send messages")(error).into()),
            }
        }
        expect_prompt_barrier(context, &mut good);
    }
    let growth = peak_memory(&switch)?.saturating_sub(before);
    // A few megabytes each: the messages in flight, and what is read.
    assert!(growth < 256 << 20, "{growth} bytes of growth");
    Ok(())
}
