//! Memory growth: connections, rules, groups, meters, flow monitors, committed and abandoned
//! bundles, and statistics leave no memory behind.

use flow::{
    FlowModCommand, FlowStatsRequest, Monitor, MonitorFlags, MonitorId, MonitorRequest, text,
};
use openflow::{
    BundleAdd, BundleControl, BundleFlags, BundleId, BundleStep, Excerpt, FlowFormat, Message,
    MultipartRequest, Version,
};
use testbed::Failure;

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::controller::TestController;
use crate::support::network::TestNetwork;
use crate::support::switch::SwitchProcess;

pub(crate) const TESTS: &[SystemTest] = tests![memory_does_not_grow_under_churn,];

/// Rounds until the allocator has enough memory, and rounds that must need no more.
const WARM_UP: usize = 30;
const ROUNDS: usize = 150;

/// Number of rules of a round, and of each of its bundles.
const FLOWS: usize = 500;

/// Id of all bundles.
const BUNDLE: BundleId = BundleId(1);

/// Allowed growth in bytes: less than a tenth of a round's rules, groups and messages if each round
/// leaked it, and more than the noise of an allocator.
const GROWTH_MAX: u64 = 4 << 20;

fn memory_does_not_grow_under_churn(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    for _ in 0..WARM_UP {
        run_round(context, &switch)?;
    }
    let before = switch.process.usage()?.resident_bytes;
    for _ in 0..ROUNDS {
        run_round(context, &switch)?;
    }
    let after = switch.process.usage()?.resident_bytes;
    let grown = after.saturating_sub(before);
    assert!(
        grown < GROWTH_MAX,
        "{grown} bytes of growth after {ROUNDS} rounds"
    );
    assert_eq!(switch.flows("dump-flows br0")?, Vec::<String>::new());
    Ok(())
}

/// A controller connects, creates rules, groups, meters and bundles, deletes most of them and
/// disconnects. The bundle that it leaves open ends with the connection.
fn run_round(context: &TestContext, switch: &SwitchProcess<'_>) -> Result<(), Failure> {
    let mut controller = TestController::connect(context, &switch.file("br0.mgmt"), Version::V14)?;
    monitor_flows(&mut controller)?;
    send_group_mod(&mut controller, "add group_id=1,type=all,bucket=output:1")?;
    send_group_mod(
        &mut controller,
        "add group_id=2,type=select,bucket=output:2",
    )?;
    send_meter_mod(&mut controller, "add meter=1,pktps,bands=type=drop,rate=9")?;
    for number in 0..FLOWS {
        controller.add_flow(&format!(
            "send_flow_rem,priority={number},tcp,tp_dst={number},actions=meter:1,group:1"
        ))?;
    }
    controller.barrier();
    let all = MultipartRequest::Flow(FlowFormat::Standard, FlowStatsRequest::all());
    controller.request(&Message::MultipartRequest(all))?;
    modify_all(&mut controller)?;
    commit_bundle(&mut controller)?;
    abandon_bundle(&mut controller)?;
    controller.send_flow_mod(FlowModCommand::Delete, "tcp,tp_dst=7")?;
    // Rules are deleted with the group that they refer to.
    send_group_mod(&mut controller, "delete group_id=1")?;
    send_group_mod(&mut controller, "delete group_id=2")?;
    send_meter_mod(&mut controller, "delete meter=1")?;
    controller.barrier();
    Ok(())
}

/// Subscribes to all rule changes.
fn monitor_flows(controller: &mut TestController<'_>) -> Result<(), Failure> {
    let request = MonitorRequest::Add(Monitor {
        id: MonitorId(1),
        flags: MonitorFlags(MonitorFlags::ALL.0 & !MonitorFlags::ONLY_OWN.0),
        request: FlowStatsRequest::all(),
    });
    let request = MultipartRequest::FlowMonitor(vec![request]);
    controller
        .request(&Message::MultipartRequest(request))
        .map(drop)
}

/// Modifies all rules, the group and the meter.
fn modify_all(controller: &mut TestController<'_>) -> Result<(), Failure> {
    controller.send_flow_mod(
        FlowModCommand::Modify,
        "tcp,actions=meter:1,group:1,output:2",
    )?;
    send_group_mod(
        controller,
        "modify group_id=1,type=all,bucket=output:2,bucket=output:1",
    )?;
    send_meter_mod(controller, "modify meter=1,pktps,bands=type=drop,rate=99")?;
    controller.barrier();
    Ok(())
}

/// Sends and commits a bundle.
fn commit_bundle(controller: &mut TestController<'_>) -> Result<(), Failure> {
    open_bundle(controller)?;
    let commit = bundle_control(BundleStep::CommitRequest);
    controller.request(&commit).map(drop)
}

fn bundle_control(step: BundleStep) -> Message {
    Message::BundleControl(BundleControl {
        bundle: BUNDLE,
        step,
        flags: BundleFlags::ATOMIC,
        time: None,
    })
}

fn send_group_mod(controller: &mut TestController<'_>, line: &str) -> Result<(), Failure> {
    let group_mod = text::parse_group_line(line).expect("the text is a group");
    controller.send(&Message::GroupMod(group_mod)).map(drop)
}

fn send_meter_mod(controller: &mut TestController<'_>, line: &str) -> Result<(), Failure> {
    let meter_mod = text::parse_meter_line(line).expect("the text is a meter");
    controller.send(&Message::MeterMod(meter_mod)).map(drop)
}

/// Opens a bundle that ends with its connection.
fn abandon_bundle(controller: &mut TestController<'_>) -> Result<(), Failure> {
    open_bundle(controller)
}

/// Opens a bundle and adds messages to it.
fn open_bundle(controller: &mut TestController<'_>) -> Result<(), Failure> {
    controller.request(&bundle_control(BundleStep::OpenRequest))?;
    for number in 0..FLOWS {
        let flow = format!("priority=1,udp,tp_dst={number},actions=group:1");
        let flow_mod = text::parse_flow(FlowModCommand::Add, &flow).expect("the text is a flow");
        controller.send(&Message::BundleAdd(BundleAdd {
            bundle: BUNDLE,
            flags: BundleFlags::ATOMIC,
            message: Box::new(Message::FlowMod(flow_mod)),
            excerpt: Excerpt::of(&[]),
            length: 0,
        }))?;
    }
    controller.barrier();
    Ok(())
}
