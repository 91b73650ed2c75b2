//! State of a switch as the database and OpenFlow report it, without values that differ between
//! starts; and the resources of its process.

use std::fs;

use serde_json::Value;
use testbed::Failure;

use crate::support::deployment::{Deployment, VswitchdProcess};

/// Tables and their state columns. Counters, times, and values that the kernel assigns (indices,
/// addresses of new interfaces) are left out.
const TABLES: [(&str, &str); 4] = [
    (
        "Interface",
        "name,type,ofport,error,admin_state,link_state,mtu",
    ),
    ("Bridge", "name,datapath_id,status"),
    ("Port", "name,tag,trunks,vlan_mode"),
    ("Controller", "target,is_connected,role"),
];

/// OpenFlow versions for requests to a bridge.
pub(super) const VERSIONS: &str = "-O OpenFlow10,OpenFlow13,OpenFlow14";

/// Returns the sorted lines of the state of a switch with these bridges.
pub(super) fn state(
    deployment: &Deployment<'_, '_>,
    bridges: &[&str],
) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    for (table, columns) in TABLES {
        let output =
            deployment.vsctl(&format!("--format=json --columns={columns} list {table}"))?;
        let output: Value = serde_json::from_str(&output).expect("ovs-vsctl prints JSON");
        let rows = output["data"].as_array().expect("a table has rows");
        let rows = rows.iter();
        lines.extend(rows.map(|row| format!("{table} {row}")));
    }
    for bridge in bridges {
        let output = deployment.run_tool(&format!("ovs-ofctl {VERSIONS} show {bridge}"))?;
        let ports = output.lines().filter(|line| line.contains("addr:"));
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

/// Resources of a process.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DaemonResources {
    /// Number of open files.
    pub(super) files: usize,
    /// Number of threads.
    pub(super) threads: usize,
    /// Interfaces of its namespace.
    pub(super) links: Vec<String>,
}

/// Returns the resources of the daemon.
pub(super) fn resources(daemon: &VswitchdProcess<'_, '_>) -> Result<DaemonResources, Failure> {
    let count = |directory: &str| {
        let path = format!("/proc/{}/{directory}", daemon.process.id());
        let entries = fs::read_dir(path).map_err(Failure::to("list the daemon's resources"))?;
        Ok::<_, Failure>(entries.count())
    };
    let links = daemon
        .deployment
        .network
        .run("ip -brief link")?
        .expect_success()?;
    let name = |line: &str| line.split([' ', '@']).next().map(str::to_owned);
    Ok(DaemonResources {
        files: count("fd")?,
        threads: count("task")?,
        links: links.lines().filter_map(name).collect(),
    })
}
