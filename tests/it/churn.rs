//! What comes and goes leaves nothing behind: connections, rules, groups, meters, flow
//! monitors, bundles that are committed and that never are, and statistics, over and over.
//!
//! Not how fast that is; the lab measures.

use flow::{
    FlowModCommand, FlowStatsRequest, Monitor, MonitorFlags, MonitorId, MonitorRequest, text,
};
use openflow::{
    BundleAdd, BundleControl, BundleFlags, BundleId, BundleStep, Excerpt, FlowFormat, Message,
    MultipartRequest, Version,
};
use testbed::Failure;

use crate::ground::{Ground, Outcome, Rule, rules};
use crate::peer::Peer;
use crate::rig::{Rig, Switch};

pub(crate) const RULES: &[Rule] = rules![churn_leaves_no_memory_behind,];

/// Rounds until the allocator has what it needs, and rounds that must need no more.
const WARM_UP: usize = 30;
const ROUNDS: usize = 150;

/// Rules of a round, and of each of its bundles.
const FLOWS: usize = 500;

/// The bundles, one after the other.
const BUNDLE: BundleId = BundleId(1);

/// What the rounds may leave: less than a tenth of a round's rules, groups and
/// messages if each round lost it, and more than the noise of an allocator.
const GROWTH_MAX: u64 = 4 << 20;

fn churn_leaves_no_memory_behind(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    for _ in 0..WARM_UP {
        round(ground, &switch)?;
    }
    let before = switch.process.usage()?.resident_bytes;
    for _ in 0..ROUNDS {
        round(ground, &switch)?;
    }
    let after = switch.process.usage()?.resident_bytes;
    let grown = after.saturating_sub(before);
    assert!(
        grown < GROWTH_MAX,
        "{grown} bytes more after {ROUNDS} rounds"
    );
    assert_eq!(switch.flows("dump-flows br0")?, Vec::<String>::new());
    Ok(())
}

/// A controller comes, makes much of everything, takes most of it away and goes:
/// the bundle that it leaves open goes with it.
fn round(ground: &Ground, switch: &Switch<'_>) -> Result<(), Failure> {
    let mut peer = Peer::visit(ground, &switch.file("br0.mgmt"), Version::V14)?;
    watch(&mut peer)?;
    group(&mut peer, "add group_id=1,type=all,bucket=output:1")?;
    group(&mut peer, "add group_id=2,type=select,bucket=output:2")?;
    meter(&mut peer, "add meter=1,pktps,bands=type=drop,rate=9")?;
    for number in 0..FLOWS {
        peer.add(&format!(
            "send_flow_rem,priority={number},tcp,tp_dst={number},actions=meter:1,group:1"
        ))?;
    }
    peer.barrier();
    let all = MultipartRequest::Flow(FlowFormat::Standard, FlowStatsRequest::all());
    peer.ask(&Message::MultipartRequest(all))?;
    change_all(&mut peer)?;
    commit_a_bundle(&mut peer)?;
    leave_a_bundle_open(&mut peer)?;
    peer.change(FlowModCommand::Delete, "tcp,tp_dst=7")?;
    // Rules go with the group that they name.
    group(&mut peer, "delete group_id=1")?;
    group(&mut peer, "delete group_id=2")?;
    meter(&mut peer, "delete meter=1")?;
    peer.barrier();
    Ok(())
}

/// Asks to be told of all that becomes of rules.
fn watch(peer: &mut Peer<'_>) -> Result<(), Failure> {
    let request = MonitorRequest::Add(Monitor {
        id: MonitorId(1),
        flags: MonitorFlags(MonitorFlags::ALL.0 & !MonitorFlags::ONLY_OWN.0),
        asked: FlowStatsRequest::all(),
    });
    let request = MultipartRequest::FlowMonitor(vec![request]);
    peer.ask(&Message::MultipartRequest(request)).map(drop)
}

/// Gives all rules, the group and the meter other things to do.
fn change_all(peer: &mut Peer<'_>) -> Result<(), Failure> {
    peer.change(
        FlowModCommand::Modify,
        "tcp,actions=meter:1,group:1,output:2",
    )?;
    group(
        peer,
        "modify group_id=1,type=all,bucket=output:2,bucket=output:1",
    )?;
    meter(peer, "modify meter=1,pktps,bands=type=drop,rate=99")?;
    peer.barrier();
    Ok(())
}

/// Does a bundle.
fn commit_a_bundle(peer: &mut Peer<'_>) -> Result<(), Failure> {
    fill_a_bundle(peer)?;
    let commit = bundle_step(BundleStep::CommitRequest);
    peer.ask(&commit).map(drop)
}

fn bundle_step(step: BundleStep) -> Message {
    Message::BundleControl(BundleControl {
        bundle: BUNDLE,
        step,
        flags: BundleFlags::ATOMIC,
        time: None,
    })
}

fn group(peer: &mut Peer<'_>, line: &str) -> Result<(), Failure> {
    let group_mod = text::parse_group_line(line).expect("the text is a group");
    peer.send(&Message::GroupMod(group_mod)).map(drop)
}

fn meter(peer: &mut Peer<'_>, line: &str) -> Result<(), Failure> {
    let meter_mod = text::parse_meter_line(line).expect("the text is a meter");
    peer.send(&Message::MeterMod(meter_mod)).map(drop)
}

/// Opens a bundle that goes with its connection.
fn leave_a_bundle_open(peer: &mut Peer<'_>) -> Result<(), Failure> {
    fill_a_bundle(peer)
}

/// Opens a bundle and fills it.
fn fill_a_bundle(peer: &mut Peer<'_>) -> Result<(), Failure> {
    peer.ask(&bundle_step(BundleStep::OpenRequest))?;
    for number in 0..FLOWS {
        let flow = format!("priority=1,udp,tp_dst={number},actions=group:1");
        let flow_mod = text::parse_flow(FlowModCommand::Add, &flow).expect("the text is a flow");
        peer.send(&Message::BundleAdd(BundleAdd {
            bundle: BUNDLE,
            flags: BundleFlags::ATOMIC,
            message: Box::new(Message::FlowMod(flow_mod)),
            excerpt: Excerpt::of(&[]),
            length: 0,
        }))?;
    }
    peer.barrier();
    Ok(())
}
