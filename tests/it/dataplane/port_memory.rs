//! Many ports at once: what they take of memory, and that nothing of them is left.
//!
//! Not how long that takes: `cargo xtask bench startup` tells.

use std::fs;

use testbed::Failure;

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] =
    tests![many_ports_share_the_memory_of_rings_and_leave_nothing,];

/// Ports, each by a receive ring: at their full size these would be 800 MiB.
const PORTS: usize = 200;

/// What all rings together take, and what else the daemon may.
const RINGS: u64 = 256 << 20;
const REST: u64 = 160 << 20;

fn many_ports_share_the_memory_of_rings_and_leave_nothing(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let links = context.unique_path("links");
    let names: Vec<_> = (0..PORTS).map(|number| format!("m{number}")).collect();
    let lines = names
        .iter()
        .map(|name| format!("link add {name} type veth peer name x{name}\nlink set {name} up\n"));
    fs::write(&links, lines.collect::<String>())?;
    network
        .run(&format!("ip -batch {}", links.display()))?
        .expect_success()?;
    let deployment = Deployment::new(&network)?;
    let daemon = deployment.start_daemon()?;
    deployment.vsctl("add-br br0 -- add-port br0 p1 -- add-port br0 p2")?;
    let files = || {
        let path = format!("/proc/{}/fd", daemon.process.id());
        let entries = fs::read_dir(path).map_err(Failure::to("look at the daemon"))?;
        Ok::<_, Failure>(entries.count())
    };
    let (before, memory) = (files()?, || daemon.process.usage());
    let ports = names.iter().map(|name| format!("add-port br0 {name}"));
    deployment.vsctl(&ports.collect::<Vec<_>>().join(" -- "))?;
    let failed = deployment.vsctl("--bare --columns=name find Interface ofport=-1")?;
    assert_eq!(failed, "", "ports that are not there");
    network.host(1).ping_until_reply(network.host(2).address)?;
    let taken = memory()?.resident_bytes;
    assert!(taken < RINGS + REST, "{taken} bytes for {PORTS} ports");
    let ports = names.iter().map(|name| format!("del-port {name}"));
    deployment.vsctl(&ports.collect::<Vec<_>>().join(" -- "))?;
    context.wait_until("sockets to be closed", || Ok(files()? == before))?;
    let left = memory()?.resident_bytes;
    assert!(left < REST, "{left} bytes are left");
    network.host(1).ping_until_reply(network.host(2).address)?;
    Ok(())
}
