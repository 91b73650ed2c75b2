//! What the switch promises about changes: after a barrier no frame meets what
//! was before it, and final counts are final.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use flow::{FlowModCommand, FlowRemoved, FlowRemovedReason};
use openflow::{Message, Version};
use testbed::Failure;

use crate::eye;
use crate::ground::{Ground, Outcome, Rule, rules};
use crate::peer::{Desk, Peer};
use crate::rig::Rig;

pub(crate) const RULES: &[Rule] = rules![
    after_a_barrier_a_frame_meets_the_new_rule,
    after_a_barrier_under_load_a_frame_meets_the_new_rule,
    every_frame_is_counted_by_the_old_rule_or_the_new,
    a_rule_ends_by_its_hard_timeout,
    a_rule_ends_when_it_has_been_idle,
    a_barrier_answers_in_order,
];

const SECURE: &str = "--bridge br0 --fail-mode secure --port p1 --port p2 --port p3";

/// How often rules are changed.
const ROUNDS: u64 = 300;

fn after_a_barrier_a_frame_meets_the_new_rule(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 3)?;
    let switch = rig.start(SECURE)?;
    for version in Version::ALL {
        let mut peer = Peer::visit(ground, &switch.file("br0.mgmt"), version)?;
        change_and_look(&rig, &mut peer)?;
    }
    Ok(())
}

/// The worker is always within a batch when the rule changes.
fn after_a_barrier_under_load_a_frame_meets_the_new_rule(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 4)?;
    let switch = rig.start(&format!("{SECURE} --port p4"))?;
    let mut peer = Peer::visit(ground, &switch.file("br0.mgmt"), Version::V13)?;
    peer.add("priority=1,in_port=4,actions=drop")?;
    peer.barrier();
    let load = eye::frames(&["eth / ipv4 / udp"; 64]);
    let sender = rig.host(4).namespace.raw_sender("eth0")?;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // What finds no room is not missed.
                let _ = sender.send(&load);
            }
        });
        let outcome = change_and_look(&rig, &mut peer);
        done.store(true, Ordering::Relaxed);
        outcome
    })?;
    let flows = switch.flows("dump-flows br0 in_port=4")?;
    assert!(!flows[0].contains("n_packets=0,"), "{flows:?}");
    Ok(())
}

/// Has each round's rule mark frames with the number of the round and send them
/// out of the other port.
fn change_and_look(rig: &Rig<'_>, peer: &mut Peer<'_>) -> Result<(), Failure> {
    let mut eyes = [rig.host(2).eye()?, rig.host(3).eye()?];
    for round in 0..ROUNDS {
        let [.., high, low] = round.to_be_bytes();
        let mark = format!("02:00:00:01:{high:02x}:{low:02x}");
        let (port, eye) = if round % 2 == 0 {
            (2, &mut eyes[0])
        } else {
            (3, &mut eyes[1])
        };
        peer.add(&format!(
            "priority=1,in_port=1,actions=mod_dl_src:{mark},output:{port}"
        ))?;
        peer.barrier();
        rig.host(1).send(&["eth / arp"])?;
        eye.sees(&format!("eth(src={mark}) / arp"));
    }
    Ok(())
}

fn every_frame_is_counted_by_the_old_rule_or_the_new(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 3)?;
    let desk = Desk::open(ground)?;
    let switch = rig.start(&format!("{SECURE} --controller {}", desk.target()))?;
    let mut peer = desk.meet(Version::V13)?;
    peer.add("priority=1,actions=drop")?;
    let burst = eye::frames(&["eth / ipv4 / udp / data(22)"; 50]);
    let (mut sent, mut counted) = (0, 0);
    for round in 0..40 {
        peer.add(&format!(
            "cookie={round},priority=2,send_flow_rem,in_port=1,actions=output:2"
        ))?;
        peer.barrier();
        for _ in 0..4 {
            rig.host(1).send_bytes(&burst)?;
            sent += burst.len();
        }
        peer.change(FlowModCommand::Delete, "in_port=1")?;
        let removed = peer.hear("the end of the rule", removal)?;
        assert_eq!(
            (removed.cookie.0, removed.reason),
            (round, FlowRemovedReason::Delete)
        );
        assert_eq!(removed.bytes, removed.packets * 64);
        counted += usize::try_from(removed.packets)?;
    }
    // What the rule did not count came too late, and the other rule has it.
    let total = "flow_count=1\n".to_string();
    ground.wait_until("all frames to be counted", || {
        let told = switch.ofctl("dump-aggregate br0")?;
        assert!(told.ends_with(&total), "{told}");
        Ok(told.contains(&format!("packet_count={} ", sent - counted)))
    })?;
    assert!(counted > 0);
    Ok(())
}

fn a_rule_ends_by_its_hard_timeout(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 3)?;
    let desk = Desk::open(ground)?;
    let _switch = rig.start(&format!("{SECURE} --controller {}", desk.target()))?;
    for version in Version::ALL {
        let mut peer = desk.meet(version)?;
        peer.add(
            "cookie=5,hard_timeout=1,idle_timeout=9,send_flow_rem,in_port=1,actions=output:2",
        )?;
        peer.barrier();
        rig.host(1).send(&["eth / arp"; 7])?;
        let removed = peer.hear("the end of the rule", removal)?;
        assert_eq!(removed.reason, FlowRemovedReason::HardTimeout);
        assert_eq!((removed.packets, removed.bytes), (7, 7 * 42));
        assert_in(removed.duration, 1000..1200);
    }
    Ok(())
}

fn a_rule_ends_when_it_has_been_idle(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 3)?;
    let desk = Desk::open(ground)?;
    let _switch = rig.start(&format!("{SECURE} --controller {}", desk.target()))?;
    let mut peer = desk.meet(Version::V13)?;
    peer.add("idle_timeout=1,send_flow_rem,in_port=1,actions=output:2")?;
    peer.add("idle_timeout=1,send_flow_rem,in_port=3,actions=drop")?;
    peer.barrier();
    let busy_until = ground.clock.now() + Duration::from_millis(1500);
    ground.wait_until("the rule to have been busy", || {
        rig.host(1).send(&["eth / arp"])?;
        Ok(ground.clock.now() >= busy_until)
    })?;
    let idle = peer.hear("the end of the idle rule", removal)?;
    assert_eq!(
        (idle.reason, idle.packets),
        (FlowRemovedReason::IdleTimeout, 0)
    );
    assert_in(idle.duration, 1000..1200);
    let busy = peer.hear("the end of the busy rule", removal)?;
    assert_eq!(busy.reason, FlowRemovedReason::IdleTimeout);
    assert!(busy.packets > 0);
    assert_in(busy.duration, 2400..2800);
    Ok(())
}

/// Messages behind a barrier are not done before it is answered.
fn a_barrier_answers_in_order(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 3)?;
    let switch = rig.start(SECURE)?;
    let mut peer = Peer::visit(ground, &switch.file("br0.mgmt"), Version::V13)?;
    let mut sent = Vec::new();
    for round in 0..100 {
        peer.add(&format!("priority={round},in_port=1,actions=drop"))?;
        sent.push(peer.send(&Message::BarrierRequest)?);
        sent.push(peer.send(&Message::GetConfigRequest)?);
    }
    let answered = peer.answers(sent.len())?;
    assert_eq!(answered, sent);
    Ok(())
}

fn removal(message: &Message) -> Option<FlowRemoved> {
    match message {
        Message::FlowRemoved(removed) => Some(removed.clone()),
        _ => None,
    }
}

/// Checks a duration, in milliseconds.
#[track_caller]
fn assert_in(duration: Duration, range: std::ops::Range<u128>) {
    assert!(
        range.contains(&duration.as_millis()),
        "{duration:?} is not in {range:?} ms"
    );
}
