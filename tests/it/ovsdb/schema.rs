//! The whole vocabulary of the database: for each column of the schema a test that shows what
//! comes of it, or that it is refused, or that it is left alone. And those tests for columns
//! that have no theme of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

use serde_json::Value;
use testbed::Failure;

use crate::support::command::CommandOutput;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::{Deployment, SCHEMA, TWO_PORTS};
use crate::support::network::TestNetwork;

mod columns;

use columns::COLUMNS;

pub(crate) const TESTS: &[SystemTest] = tests![
    every_column_of_the_schema_has_a_test,
    what_is_not_honoured_is_said_by_its_name,
    what_is_others_is_left_alone,
    what_asks_nothing_here_changes_nothing,
];

/// Where tests are, from this crate's folder on.
const SOURCES: [&str; 2] = ["it", "../crates"];

fn every_column_of_the_schema_has_a_test(_: &TestContext) -> TestResult {
    let schema: Value = serde_json::from_str(&fs::read_to_string(SCHEMA)?)?;
    let tables = schema["tables"].as_object().ok_or("a schema has tables")?;
    let mut lacking = BTreeSet::new();
    let mut named: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (table, columns, _) in COLUMNS {
        let row = named.entry(table).or_default();
        for column in columns.split_whitespace() {
            assert!(row.insert(column), "{table}.{column} is there twice");
        }
    }
    for (table, of) in tables {
        let columns = of["columns"].as_object().ok_or("a table has columns")?;
        let known = named.get(table.as_str()).cloned().unwrap_or_default();
        let unknown = columns
            .keys()
            .filter(|column| !known.contains(column.as_str()));
        lacking.extend(unknown.map(|column| format!("{table}.{column}")));
    }
    assert!(lacking.is_empty(), "columns without a test: {lacking:?}");
    let mut text = String::new();
    for source in SOURCES {
        read_all(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join(source),
            &mut text,
        )?;
    }
    for (table, columns, tests) in COLUMNS {
        for test in tests.split_whitespace() {
            let is_there = text.contains(&format!("fn {test}("));
            assert!(is_there, "{table}.{columns}: there is no test {test}");
        }
        assert!(!tests.is_empty(), "{table}.{columns}: no test");
    }
    Ok(())
}

/// All sources in a folder, one behind the other.
fn read_all(folder: &Path, text: &mut String) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_all(&path, text)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

fn what_is_not_honoured_is_said_by_its_name(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- set Interface p1 bfd:enable=true lldp:enable=true cfm_mpid=7 other_config:dance=1 options:dance=1 \
         -- set Interface br0 ofport_request=7 mac=\"02:00:00:00:00:77\" \
         -- set Bridge br0 other_config:dance=1 auto_attach=@a \
         -- --id=@a create AutoAttach system_name=dance \
         -- set-controller br0 tcp:127.0.0.1:6653 -- add-br br1 -- set-controller br1 ptcp:6654"
    ))?;
    deployment.vsctl(
        "set Controller br0 local_ip=10.0.0.1 local_netmask=255.0.0.0 local_gateway=10.0.0.2 controller_queue_size=9 type=service",
    )?;
    deployment.vsctl("set Controller br1 max_backoff=2000 inactivity_probe=2000")?;
    let says = |words: &str, parts: &[&str]| -> Result<(), Failure> {
        for part in parts {
            let wanted = format!("{words} to tell of {part}");
            context.wait_until(&wanted, || Ok(deployment.vsctl(words)?.contains(part)))?;
        }
        Ok(())
    };
    let of_port = [
        "bfd: ",
        "lldp: ",
        "cfm_mpid: ",
        "other_config",
        "options:dance: ",
    ];
    says("get Interface p1 error", &of_port)?;
    says("get Interface br0 error", &["ofport_request: ", "mac: "])?;
    let of_bridge = ["other_config:dance", "auto_attach"];
    says("get Bridge br0 status", &of_bridge)?;
    let of_controller = [
        "local_ip: ",
        "local_netmask: ",
        "local_gateway: ",
        "controller_queue_size: ",
        "type: ",
    ];
    says("get Controller br0 status", &of_controller)?;
    let of_listener = ["max_backoff: ", "inactivity_probe: "];
    says("get Controller br1 status", &of_listener)?;
    network.host(1).ping_until_reply(network.host(2).address)?;
    Ok(())
}

/// Tables whose rows are others', each with a row as a manager might make it.
const OTHERS: [(&str, &str); 3] = [
    (
        "CT_Timeout_Policy",
        "create CT_Timeout_Policy timeouts:tcp_syn_sent=30",
    ),
    (
        "Datapath",
        "create Datapath datapath_version=1 -- set Open_vSwitch . datapaths:netdev=@x",
    ),
    (
        "Manager",
        "create Manager target=\"ptcp:6640:127.0.0.1\" max_backoff=2000 inactivity_probe=0 connection_mode=out-of-band -- add Open_vSwitch . manager_options @x",
    ),
];

fn what_is_others_is_left_alone(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(&format!("{TWO_PORTS} -- set-controller br0 ptcp:6654"))?;
    for (table, row) in OTHERS {
        let (of, rest) = row.split_once(" -- ").unwrap_or((row, ""));
        let rest = if rest.is_empty() {
            String::new()
        } else {
            format!(" -- {rest}")
        };
        let words = format!("--id=@x {of} external_ids:mine=1{rest}");
        let made = deployment.vsctl_output(&words)?;
        assert!(made.status.success(), "{table}: {made:?}");
    }
    for row in [
        "Open_vSwitch .",
        "Bridge br0",
        "Port p1",
        "Interface p1",
        "Controller br0",
    ] {
        deployment.vsctl(&format!("set {row} external_ids:mine=1"))?;
    }
    // The switch has looked at all of it when this is done.
    deployment.vsctl("add-br br1")?;
    for row in [
        "Open_vSwitch .",
        "Bridge br0",
        "Port p1",
        "Interface p1",
        "Controller br0",
    ] {
        let told = deployment.vsctl(&format!("get {row} external_ids:mine"))?;
        assert_eq!(told, "\"1\"", "{row}");
    }
    for column in [
        "bfd_status",
        "cfm_fault_status",
        "cfm_health",
        "cfm_fault",
        "cfm_flap_count",
        "cfm_remote_opstate",
        "cfm_remote_mpids",
    ] {
        let told = deployment.vsctl(&format!("get Interface p1 {column}"))?;
        assert!(["{}", "[]"].contains(&&*told), "{column}: {told}");
    }
    assert_eq!(deployment.vsctl("get Open_vSwitch . db_version")?, "[]");
    assert_eq!(
        deployment.vsctl("--bare --columns=datapath_version list Datapath")?,
        "1"
    );
    assert_eq!(
        deployment.vsctl("--bare --columns=is_connected list Manager")?,
        "false"
    );
    network.host(1).ping_until_reply(network.host(2).address)?;
    Ok(())
}

fn what_asks_nothing_here_changes_nothing(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let daemon = deployment.start_daemon()?;
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- set Bridge br0 datapath_type=netdev -- set Open_vSwitch . other_config:pmd-cpu-mask=1 other_config:n-handler-threads=2 other_config:max-idle=1000 \
         -- set Bridge br0 flow_tables:0=@t -- --id=@t create Flow_Table prefixes=ip_dst,ip_src \
         -- set Port p2 qos=@q -- --id=@q create QoS type=linux-noop queues:0=@u -- --id=@u create Queue dscp=1 other_config:min-rate=1"
    ))?;
    let clean = || -> Result<(), Failure> {
        for (words, nothing) in [
            ("get Interface p1 error", "[]"),
            ("get Interface p2 error", "[]"),
            ("get Interface br0 error", "[]"),
            ("get Bridge br0 status", "{}"),
        ] {
            deployment.wait_for_column(words, nothing)?;
        }
        network.host(1).ping_until_reply(network.host(2).address)
    };
    clean()?;
    daemon.wait_for_log("other_config:pmd-cpu-mask of Open_vSwitch: not honoured")?;
    deployment.vsctl("set Bridge br0 datapath_type=system")?;
    clean()?;
    let index = network.run("ip -o link show br0")?.expect_success()?;
    deployment.vsctl("set Bridge br0 datapath_type=netdev")?;
    assert_eq!(network.run("ip -o link show br0")?.expect_success()?, index);
    let types = CommandOutput::run(
        context,
        deployment.program("ovs-vsctl get Bridge br0 datapath_version"),
    )?
    .expect_success()?;
    assert!(types.contains("comporta"), "{types}");
    Ok(())
}
