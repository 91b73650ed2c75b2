//! The lab's own controller on real devices, this switch and Open vSwitch: what it asks is
//! answered, and what it learns carries the hosts' frames.

use std::io;
use std::path::Path;
use std::time::Duration;

use base::{PortNo, TableId};
use controller::learning::Learning;
use controller::{Application, Ask, Controller, Listener, Manner};
use flow::{Action, FlowMod, FlowModCommand, FlowStats, FlowStatsRequest, Instructions, Match};
use openflow::{Message, Version, VersionSet};
use testbed::{Bench, DeviceKind, DeviceOptions, Failure, Program};

use crate::support::command::{CommandOutput, comporta_binary};
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, WAIT_LIMIT, tests};

pub(crate) const TESTS: &[SystemTest] = tests![
    the_labs_controller_asks_this_switch_all_it_can_in_every_version,
    the_labs_controller_asks_open_vswitch_all_it_can,
    the_labs_controller_learns_on_this_switch,
    the_labs_controller_learns_on_open_vswitch,
];

/// Echo requests of a host.
const PINGS: u64 = 12;

fn the_labs_controller_asks_this_switch_all_it_can_in_every_version(
    context: &TestContext,
) -> TestResult {
    let versions = [Version::V10, Version::V13, Version::V14, Version::V15];
    asks(context, DeviceKind::Comporta, &versions)
}

fn the_labs_controller_asks_open_vswitch_all_it_can(context: &TestContext) -> TestResult {
    asks(context, DeviceKind::Ovs, &[Version::V10, Version::V13])
}

fn the_labs_controller_learns_on_this_switch(context: &TestContext) -> TestResult {
    learns(context, DeviceKind::Comporta)
}

fn the_labs_controller_learns_on_open_vswitch(context: &TestContext) -> TestResult {
    learns(context, DeviceKind::Ovs)
}

/// A device between two hosts, and its controller. Where it calls is made before it starts.
fn called(
    context: &TestContext,
    kind: DeviceKind,
    manner: Manner,
) -> Result<(Bench, Controller, DeviceOptions), TestError> {
    if let Err(missing) = testbed::check(&kind.requirements(&comporta_binary())) {
        return Err(TestError::Skip(missing.to_string()));
    }
    let directory = context.unique_path(&format!("{kind}-{}", manner.versions));
    std::fs::create_dir_all(&directory)?;
    let options = DeviceOptions {
        kind,
        directory,
        cores: vec![0],
        comporta: comporta_binary(),
    };
    let listener = Listener::bind(&options.controller_socket())?;
    let mut bench = Bench::build(&context.spawner, &context.clock, &options)?;
    let alive = || bench.device_mut().check();
    let limit = WAIT_LIMIT * 2;
    let controller = listener.accept_as(manner, &context.clock, limit, alive)?;
    Ok((bench, controller, options))
}

fn asks(context: &TestContext, kind: DeviceKind, versions: &[Version]) -> TestResult {
    let (_bench, called, options) = called(context, kind, Manner::silent(Version::V10))?;
    let socket = options.directory.join("br0.mgmt");
    for version in versions {
        let controller = ask_all(context, &socket, *version)?;
        assert_eq!(controller.datapath_id(), called.datapath_id(), "{version}");
    }
    Ok(())
}

fn ask_all(
    context: &TestContext,
    socket: &Path,
    version: Version,
) -> Result<Controller, TestError> {
    let manner = Manner::silent(version);
    let controller = Controller::call(socket, manner, &context.clock)?;
    let mut device = &controller;
    let ports = device.ports()?;
    assert_eq!(ports["p1"].number, PortNo(1), "{version}");
    assert_eq!(ports["p2"].number, PortNo(2), "{version}");
    device.set_miss_send_len(200)?;
    assert_eq!(device.config()?.miss_send_len, 200, "{version}");
    assert!(!device.description()?.hardware.is_empty(), "{version}");
    let output = Instructions::apply(vec![Action::output(PortNo(2))]);
    let rule = FlowMod::new(FlowModCommand::Add, 7, Match::any(), output);
    controller.install(&[rule])?;
    let flows = device.flows(FlowStatsRequest::all())?;
    assert_eq!(flows.len(), 1, "{version}");
    assert_eq!((flows[0].priority, flows[0].table), (7, TableId(0)));
    assert_eq!(device.aggregate(FlowStatsRequest::all())?.flows, 1);
    assert!(device.tables()?.iter().any(|table| table.active == 1));
    let counted = device.port_counts(PortNo::ANY)?;
    assert!(counted.iter().any(|port| port.port == PortNo(1)));
    device.queues()?;
    if version >= Version::V13 {
        assert!(device.groups()?.is_empty() && device.meters()?.is_empty());
        assert!(device.group_descriptions()?.is_empty());
        assert!(device.meter_configs()?.is_empty());
    }
    device.echo(b"there?".to_vec())?;
    // No port at all.
    let nowhere = Instructions::apply(vec![Action::output(PortNo::ANY)]);
    let bad = FlowMod::new(FlowModCommand::Add, 8, Match::any(), nowhere);
    let good = Message::BarrierRequest;
    let done = device.request(vec![good, Message::FlowMod(bad)])?;
    let refused = done.refusals.iter().map(|one| (one.place, one.name()));
    let wanted = vec![(1, Some("OFPBAC_BAD_OUT_PORT"))];
    assert_eq!(refused.collect::<Vec<_>>(), wanted, "{version}");
    device.clear()?;
    assert_eq!(device.aggregate(FlowStatsRequest::all())?.flows, 0);
    Ok(controller)
}

fn learns(context: &TestContext, kind: DeviceKind) -> TestResult {
    for version in [Version::V10, Version::V13] {
        let manner = Manner {
            versions: VersionSet::only(version),
            application: Application::Learning(Learning::default()),
        };
        let (bench, controller, _) = called(context, kind, manner)?;
        // What the application says first is done.
        (&controller).request(Vec::new())?;
        ping(context, &bench)?;
        // The first request is flooded, and the first answer, like the second request, goes
        // with its rule; whatever comes after them is of the rules.
        let wanted = [PINGS - 2, PINGS - 1];
        // What came to the controller while there was no rule yet, Open vSwitch may count for
        // the one that there was when it looked at its data path's counters.
        let slack = u64::from(kind == DeviceKind::Ovs);
        let is_right = |told: &[u64]| {
            let mut pairs = told.iter().zip(wanted);
            told.len() == 2 && pairs.all(|(n, least)| (least..=least + slack).contains(n))
        };
        let mut told = Vec::new();
        let counted = context.clock.wait_for("the rules' counts", WAIT_LIMIT, || {
            let flows = (&mut &controller).flows(FlowStatsRequest::all());
            let failure = Failure::to("ask for flows");
            told = learned(&flows.map_err(|error| failure(io::Error::other(error)))?);
            Ok(is_right(&told).then_some(()))
        });
        assert!(
            counted.is_ok(),
            "{kind}, {version}: {told:?} instead of {wanted:?}"
        );
        assert_eq!(controller.packet_ins(), 3, "{kind}, {version}");
    }
    Ok(())
}

/// What rules with the application's idle timeout have counted, in order.
fn learned(flows: &[FlowStats]) -> Vec<u64> {
    let learned = flows.iter().filter(|flow| flow.idle_timeout_s == 60);
    let mut counted: Vec<u64> = learned.map(|flow| flow.packets).collect();
    counted.sort_unstable();
    counted
}

fn ping(context: &TestContext, bench: &Bench) -> TestResult {
    let count = PINGS.to_string();
    let address = bench.server().address.to_string();
    let program = Program::new("ping")
        .args(["-c", &count, "-i", "0.2", "-W", "5", &address])
        .inside(&bench.client().namespace);
    let said =
        CommandOutput::run_within(Duration::from_secs(30), context, program)?.expect_success()?;
    let all = format!("{PINGS} packets transmitted, {PINGS} received, 0% packet loss");
    assert!(said.contains(&all), "{said}");
    Ok(())
}
