//! A NetFlow exporter: turns the flow counts of the workers into datagrams.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::Instant;
use openflow::WallTime;

use super::super::Effect;
use config::NetflowConfig;
use flow_export::flows::Ipv4Flow;
use flow_export::netflow::NetflowExporter;

/// The wait of an ending exporter for the last counts: workers report them once a second.
const LINGER: Duration = Duration::from_secs(3);

/// A NetFlow exporter and its collectors.
pub(super) struct NetflowExport {
    exporter: NetflowExporter,
    targets: Arc<[SocketAddr]>,
    /// The end of the exporter, if it was disabled.
    ends: Option<Instant>,
}

impl NetflowExport {
    pub(super) fn new(netflow: &NetflowConfig, started: WallTime) -> Self {
        Self {
            exporter: NetflowExporter::new(netflow.settings.clone(), started.0),
            targets: netflow.targets.as_slice().into(),
            ends: None,
        }
    }

    /// Configures the exporter, which keeps its records; without a configuration it ends soon.
    pub(super) fn set(&mut self, netflow: Option<&NetflowConfig>, now: Instant) {
        let Some(netflow) = netflow else {
            self.ends = Some(now + LINGER);
            return;
        };
        self.ends = None;
        self.exporter.configure(netflow.settings.clone());
        self.targets = netflow.targets.as_slice().into();
    }

    pub(super) fn handle_flows(
        &mut self,
        flows: &[Ipv4Flow],
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let mut datagrams = Vec::new();
        self.exporter.handle_flows(flows, now, &mut datagrams);
        self.send(datagrams, effects);
    }

    /// Exports due records. Returns whether the exporter continues.
    pub(super) fn handle_timeout(&mut self, now: Instant, effects: &mut Vec<Effect>) -> bool {
        if self.ends.is_some_and(|ends| ends <= now) {
            self.end(now, effects);
            return false;
        }
        let mut datagrams = Vec::new();
        self.exporter.handle_timeout(now, &mut datagrams);
        self.send(datagrams, effects);
        true
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let due = [self.exporter.next_timeout(), self.ends];
        due.into_iter().flatten().min()
    }

    /// Exports all records.
    pub(super) fn end(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let mut datagrams = Vec::new();
        self.exporter.flush(now, &mut datagrams);
        self.send(datagrams, effects);
    }

    fn send(&self, datagrams: Vec<Vec<u8>>, effects: &mut Vec<Effect>) {
        let to = || Arc::clone(&self.targets);
        let datagrams = datagrams.into_iter();
        effects.extend(datagrams.map(|datagram| Effect::Export(to(), datagram)));
    }
}
