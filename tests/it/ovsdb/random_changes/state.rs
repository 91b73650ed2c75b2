//! How a switch is: what it says in the database and by OpenFlow, but for what differs from
//! start to start; and what it has of the machine.

use std::fs;

use serde_json::Value;
use testbed::Failure;

use crate::support::deployment::{Deployment, VswitchdProcess};

/// Tables, and of each the columns that say how things are. Not among them: what is counted,
/// what tells of times, and what the kernel deals out (indices, addresses of new interfaces).
const TABLES: [(&str, &str); 4] = [
    (
        "Interface",
        "name,type,ofport,error,admin_state,link_state,mtu",
    ),
    ("Bridge", "name,datapath_id,status"),
    ("Port", "name,tag,trunks,vlan_mode"),
    ("Controller", "target,is_connected,role"),
];

/// What OpenFlow says of a bridge is asked in any of these.
pub(super) const VERSIONS: &str = "-O OpenFlow10,OpenFlow13,OpenFlow14";

/// How a switch with these bridges is, line by line.
pub(super) fn state(
    deployment: &Deployment<'_, '_>,
    bridges: &[&str],
) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    for (table, columns) in TABLES {
        let told = deployment.vsctl(&format!("--format=json --columns={columns} list {table}"))?;
        let told: Value = serde_json::from_str(&told).expect("what was asked for is JSON");
        let rows = told["data"].as_array().expect("a table has rows");
        let rows = rows.iter();
        lines.extend(rows.map(|row| format!("{table} {row}")));
    }
    for bridge in bridges {
        let shown = deployment.run_tool(&format!("ovs-ofctl {VERSIONS} show {bridge}"))?;
        let ports = shown.lines().filter(|line| line.contains("addr:"));
        let ports = ports.filter_map(|line| line.split(':').next());
        lines.extend(ports.map(|port| format!("{bridge} port {}", port.trim())));
        let flows = deployment.run_tool(&format!(
            "ovs-ofctl {VERSIONS} --no-stats dump-flows {bridge}"
        ))?;
        lines.extend(
            flows
                .lines()
                .map(|flow| format!("{bridge} {}", flow.trim())),
        );
    }
    lines.sort();
    Ok(lines)
}

/// What a process has of the machine.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Holdings {
    /// Its open files.
    pub(super) files: usize,
    /// Its threads.
    pub(super) threads: usize,
    /// The interfaces of its namespace.
    pub(super) links: Vec<String>,
}

/// What the daemon has.
pub(super) fn holdings(daemon: &VswitchdProcess<'_, '_>) -> Result<Holdings, Failure> {
    let count = |what: &str| {
        let path = format!("/proc/{}/{what}", daemon.process.id());
        let entries = fs::read_dir(path).map_err(Failure::to("look at the daemon"))?;
        Ok::<_, Failure>(entries.count())
    };
    let links = daemon
        .deployment
        .network
        .run("ip -brief link")?
        .expect_success()?;
    let name = |line: &str| line.split([' ', '@']).next().map(str::to_owned);
    Ok(Holdings {
        files: count("fd")?,
        threads: count("task")?,
        links: links.lines().filter_map(name).collect(),
    })
}
