//! In the place of ovs-vswitchd: a real `ovsdb-server` says what is to be, a real
//! `ovs-vsctl` says it to the database, and the switch does it and says what came of it.

use std::fs;
use std::os::unix::fs::symlink;

use testbed::Failure;

use crate::support::command::{CommandOutput, comporta_binary};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::{BackgroundDaemon, Deployment, TWO_PORTS};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    bridges_ports_and_controllers_are_those_of_the_database,
    a_bridge_stays_while_its_mode_versions_and_id_change,
    a_bridge_that_goes_leaves_nothing_and_can_come_again_at_once,
    ovs_vsctl_waits_and_hears_what_cannot_be,
    while_one_port_comes_and_goes_the_others_frames_pass,
    a_database_that_is_gone_stops_nothing,
    a_second_daemon_waits_until_the_first_is_gone,
    it_is_ovs_vswitchd_by_name_in_the_background,
];

fn bridges_ports_and_controllers_are_those_of_the_database(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(&format!("{TWO_PORTS} -- set Interface p2 ofport_request=7"))?;
    let (one, two) = network.host_pair();
    one.ping(two.address, 3)?;
    let shown = deployment.run_tool("ovs-ofctl show br0")?;
    assert!(
        shown.contains(" 1(p1): ") && shown.contains(" 7(p2): "),
        "{shown}"
    );
    assert_eq!(deployment.vsctl("get Interface p2 ofport")?, "7");
    // Controllers come and go, and with them the rules of a bridge on its own.
    deployment.vsctl("set-controller br0 tcp:127.0.0.1:6653 ptcp:6654")?;
    assert!(
        !deployment
            .run_tool("ovs-ofctl dump-flows br0")?
            .contains("actions=")
    );
    let listed = deployment.run_tool("ovs-ofctl show tcp:127.0.0.1:6654")?;
    assert!(listed.contains("(p1)"), "{listed}");
    let controller = deployment.program("ovs-testcontroller ptcp:6653:127.0.0.1");
    let controller = network.context.spawner.start(controller)?;
    context.wait_until("a controller", || {
        let told = deployment.vsctl("--columns=is_connected --bare list Controller")?;
        Ok(told.contains("true"))
    })?;
    drop(controller);
    deployment.vsctl("del-port p2")?;
    let shown = deployment.run_tool("ovs-ofctl show br0")?;
    assert!(!shown.contains("(p2)"), "{shown}");
    Ok(())
}

fn a_bridge_stays_while_its_mode_versions_and_id_change(context: &TestContext) -> TestResult {
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
    assert!(!one.can_ping(two.address)?, "secure");
    assert!(
        CommandOutput::run(
            context,
            deployment.program("ovs-ofctl -O OpenFlow10 show br0")
        )?
        .expect_failure()
        .is_ok()
    );
    deployment.vsctl("set Bridge br0 other_config:datapath-id=00000000000000cd")?;
    let shown = deployment.run_tool("ovs-ofctl -O OpenFlow13 show br0")?;
    assert!(shown.contains("dpid:00000000000000cd"), "{shown}");
    assert_eq!(
        deployment.vsctl("get Bridge br0 datapath_id")?,
        "\"00000000000000cd\""
    );
    deployment.vsctl("del-fail-mode br0")?;
    one.ping(two.address, 3)?;
    assert_eq!(index()?, before);
    Ok(())
}

fn a_bridge_that_goes_leaves_nothing_and_can_come_again_at_once(
    context: &TestContext,
) -> TestResult {
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
    let left: Vec<_> = fs::read_dir(&deployment.rundir)?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<Result<_, _>>()?;
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().starts_with("ovs-vswitchd")),
        "{left:?}"
    );
    Ok(())
}

fn ovs_vsctl_waits_and_hears_what_cannot_be(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(TWO_PORTS)?;
    assert_eq!(
        deployment.vsctl("get Open_vSwitch . cur_cfg")?,
        deployment.vsctl("get Open_vSwitch . next_cfg")?
    );
    let refused = [
        ("add-port br0 p9", "interface p9 does not exist"),
        (
            "add-port br0 v1 -- set Interface v1 type=erspan options:remote_ip=10.0.0.9",
            "type erspan: not there",
        ),
        (
            "add-port br0 i1 vlan_mode=dot1q-tunnel -- set Interface i1 type=internal",
            "vlan_mode: dot1q-tunnel needs a VLAN of its own",
        ),
    ];
    for (words, why) in refused {
        let said = deployment.vsctl_output(words)?;
        assert!(
            said.stderr.contains("Error detected while setting up") && said.stderr.contains(why),
            "{said:?}"
        );
    }
    assert_eq!(deployment.vsctl("get Interface i1 ofport")?, "-1");
    assert!(
        !network.run("ip -o link")?.expect_success()?.contains("i1"),
        "it would carry what it must not"
    );
    // What is no obstacle is said beside.
    deployment.vsctl("set Interface p1 bfd:enable=true -- set Bridge br0 auto_attach=@a -- --id=@a create AutoAttach system_name=dance")?;
    assert!(
        deployment
            .vsctl("get Interface p1 error")?
            .contains("bfd: not honoured")
    );
    assert!(
        deployment
            .vsctl("get Bridge br0 status:auto_attach")?
            .contains("no auto-attach")
    );
    network.host(1).ping(network.host(2).address, 3)?;
    // What was not there comes, and is a port at last.
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

fn while_one_port_comes_and_goes_the_others_frames_pass(context: &TestContext) -> TestResult {
    const FRAME: &str = "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01) / data(50)";
    const ANSWER: &str = "eth(dst=02:00:00:00:00:01,src=02:00:00:00:00:02) / data(50)";
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(TWO_PORTS)?;
    network.host(1).send(&[FRAME])?;
    network.host(2).send(&[ANSWER])?;
    let counted = |name: &str| {
        let told = deployment.run_tool("ovs-appctl comporta/counters br0")?;
        let value = told
            .lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        Ok::<_, Failure>(value.unwrap_or(0))
    };
    let both = || {
        Ok::<_, Failure>((
            counted("br0 port 1 rx_packets")?,
            counted("br0 port 2 tx_packets")?,
        ))
    };
    let before = both()?;
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do ovs-vsctl add-port br0 p3 && ovs-vsctl del-port p3 || exit 1; done";
    let changes = deployment.program("sh -c").arg(script);
    let mut changes = context.spawner.start(changes)?;
    let mut sent = 0;
    while changes.is_running() {
        network.host(1).send(&[FRAME; 100])?;
        sent += 100;
    }
    assert!(changes.wait(crate::support::context::WAIT_LIMIT)?.success());
    assert!(sent > 0);
    context.wait_until("all frames to be through", || {
        let after = both()?;
        Ok(after.1 - before.1 >= sent)
    })?;
    let after = both()?;
    assert!(
        after.0 - before.0 >= sent,
        "{sent} sent: {before:?} {after:?}"
    );
    assert_eq!(deployment.vsctl("list-ports br0")?, "p1\np2");
    Ok(())
}

fn a_database_that_is_gone_stops_nothing(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let daemon = deployment.start_daemon()?;
    deployment.vsctl(TWO_PORTS)?;
    let (one, two) = network.host_pair();
    one.ping(two.address, 3)?;
    deployment.kill_database()?;
    daemon.wait_for_log("the database is gone")?;
    one.ping(two.address, 10)?;
    deployment.start_database()?;
    deployment.vsctl("add-port br0 p3")?;
    one.ping(network.host(3).address, 3)?;
    Ok(())
}

fn a_second_daemon_waits_until_the_first_is_gone(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let mut first = deployment.start_daemon()?;
    deployment.vsctl(TWO_PORTS)?;
    let (one, two) = network.host_pair();
    one.ping(two.address, 3)?;
    let second = deployment.start_daemon()?;
    second.wait_for_log("another switch has the lock")?;
    one.ping(two.address, 3)?;
    assert!(first.process.stop()?.success());
    second.wait_for_log("br0: add port p2")?;
    one.ping_until_reply(two.address)?;
    one.ping(two.address, 3)?;
    deployment.vsctl("del-port p2")?;
    Ok(())
}

fn it_is_ovs_vswitchd_by_name_in_the_background(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let name = deployment.rundir.join("ovs-vswitchd");
    symlink(fs::canonicalize(comporta_binary())?, &name)?;
    // As the distribution's script starts it.
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
    let again = CommandOutput::run(context, deployment.program(&words))?.expect_failure()?;
    assert!(
        again.contains("another process that runs has it"),
        "{again}"
    );
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
    let unknown =
        CommandOutput::run(context, deployment.program("ovs-appctl dance"))?.expect_failure()?;
    assert!(
        unknown.contains("\"dance\" is not a valid command"),
        "{unknown}"
    );
    let log = fs::read_to_string(deployment.rundir.join("ovs-vswitchd.log"))?;
    assert!(log.contains("add bridge br0"), "{log}");
    deployment.run_tool("ovs-appctl vlog/set file:warn")?;
    assert!(
        deployment
            .run_tool("ovs-appctl vlog/list")?
            .contains("EMER        ERR       WARN")
    );
    deployment.run_tool("ovs-appctl exit")?;
    context.wait_until("the daemon to end", || Ok(!pidfile.exists()))?;
    Ok(())
}
