//! What the database says of interfaces, tables and the host, beside what is connected with what.

use testbed::Failure;

use crate::support::command::CommandOutput;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::{Deployment, TWO_PORTS};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    interfaces_are_given_lengths_and_addresses,
    an_interface_tells_how_its_link_is,
    what_comes_too_fast_is_not_taken,
    what_is_to_leave_too_fast_is_dropped,
    an_internal_interface_works_in_another_namespace,
    tables_are_named_and_limited_by_the_database,
    the_host_is_told_of_where_that_is_wanted,
];

fn interfaces_are_given_lengths_and_addresses(context: &TestContext) -> TestResult {
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
    let inner = link("i1")?;
    assert!(
        inner.contains("mtu 1300") && inner.contains("02:00:00:00:00:78"),
        "{inner}"
    );
    deployment.wait_for_column("get Interface i1 mac_in_use", "\"02:00:00:00:00:78\"")?;
    deployment.wait_for_column("get Interface p1 mtu", "1400")?;
    assert!(
        deployment
            .vsctl("get Interface p1 error")?
            .contains("mac: not honoured")
    );
    // It changes while the port stays, and what cannot be is said.
    deployment.vsctl("set Interface p1 mtu_request=1450 -- clear Interface p1 mac")?;
    deployment.wait_for_column("get Interface p1 mtu", "1450")?;
    deployment.wait_for_column("get Interface p1 error", "[]")?;
    deployment.vsctl("set Interface p2 mtu_request=1000000")?;
    context.wait_until("the reason", || {
        Ok(deployment
            .vsctl("get Interface p2 error")?
            .contains("mtu_request"))
    })?;
    network.host(1).ping_until_reply(network.host(2).address)?;
    Ok(())
}

fn an_interface_tells_how_its_link_is(context: &TestContext) -> TestResult {
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

fn what_comes_too_fast_is_not_taken(context: &TestContext) -> TestResult {
    const FRAME: &str = "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01) / data(1000)";
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    // A kilobit a second brings none back while the test lasts; 80 are ten frames.
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- set Interface p1 ingress_policing_rate=1 ingress_policing_burst=80"
    ))?;
    let counted = |name: &str| {
        let told = deployment.run_tool("ovs-appctl comporta/counters br0")?;
        let mut lines = told.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        Ok::<_, Failure>(value.unwrap_or(0))
    };
    let before = counted("br0 port 2 tx_packets")?;
    network.host(1).send(&[FRAME; 60])?;
    context.wait_until("frames to be dropped", || {
        let told = deployment.run_tool("ovs-appctl comporta/counters")?;
        let dropped = told.lines().filter(|line| line.contains("ingress_policed"));
        let dropped: u64 = dropped
            .filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok())
            .sum();
        Ok(dropped >= 50)
    })?;
    let passed = counted("br0 port 2 tx_packets")? - before;
    assert!((1..=10).contains(&passed), "{passed}");
    // Without a limit all pass again.
    deployment.vsctl("set Interface p1 ingress_policing_rate=0")?;
    let before = counted("br0 port 2 tx_packets")?;
    network.host(1).send(&[FRAME; 60])?;
    context.wait_until("all frames", || {
        Ok(counted("br0 port 2 tx_packets")? - before >= 60)
    })?;
    Ok(())
}

fn what_is_to_leave_too_fast_is_dropped(context: &TestContext) -> TestResult {
    const FRAME: &str = "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01) / data(986)";
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- set Port p2 qos=@q -- --id=@q create QoS type=egress-policer other_config:cir=1 other_config:cbs=10000"
    ))?;
    let shown = deployment.run_tool("ovs-appctl qos/show p2")?;
    assert_eq!(shown, "QoS: p2 egress-policer\ncbs: 10000\ncir: 1\n");
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
    context.wait_until("frames to be dropped", || {
        let told = deployment.run_tool("ovs-appctl comporta/counters")?;
        let dropped = told.lines().filter(|line| line.contains("egress_policed"));
        let dropped =
            dropped.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok());
        Ok(dropped.sum::<u64>() >= 50)
    })?;
    // A type that is not there is said; the port is.
    deployment.vsctl("set QoS . type=linux-sfq")?;
    context.wait_until("what is not honoured", || {
        Ok(deployment
            .vsctl("get Interface p2 error")?
            .contains("qos: linux-sfq: not honoured"))
    })?;
    network.host(1).ping_until_reply(network.host(2).address)?;
    deployment.vsctl("clear Port p2 qos")?;
    deployment.wait_for_column("get Interface p2 error", "[]")?;
    Ok(())
}

fn an_internal_interface_works_in_another_namespace(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- add-port br0 i1 -- set Interface i1 type=internal"
    ))?;
    let there = testbed::Namespace::new()?;
    let lives = crate::support::command::program("sleep 600").inside(&there);
    let lives = context.spawner.start(lives)?;
    // Until the program is in its namespace, this would move it to where it is.
    context.wait_until("the interface to be gone", || {
        network.run(&format!("ip link set i1 netns {}", lives.id()))?;
        Ok(!network.run("ip -o link")?.expect_success()?.contains("i1"))
    })?;
    let inside = |words: &str| {
        CommandOutput::run(
            context,
            crate::support::command::program(words).inside(&there),
        )?
        .expect_success()
    };
    inside("ip address add 10.1.0.99/16 dev i1")?;
    inside("ip link set i1 up")?;
    let one = network.host(1);
    one.ping_until_reply([10, 1, 0, 99].into())?;
    assert_eq!(deployment.vsctl("get Interface i1 error")?, "[]");
    deployment.vsctl("del-port i1")?;
    Ok(())
}

fn tables_are_named_and_limited_by_the_database(context: &TestContext) -> TestResult {
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
    // With another policy the rule that ends soonest makes room.
    deployment.vsctl("set Flow_Table guests overflow_policy=evict")?;
    add("table=1,in_port=3 actions=drop")?.expect_success()?;
    let flows = deployment.run_tool("ovs-ofctl --no-names dump-flows br0 table=1")?;
    assert!(
        !flows.contains("in_port=1") && flows.contains("in_port=3"),
        "{flows}"
    );
    // Groups of rules are not there; that is said. A table that is spoken of no more is free.
    deployment.vsctl("set Flow_Table guests groups=\"NXM_OF_IN_PORT[]\"")?;
    context.wait_until("what is not honoured", || {
        Ok(deployment
            .vsctl("get Bridge br0 status")?
            .contains("groups of table 1: not honoured"))
    })?;
    deployment.vsctl("clear Bridge br0 flow_tables")?;
    add("table=1,in_port=4 actions=drop")?.expect_success()?;
    add("table=1,in_port=5 actions=drop")?.expect_success()?;
    assert_eq!(deployment.vsctl("get Bridge br0 status")?, "{}");
    Ok(())
}

fn the_host_is_told_of_where_that_is_wanted(context: &TestContext) -> TestResult {
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
    context.wait_until("what the host has", || {
        let told = deployment.vsctl("get Open_vSwitch . statistics")?;
        let keys = ["cpu=", "load_average=", "memory=", "process_ovs-vswitchd="];
        Ok(keys.iter().all(|key| told.contains(key)))
    })?;
    deployment.vsctl("set Open_vSwitch . other_config:enable-statistics=false")?;
    deployment.wait_for_column("get Open_vSwitch . statistics", "{}")?;
    Ok(())
}
