//! Many ports: the memory of their rings is limited, and their removal releases it. Their start
//! time is measured by `cargo xtask bench startup`.

use std::fs;

use testbed::Failure;

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![ring_memory_is_limited_with_many_ports,];

/// Number of ports: receive rings of full size would take 800 MiB.
const PORTS: usize = 200;

/// Limits of the resident memory in bytes: all rings, and the rest of the daemon.
const RING_MEMORY_MAX: u64 = 256 << 20;
const OTHER_MEMORY_MAX: u64 = 160 << 20;

fn ring_memory_is_limited_with_many_ports(context: &TestContext) -> TestResult {
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
    let open_files = || {
        let path = format!("/proc/{}/fd", daemon.process.id());
        let entries =
            fs::read_dir(path).map_err(Failure::to("list the daemon's file descriptors"))?;
        Ok::<_, Failure>(entries.count())
    };
    let (before, memory) = (open_files()?, || daemon.process.usage());
    let ports = names.iter().map(|name| format!("add-port br0 {name}"));
    deployment.vsctl(&ports.collect::<Vec<_>>().join(" -- "))?;
    let failed = deployment.vsctl("--bare --columns=name find Interface ofport=-1")?;
    assert_eq!(failed, "", "ports that the daemon could not open");
    network.host(1).ping_until_reply(network.host(2).address)?;
    let used = memory()?.resident_bytes;
    assert!(
        used < RING_MEMORY_MAX + OTHER_MEMORY_MAX,
        "{used} bytes for {PORTS} ports"
    );
    let ports = names.iter().map(|name| format!("del-port {name}"));
    deployment.vsctl(&ports.collect::<Vec<_>>().join(" -- "))?;
    context.wait_until("the ports' sockets to be closed", || {
        Ok(open_files()? == before)
    })?;
    let remaining = memory()?.resident_bytes;
    assert!(
        remaining < OTHER_MEMORY_MAX,
        "{remaining} bytes after the removal"
    );
    network.host(1).ping_until_reply(network.host(2).address)?;
    Ok(())
}
