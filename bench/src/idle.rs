//! Processor load of an idle switch with four ports. Open vSwitch with its userspace data path is
//! measured too.

use std::time::Duration;

use testbed::{Namespace, OpenVswitch, Usage};

use crate::sample::Sample;
use crate::switch::{BenchSwitch, Site};
use crate::{Failure, Programs, Rounds};

/// Idle time before the measurement, for neighbour discovery and the release of memory.
const SETTLE: Duration = Duration::from_secs(2);

const PORTS: u32 = 4;

/// Takes `rounds` of samples, alternating between the switches.
pub(crate) fn measure(programs: &Programs, rounds: Rounds) -> Result<(), Failure> {
    let site = Site::new(programs)?;
    for _ in 0..rounds.runs {
        let (near, _far) = ports()?;
        let ports = (1..=PORTS).flat_map(|n| ["--port".to_owned(), format!("p{n}={n}")]);
        let arguments: Vec<String> = ports.collect();
        let switch = BenchSwitch::start(&site, "idle", near, &arguments)?;
        watch(&site, "Comporta", rounds, || switch.usage())?;
        drop(switch);
        let (near, _far) = self::ports()?;
        let peer = open_vswitch(&site, &near)?;
        watch(&site, "Open vSwitch", rounds, || Ok(peer.usage()?))?;
    }
    Ok(())
}

/// Creates a namespace with the ports, and one with their peers. All are up.
fn ports() -> Result<(Namespace, Namespace), Failure> {
    let (near, far) = (Namespace::new()?, Namespace::new()?);
    // Otherwise the kernel would send IPv6 router solicitations.
    for end in [&near, &far] {
        end.set_sysctl("net/ipv6/conf/all/disable_ipv6", "1")?;
        end.set_sysctl("net/ipv6/conf/default/disable_ipv6", "1")?;
    }
    for number in 1..=PORTS {
        let name = format!("p{number}");
        near.join(&name, &far, &name)?;
        near.set_up(&name)?;
        far.set_up(&name)?;
    }
    Ok((near, far))
}

fn open_vswitch(site: &Site, inside: &Namespace) -> Result<OpenVswitch, Failure> {
    let directory = site.directory.join("idle-ovs");
    // The database of an earlier run has that run's bridges.
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    std::fs::create_dir_all(&directory)?;
    let place = testbed::Site {
        spawner: &site.spawner,
        inside,
        directory: &directory,
        cores: &[],
    };
    let mut peer = OpenVswitch::start(place, &site.clock, &[])?;
    let ports: String = (1..=PORTS)
        .map(|n| format!(" -- add-port br0 p{n}"))
        .collect();
    peer.vsctl(&format!(
        "add-br br0 -- set bridge br0 datapath_type=netdev fail-mode=secure{ports}"
    ))?;
    Ok(peer)
}

/// Prints the processor load of a process, in per cent of a core.
fn watch(
    site: &Site,
    column: &str,
    rounds: Rounds,
    usage: impl Fn() -> Result<Usage, Failure>,
) -> Result<(), Failure> {
    let sleep = |time| site.clock.sleep_until(site.clock.now() + time);
    sleep(SETTLE);
    let (before, began) = (usage()?, site.clock.now());
    sleep(Duration::from_millis(rounds.millis.into()));
    let (after, ended) = (usage()?, site.clock.now());
    let busy = (after.user + after.system).saturating_sub(before.user + before.system);
    Sample {
        row: "four-ports",
        column,
        value: 100.0 * busy.as_secs_f64() / ended.since(began).as_secs_f64(),
    }
    .print();
    Ok(())
}
