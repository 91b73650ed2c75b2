//! The lab's controller with Comporta and Open vSwitch: its requests are answered, and its learning
//! application forwards the hosts' frames.

use std::io;
use std::path::Path;
use std::time::Duration;

use base::{PortNo, TableId};
use controller::learning::Learning;
use controller::{Application, Controller, ControllerSettings, DeviceRequests, Listener};
use flow::{Action, FlowMod, FlowModCommand, FlowStats, FlowStatsRequest, Instructions, Match};
use openflow::{Message, Version, VersionSet};
use testbed::{Bench, DeviceKind, DeviceOptions, Failure, Program};

use crate::support::command::{CommandOutput, comporta_binary};
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, WAIT_LIMIT, tests};

pub(crate) const TESTS: &[SystemTest] = tests![
    lab_controller_sends_all_requests_to_comporta_in_all_versions,
    lab_controller_sends_all_requests_to_open_vswitch,
    lab_controller_learns_with_comporta,
    lab_controller_learns_with_open_vswitch,
];

/// Number of echo requests of a host.
const PINGS: u64 = 12;

fn lab_controller_sends_all_requests_to_comporta_in_all_versions(
    context: &TestContext,
) -> TestResult {
    let versions = [Version::V10, Version::V13, Version::V14, Version::V15];
    check_requests(context, DeviceKind::Comporta, &versions)
}

fn lab_controller_sends_all_requests_to_open_vswitch(context: &TestContext) -> TestResult {
    check_requests(context, DeviceKind::Ovs, &[Version::V10, Version::V13])
}

fn lab_controller_learns_with_comporta(context: &TestContext) -> TestResult {
    check_learning(context, DeviceKind::Comporta)
}

fn lab_controller_learns_with_open_vswitch(context: &TestContext) -> TestResult {
    check_learning(context, DeviceKind::Ovs)
}

/// A device between two hosts, and its controller. The socket exists before the device starts.
fn connect_device(
    context: &TestContext,
    kind: DeviceKind,
    manner: ControllerSettings,
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

fn check_requests(context: &TestContext, kind: DeviceKind, versions: &[Version]) -> TestResult {
    let (_bench, connected, options) =
        connect_device(context, kind, ControllerSettings::silent(Version::V10))?;
    let socket = options.directory.join("br0.mgmt");
    for version in versions {
        let controller = send_all_requests(context, &socket, *version)?;
        assert_eq!(
            controller.datapath_id(),
            connected.datapath_id(),
            "{version}"
        );
    }
    Ok(())
}

fn send_all_requests(
    context: &TestContext,
    socket: &Path,
    version: Version,
) -> Result<Controller, TestError> {
    let manner = ControllerSettings::silent(version);
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
    // An invalid port.
    let invalid_output = Instructions::apply(vec![Action::output(PortNo::ANY)]);
    let bad = FlowMod::new(FlowModCommand::Add, 8, Match::any(), invalid_output);
    let good = Message::BarrierRequest;
    let reply = device.request(vec![good, Message::FlowMod(bad)])?;
    let refused = reply.refusals.iter().map(|one| (one.position, one.name()));
    let expected = vec![(1, Some("OFPBAC_BAD_OUT_PORT"))];
    assert_eq!(refused.collect::<Vec<_>>(), expected, "{version}");
    device.clear()?;
    assert_eq!(device.aggregate(FlowStatsRequest::all())?.flows, 0);
    Ok(controller)
}

fn check_learning(context: &TestContext, kind: DeviceKind) -> TestResult {
    for version in [Version::V10, Version::V13] {
        let manner = ControllerSettings {
            versions: VersionSet::only(version),
            application: Application::Learning(Learning::default()),
        };
        let (bench, controller, _) = connect_device(context, kind, manner)?;
        // The application's first messages are processed.
        (&controller).request(Vec::new())?;
        ping(context, &bench)?;
        // The first request is flooded. The first reply and the second request are sent with their
        // rule's installation; the rules match all later ones.
        let expected = [PINGS - 2, PINGS - 1];
        // Open vSwitch may count frames that it sent to the controller for the rule that existed
        // when it collected the datapath's counters.
        let slack = u64::from(kind == DeviceKind::Ovs);
        let is_expected = |counts: &[u64]| {
            let mut pairs = counts.iter().zip(expected);
            counts.len() == 2 && pairs.all(|(n, minimum)| (minimum..=minimum + slack).contains(n))
        };
        let mut counts = Vec::new();
        let counted = context
            .clock
            .wait_for("the counters of the rules", WAIT_LIMIT, || {
                let flows = (&mut &controller).flows(FlowStatsRequest::all());
                let failure = Failure::to("request flows");
                counts =
                    learned_rule_counts(&flows.map_err(|error| failure(io::Error::other(error)))?);
                Ok(is_expected(&counts).then_some(()))
            });
        assert!(
            counted.is_ok(),
            "{kind}, {version}: {counts:?} instead of {expected:?}"
        );
        assert_eq!(controller.packet_ins(), 3, "{kind}, {version}");
    }
    Ok(())
}

/// Packet counts of rules with the application's idle timeout, sorted.
fn learned_rule_counts(flows: &[FlowStats]) -> Vec<u64> {
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
    let output =
        CommandOutput::run_within(Duration::from_secs(30), context, program)?.expect_success()?;
    let all = format!("{PINGS} packets transmitted, {PINGS} received, 0% packet loss");
    assert!(output.contains(&all), "{output}");
    Ok(())
}
