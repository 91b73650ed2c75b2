//! Barriers: after a barrier reply frames match only the new rules, and the counters of removed
//! rules are final.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use flow::{FlowModCommand, FlowRemoved, FlowRemovedReason};
use openflow::{Message, Version};
use testbed::Failure;

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::controller::{ControllerListener, TestController};
use crate::support::frames::encode_frames;
use crate::support::network::TestNetwork;
use crate::support::switch::SECURE_3;

pub(crate) const TESTS: &[SystemTest] = tests![
    frames_after_a_barrier_match_the_new_rule,
    frames_after_a_barrier_match_the_new_rule_under_load,
    frames_are_counted_once_while_rules_change,
    rule_expires_by_its_hard_timeout,
    rule_expires_by_its_idle_timeout,
    replies_keep_the_order_of_requests_and_barriers,
];

/// Number of rule changes.
const ROUNDS: u64 = 300;

fn frames_after_a_barrier_match_the_new_rule(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let switch = network.start_switch(SECURE_3)?;
    for version in Version::ALL {
        let mut controller = TestController::connect(context, &switch.file("br0.mgmt"), version)?;
        check_rule_changes(&network, &mut controller)?;
    }
    Ok(())
}

/// The worker always processes a batch while the rule changes.
fn frames_after_a_barrier_match_the_new_rule_under_load(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 4)?;
    let switch = network.start_switch(&format!("{SECURE_3} --port p4"))?;
    let mut controller = TestController::connect(context, &switch.file("br0.mgmt"), Version::V13)?;
    controller.add_flow("priority=1,in_port=4,actions=drop")?;
    controller.barrier();
    let load = encode_frames(&["eth / ipv4 / udp"; 64]);
    let sender = network.host(4).namespace.raw_sender("eth0")?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // Frames for which the socket has no space are not needed.
                let _ = sender.send(&load);
            }
        });
        let result = check_rule_changes(&network, &mut controller);
        stop.store(true, Ordering::Relaxed);
        result
    })?;
    let flows = switch.flows("dump-flows br0 in_port=4")?;
    assert!(!flows[0].contains("n_packets=0,"), "{flows:?}");
    Ok(())
}

/// In each round the rule sets the source address to the number of the round and outputs to the
/// other port.
fn check_rule_changes(
    network: &TestNetwork<'_>,
    controller: &mut TestController<'_>,
) -> Result<(), Failure> {
    let mut captures = [
        network.host(2).capture_frames()?,
        network.host(3).capture_frames()?,
    ];
    for round in 0..ROUNDS {
        let [.., high, low] = round.to_be_bytes();
        let source = format!("02:00:00:01:{high:02x}:{low:02x}");
        let (port, capture) = if round % 2 == 0 {
            (2, &mut captures[0])
        } else {
            (3, &mut captures[1])
        };
        controller.add_flow(&format!(
            "priority=1,in_port=1,actions=mod_dl_src:{source},output:{port}"
        ))?;
        controller.barrier();
        network.host(1).send(&["eth / arp"])?;
        capture.expect_frame(&format!("eth(src={source}) / arp"));
    }
    Ok(())
}

fn frames_are_counted_once_while_rules_change(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let listener = ControllerListener::bind(context)?;
    let switch = network.start_switch(&format!("{SECURE_3} --controller {}", listener.target()))?;
    let mut controller = listener.accept(Version::V13)?;
    controller.add_flow("priority=1,actions=drop")?;
    let burst = encode_frames(&["eth / ipv4 / udp / data(22)"; 50]);
    let (mut sent, mut counted) = (0, 0);
    for round in 0..40 {
        controller.add_flow(&format!(
            "cookie={round},priority=2,send_flow_rem,in_port=1,actions=output:2"
        ))?;
        controller.barrier();
        for _ in 0..4 {
            network.host(1).send_bytes(&burst)?;
            sent += burst.len();
        }
        controller.send_flow_mod(FlowModCommand::Delete, "in_port=1")?;
        let removed = controller.wait_for_message("a flow-removed message", flow_removed)?;
        assert_eq!(
            (removed.cookie.0, removed.reason),
            (round, FlowRemovedReason::Delete)
        );
        assert_eq!(removed.bytes, removed.packets * 64);
        counted += usize::try_from(removed.packets)?;
    }
    // Frames that the removed rule did not count arrived later and are counted by the other rule.
    let flow_count = "flow_count=1\n".to_string();
    context.wait_until("the counters of all frames", || {
        let output = switch.ofctl("dump-aggregate br0")?;
        assert!(output.ends_with(&flow_count), "{output}");
        Ok(output.contains(&format!("packet_count={} ", sent - counted)))
    })?;
    assert!(counted > 0);
    Ok(())
}

fn rule_expires_by_its_hard_timeout(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let listener = ControllerListener::bind(context)?;
    let _switch =
        network.start_switch(&format!("{SECURE_3} --controller {}", listener.target()))?;
    for version in Version::ALL {
        let mut controller = listener.accept(version)?;
        controller.add_flow(
            "cookie=5,hard_timeout=1,idle_timeout=9,send_flow_rem,in_port=1,actions=output:2",
        )?;
        controller.barrier();
        network.host(1).send(&["eth / arp"; 7])?;
        let removed = controller.wait_for_message("a flow-removed message", flow_removed)?;
        assert_eq!(removed.reason, FlowRemovedReason::HardTimeout);
        assert_eq!((removed.packets, removed.bytes), (7, 7 * 42));
        assert_duration(removed.duration, 1000..1200);
    }
    Ok(())
}

fn rule_expires_by_its_idle_timeout(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let listener = ControllerListener::bind(context)?;
    let _switch =
        network.start_switch(&format!("{SECURE_3} --controller {}", listener.target()))?;
    let mut controller = listener.accept(Version::V13)?;
    controller.add_flow("idle_timeout=1,send_flow_rem,in_port=1,actions=output:2")?;
    controller.add_flow("idle_timeout=1,send_flow_rem,in_port=3,actions=drop")?;
    controller.barrier();
    let busy_until = context.clock.now() + Duration::from_millis(1500);
    context.wait_until("the end of the busy time", || {
        network.host(1).send(&["eth / arp"])?;
        Ok(context.clock.now() >= busy_until)
    })?;
    let idle =
        controller.wait_for_message("the flow-removed message of the idle rule", flow_removed)?;
    assert_eq!(
        (idle.reason, idle.packets),
        (FlowRemovedReason::IdleTimeout, 0)
    );
    assert_duration(idle.duration, 1000..1200);
    let busy =
        controller.wait_for_message("the flow-removed message of the busy rule", flow_removed)?;
    assert_eq!(busy.reason, FlowRemovedReason::IdleTimeout);
    assert!(busy.packets > 0);
    assert_duration(busy.duration, 2400..2800);
    Ok(())
}

/// Messages after a barrier are processed after its reply.
fn replies_keep_the_order_of_requests_and_barriers(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let switch = network.start_switch(SECURE_3)?;
    let mut controller = TestController::connect(context, &switch.file("br0.mgmt"), Version::V13)?;
    let mut sent = Vec::new();
    for round in 0..100 {
        controller.add_flow(&format!("priority={round},in_port=1,actions=drop"))?;
        sent.push(controller.send(&Message::BarrierRequest)?);
        sent.push(controller.send(&Message::GetConfigRequest)?);
    }
    let replied = controller.reply_xids(sent.len())?;
    assert_eq!(replied, sent);
    Ok(())
}

fn flow_removed(message: &Message) -> Option<FlowRemoved> {
    match message {
        Message::FlowRemoved(removed) => Some(removed.clone()),
        _ => None,
    }
}

/// Asserts that a duration is in a range of milliseconds.
#[track_caller]
fn assert_duration(duration: Duration, range: std::ops::Range<u128>) {
    assert!(
        range.contains(&duration.as_millis()),
        "{duration:?} is not in {range:?} ms"
    );
}
