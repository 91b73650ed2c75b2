//! Many ports at once: what they take of memory, and that nothing of them is left.
//!
//! Not how long that takes: `cargo xtask bench startup` tells.

use std::fs;

use testbed::Failure;

use crate::ground::{Ground, Outcome, Rule, rules};
use crate::rig::Rig;
use crate::site::Site;

pub(crate) const RULES: &[Rule] = rules![many_ports_share_the_memory_of_rings_and_leave_nothing,];

/// Ports, each by a receive ring: at their full size these would be 800 MiB.
const PORTS: usize = 200;

/// What all rings together take, and what else the daemon may.
const RINGS: u64 = 256 << 20;
const REST: u64 = 160 << 20;

fn many_ports_share_the_memory_of_rings_and_leave_nothing(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let links = ground.file("links");
    let names: Vec<_> = (0..PORTS).map(|number| format!("m{number}")).collect();
    let lines = names
        .iter()
        .map(|name| format!("link add {name} type veth peer name x{name}\nlink set {name} up\n"));
    fs::write(&links, lines.collect::<String>())?;
    rig.ran(&format!("ip -batch {}", links.display()))?.good()?;
    let site = Site::new(&rig)?;
    let daemon = site.daemon()?;
    site.vsctl("add-br br0 -- add-port br0 p1 -- add-port br0 p2")?;
    let files = || {
        let path = format!("/proc/{}/fd", daemon.process.id());
        let entries = fs::read_dir(path).map_err(Failure::to("look at the daemon"))?;
        Ok::<_, Failure>(entries.count())
    };
    let (before, memory) = (files()?, || daemon.process.usage());
    let ports = names.iter().map(|name| format!("add-port br0 {name}"));
    site.vsctl(&ports.collect::<Vec<_>>().join(" -- "))?;
    let failed = site.vsctl("--bare --columns=name find Interface ofport=-1")?;
    assert_eq!(failed, "", "ports that are not there");
    rig.host(1).reach(rig.host(2).address)?;
    let taken = memory()?.resident_bytes;
    assert!(taken < RINGS + REST, "{taken} bytes for {PORTS} ports");
    let ports = names.iter().map(|name| format!("del-port {name}"));
    site.vsctl(&ports.collect::<Vec<_>>().join(" -- "))?;
    ground.wait_until("sockets to be closed", || Ok(files()? == before))?;
    let left = memory()?.resident_bytes;
    assert!(left < REST, "{left} bytes are left");
    rig.host(1).reach(rig.host(2).address)?;
    Ok(())
}
