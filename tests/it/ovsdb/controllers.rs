//! Controller settings of the database, and rules that survive a restart.

use std::os::unix::fs::symlink;
use std::{fs, io};

use base::Instant;
use openflow::Version;
use testbed::Failure;

use crate::openflow::controllers::packet_in;
use crate::support::command::{CommandOutput, comporta_binary};
use crate::support::context::{SystemTest, TestContext, TestResult, WAIT_LIMIT, tests};
use crate::support::controller::ControllerListener;
use crate::support::deployment::{BackgroundDaemon, Deployment, TWO_PORTS};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    replaced_controller_keeps_the_rules,
    controller_backoff_and_probe_follow_the_database,
    controller_without_async_messages_receives_no_packet_ins,
    controllers_have_separate_packet_in_rates,
    controller_status_names_the_connection_error,
    forwarding_waits_for_flow_restore,
    ovs_ctl_restart_keeps_the_rules,
];

const RULE: &str = "priority=77,in_port=p1 actions=output:p2";

fn replaced_controller_keeps_the_rules(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let listeners = [
        ControllerListener::bind(context)?,
        ControllerListener::bind(context)?,
    ];
    let (first, second) = (listeners[0].target(), listeners[1].target());
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- set-fail-mode br0 secure -- set-controller br0 {first}"
    ))?;
    let mut old = listeners[0].accept(Version::V13)?;
    old.add_flow("priority=77,in_port=1,actions=output:2")?;
    old.barrier();
    deployment.vsctl(&format!("set-controller br0 {second}"))?;
    let mut new = listeners[1].accept(Version::V13)?;
    new.barrier();
    let output = deployment.run_tool("ovs-ofctl dump-flows br0")?;
    assert!(output.contains("priority=77"), "{output}");
    assert_eq!(output.matches("actions=").count(), 1, "{output}");
    // The rules of controllers are removed with the last controller.
    deployment.vsctl("del-controller br0")?;
    let output = deployment.run_tool("ovs-ofctl dump-flows br0")?;
    assert!(!output.contains("priority=77"), "{output}");
    Ok(())
}

fn controller_backoff_and_probe_follow_the_database(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let listener = ControllerListener::bind(context)?;
    let target = listener.target();
    deployment.vsctl(&format!(
        "add-br br0 -- set-controller br0 {target} -- set Controller br0 max_backoff=1000 inactivity_probe=1000 other_config:dscp=8 controller_queue_size=9"
    ))?;
    let status = || deployment.vsctl("get Controller br0 status");
    context.wait_until("the unsupported column in the status", || {
        Ok(status()?.contains("controller_queue_size: ignored"))
    })?;
    assert!(!status()?.contains("dscp"), "{}", status()?);
    // A peer that sends only a hello is probed after 1 s and closed after 2 s: earlier than with
    // the default probe interval of 5 s.
    let hello = [4, 0, 0, 8, 0, 0, 0, 1];
    let mut stream = listener.accept_stream()?;
    io::Write::write_all(&mut stream, &hello)?;
    let start: Instant = context.clock.now();
    let mut received = Vec::new();
    io::Read::read_to_end(&mut stream, &mut received)?;
    assert_ends_with_echo_request(&received);
    let elapsed = context.clock.now() - start;
    assert!(elapsed.as_millis() >= 1900, "{elapsed:?}");
    // With a probe interval of zero a silent peer stays connected.
    deployment.vsctl("set Controller br0 inactivity_probe=0")?;
    let mut controller = listener.accept(Version::V13)?;
    controller.barrier();
    deployment.wait_for_column("get Controller br0 is_connected", "true")?;
    // The connection remains when the interval changes.
    drop(controller);
    let mut stream = listener.accept_stream()?;
    io::Write::write_all(&mut stream, &hello)?;
    deployment.wait_for_column("get Controller br0 is_connected", "true")?;
    deployment.vsctl("set Controller br0 inactivity_probe=1000")?;
    received.clear();
    io::Read::read_to_end(&mut stream, &mut received)?;
    assert_ends_with_echo_request(&received);
    Ok(())
}

/// Asserts that the last message is an echo request of OpenFlow 1.3 without data.
fn assert_ends_with_echo_request(received: &[u8]) {
    assert!(
        matches!(received, [.., 4, 2, 0, 8, _, _, _, _]),
        "{received:02x?}"
    );
}

fn controller_without_async_messages_receives_no_packet_ins(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let listeners = [
        ControllerListener::bind(context)?,
        ControllerListener::bind(context)?,
    ];
    let (first_target, second_target) = (listeners[0].target(), listeners[1].target());
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- --id=@a create Controller target=\"{first_target}\" -- --id=@b create Controller target=\"{second_target}\" enable_async_messages=false -- set Bridge br0 controller=@a,@b fail_mode=secure"
    ))?;
    let mut receiver = listeners[0].accept(Version::V13)?;
    let mut silent = listeners[1].accept(Version::V13)?;
    silent.add_flow("priority=0,actions=CONTROLLER:65535")?;
    silent.barrier();
    network.host(1).send(&["eth / arp"])?;
    receiver.wait_for_message("a packet-in", packet_in)?;
    let messages = silent.take_messages();
    assert!(
        messages.iter().all(|message| packet_in(message).is_none()),
        "{messages:?}"
    );
    Ok(())
}

fn controllers_have_separate_packet_in_rates(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let listeners = [
        ControllerListener::bind(context)?,
        ControllerListener::bind(context)?,
    ];
    let (first_target, second_target) = (listeners[0].target(), listeners[1].target());
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- --id=@a create Controller target=\"{first_target}\" -- --id=@b create Controller target=\"{second_target}\" controller_rate_limit=100 controller_burst_limit=25 -- set Bridge br0 controller=@a,@b fail_mode=secure"
    ))?;
    let mut unlimited = listeners[0].accept(Version::V13)?;
    let mut limited = listeners[1].accept(Version::V13)?;
    unlimited.add_flow("priority=0,actions=CONTROLLER:65535")?;
    unlimited.barrier();
    network.host(1).send(&["eth / arp"; 400])?;
    for _ in 0..400 {
        unlimited.wait_for_message("a packet-in", packet_in)?;
    }
    context.wait_until("the counter of limited packet-ins", || {
        let output = deployment.run_tool("ovs-appctl comporta/counters br0")?;
        Ok(output.contains("packet_in_limited"))
    })?;
    let messages = limited.take_messages();
    let packet_ins = messages
        .iter()
        .filter(|message| packet_in(message).is_some());
    assert!(packet_ins.count() < 400);
    Ok(())
}

fn controller_status_names_the_connection_error(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl("add-br br0 -- set-controller br0 tcp:127.0.0.1:6653")?;
    context.wait_until("the error in the status", || {
        let status = deployment.vsctl("get Controller br0 status")?;
        Ok(status.contains("Connection refused") && status.contains("state=BACKOFF"))
    })?;
    let controller = deployment.program("ovs-testcontroller ptcp:6653:127.0.0.1");
    let _controller = context.spawner.start(controller)?;
    deployment.wait_for_column("get Controller br0 is_connected", "true")?;
    context.wait_until("the state of the connection", || {
        let status = deployment.vsctl("get Controller br0 status")?;
        Ok(status.contains("state=ACTIVE") && !status.contains("last_error"))
    })?;
    assert_eq!(deployment.vsctl("get Controller br0 role")?, "other");
    Ok(())
}

fn forwarding_waits_for_flow_restore(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let listener = ControllerListener::bind(context)?;
    deployment.vsctl(&format!(
        "--no-wait {TWO_PORTS} -- set-controller br0 {} -- set Open_vSwitch . other_config:flow-restore-wait=true",
        listener.target()
    ))?;
    let _daemon = deployment.start_daemon()?;
    deployment.wait_for_column("--bare --columns=ofport list Interface p2", "2")?;
    let (one, two) = network.host_pair();
    assert!(
        !one.can_ping(two.address)?,
        "there is no rule and no controller yet"
    );
    deployment.run_tool("ovs-ofctl add-flow br0 priority=5,actions=normal")?;
    assert!(!one.can_ping(two.address)?, "the restore is not complete");
    deployment.vsctl("remove Open_vSwitch . other_config flow-restore-wait")?;
    let mut controller = listener.accept(Version::V13)?;
    controller.barrier();
    one.ping_until_reply(two.address)?;
    assert!(
        deployment
            .run_tool("ovs-ofctl dump-flows br0")?
            .contains("priority=5")
    );
    // The key has an effect at startup only.
    deployment.vsctl("set Open_vSwitch . other_config:flow-restore-wait=true")?;
    one.ping(two.address, 3)?;
    Ok(())
}

/// Directory of the scripts in Debian.
const SCRIPTS: &str = "/usr/share/openvswitch/scripts";

/// Links the distribution's scripts and programs into the run directory, with Comporta as the
/// switch and without the kernel module, which is not needed.
fn link_scripts(deployment: &Deployment<'_, '_>) -> Result<(), Failure> {
    let link = |from: &str, to: &str| {
        symlink(from, deployment.rundir.join(to)).map_err(Failure::to("create a link"))
    };
    for directory in ["scripts", "sbin"] {
        fs::create_dir_all(deployment.rundir.join(directory))
            .map_err(Failure::to("create a directory"))?;
    }
    for script in ["ovs-ctl", "ovs-lib", "ovs-save"] {
        link(&format!("{SCRIPTS}/{script}"), &format!("scripts/{script}"))?;
    }
    link("/bin/true", "scripts/ovs-kmod-ctl")?;
    link("/usr/sbin/ovsdb-server", "sbin/ovsdb-server")?;
    let switch =
        fs::canonicalize(comporta_binary()).map_err(Failure::to("resolve the switch's path"))?;
    link(&switch.display().to_string(), "sbin/ovs-vswitchd")?;
    link(
        "/usr/share/openvswitch/vswitch.ovsschema",
        "vswitch.ovsschema",
    )
}

fn ovs_ctl_restart_keeps_the_rules(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    deployment.kill_database()?;
    link_scripts(&deployment)?;
    let _daemons = StartedByOvsCtl(&deployment);
    let ctl = |command: &str| {
        let words = format!("{}/scripts/ovs-ctl", deployment.rundir.display());
        let program = deployment
            .program(&words)
            .args(command.split(' '))
            .arg("--system-id=1")
            .arg("--no-mlockall")
            .arg("--no-record-hostname")
            .env("OVS_SBINDIR", deployment.rundir.join("sbin"))
            .env("OVS_PKGDATADIR", &deployment.rundir)
            .env("OVS_SYSCONFDIR", &deployment.rundir);
        CommandOutput::run_within(WAIT_LIMIT * 3, context, program)?.expect_success()
    };
    ctl("start")?;
    deployment.vsctl(&format!("{TWO_PORTS} -- set-fail-mode br0 secure"))?;
    for rule in [RULE, "priority=77,in_port=p2 actions=group:5"] {
        if rule.contains("group") {
            deployment.run_tool("ovs-ofctl -O OpenFlow14 add-group br0 group_id=5,type=all,bucket=actions=output:p1")?;
        }
        let add = deployment
            .program("ovs-ofctl -O OpenFlow14 add-flow br0")
            .arg(rule);
        CommandOutput::run(context, add)?.expect_success()?;
    }
    let (one, two) = network.host_pair();
    one.ping_until_reply(two.address)?;
    let pid = fs::read_to_string(deployment.rundir.join("ovs-vswitchd.pid"))?;
    ctl("restart")?;
    assert_ne!(
        fs::read_to_string(deployment.rundir.join("ovs-vswitchd.pid"))?,
        pid
    );
    let output = deployment.run_tool("ovs-ofctl -O OpenFlow14 dump-flows br0")?;
    assert_eq!(output.matches("priority=77").count(), 2, "{output}");
    one.ping_until_reply(two.address)?;
    assert_eq!(deployment.vsctl("get Open_vSwitch . other_config")?, "{}");
    ctl("stop")?;
    Ok(())
}

/// Kills the daemons that `ovs-ctl` started, which are no children of the test.
struct StartedByOvsCtl<'a>(&'a Deployment<'a, 'a>);

impl Drop for StartedByOvsCtl<'_> {
    fn drop(&mut self) {
        for name in ["ovs-vswitchd", "ovsdb-server"] {
            let pidfile = self.0.rundir.join(format!("{name}.pid"));
            let pid = fs::read_to_string(pidfile).ok();
            let pid = pid.and_then(|text| text.trim().parse().ok());
            drop(pid.map(BackgroundDaemon));
        }
    }
}
