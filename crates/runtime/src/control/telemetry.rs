//! Telemetry of the control thread's own state: bridges, ports and controllers.

use std::sync::Arc;

use flow::Role;
use ports::{Counter, QueueCounts};

use super::bridge_runtime::{BridgeRuntime, PortRuntime};
use super::commands::DeferredAnswer;
use super::{Control, bridge_counters};
use crate::telemetry_snapshot::{TelemetrySnapshot, not_zero};
use control_api::telemetry::{BridgeTelemetry, ControllerTelemetry, PortTelemetry, Telemetry};
use switch::bridge::PortEntry;

/// The limit of reported rules of a bridge: several terminal screens.
const BUSIEST_MAX: usize = 1000;

impl Control {
    /// Takes a snapshot, with the `busiest` busiest rules of each bridge.
    pub(super) fn gather(&self, busiest: usize) -> TelemetrySnapshot {
        let now = self.now();
        let counts = self.counters.read().into_iter();
        let mut sites: Vec<_> = self.sites.values().collect();
        sites.sort_by_key(|site| site.bridge.name());
        let snapshot = |site: &&BridgeRuntime| (site.bridge.rules(), site.bridge.fdb().view());
        let workers = self.tools.workers.iter();
        TelemetrySnapshot {
            telemetry: Telemetry {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                uptime_ns: now.as_nanos(),
                control: not_zero(counts),
                bridges: sites.iter().map(|site| bridge(site)).collect(),
                ..Telemetry::default()
            },
            workers: workers
                .map(|worker| (worker.core, Arc::clone(&worker.counters)))
                .collect(),
            bridges: sites.iter().map(snapshot).collect(),
            trackers: self.trackers.all().cloned().collect(),
            now,
            busiest: busiest.min(BUSIEST_MAX),
        }
    }
}

/// Returns the telemetry as JSON; the argument is the number of busiest rules.
pub(super) fn telemetry(
    control: &mut Control,
    arguments: &[String],
) -> Result<DeferredAnswer, String> {
    let busiest = match arguments {
        [] => 0,
        [count, ..] => count
            .parse()
            .map_err(|_| format!("{count}: not a number of rules"))?,
    };
    let gathered = control.gather(busiest);
    Ok(Box::new(move || {
        serde_json::to_string(&gathered.finish()).expect("it is made of names and numbers")
    }))
}

fn bridge(site: &BridgeRuntime) -> BridgeTelemetry {
    let counts = bridge_counters(&site.bridge);
    let entries: Vec<_> = site.bridge.ports().collect();
    let entry = |number| entries.iter().find(|(of, _)| *of == number);
    let ports = site.ports.iter().map(|(number, of)| {
        let entry = entry(*number).map(|(_, entry)| *entry);
        PortTelemetry {
            number: number.to_string(),
            ..port(of, entry)
        }
    });
    let controllers = site.controllers.keys().map(|target| {
        let target = target.to_string();
        ControllerTelemetry {
            role: site
                .bridge
                .role_of(&target)
                .map(|role| word(role).to_owned()),
            target,
        }
    });
    BridgeTelemetry {
        name: site.bridge.name().to_owned(),
        datapath_id: format!("{:016x}", site.bridge.datapath_id().0),
        counts: not_zero(counts),
        ports: ports.collect(),
        controllers: controllers.collect(),
        ..BridgeTelemetry::default()
    }
}

/// Returns the telemetry of a port; `entry` exists only if the port is open.
fn port(site: &PortRuntime, entry: Option<&PortEntry>) -> PortTelemetry {
    const NAMED: [Counter; 4] = [
        Counter::RxPackets,
        Counter::RxBytes,
        Counter::TxPackets,
        Counter::TxBytes,
    ];
    let status = site.device.as_ref().map(|device| device.status());
    let counts = entry.map_or_else(QueueCounts::default, PortEntry::counts);
    let others = Counter::ALL
        .into_iter()
        .filter(|(counter, _)| !NAMED.contains(counter))
        .map(|(counter, name)| (name, counts[counter]));
    PortTelemetry {
        number: String::new(),
        name: site.spec.name.to_string(),
        up: status.as_ref().is_some_and(|status| status.up),
        carrier: status.as_ref().is_some_and(|status| status.carrier),
        rx_packets: counts[Counter::RxPackets],
        rx_bytes: counts[Counter::RxBytes],
        tx_packets: counts[Counter::TxPackets],
        tx_bytes: counts[Counter::TxBytes],
        rx_dropped: counts.rx_dropped(),
        tx_dropped: counts.tx_dropped(),
        counts: not_zero(others.chain(site.packet_in_counts())),
    }
}

const fn word(role: Role) -> &'static str {
    match role {
        Role::Equal => "other",
        Role::Master => "master",
        Role::Slave => "slave",
    }
}
