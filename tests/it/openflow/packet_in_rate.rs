//! Packet-in rate limits: a storm of table misses does not delay other frames, and each of its
//! frames is counted.

use openflow::{Message, Version};
use testbed::Failure;

use crate::support::command::number_after;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::controller::ControllerListener;
use crate::support::network::TestNetwork;
use crate::support::pcap::pcap_file;
use crate::support::switch::SwitchProcess;

pub(crate) const TESTS: &[SystemTest] = tests![
    storm_of_table_misses_delays_no_other_frames_and_is_counted,
    controller_rate_limit_is_enforced_and_can_be_changed,
];

/// Rounds and frames per round that cross during the storm.
const ROUNDS: usize = 100;
const FRAMES: usize = 20;

/// A replay port receives more frames than any wire, and none matches a rule: the controller
/// receives as many as the port's rate allows.
fn storm_of_table_misses_delays_no_other_frames_and_is_counted(
    context: &TestContext,
) -> TestResult {
    let file = context.unique_path("storm.pcap");
    let storm = pcap_file(&["eth / ipv4 / udp(dst=1)", "eth / ipv4 / udp(dst=2)"]);
    std::fs::write(&file, storm).map_err(Failure::to("write a capture file"))?;
    let network = TestNetwork::new(context, 2)?;
    let listener = ControllerListener::bind(context)?;
    let switch = network.start_switch(&format!(
        "--bridge br0 --fail-mode secure --packet-in-rate 100:25 --controller {} \
         --port p1 --port p2 --port replay:m3,{}",
        listener.target(),
        file.display()
    ))?;
    let mut controller = listener.accept(Version::V13)?;
    controller.add_flow("priority=1,in_port=1,actions=output:2")?;
    controller.add_flow("priority=1,in_port=2,actions=drop")?;
    controller.add_flow("cookie=7,priority=0,actions=controller:64")?;
    controller.barrier();
    let mut capture = network.host(2).capture_frames()?;
    for round in 0..ROUNDS {
        let frame = format!("eth / ipv4(id={round}) / udp");
        network.host(1).send(&[frame.as_str(); FRAMES])?;
        (0..FRAMES).for_each(|_| capture.expect_frame(&frame));
    }
    switch.ofctl("mod-port br0 m3 down")?;
    let misses = miss_count(&switch)?;
    let packet_ins = controller.take_messages();
    let packet_ins = packet_ins
        .iter()
        .filter(|message| matches!(message, Message::PacketIn(_)));
    let policed = switch.counter("br0 port 3 packet_in_policed ")?;
    let sent_packet_ins = switch.counter("br0 port 3 packet_in_sent ")?;
    assert!(
        sent_packet_ins >= 25 && policed > 0,
        "{sent_packet_ins} sent, {policed} policed"
    );
    let unbuffered = ["worker packet_in_queue_full ", "worker no_buffer "];
    let unbuffered = unbuffered.map(|name| switch.counter(name));
    let unbuffered: u64 = unbuffered.into_iter().sum::<Result<_, _>>()?;
    assert_eq!(
        sent_packet_ins + policed + unbuffered,
        misses,
        "{unbuffered} dropped for lack of buffers"
    );
    let dropped = switch.counter("control async_dropped ")?;
    assert_eq!(packet_ins.count() as u64 + dropped, sent_packet_ins);
    Ok(())
}

/// Number of table misses, after the storm.
fn miss_count(switch: &SwitchProcess<'_>) -> Result<u64, Failure> {
    let misses = |switch: &SwitchProcess<'_>| {
        let output = switch.ofctl("dump-flows br0 cookie=7/-1")?;
        Ok::<_, Failure>(number_after(&output, "n_packets="))
    };
    switch.wait_until("the storm to end", |switch| {
        Ok(misses(switch)? == misses(switch)?)
    })?;
    misses(switch)
}

/// Each controller receives its own burst size of a burst of frames; the rest is counted.
fn controller_rate_limit_is_enforced_and_can_be_changed(context: &TestContext) -> TestResult {
    const FRAME_COUNT: usize = 2_000;
    let network = TestNetwork::new(context, 1)?;
    let listener = ControllerListener::bind(context)?;
    let file = context.unique_path("switch.toml");
    let configure = |rates: &str| {
        let text = format!(
            "[[bridge]]\nname='br0'\nports=['p1']\nfail-mode='secure'\n\
             controllers=['{}']\npacket-in-rate='none'\n{rates}",
            listener.target()
        );
        std::fs::write(&file, text).map_err(Failure::to("write a configuration"))
    };
    configure("controller-rate-limit=100\ncontroller-burst-limit=25")?;
    let switch = network.start_switch(&format!("--config {}", file.display()))?;
    let mut controller = listener.accept(Version::V13)?;
    controller.add_flow("priority=1,udp,actions=controller")?;
    controller.add_flow("priority=0,actions=drop")?;
    controller.barrier();
    let frames = [["eth / ipv4 / udp"; 50].as_slice(); FRAME_COUNT / 50];
    let mut sent = 0;
    let mut storm = |switch: &SwitchProcess<'_>| {
        for part in frames {
            network.host(1).send(part)?;
        }
        sent += FRAME_COUNT as u64;
        switch.wait_until("the counters of all frames", |switch| {
            let names = [
                "br0 port 1 packet_in_sent ",
                "worker packet_in_queue_full ",
                "br0 port 1 rx_overrun ",
            ];
            let counts = names.map(|name| switch.counter(name));
            Ok(counts.into_iter().sum::<Result<u64, _>>()? == sent)
        })
    };
    storm(&switch)?;
    let packet_ins = controller.take_messages().len() as u64;
    let limited = switch.counter("br0 packet_in_limited ")?;
    let sent_packet_ins = switch.counter("br0 port 1 packet_in_sent ")?;
    let dropped = switch.counter("control async_dropped ")?;
    assert!(
        packet_ins >= 25 && limited > 0,
        "{packet_ins} received, {limited} limited"
    );
    assert_eq!(packet_ins + limited + dropped, sent_packet_ins);
    configure("")?;
    switch.process.hang_up()?;
    let expected = "br0: packet-in limit per port none, per controller none";
    switch.wait_until("the new configuration", |switch| {
        Ok(switch.log()?.contains(expected))
    })?;
    storm(&switch)?;
    controller.barrier();
    assert_eq!(switch.counter("br0 packet_in_limited ")?, limited);
    Ok(())
}
