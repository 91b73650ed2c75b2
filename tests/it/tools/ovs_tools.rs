//! Open vSwitch's tools with Comporta: those of operators, those that scripts call, and the Python
//! library.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::{env, fs};

use testbed::{Failure, Requirement};

use crate::support::command::{CommandOutput, comporta_binary, program};
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, WAIT_LIMIT, tests};
use crate::support::deployment::{Deployment, TWO_PORTS};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    ovsdb_client_monitors_ports,
    python_library_adds_a_port,
    ovs_vsctl_conditional_commands_and_emer_reset_work,
    ovs_save_restores_rules,
    ovs_bugtool_commands_succeed,
    ovs_dpctl_top_reads_dumped_flows,
    ovs_docker_adds_and_removes_a_port,
    tunnel_of_ovs_l3ping_connects_two_switches,
    ovs_pcap_prints_captured_frames,
    doctor_reviews_the_database_of_open_vswitch,
    ovs_ofctl_connects_by_the_name_of_a_bridge,
    ovs_ofctl_snoops_on_a_controller_connection,
];

/// Directory of the scripts that Debian's service and `ovs-bugtool` call.
const SCRIPTS: &str = "/usr/share/openvswitch/scripts";

/// Runs a program, which must succeed, and returns standard output and standard error.
fn run_program(
    deployment: &Deployment<'_, '_>,
    program: testbed::Program<'_>,
) -> Result<String, Failure> {
    let result = CommandOutput::run(deployment.network.context, program)?;
    let stderr = result.stderr.clone();
    Ok(result.expect_success()? + &stderr)
}

/// Runs a line of shell script, which must succeed.
fn run_shell(deployment: &Deployment<'_, '_>, line: &str) -> Result<String, Failure> {
    run_program(deployment, deployment.program("sh -ec").arg(line))
}

fn ovsdb_client_monitors_ports(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl("add-br br0 -- add-port br0 p1")?;
    let words = "ovsdb-client --timestamp monitor unix:db.sock Open_vSwitch Interface name,ofport";
    let monitor = deployment
        .program(words)
        .log(context.unique_path("monitor"));
    let monitor = context.spawner.start(monitor)?;
    context.wait_until("the initial rows", || Ok(monitor.written()?.contains("p1")))?;
    deployment.vsctl("add-port br0 p2 -- set Interface p2 ofport_request=9")?;
    context.wait_until("the port's number", || {
        Ok(monitor.written()?.contains("new    p2   9"))
    })?;
    let dump = deployment.run_tool(
        "ovsdb-client -f csv dump unix:db.sock Open_vSwitch Interface name ofport error",
    )?;
    assert!(dump.contains("[],p2,9"), "{dump}");
    let words = "ovsdb-client wait unix:db.sock Open_vSwitch connected";
    deployment.run_tool(words)?;
    Ok(())
}

fn python_library_adds_a_port(context: &TestContext) -> TestResult {
    const REQUIREMENTS: [Requirement; 1] = [Requirement::Program {
        program: "ovs-tcpdump",
        package: "openvswitch-switch",
    }];
    if let Err(missing) = testbed::check(&REQUIREMENTS) {
        return Err(TestError::Skip(missing.to_string()));
    }
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(TWO_PORTS)?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("apps/idl_watch.py");
    // Debian's Python has the library.
    let program = deployment.program("/usr/bin/python3").arg(script);
    let output = run_program(&deployment, program.arg("unix:db.sock"))?;
    assert!(output.contains("committed True"), "{output}");
    assert!(
        output.contains("port [3] [] {'iface-id': 'three'}"),
        "{output}"
    );
    network.host(1).ping_until_reply(network.host(3).address)?;
    Ok(())
}

fn ovs_vsctl_conditional_commands_and_emer_reset_work(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    for _ in 0..2 {
        deployment.vsctl(
            "--may-exist add-br br0 -- --may-exist add-port br0 p1 -- --may-exist add-port br0 p2",
        )?;
    }
    deployment.vsctl("--if-exists del-port br0 p9 -- --if-exists del-br br9")?;
    assert_eq!(deployment.vsctl("iface-to-br p2")?, "br0");
    deployment.vsctl("wait-until Interface p1 link_state=up")?;
    deployment.vsctl("set-controller br0 tcp:127.0.0.1:6653 -- set-fail-mode br0 secure")?;
    let (one, two) = network.host_pair();
    assert!(!one.can_ping(two.address)?, "a secure bridge without rules");
    deployment.vsctl("emer-reset")?;
    assert_eq!(deployment.vsctl("get-controller br0")?, "");
    assert_eq!(deployment.vsctl("list-ports br0")?, "p1\np2");
    one.ping_until_reply(two.address)?;
    one.ping(two.address, 3)?;
    Ok(())
}

fn ovs_save_restores_rules(context: &TestContext) -> TestResult {
    const SAVED_RULES: [&str; 3] = [
        "table=0,priority=7,cookie=0x7,ip,nw_dst=10.1.0.2,actions=group:5",
        "table=3,priority=9,in_port=p1,dl_vlan=7,actions=strip_vlan,output:p2",
        "table=9,arp,actions=load:0x1->NXM_NX_REG0[],resubmit(,3)",
    ];
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- set Bridge br0 protocols=[OpenFlow10,OpenFlow14]"
    ))?;
    deployment.run_tool("ovs-ofctl del-flows br0")?;
    deployment
        .run_tool("ovs-ofctl -O OpenFlow14 add-group br0 group_id=5,type=all,bucket=output:p2")?;
    for rule in SAVED_RULES {
        deployment.run_tool(&format!("ovs-ofctl -O OpenFlow14 add-flow br0 {rule}"))?;
    }
    let dump_flows =
        || deployment.run_tool("ovs-ofctl -O OpenFlow14 --no-stats --names --sort dump-flows br0");
    let before = dump_flows()?;
    run_shell(
        &deployment,
        &format!("{SCRIPTS}/ovs-save save-flows br0 > saved"),
    )?;
    deployment.run_tool("ovs-ofctl del-flows br0")?;
    deployment.run_tool("ovs-ofctl -O OpenFlow14 del-groups br0")?;
    run_shell(&deployment, "sh -e ./saved")?;
    assert_eq!(dump_flows()?, before);
    let groups = deployment.run_tool("ovs-ofctl -O OpenFlow14 dump-groups br0")?;
    assert!(groups.contains("group_id=5"), "{groups}");
    let script = run_shell(
        &deployment,
        &format!("{SCRIPTS}/ovs-save save-interfaces br0 p1"),
    )?;
    assert!(script.contains("ip link set dev br0"), "{script}");
    Ok(())
}

/// Commands of `ovs-bugtool`'s plug-ins that query the daemon or its bridges, with a part of each
/// output.
const BUGTOOL_COMMANDS: [(&str, &str); 15] = [
    ("SCRIPTS/ovs-bugtool-fdb-show", "port  VLAN  MAC"),
    ("SCRIPTS/ovs-bugtool-get-port-stats", "rx_packets="),
    ("SCRIPTS/ovs-bugtool-ovs-appctl-dpif", "p1 1/"),
    ("SCRIPTS/ovs-bugtool-ovs-bridge-datapath-type", "bridge br0"),
    (
        "SCRIPTS/ovs-bugtool-qos-configs",
        "ingress_policing_rate: 0",
    ),
    (
        "SCRIPTS/ovs-bugtool-ovs-ofctl-loop-over-bridges show",
        "1(p1)",
    ),
    (
        "SCRIPTS/ovs-bugtool-ovs-ofctl-loop-over-bridges dump-flows",
        "actions=NORMAL",
    ),
    (
        "SCRIPTS/ovs-bugtool-ovs-ofctl-loop-over-bridges dump-ports",
        "rx pkts=",
    ),
    (
        "SCRIPTS/ovs-bugtool-ovs-ofctl-loop-over-bridges dump-groups",
        "GROUP_DESC reply",
    ),
    (
        "SCRIPTS/ovs-bugtool-ovs-ofctl-loop-over-bridges dump-tlv-map",
        "mapping table",
    ),
    ("ovs-appctl coverage/show", "Event coverage"),
    ("ovs-appctl memory/show", "ports:3"),
    ("ovs-appctl vlog/list", "console"),
    ("ovs-appctl dpctl/show -s", "port 2: p1"),
    ("ovs-appctl dpif-netdev/pmd-stats-show", "pmd thread"),
];

/// Commands whose output may be empty.
const QUIET_COMMANDS: [&str; 5] = [
    "ovs-appctl dpctl/dump-flows -m netdev@ovs-netdev",
    "ovs-appctl cfm/show",
    "ovs-appctl bfd/show",
    "ovs-vsctl --no-wait get Open_vSwitch . other_config",
    "ovs-appctl dpif-netdev/pmd-rxq-show",
];

fn ovs_bugtool_commands_succeed(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(TWO_PORTS)?;
    network.host(1).ping_until_reply(network.host(2).address)?;
    for (command, word) in BUGTOOL_COMMANDS {
        let output = deployment.run_tool(&command.replace("SCRIPTS", SCRIPTS))?;
        assert!(output.contains(word), "{command}: {output}");
    }
    for command in QUIET_COMMANDS {
        deployment.run_tool(command)?;
    }
    let version = deployment.run_tool("ovs-appctl version")?;
    assert!(version.starts_with("ovs-vswitchd ("), "{version}");
    Ok(())
}

fn ovs_dpctl_top_reads_dumped_flows(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(TWO_PORTS)?;
    deployment.run_tool(
        "ovs-ofctl add-flow br0 priority=9,in_port=p1,ip,nw_dst=10.1.0.2,actions=output:p2",
    )?;
    // The first list has workers count frames.
    deployment.run_tool("ovs-appctl dpctl/dump-flows")?;
    network.host(1).ping_until_reply(network.host(2).address)?;
    network.host(1).ping(network.host(2).address, 3)?;
    // The tool queries a kernel datapath, or reads the output of such a query.
    run_shell(&deployment, "ovs-appctl dpctl/dump-flows > flows")?;
    let top = run_shell(&deployment, "ovs-dpctl-top --script --flow-file flows 2>&1")?;
    assert!(
        top.contains("  errors: 0") && !top.contains("Total: 0 "),
        "{top}"
    );
    Ok(())
}

/// A program that answers the questions of ovs-docker about a container.
const DOCKER: &str = "#!/bin/sh\necho \"$CONTAINER_PID\"\n";

fn ovs_docker_adds_and_removes_a_port(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 1)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl("add-br br0 -- add-port br0 p1")?;
    let container = testbed::Namespace::new()?;
    let sleeper = context
        .spawner
        .start(program("sleep 600").inside(&container))?;
    let docker = deployment.rundir.join("docker");
    fs::write(&docker, DOCKER)?;
    fs::set_permissions(&docker, fs::Permissions::from_mode(0o755))?;
    // The script links the container's namespace below /run, which is private here.
    let run = |words: &str| {
        let line = format!(
            "export PATH=\"$OVS_RUNDIR:$PATH\" CONTAINER_PID={}; mount -t tmpfs none /run; {words}",
            sleeper.id()
        );
        let shell = deployment.program("unshare --mount sh -ec").arg(line);
        run_program(&deployment, shell)
    };
    run("ovs-docker add-port br0 eth9 guest --ipaddress=10.1.0.99/16")?;
    network.host(1).ping_until_reply([10, 1, 0, 99].into())?;
    run("ovs-docker del-port br0 eth9 guest")?;
    assert_eq!(deployment.vsctl("list-ports br0")?, "p1");
    Ok(())
}

/// Configures one end as ovs-l3ping does: a bridge of a fixed name without physical ports, its
/// address, and a port that becomes a tunnel afterwards.
fn configure_l3(
    deployment: &Deployment<'_, '_>,
    (inner, remote): (&str, &str),
) -> Result<(), Failure> {
    deployment.vsctl("add-br ovstestbr0")?;
    // The script ignores the error: there is no interface of this name yet.
    deployment.vsctl_output("add-port ovstestbr0 ovstestport0")?;
    for words in [
        "ip link set ovstestbr0 mtu 1400 up".to_owned(),
        format!("ip address add {inner}/24 dev ovstestbr0"),
    ] {
        deployment.network.run(&words)?.expect_success()?;
    }
    deployment.vsctl("set Interface ovstestport0 type=gre")?;
    deployment.vsctl(&format!(
        "set Interface ovstestport0 options:remote_ip={remote}"
    ))?;
    Ok(())
}

/// The script itself needs Python 2 (`ovstest/util.py` of 3.1 compares bytes with text), so its
/// commands are executed.
fn tunnel_of_ovs_l3ping_connects_two_switches(context: &TestContext) -> TestResult {
    const INNER: [&str; 2] = ["10.2.0.1", "10.2.0.2"];
    const OUTER: [&str; 2] = ["172.16.0.1", "172.16.0.2"];
    let here = TestNetwork::new(context, 0)?;
    let there = TestNetwork::new(context, 0)?;
    there
        .switch_namespace
        .join("w0", &here.switch_namespace, "w0")?;
    for (network, outer) in [(&here, OUTER[0]), (&there, OUTER[1])] {
        network.switch_namespace.set_up("w0")?;
        network
            .run(&format!("ip address add {outer}/24 dev w0"))?
            .expect_success()?;
    }
    let deployments = [
        Deployment::in_directory(&here, "here")?,
        Deployment::in_directory(&there, "there")?,
    ];
    let [one, two] = &deployments;
    let _daemons = [one.start_daemon()?, two.start_daemon()?];
    configure_l3(one, (INNER[0], OUTER[1]))?;
    configure_l3(two, (INNER[1], OUTER[0]))?;
    let address = |end: &Deployment<'_, '_>| end.vsctl("get Interface ovstestbr0 mac_in_use");
    assert_ne!(address(one)?, address(two)?, "bridges of the same name");
    for mode in ["gre", "vxlan"] {
        for end in &deployments {
            end.vsctl(&format!("set Interface ovstestport0 type={mode}"))?;
        }
        context.wait_until("the other end to answer", || {
            let ping = here.run(&format!("ping -n -q -c 1 -W 0.2 {}", INNER[1]))?;
            Ok(ping.status.success())
        })?;
        for (network, inner) in [(&here, INNER[1]), (&there, INNER[0])] {
            let ping = network.run(&format!("fping -q -c 20 -p 5 -t 5000 {inner}"))?;
            assert!(
                ping.stderr.contains(" = 20/20/0%,"),
                "{mode}: {}",
                ping.stderr
            );
        }
    }
    Ok(())
}

fn ovs_pcap_prints_captured_frames(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 1)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon_with("--enable-dummy")?;
    let options = "set Interface d1 type=dummy options:tx_pcap=d1.pcap";
    deployment.vsctl(&format!(
        "add-br br0 -- set Bridge br0 datapath_type=dummy fail_mode=secure -- add-port br0 d1 -- {options}"
    ))?;
    let frame = "ffffffffffff0200000000010806000102";
    deployment.run_tool(&format!("ovs-ofctl packet-out br0 none output:1 {frame}"))?;
    context.wait_until("the frame in the file", || {
        Ok(deployment.run_tool("ovs-pcap d1.pcap")?.contains(frame))
    })?;
    Ok(())
}

fn doctor_reviews_the_database_of_open_vswitch(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 1)?;
    let deployment = Deployment::new(&network)?;
    deployment.vsctl(
        "--no-wait add-br br0 -- add-port br0 p1 -- add-port br0 s1 -- set Interface s1 type=stt",
    )?;
    for source in ["unix:db.sock", "conf.db"] {
        let words = format!("{} doctor --from-ovs {source}", comporta_binary().display());
        let output = CommandOutput::run(context, deployment.program(&words))?;
        let text = output.stdout.clone();
        output.expect_failure()?;
        let words: Vec<_> = text.split_whitespace().collect();
        let text = words.join(" ");
        for line in [
            "bridge br0 applied",
            "interface p1 of br0 applied",
            "interface s1 of br0 REFUSED: ",
        ] {
            assert!(text.contains(line), "{source}: {text}");
        }
    }
    let words = format!(
        "{} doctor --from-ovs missing.db",
        comporta_binary().display()
    );
    let refused = CommandOutput::run(context, deployment.program(&words))?.expect_failure()?;
    assert!(refused.contains("missing.db"), "{refused}");
    Ok(())
}

fn ovs_ofctl_connects_by_the_name_of_a_bridge(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(TWO_PORTS)?;
    let commands = [
        ("-O OpenFlow13 dump-tables br0", "table 0"),
        ("-O OpenFlow13 dump-table-features br0", "table 0"),
        ("dump-desc br0", "Manufacturer"),
        ("queue-stats br0", "0 queues"),
        (
            "-O OpenFlow13 queue-get-config br0",
            "QUEUE_GET_CONFIG_REPLY",
        ),
        ("get-frags br0", "normal"),
        ("benchmark br0 10 10", "Finished in"),
        ("-O OpenFlow13 dump-meters br0", "METER_CONFIG"),
        ("-O OpenFlow13 meter-features br0", "max_meter"),
        ("-O OpenFlow15 dump-ports-desc br0 1", "1(p1)"),
    ];
    for (words, word) in commands {
        let output = deployment.run_tool(&format!("ovs-ofctl {words}"))?;
        assert!(output.contains(word), "{words}: {output}");
    }
    deployment.run_tool("ovs-ofctl probe br0")?;
    // Changes of a port by OpenFlow are visible in the database and on the host.
    deployment.run_tool("ovs-ofctl mod-port br0 p1 down")?;
    deployment.vsctl("wait-until Interface p1 admin_state=down")?;
    deployment.run_tool("ovs-ofctl mod-port br0 p1 up")?;
    deployment.vsctl("wait-until Interface p1 admin_state=up")?;
    // Rules of a file replace the existing ones; the difference is printed.
    run_shell(
        &deployment,
        "echo 'table=2,priority=5,tcp,tp_dst=80,actions=normal' > rules
         echo 'actions=normal' >> rules
         ovs-ofctl -O OpenFlow13 replace-flows br0 rules
         ovs-ofctl -O OpenFlow13 diff-flows br0 rules",
    )?;
    let result = CommandOutput::run(
        context,
        deployment.program("ovs-ofctl -O OpenFlow13 diff-flows br0 /dev/null"),
    )?;
    assert!(result.stdout.contains("tp_dst=80"), "{result:?}");
    let monitor = deployment
        .program("ovs-ofctl monitor br0 watch:")
        .log(context.unique_path("watch"));
    let mut monitor = context.spawner.start(monitor)?;
    context.wait_until("the existing rules", || {
        Ok(monitor.written()?.contains("event=ADDED table=2"))
    })?;
    deployment.run_tool("ovs-ofctl del-flows br0 table=2")?;
    context.wait_until("a deleted rule", || {
        Ok(monitor.written()?.contains("event=DELETED"))
    })?;
    monitor.kill()?;
    monitor.wait(WAIT_LIMIT)?;
    Ok(())
}

fn ovs_ofctl_snoops_on_a_controller_connection(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(TWO_PORTS)?;
    let snoop = deployment
        .program("ovs-ofctl snoop br0")
        .log(context.unique_path("snoop"));
    let mut snoop = context.spawner.start(snoop)?;
    context.wait_until("the connection of the snooping client", || {
        let read_sockets = || fs::read_to_string("/proc/thread-self/net/unix");
        let sockets = network.switch_namespace.run(read_sockets)?;
        let sockets = sockets.map_err(Failure::to("read the list of sockets"))?;
        let socket_path = deployment.rundir.join("br0.snoop");
        let socket_path = socket_path.to_string_lossy();
        // The listening socket, and the socket of the accepted connection.
        Ok(sockets.matches(&*socket_path).count() > 1)
    })?;
    let controller = deployment.program("ovs-testcontroller ptcp:6653:127.0.0.1");
    let _controller = context.spawner.start(controller)?;
    deployment.vsctl("set-controller br0 tcp:127.0.0.1:6653")?;
    network.host(1).ping_until_reply(network.host(2).address)?;
    // The messages of both sides are copied, and those of tools are not.
    context.wait_until("messages of both sides", || {
        deployment.run_tool("ovs-ofctl dump-desc br0")?;
        let output = snoop.written()?;
        let words = ["OFPT_FEATURES_REPLY", "OFPT_PACKET_IN", "OFPT_FLOW_MOD"];
        Ok(words.iter().all(|word| output.contains(word)))
    })?;
    assert!(!snoop.written()?.contains("OFPST_DESC"));
    // The snooping client may disconnect at any time.
    snoop.kill()?;
    snoop.wait(WAIT_LIMIT)?;
    network.host(1).ping(network.host(2).address, 3)?;
    Ok(())
}
