//! The cores and NUMA nodes of the machine, or those that a test pretends, and the places of
//! workers on them.

use std::collections::BTreeMap;

use config::DummyCores;

use crate::worker_thread::WorkerPlace;

/// The module of these messages, as in Open vSwitch.
const LOG: &str = "ovs_numa";

/// Returns the places of the workers. `cores` have one worker each. With `dummies`, these are main
/// workers, and each core of `dummies` has a worker for PMD threads, on any of the `allowed` cores.
pub(crate) fn worker_places(
    cores: &[usize],
    allowed: &[usize],
    dummies: Option<&DummyCores>,
) -> Vec<WorkerPlace> {
    let own = cores.iter().map(|core| WorkerPlace {
        core: *core,
        numa: dummies.is_none().then(|| numa_of(*core)),
        cpus: vec![*core],
    });
    let pretended = dummies.into_iter().flat_map(|DummyCores(nodes)| nodes);
    let pretended = pretended.enumerate().filter_map(|(core, numa)| {
        numa.map(|numa| WorkerPlace {
            core,
            numa: Some(numa),
            cpus: allowed.to_vec(),
        })
    });
    own.chain(pretended).collect()
}

/// Logs the cores and NUMA nodes.
pub(crate) fn log_cores(allowed: &[usize], dummies: Option<&DummyCores>) {
    let nodes: Vec<u32> = match dummies {
        Some(DummyCores(nodes)) => nodes.iter().flatten().copied().collect(),
        None => allowed.iter().map(|core| numa_of(*core)).collect(),
    };
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for node in &nodes {
        *counts.entry(*node).or_default() += 1;
    }
    for (node, count) in &counts {
        tracing::info!(target: LOG, "Discovered {count} CPU cores on NUMA node {node}");
    }
    let (nodes, cores) = (counts.len(), nodes.len());
    tracing::info!(target: LOG, "Discovered {nodes} NUMA nodes and {cores} CPU cores");
}

/// Returns the NUMA node of a core (sysfs-devices-system-cpu); the first if it has none.
fn numa_of(core: usize) -> u32 {
    let entries = std::fs::read_dir(format!("/sys/devices/system/cpu/cpu{core}"));
    let names = entries.into_iter().flatten().flatten();
    let node = |name: std::ffi::OsString| name.to_str()?.strip_prefix("node")?.parse().ok();
    let mut nodes = names.filter_map(|entry| node(entry.file_name()));
    nodes.next().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dummy_cores_add_workers_for_pmd_threads() {
        let dummies = "0,-1,8".parse().expect("a list of nodes");
        let places = worker_places(&[1], &[0, 1], Some(&dummies));
        let shown: Vec<_> = places
            .iter()
            .map(|place| (place.core, place.numa, place.cpus.len()))
            .collect();
        assert_eq!(shown, [(1, None, 1), (0, Some(0), 2), (2, Some(8), 2)]);
        let places = worker_places(&[0, 1], &[0, 1], None);
        assert!(places.iter().all(|place| place.numa.is_some()));
    }
}
