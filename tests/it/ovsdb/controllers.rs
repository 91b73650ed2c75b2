//! What the database says of controllers, and of rules that outlive the switch.

use std::os::unix::fs::symlink;
use std::{fs, io};

use base::Instant;
use openflow::Version;
use testbed::Failure;

use crate::openflow::controllers::packet_in;
use crate::support::command::{CommandOutput, comporta_binary};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::controller::ControllerListener;
use crate::support::deployment::{Deployment, TWO_PORTS};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    a_controller_in_anothers_place_finds_the_rules,
    a_controller_is_sought_and_asked_as_often_as_the_database_says,
    a_controller_that_is_not_to_be_told_is_told_nothing,
    controllers_are_sent_as_many_frames_as_each_may_have,
    why_a_controller_is_not_there_is_said,
    frames_wait_for_rules_that_are_to_be_restored,
    ovs_ctl_restart_keeps_the_rules,
];

const RULE: &str = "priority=77,in_port=p1 actions=output:p2";

fn a_controller_in_anothers_place_finds_the_rules(context: &TestContext) -> TestResult {
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
    let told = deployment.run_tool("ovs-ofctl dump-flows br0")?;
    assert!(told.contains("priority=77"), "{told}");
    assert_eq!(told.matches("actions=").count(), 1, "{told}");
    // With the last one the rules go, as they came with the first.
    deployment.vsctl("del-controller br0")?;
    let told = deployment.run_tool("ovs-ofctl dump-flows br0")?;
    assert!(!told.contains("priority=77"), "{told}");
    Ok(())
}

fn a_controller_is_sought_and_asked_as_often_as_the_database_says(
    context: &TestContext,
) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let listener = ControllerListener::bind(context)?;
    let target = listener.target();
    deployment.vsctl(&format!(
        "add-br br0 -- set-controller br0 {target} -- set Controller br0 max_backoff=1000 inactivity_probe=1000 other_config:dscp=8 controller_queue_size=9"
    ))?;
    let told = || deployment.vsctl("get Controller br0 status");
    context.wait_until("what is not honoured", || {
        Ok(told()?.contains("controller_queue_size: not honoured"))
    })?;
    assert!(!told()?.contains("dscp"), "{}", told()?);
    // Somebody who says hello and no more is asked after a second, and left after two: before
    // a controller with the usual five seconds would be asked.
    let mut stream = listener.accept_stream()?;
    io::Write::write_all(&mut stream, &[4, 0, 0, 8, 0, 0, 0, 1])?;
    let start: Instant = context.clock.now();
    let mut said = Vec::new();
    io::Read::read_to_end(&mut stream, &mut said)?;
    let [.., version, kind, 0, 8, _, _, _, _] = said[..] else {
        return Err(format!("no echo request at the end: {said:02x?}").into());
    };
    assert_eq!((version, kind), (4, 2));
    let taken = context.clock.now() - start;
    assert!(taken.as_millis() >= 1900, "{taken:?}");
    // A probe of zero: whoever is silent stays.
    deployment.vsctl("set Controller br0 inactivity_probe=0")?;
    let mut controller = listener.accept(Version::V13)?;
    controller.barrier();
    deployment.wait_for_column("get Controller br0 is_connected", "true")?;
    Ok(())
}

fn a_controller_that_is_not_to_be_told_is_told_nothing(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let listeners = [
        ControllerListener::bind(context)?,
        ControllerListener::bind(context)?,
    ];
    let (told, silent) = (listeners[0].target(), listeners[1].target());
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- --id=@a create Controller target=\"{told}\" -- --id=@b create Controller target=\"{silent}\" enable_async_messages=false -- set Bridge br0 controller=@a,@b fail_mode=secure"
    ))?;
    let mut hears = listeners[0].accept(Version::V13)?;
    let mut deaf = listeners[1].accept(Version::V13)?;
    deaf.add_flow("priority=0,actions=CONTROLLER:65535")?;
    deaf.barrier();
    network.host(1).send(&["eth / arp"])?;
    hears.wait_for_message("a frame", packet_in)?;
    let heard = deaf.take_messages();
    assert!(
        heard.iter().all(|message| packet_in(message).is_none()),
        "{heard:?}"
    );
    Ok(())
}

fn controllers_are_sent_as_many_frames_as_each_may_have(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let listeners = [
        ControllerListener::bind(context)?,
        ControllerListener::bind(context)?,
    ];
    let (all, few) = (listeners[0].target(), listeners[1].target());
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- --id=@a create Controller target=\"{all}\" -- --id=@b create Controller target=\"{few}\" controller_rate_limit=100 controller_burst_limit=25 -- set Bridge br0 controller=@a,@b fail_mode=secure"
    ))?;
    let mut hears_all = listeners[0].accept(Version::V13)?;
    let mut hears_few = listeners[1].accept(Version::V13)?;
    hears_all.add_flow("priority=0,actions=CONTROLLER:65535")?;
    hears_all.barrier();
    network.host(1).send(&["eth / arp"; 400])?;
    for _ in 0..400 {
        hears_all.wait_for_message("a frame", packet_in)?;
    }
    context.wait_until("frames to be kept from the other", || {
        let told = deployment.run_tool("ovs-appctl comporta/counters br0")?;
        Ok(told.contains("packet_in_limited"))
    })?;
    let heard = hears_few.take_messages();
    let heard = heard.iter().filter(|message| packet_in(message).is_some());
    assert!(heard.count() < 400);
    Ok(())
}

fn why_a_controller_is_not_there_is_said(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl("add-br br0 -- set-controller br0 tcp:127.0.0.1:6653")?;
    context.wait_until("the reason", || {
        let status = deployment.vsctl("get Controller br0 status")?;
        Ok(status.contains("Connection refused") && status.contains("state=BACKOFF"))
    })?;
    let controller = deployment.program("ovs-testcontroller ptcp:6653:127.0.0.1");
    let _peer = context.spawner.start(controller)?;
    deployment.wait_for_column("get Controller br0 is_connected", "true")?;
    context.wait_until("the connection", || {
        let status = deployment.vsctl("get Controller br0 status")?;
        Ok(status.contains("state=ACTIVE") && !status.contains("last_error"))
    })?;
    assert_eq!(deployment.vsctl("get Controller br0 role")?, "other");
    Ok(())
}

fn frames_wait_for_rules_that_are_to_be_restored(context: &TestContext) -> TestResult {
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
        "no rule, and no controller yet"
    );
    deployment.run_tool("ovs-ofctl add-flow br0 priority=5,actions=normal")?;
    assert!(!one.can_ping(two.address)?, "not all rules are there");
    deployment.vsctl("remove Open_vSwitch . other_config flow-restore-wait")?;
    let mut controller = listener.accept(Version::V13)?;
    controller.barrier();
    one.ping_until_reply(two.address)?;
    assert!(
        deployment
            .run_tool("ovs-ofctl dump-flows br0")?
            .contains("priority=5")
    );
    // It has a meaning at the start only.
    deployment.vsctl("set Open_vSwitch . other_config:flow-restore-wait=true")?;
    one.ping(two.address, 3)?;
    Ok(())
}

/// Where Debian has its scripts.
const SCRIPTS: &str = "/usr/share/openvswitch/scripts";

/// A place with the distribution's own scripts and programs, but for this switch in the place
/// of one, and for the module of the kernel, which is not needed.
fn scripts(deployment: &Deployment<'_, '_>) -> Result<(), Failure> {
    let lay = |from: &str, to: &str| {
        symlink(from, deployment.rundir.join(to)).map_err(Failure::to("lay a link"))
    };
    for directory in ["scripts", "sbin"] {
        fs::create_dir_all(deployment.rundir.join(directory))
            .map_err(Failure::to("make a directory"))?;
    }
    for script in ["ovs-ctl", "ovs-lib", "ovs-save"] {
        lay(&format!("{SCRIPTS}/{script}"), &format!("scripts/{script}"))?;
    }
    lay("/bin/true", "scripts/ovs-kmod-ctl")?;
    lay("/usr/sbin/ovsdb-server", "sbin/ovsdb-server")?;
    let switch = fs::canonicalize(comporta_binary()).map_err(Failure::to("find the switch"))?;
    lay(&switch.display().to_string(), "sbin/ovs-vswitchd")?;
    lay(
        "/usr/share/openvswitch/vswitch.ovsschema",
        "vswitch.ovsschema",
    )
}

fn ovs_ctl_restart_keeps_the_rules(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    deployment.kill_database()?;
    scripts(&deployment)?;
    let _ends = Ends(&deployment);
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
        CommandOutput::run_within(crate::support::context::WAIT_LIMIT * 3, context, program)?
            .expect_success()
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
    let told = deployment.run_tool("ovs-ofctl -O OpenFlow14 dump-flows br0")?;
    assert_eq!(told.matches("priority=77").count(), 2, "{told}");
    one.ping_until_reply(two.address)?;
    assert_eq!(deployment.vsctl("get Open_vSwitch . other_config")?, "{}");
    ctl("stop")?;
    Ok(())
}

/// Ends what `ovs-ctl` has started, which no test is the parent of.
struct Ends<'a>(&'a Deployment<'a, 'a>);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        for name in ["ovs-vswitchd", "ovsdb-server"] {
            let pidfile = self.0.rundir.join(format!("{name}.pid"));
            let pid = fs::read_to_string(pidfile).ok();
            let pid = pid.and_then(|text| text.trim().parse().ok());
            drop(pid.map(crate::support::deployment::BackgroundDaemon));
        }
    }
}
