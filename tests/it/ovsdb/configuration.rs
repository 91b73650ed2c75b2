//! The daemon in place of ovs-vswitchd: a real `ovs-vsctl` changes a real database, and the daemon
//! applies the change and reports the result.

use std::fs;
use std::os::unix::fs::symlink;

use testbed::Failure;

use crate::support::command::{CommandOutput, comporta_binary};
use crate::support::context::{SystemTest, TestContext, TestResult, WAIT_LIMIT, tests};
use crate::support::deployment::{BackgroundDaemon, Deployment, TWO_PORTS};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    bridges_ports_and_controllers_follow_the_database,
    bridge_remains_while_its_mode_versions_and_id_change,
    removed_bridge_leaves_nothing_and_can_return_immediately,
    ovs_vsctl_waits_and_reports_errors,
    frames_are_not_lost_while_another_port_changes,
    forwarding_continues_without_the_database,
    second_daemon_waits_for_the_lock,
    daemon_detaches_under_the_name_ovs_vswitchd,
];

fn bridges_ports_and_controllers_follow_the_database(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(&format!("{TWO_PORTS} -- set Interface p2 ofport_request=7"))?;
    let (one, two) = network.host_pair();
    one.ping(two.address, 3)?;
    let output = deployment.run_tool("ovs-ofctl show br0")?;
    assert!(
        output.contains(" 1(p1): ") && output.contains(" 7(p2): "),
        "{output}"
    );
    assert_eq!(deployment.vsctl("get Interface p2 ofport")?, "7");
    // Controllers are added and removed, and with them the rule of a standalone bridge.
    deployment.vsctl("set-controller br0 tcp:127.0.0.1:6653 ptcp:6654")?;
    assert!(
        !deployment
            .run_tool("ovs-ofctl dump-flows br0")?
            .contains("actions=")
    );
    let output = deployment.run_tool("ovs-ofctl show tcp:127.0.0.1:6654")?;
    assert!(output.contains("(p1)"), "{output}");
    let controller = deployment.program("ovs-testcontroller ptcp:6653:127.0.0.1");
    let controller = network.context.spawner.start(controller)?;
    context.wait_until("a connected controller", || {
        let output = deployment.vsctl("--columns=is_connected --bare list Controller")?;
        Ok(output.contains("true"))
    })?;
    drop(controller);
    deployment.vsctl("del-port p2")?;
    let output = deployment.run_tool("ovs-ofctl show br0")?;
    assert!(!output.contains("(p2)"), "{output}");
    Ok(())
}

fn bridge_remains_while_its_mode_versions_and_id_change(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- set-controller br0 tcp:127.0.0.1:6653"
    ))?;
    let (one, two) = network.host_pair();
    let index = || {
        let link = network.run("ip -o link show br0")?.expect_success()?;
        Ok::<_, Failure>(link.split(':').next().map(str::to_owned))
    };
    let before = index()?;
    deployment.vsctl(
        "set-fail-mode br0 secure -- del-controller br0 -- set Bridge br0 protocols=OpenFlow13",
    )?;
    assert_eq!(index()?, before);
    assert!(!one.can_ping(two.address)?, "the bridge is secure");
    assert!(
        CommandOutput::run(
            context,
            deployment.program("ovs-ofctl -O OpenFlow10 show br0")
        )?
        .expect_failure()
        .is_ok()
    );
    deployment.vsctl("set Bridge br0 other_config:datapath-id=00000000000000cd")?;
    let output = deployment.run_tool("ovs-ofctl -O OpenFlow13 show br0")?;
    assert!(output.contains("dpid:00000000000000cd"), "{output}");
    assert_eq!(
        deployment.vsctl("get Bridge br0 datapath_id")?,
        "\"00000000000000cd\""
    );
    deployment.vsctl("del-fail-mode br0")?;
    one.ping(two.address, 3)?;
    assert_eq!(index()?, before);
    Ok(())
}

fn removed_bridge_leaves_nothing_and_can_return_immediately(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let mut daemon = deployment.start_daemon()?;
    deployment.vsctl(TWO_PORTS)?;
    let (one, two) = network.host_pair();
    for _ in 0..5 {
        deployment.vsctl("del-br br0")?;
        let refused = deployment.vsctl_output(TWO_PORTS)?;
        assert_eq!(refused.stderr, "");
    }
    one.ping(two.address, 3)?;
    deployment.vsctl("del-br br0")?;
    let links = network.run("ip -o link")?.expect_success()?;
    assert!(!links.contains("br0"), "{links}");
    assert!(daemon.process.stop()?.success());
    let remaining: Vec<_> = fs::read_dir(&deployment.rundir)?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<Result<_, _>>()?;
    assert!(
        !remaining
            .iter()
            .any(|name| name.to_string_lossy().starts_with("ovs-vswitchd")),
        "{remaining:?}"
    );
    Ok(())
}

fn ovs_vsctl_waits_and_reports_errors(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(TWO_PORTS)?;
    assert_eq!(
        deployment.vsctl("get Open_vSwitch . cur_cfg")?,
        deployment.vsctl("get Open_vSwitch . next_cfg")?
    );
    let refused = [
        (
            "add-port br0 p9",
            "could not open network device p9 (No such device)",
        ),
        (
            "add-port br0 v1 -- set Interface v1 type=stt options:remote_ip=10.0.0.9",
            "type stt: not supported",
        ),
        (
            "add-port br0 i1 vlan_mode=dot1q-tunnel -- set Interface i1 type=internal",
            "vlan_mode: dot1q-tunnel needs a VLAN of its own",
        ),
    ];
    for (words, error) in refused {
        let output = deployment.vsctl_output(words)?;
        assert!(
            output.stderr.contains("Error detected while setting up")
                && output.stderr.contains(error),
            "{output:?}"
        );
    }
    assert_eq!(deployment.vsctl("get Interface i1 ofport")?, "-1");
    assert!(
        !network.run("ip -o link")?.expect_success()?.contains("i1"),
        "the interface must not exist without its VLAN mode"
    );
    // Unsupported columns that prevent nothing are reported.
    deployment.vsctl("set Interface p1 cfm_mpid=9999 -- set Bridge br0 other_config:dp-sn=1")?;
    assert!(
        deployment
            .vsctl("get Interface p1 error")?
            .contains("CFM is disabled")
    );
    assert!(
        deployment
            .vsctl("get Bridge br0 status")?
            .contains("other_config:dp-sn")
    );
    network.host(1).ping(network.host(2).address, 3)?;
    // An interface that appears later becomes a port.
    network
        .run("ip link add p9 type veth peer name q9")?
        .expect_success()?;
    deployment.wait_for_column("get Interface p9 error", "[]")?;
    assert_ne!(deployment.vsctl("get Interface p9 ofport")?, "-1");
    network.run("ip link set p9 up")?.expect_success()?;
    deployment.wait_for_column("get Interface p9 admin_state", "up")?;
    network.run("ip link delete p9")?.expect_success()?;
    deployment.wait_for_column("get Interface p9 ofport", "-1")?;
    Ok(())
}

fn frames_are_not_lost_while_another_port_changes(context: &TestContext) -> TestResult {
    const FRAME: &str = "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01) / data(50)";
    const REPLY: &str = "eth(dst=02:00:00:00:00:01,src=02:00:00:00:00:02) / data(50)";
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(TWO_PORTS)?;
    network.host(1).send(&[FRAME])?;
    network.host(2).send(&[REPLY])?;
    let counters = || {
        Ok::<_, Failure>((
            deployment.counter("br0 port 1 rx_packets")?,
            deployment.counter("br0 port 2 tx_packets")?,
        ))
    };
    let before = counters()?;
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do ovs-vsctl add-port br0 p3 && ovs-vsctl del-port p3 || exit 1; done";
    let changes = deployment.program("sh -c").arg(script);
    let mut changes = context.spawner.start(changes)?;
    let mut sent = 0;
    while changes.is_running() {
        network.host(1).send(&[FRAME; 100])?;
        sent += 100;
    }
    assert!(changes.wait(WAIT_LIMIT)?.success());
    assert!(sent > 0);
    context.wait_until("the counters of all frames", || {
        let after = counters()?;
        Ok(after.1 - before.1 >= sent)
    })?;
    let after = counters()?;
    assert!(
        after.0 - before.0 >= sent,
        "{sent} sent: {before:?} {after:?}"
    );
    assert_eq!(deployment.vsctl("list-ports br0")?, "p1\np2");
    Ok(())
}

fn forwarding_continues_without_the_database(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let daemon = deployment.start_daemon()?;
    deployment.vsctl(TWO_PORTS)?;
    let (one, two) = network.host_pair();
    one.ping(two.address, 3)?;
    deployment.kill_database()?;
    daemon.wait_for_log("keeping the configuration")?;
    one.ping(two.address, 10)?;
    deployment.start_database()?;
    deployment.vsctl("add-port br0 p3")?;
    one.ping(network.host(3).address, 3)?;
    Ok(())
}

fn second_daemon_waits_for_the_lock(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let mut first = deployment.start_daemon()?;
    deployment.vsctl(TWO_PORTS)?;
    let (one, two) = network.host_pair();
    one.ping(two.address, 3)?;
    let second = deployment.start_daemon_with("")?;
    second.wait_for_log("another ovs-vswitchd process is running")?;
    one.ping(two.address, 3)?;
    assert!(first.process.stop()?.success());
    second.wait_for_log("bridge br0: added interface p2")?;
    one.ping_until_reply(two.address)?;
    one.ping(two.address, 3)?;
    deployment.vsctl("del-port p2")?;
    Ok(())
}

fn daemon_detaches_under_the_name_ovs_vswitchd(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let name = deployment.rundir.join("ovs-vswitchd");
    symlink(fs::canonicalize(comporta_binary())?, &name)?;
    // Arguments of the distribution's script.
    let words = format!(
        "{} unix:{}/db.sock -vconsole:emer -vsyslog:err -vfile:info --no-chdir --log-file --pidfile --detach",
        name.display(),
        deployment.rundir.display()
    );
    deployment.run_tool(&words)?;
    let pidfile = deployment.rundir.join("ovs-vswitchd.pid");
    let pid: u32 = fs::read_to_string(&pidfile)?.trim().parse()?;
    let _background = BackgroundDaemon(pid);
    assert!(
        deployment
            .rundir
            .join(format!("ovs-vswitchd.{pid}.ctl"))
            .exists()
    );
    let stderr = CommandOutput::run(context, deployment.program(&words))?.expect_failure()?;
    assert!(stderr.contains("already running as pid"), "{stderr}");
    deployment.vsctl(TWO_PORTS)?;
    network.host(1).ping(network.host(2).address, 3)?;
    assert!(
        deployment
            .run_tool("ovs-appctl version")?
            .starts_with("ovs-vswitchd (Comporta, ")
    );
    assert_eq!(deployment.run_tool("ovs-appctl ofproto/list")?, "br0\n");
    let flows = deployment.run_tool("ovs-appctl bridge/dump-flows br0")?;
    assert!(
        flows.contains("priority=0") && flows.contains("NORMAL"),
        "{flows}"
    );
    let stderr_of_unknown =
        CommandOutput::run(context, deployment.program("ovs-appctl dance"))?.expect_failure()?;
    assert!(
        stderr_of_unknown.contains("\"dance\" is not a valid command"),
        "{stderr_of_unknown}"
    );
    let log = fs::read_to_string(deployment.rundir.join("ovs-vswitchd.log"))?;
    assert!(log.contains("bridge br0: using datapath ID"), "{log}");
    deployment.run_tool("ovs-appctl vlog/set file:warn")?;
    assert!(
        deployment
            .run_tool("ovs-appctl vlog/list")?
            .contains("EMER        ERR       WARN")
    );
    deployment.run_tool("ovs-appctl exit")?;
    context.wait_until("the daemon to exit", || Ok(!pidfile.exists()))?;
    Ok(())
}
