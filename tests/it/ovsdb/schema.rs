//! All columns of the database schema: for each a test that shows its effect, its refusal, or that
//! it is not modified. Tests of columns without another file are here.

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
    schema_columns_all_have_a_test,
    unsupported_columns_are_reported_by_name,
    foreign_rows_and_columns_are_not_modified,
    columns_without_an_effect_change_nothing,
];

/// Folders with tests, relative to this crate's.
const SOURCES: [&str; 2] = ["it", "../crates"];

fn schema_columns_all_have_a_test(_: &TestContext) -> TestResult {
    let schema: Value = serde_json::from_str(&fs::read_to_string(SCHEMA)?)?;
    let tables = schema["tables"]
        .as_object()
        .ok_or("the schema has no tables")?;
    let mut missing = BTreeSet::new();
    let mut listed_columns: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (table, columns, _) in COLUMNS {
        let row = listed_columns.entry(table).or_default();
        for column in columns.split_whitespace() {
            assert!(row.insert(column), "{table}.{column} is listed twice");
        }
    }
    for (table, definition) in tables {
        let columns = definition["columns"]
            .as_object()
            .ok_or("the table has no columns")?;
        let listed = listed_columns
            .get(table.as_str())
            .cloned()
            .unwrap_or_default();
        let unknown = columns
            .keys()
            .filter(|column| !listed.contains(column.as_str()));
        missing.extend(unknown.map(|column| format!("{table}.{column}")));
    }
    assert!(missing.is_empty(), "columns without a test: {missing:?}");
    let mut text = String::new();
    for source in SOURCES {
        append_sources(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join(source),
            &mut text,
        )?;
    }
    for (table, columns, tests) in COLUMNS {
        for test in tests.split_whitespace() {
            let exists = text.contains(&format!("fn {test}("));
            assert!(exists, "{table}.{columns}: the test {test} does not exist");
        }
        assert!(!tests.is_empty(), "{table}.{columns}: no test");
    }
    Ok(())
}

/// Appends all sources in a folder to `text`.
fn append_sources(folder: &Path, text: &mut String) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            append_sources(&path, text)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

fn unsupported_columns_are_reported_by_name(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- set Interface p1 cfm_mpid=9999 other_config:emc-enable=true options:n_rxq=2 \
         -- set Interface br0 ofport_request=7 mac=\"02:00:00:00:00:77\" \
         -- set Bridge br0 other_config:dp-sn=1 \
         -- set-controller br0 tcp:127.0.0.1:6653 -- add-br br1 -- set-controller br1 ptcp:6654"
    ))?;
    deployment.vsctl(
        "set Controller br0 local_ip=10.0.0.1 local_netmask=255.0.0.0 local_gateway=10.0.0.2 controller_queue_size=9 type=service",
    )?;
    deployment.vsctl("set Controller br1 max_backoff=2000 inactivity_probe=2000")?;
    let wait_for_parts = |words: &str, parts: &[&str]| -> Result<(), Failure> {
        for part in parts {
            let condition = format!("'{part}' in the output of '{words}'");
            context.wait_until(&condition, || Ok(deployment.vsctl(words)?.contains(part)))?;
        }
        Ok(())
    };
    let port_parts = ["cfm_mpid: ", "other_config:emc-enable", "options:n_rxq: "];
    wait_for_parts("get Interface p1 error", &port_parts)?;
    wait_for_parts("get Interface br0 error", &["ofport_request: ", "mac: "])?;
    let bridge_parts = ["other_config:dp-sn"];
    wait_for_parts("get Bridge br0 status", &bridge_parts)?;
    let controller_parts = [
        "local_ip: ",
        "local_netmask: ",
        "local_gateway: ",
        "controller_queue_size: ",
        "type: ",
    ];
    wait_for_parts("get Controller br0 status", &controller_parts)?;
    let listener_parts = ["max_backoff: ", "inactivity_probe: "];
    wait_for_parts("get Controller br1 status", &listener_parts)?;
    network.host(1).ping_until_reply(network.host(2).address)?;
    Ok(())
}

/// Tables whose rows belong to other programs, each with a row that a manager may create.
const FOREIGN_ROWS: [(&str, &str); 3] = [
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

fn foreign_rows_and_columns_are_not_modified(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(&format!("{TWO_PORTS} -- set-controller br0 ptcp:6654"))?;
    for (table, row) in FOREIGN_ROWS {
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
    // The switch has processed all changes when this command returns.
    deployment.vsctl("add-br br1")?;
    for row in [
        "Open_vSwitch .",
        "Bridge br0",
        "Port p1",
        "Interface p1",
        "Controller br0",
    ] {
        let value = deployment.vsctl(&format!("get {row} external_ids:mine"))?;
        assert_eq!(value, "\"1\"", "{row}");
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
        let value = deployment.vsctl(&format!("get Interface p1 {column}"))?;
        assert!(["{}", "[]"].contains(&&*value), "{column}: {value}");
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

fn columns_without_an_effect_change_nothing(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let daemon = deployment.start_daemon()?;
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- set Bridge br0 datapath_type=netdev -- set Open_vSwitch . other_config:pmd-cpu-mask=1 other_config:n-handler-threads=2 other_config:max-idle=1000 \
         -- set Bridge br0 flow_tables:0=@t -- --id=@t create Flow_Table prefixes=ip_dst,ip_src \
         -- set Port p2 qos=@q -- --id=@q create QoS type=linux-noop queues:0=@u -- --id=@u create Queue dscp=1 other_config:min-rate=1"
    ))?;
    let expect_no_errors = || -> Result<(), Failure> {
        for (words, empty) in [
            ("get Interface p1 error", "[]"),
            ("get Interface p2 error", "[]"),
            ("get Interface br0 error", "[]"),
            ("get Bridge br0 status", "{}"),
        ] {
            deployment.wait_for_column(words, empty)?;
        }
        network.host(1).ping_until_reply(network.host(2).address)
    };
    expect_no_errors()?;
    daemon.wait_for_log("other_config:pmd-cpu-mask of Open_vSwitch: ignored")?;
    deployment.vsctl("set Bridge br0 datapath_type=system")?;
    expect_no_errors()?;
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
