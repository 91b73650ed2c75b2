//! Settings and state of interfaces, tables, zones and the host in the database.

use testbed::Failure;

use crate::support::command::{CommandOutput, program};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::{Deployment, TWO_PORTS};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    interface_mtu_and_mac_are_configured,
    interface_link_state_is_reported,
    ingress_policer_drops_frames_above_its_rate,
    egress_policer_drops_frames_above_its_rate,
    internal_interface_works_in_another_namespace,
    flow_tables_have_names_and_limits_of_the_database,
    flow_table_prefixes_narrow_the_megaflow_of_a_trace,
    host_statistics_are_reported_if_enabled,
    zones_have_the_timeouts_of_the_database,
];

/// A UDP packet from 10.1.1.1 to 10.1.1.2.
const UDP: &str =
    "50540000000a50540000000908004500001c000000000011a4cd0a0101010a0101020001000200080000";

fn interface_mtu_and_mac_are_configured(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- set Interface p1 mtu_request=1400 mac=\"02:00:00:00:00:77\" -- add-port br0 i1 -- set Interface i1 type=internal mac=\"02:00:00:00:00:78\" mtu_request=1300"
    ))?;
    let link = |name: &str| {
        network
            .run(&format!("ip -o link show {name}"))?
            .expect_success()
    };
    assert!(link("p1")?.contains("mtu 1400"), "{}", link("p1")?);
    let link_of_i1 = link("i1")?;
    assert!(
        link_of_i1.contains("mtu 1300") && link_of_i1.contains("02:00:00:00:00:78"),
        "{link_of_i1}"
    );
    deployment.wait_for_column("get Interface i1 mac_in_use", "\"02:00:00:00:00:78\"")?;
    deployment.wait_for_column("get Interface p1 mtu", "1400")?;
    assert!(
        deployment
            .vsctl("get Interface p1 error")?
            .contains("mac: ignored")
    );
    // The MTU changes while the port remains, and an invalid value is reported.
    deployment.vsctl("set Interface p1 mtu_request=1450 -- clear Interface p1 mac")?;
    deployment.wait_for_column("get Interface p1 mtu", "1450")?;
    deployment.wait_for_column("get Interface p1 error", "[]")?;
    deployment.vsctl("set Interface p2 mtu_request=1000000")?;
    context.wait_until("the error of the interface", || {
        Ok(deployment
            .vsctl("get Interface p2 error")?
            .contains("mtu_request"))
    })?;
    network.host(1).ping_until_reply(network.host(2).address)?;
    Ok(())
}

fn interface_link_state_is_reported(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(TWO_PORTS)?;
    deployment.wait_for_column("get Interface p1 link_state", "up")?;
    assert_eq!(deployment.vsctl("get Interface p1 duplex")?, "full");
    assert_eq!(
        deployment.vsctl("get Interface p1 link_speed")?,
        "10000000000"
    );
    assert_eq!(deployment.vsctl("get Interface p1 link_resets")?, "0");
    assert!(
        deployment
            .vsctl("get Interface p1 status:driver_name")?
            .contains("veth")
    );
    network
        .host(1)
        .run("ip link set eth0 down")?
        .expect_success()?;
    deployment.wait_for_column("get Interface p1 link_state", "down")?;
    network
        .host(1)
        .run("ip link set eth0 up")?
        .expect_success()?;
    deployment.wait_for_column("get Interface p1 link_state", "up")?;
    deployment.wait_for_column("get Interface p1 link_resets", "2")?;
    Ok(())
}

fn ingress_policer_drops_frames_above_its_rate(context: &TestContext) -> TestResult {
    const FRAME: &str = "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01) / data(1000)";
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    // A rate of 1 kbit/s admits no further frame during the test; the burst of 80 kbit is ten
    // frames.
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- set Interface p1 ingress_policing_rate=1 ingress_policing_burst=80"
    ))?;
    let before = deployment.counter("br0 port 2 tx_packets")?;
    network.host(1).send(&[FRAME; 60])?;
    context.wait_until("the counter of policed frames", || {
        Ok(counter_sum(&deployment, "ingress_policed")? >= 50)
    })?;
    let passed = deployment.counter("br0 port 2 tx_packets")? - before;
    assert!((1..=10).contains(&passed), "{passed}");
    // Without a limit all frames pass.
    deployment.vsctl("set Interface p1 ingress_policing_rate=0")?;
    let before = deployment.counter("br0 port 2 tx_packets")?;
    network.host(1).send(&[FRAME; 60])?;
    context.wait_until("the counter of all frames", || {
        Ok(deployment.counter("br0 port 2 tx_packets")? - before >= 60)
    })?;
    Ok(())
}

/// Sum of all counters whose name contains `name`.
fn counter_sum(deployment: &Deployment<'_, '_>, name: &str) -> Result<u64, Failure> {
    let output = deployment.run_tool("ovs-appctl comporta/counters")?;
    let lines = output.lines().filter(|line| line.contains(name));
    let values = lines.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok());
    Ok(values.sum())
}

fn egress_policer_drops_frames_above_its_rate(context: &TestContext) -> TestResult {
    const FRAME: &str = "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01) / data(986)";
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- set Port p2 qos=@q -- --id=@q create QoS type=egress-policer other_config:cir=1 other_config:cbs=10000"
    ))?;
    let output = deployment.run_tool("ovs-appctl qos/show p2")?;
    assert_eq!(output, "QoS: p2 egress-policer\ncbs: 10000\ncir: 1\n");
    assert_eq!(
        deployment.run_tool("ovs-appctl qos/show p1")?,
        "QoS not configured on p1\n"
    );
    assert_eq!(
        deployment.run_tool("ovs-appctl qos/show-types p1")?,
        "QoS type: egress-policer\nQoS type: linux-hfsc\nQoS type: linux-htb\nQoS type: linux-noop\n"
    );
    CommandOutput::run(context, deployment.program("ovs-appctl qos/show p9"))?.expect_failure()?;
    network.host(1).send(&[FRAME; 60])?;
    context.wait_until("the counter of policed frames", || {
        Ok(counter_sum(&deployment, "egress_policed")? >= 50)
    })?;
    // An unsupported type is reported; the port remains.
    deployment.vsctl("set QoS . type=linux-sfq")?;
    context.wait_until("the unsupported setting in the status", || {
        Ok(deployment
            .vsctl("get Interface p2 error")?
            .contains("qos: linux-sfq: ignored"))
    })?;
    network.host(1).ping_until_reply(network.host(2).address)?;
    deployment.vsctl("clear Port p2 qos")?;
    deployment.wait_for_column("get Interface p2 error", "[]")?;
    Ok(())
}

fn internal_interface_works_in_another_namespace(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- add-port br0 i1 -- set Interface i1 type=internal"
    ))?;
    let namespace = testbed::Namespace::new()?;
    let sleeper = program("sleep 600").inside(&namespace);
    let sleeper = context.spawner.start(sleeper)?;
    // Until the program has entered its namespace, the command moves the interface to the namespace
    // where it already is.
    context.wait_until("the interface to move", || {
        network.run(&format!("ip link set i1 netns {}", sleeper.id()))?;
        Ok(!network.run("ip -o link")?.expect_success()?.contains("i1"))
    })?;
    let run_inside = |words: &str| {
        CommandOutput::run(context, program(words).inside(&namespace))?.expect_success()
    };
    run_inside("ip address add 10.1.0.99/16 dev i1")?;
    run_inside("ip link set i1 up")?;
    let one = network.host(1);
    one.ping_until_reply([10, 1, 0, 99].into())?;
    assert_eq!(deployment.vsctl("get Interface i1 error")?, "[]");
    deployment.vsctl("del-port i1")?;
    Ok(())
}

fn flow_table_prefixes_narrow_the_megaflow_of_a_trace(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl("add-br br0")?;
    deployment.run_tool("ovs-ofctl add-flow br0 ip,nw_src=10.0.0.4,actions=drop")?;
    let trace =
        || deployment.run_tool("ovs-appctl ofproto/trace br0 in_port=LOCAL,ip,nw_src=10.0.0.2");
    // No frame is received from an interface that is down.
    network.run("ip link set br0 up")?.expect_success()?;
    let narrow = "nw_src=10.0.0.0/30,";
    context.wait_until("the rule in a trace", || Ok(trace()?.contains(narrow)))?;
    deployment
        .vsctl("--id=@t create Flow_Table prefixes=none -- set Bridge br0 flow_tables:0=@t")?;
    context.wait_until("a megaflow without prefixes", || {
        Ok(trace()?.contains("nw_src=10.0.0.2,"))
    })?;
    deployment.vsctl("clear Bridge br0 flow_tables")?;
    context.wait_until("the default prefixes", || Ok(trace()?.contains(narrow)))?;
    Ok(())
}

fn flow_tables_have_names_and_limits_of_the_database(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(
        "add-br br0 -- --id=@t create Flow_Table name=guests flow_limit=2 -- set Bridge br0 flow_tables:1=@t",
    )?;
    let add = |rule: &str| {
        CommandOutput::run(
            context,
            deployment.program("ovs-ofctl add-flow br0").arg(rule),
        )
    };
    add("table=1,in_port=1,idle_timeout=60 actions=drop")?.expect_success()?;
    add("table=1,in_port=2,idle_timeout=70 actions=drop")?.expect_success()?;
    let refused = add("table=1,in_port=3 actions=drop")?.expect_failure()?;
    assert!(
        refused.contains("OFPFMFC_TABLE_FULL") || refused.contains("ALL_TABLES_FULL"),
        "{refused}"
    );
    let features = deployment.run_tool("ovs-ofctl -O OpenFlow13 dump-table-features br0")?;
    assert!(
        features.contains("table 1 (\"guests\")"),
        "{}",
        &features[..300.min(features.len())]
    );
    // With the eviction policy the rule that expires first makes room.
    deployment.vsctl("set Flow_Table guests overflow_policy=evict")?;
    add("table=1,in_port=3 actions=drop")?.expect_success()?;
    let flows = deployment.run_tool("ovs-ofctl --no-names dump-flows br0 table=1")?;
    assert!(
        !flows.contains("in_port=1") && flows.contains("in_port=3"),
        "{flows}"
    );
    // With eviction groups the port with more rules loses one, although it is not due first.
    add("table=1,in_port=3 actions=drop")?.expect_success()?;
    deployment.vsctl("set Flow_Table guests flow_limit=4 groups=\"NXM_OF_IN_PORT[]\"")?;
    add("table=1,in_port=5,udp,idle_timeout=90 actions=drop")?.expect_success()?;
    add("table=1,in_port=5,tcp,idle_timeout=80 actions=drop")?.expect_success()?;
    add("table=1,in_port=6 actions=drop")?.expect_success()?;
    let flows = deployment.run_tool("ovs-ofctl --no-names dump-flows br0 table=1")?;
    assert!(
        flows.contains("in_port=2") && flows.contains("udp") && !flows.contains("tcp"),
        "{flows}"
    );
    // An unknown subfield is reported. A table without a row has no limit.
    deployment.vsctl("set Flow_Table guests groups=nonsense")?;
    context.wait_until("the unknown subfield in the status", || {
        Ok(deployment
            .vsctl("get Bridge br0 status")?
            .contains("groups of table 1: ignoring nonsense"))
    })?;
    deployment.vsctl("clear Bridge br0 flow_tables")?;
    add("table=1,in_port=4 actions=drop")?.expect_success()?;
    add("table=1,in_port=5 actions=drop")?.expect_success()?;
    assert_eq!(deployment.vsctl("get Bridge br0 status")?, "{}");
    Ok(())
}

fn host_statistics_are_reported_if_enabled(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl("add-br br0")?;
    assert_eq!(deployment.vsctl("get Open_vSwitch . statistics")?, "{}");
    assert_ne!(deployment.vsctl("get Open_vSwitch . system_type")?, "[]");
    assert!(
        deployment
            .vsctl("get Open_vSwitch . iface_types")?
            .contains("internal")
    );
    assert!(
        deployment
            .vsctl("get Open_vSwitch . datapath_types")?
            .contains("netdev")
    );
    deployment.vsctl("set Open_vSwitch . other_config:enable-statistics=true")?;
    context.wait_until("the host's statistics", || {
        let output = deployment.vsctl("get Open_vSwitch . statistics")?;
        let keys = ["cpu=", "load_average=", "memory=", "process_ovs-vswitchd="];
        Ok(keys.iter().all(|key| output.contains(key)))
    })?;
    deployment.vsctl("set Open_vSwitch . other_config:enable-statistics=false")?;
    deployment.wait_for_column("get Open_vSwitch . statistics", "{}")?;
    Ok(())
}

fn zones_have_the_timeouts_of_the_database(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl("add-br br0 -- set-fail-mode br0 secure")?;
    deployment.vsctl(
        "--id=@d create Datapath datapath_version=0 -- set Open_vSwitch . datapaths:netdev=@d",
    )?;
    deployment.vsctl("add-zone-tp netdev zone=5 udp_first=1000")?;
    let capabilities = "--bare --columns=capabilities list Datapath";
    context.wait_until("the capabilities", || {
        Ok(deployment.vsctl(capabilities)?.contains("ct_timeout=true"))
    })?;
    let timeout = |zone: u16| -> Result<u64, Failure> {
        deployment.run_tool(&format!(
            "ovs-ofctl packet-out br0 in_port=controller,packet={UDP},actions=ct(commit,zone={zone})"
        ))?;
        let words = format!("ovs-appctl dpctl/dump-conntrack -s zone={zone}");
        context.wait_until("the connection", || {
            Ok(deployment.run_tool(&words)?.starts_with("udp,"))
        })?;
        let dump = deployment.run_tool(&words)?;
        let seconds = dump.split_once(",timeout=");
        let seconds = seconds.and_then(|(_, seconds)| seconds.trim().parse().ok());
        seconds.ok_or_else(|| Failure::Unfit(format!("no timeout: {dump}")))
    };
    assert!((900..=1000).contains(&timeout(5)?), "zone 5");
    assert!(timeout(6)? <= 60, "zone 6");
    deployment.vsctl("del-zone-tp netdev zone=5")?;
    deployment.run_tool("ovs-ofctl ct-flush-zone br0 5")?;
    assert!(timeout(5)? <= 60, "zone 5 with the default policy");
    assert_eq!(
        deployment
            .run_tool("ovs-appctl dpctl/ct-get-nconns")?
            .trim(),
        "2"
    );
    Ok(())
}
