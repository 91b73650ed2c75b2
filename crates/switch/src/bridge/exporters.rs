//! Export to collectors: sFlow samples and port counters, IPFIX and NetFlow records.

mod flows;
mod netflow;
mod sets;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use base::{DatapathId, Instant, PortNo};
use openflow::WallTime;
use ports::Counter;

use super::{Bridge, Effect, PortEntry};
use config::{Exporters, IpfixConfig, SflowConfig};
use dataplane::sampling::{FrameSample, SamplingView};
use flow_export::flows::Ipv4Flow;
use flow_export::sflow::{AgentIdentity, CountersSample, FlowSample, SampleOutput, SflowAgent};
use flows::IpfixExport;
use netflow::NetflowExport;
use sets::CollectorSets;

/// The interval at which due port counters are sought.
const TICK: Duration = Duration::from_secs(1);

/// The exporters of a bridge.
#[derive(Default)]
pub(super) struct BridgeExporters {
    config: Exporters,
    sflow: Option<SflowExport>,
    ipfix: Option<IpfixExport>,
    netflow: Option<NetflowExport>,
    sets: CollectorSets,
    /// The sampling settings of the workers; none if nothing is sampled.
    view: Option<Arc<SamplingView>>,
}

/// A running sFlow agent.
struct SflowExport {
    agent: SflowAgent,
    targets: Arc<[SocketAddr]>,
    polling: Option<Duration>,
    /// The next poll of the ports, and the number of polls so far.
    next_tick: Instant,
    ticks: u64,
}

impl Bridge {
    /// Sets the exporters. `agent` is the address of the sFlow agent; without one sFlow is
    /// disabled. Records of an exporter with another configuration are exported now.
    pub fn set_exporters(
        &mut self,
        config: &Exporters,
        agent: Option<IpAddr>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let started = self.identity.started;
        let has_changed = self.exporters.set((config, agent), started, now, effects);
        self.publication.request_if(has_changed);
    }

    /// Returns the configuration of the exporters.
    pub const fn exporters(&self) -> &Exporters {
        &self.exporters.config
    }

    /// Returns the sampling settings of the workers; none if nothing is sampled.
    pub const fn sampling(&self) -> Option<&Arc<SamplingView>> {
        self.exporters.view.as_ref()
    }

    /// Handles a sample.
    pub fn handle_sampled(
        &mut self,
        sampled: &FrameSample,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let index = |port: PortNo| self.ports.get(&port).and_then(|entry| entry.index);
        self.exporters.handle_sampled(sampled, index, now, effects);
    }

    /// Handles flow counts of a worker.
    pub fn handle_flows(&mut self, flows: &[Ipv4Flow], now: Instant, effects: &mut Vec<Effect>) {
        if let Some(netflow_export) = self.exporters.netflow.as_mut() {
            netflow_export.handle_flows(flows, now, effects);
        }
    }

    /// Returns whether any exporter runs, or still has records to send.
    pub const fn exports(&self) -> bool {
        self.exporters.view.is_some() || self.exporters.netflow.is_some()
    }

    /// Exports all records before the bridge ends.
    pub fn end_exports(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        self.exporters.end(now, effects);
    }

    /// Exports due records.
    pub fn export_due(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let datapath = self.identity.datapath_id;
        let ports = self.ports.values();
        self.exporters.handle_timeout(ports, datapath, now, effects);
    }

    /// Counts a datagram that could not be sent to `count` of these targets.
    pub fn handle_unsent(&mut self, targets: &Arc<[SocketAddr]>, count: u64) {
        self.exporters.handle_unsent(targets, count);
    }
}

impl BridgeExporters {
    /// Sets the exporters. `agent` is the address of the sFlow agent; without one sFlow is disabled.
    /// Records of an exporter with another configuration are exported now. Returns whether anything
    /// changed.
    fn set(
        &mut self,
        (config, agent): (&Exporters, Option<IpAddr>),
        started: WallTime,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let present = self.sflow.as_ref();
        let address = present.map(|sflow| sflow.agent.identity().address);
        let wanted = agent.filter(|_| config.sflow.is_some());
        if self.config == *config && address == wanted {
            return false;
        }
        if self.config.sflow != config.sflow || address != wanted {
            let sflow = config.sflow.as_ref().zip(agent);
            self.sflow = sflow.map(|(sflow, address)| SflowExport::new(sflow, address, now));
        }
        if self.config.ipfix != config.ipfix {
            if let Some(flows) = &mut self.ipfix {
                flows.end(now, effects);
            }
            let ipfix = config.ipfix.as_ref();
            self.ipfix = ipfix.map(|ipfix| {
                let IpfixConfig {
                    targets,
                    cache,
                    observation,
                    ..
                } = ipfix;
                IpfixExport::new(targets, cache, *observation, started)
            });
        }
        let sets = [&self.config.sets, &config.sets];
        self.sets.set(sets, started, now, effects);
        if self.config.netflow != config.netflow {
            let netflow = config.netflow.as_ref();
            match &mut self.netflow {
                Some(netflow_export) => netflow_export.set(netflow, now),
                None => {
                    let netflow_export =
                        netflow.map(|netflow| NetflowExport::new(netflow, started));
                    self.netflow = netflow_export;
                }
            }
        }
        self.config = config.clone();
        self.view = self.sampled();
        true
    }

    /// Handles a sample.
    fn handle_sampled(
        &mut self,
        sampled: &FrameSample,
        index: impl Fn(PortNo) -> Option<u32> + Copy,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(flows) = self.ipfix.as_mut() {
            flows.handle_sampled(sampled, index, now, effects);
        }
        if let Some(sflow) = self.sflow.as_mut() {
            sflow.handle_sampled(sampled, index, now, effects);
        }
    }

    /// Exports all records before the bridge ends.
    fn end(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if let Some(flows) = self.ipfix.as_mut() {
            flows.end(now, effects);
        }
        for flows in self.sets.flows.values_mut() {
            flows.end(now, effects);
        }
        if let Some(netflow_export) = self.netflow.as_mut() {
            netflow_export.end(now, effects);
        }
        if let Some(sflow) = self.sflow.as_mut() {
            let pending = sflow.agent.flush(now);
            sflow.send(pending, effects);
        }
    }

    /// Exports due records.
    fn handle_timeout<'a>(
        &mut self,
        ports: impl Iterator<Item = &'a PortEntry> + Clone,
        datapath: DatapathId,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(flows) = self.ipfix.as_mut() {
            flows.handle_timeout(now, effects);
        }
        for flows in self.sets.flows.values_mut() {
            flows.handle_timeout(now, effects);
        }
        let mut continues = |it: &mut NetflowExport| it.handle_timeout(now, effects);
        self.netflow
            .take_if(|netflow_export| !continues(netflow_export));
        let Some(sflow) = self.sflow.as_mut() else {
            return;
        };
        let pending = match sflow.next_tick <= now {
            true => {
                sflow.next_tick = now + TICK;
                sflow.ticks += 1;
                sflow.poll(ports, datapath, now, effects);
                // Counters of one time leave in one datagram.
                sflow.agent.flush(now)
            }
            false => sflow.agent.handle_timeout(now),
        };
        sflow.send(pending, effects);
    }

    /// Returns the time of the next call of [`Self::handle_timeout`].
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let sflow = self.sflow.as_ref();
        let tick = sflow.filter(|sflow| sflow.polling.is_some());
        let due = [
            tick.map(|sflow| sflow.next_tick),
            sflow.and_then(|sflow| sflow.agent.next_timeout()),
            self.ipfix.as_ref().and_then(IpfixExport::next_timeout),
            self.netflow.as_ref().and_then(NetflowExport::next_timeout),
        ];
        let sets = self.sets.flows.values();
        let of_sets = sets.filter_map(IpfixExport::next_timeout);
        due.into_iter().flatten().chain(of_sets).min()
    }

    /// Counts a datagram that could not be sent to `count` of these targets.
    fn handle_unsent(&mut self, targets: &Arc<[SocketAddr]>, count: u64) {
        let of_sets = self.sets.flows.values_mut();
        for flows in self.ipfix.iter_mut().chain(of_sets) {
            flows.handle_unsent(targets, count);
        }
    }

    /// Returns the statistics of the bridge's IPFIX exporter, if it is configured.
    pub(super) fn ipfix_statistics(&self) -> Option<flow::IpfixStats> {
        self.ipfix.as_ref().map(IpfixExport::statistics)
    }

    /// Returns the IPFIX statistics of the collector sets.
    pub(super) fn ipfix_statistics_of_sets(&self) -> Vec<flow::IpfixStats> {
        self.sets.statistics()
    }

    /// Returns the sampling settings of the workers.
    fn sampled(&self) -> Option<Arc<SamplingView>> {
        let sflow = self.sflow.as_ref().and(self.config.sflow.as_ref());
        let ipfix = self.config.ipfix.as_ref();
        let flows = self.config.netflow.is_some();
        let sets: Vec<u32> = self.config.sets.keys().copied().collect();
        if sflow.is_none() && ipfix.is_none() && !flows && sets.is_empty() {
            return None;
        }
        let rates = |ipfix: &IpfixConfig| -> [Option<NonZeroU32>; 2] {
            ipfix.directions.map(|it| it.then_some(ipfix.sampling))
        };
        Some(Arc::new(SamplingView {
            sflow: sflow.map(|sflow| sflow.sampling),
            ipfix: ipfix.map(rates).unwrap_or_default(),
            snap: sflow.map_or(0, |sflow| sflow.header),
            flows,
            sets,
        }))
    }
}

impl SflowExport {
    fn new(sflow: &SflowConfig, address: IpAddr, now: Instant) -> Self {
        let identity = AgentIdentity {
            address,
            sub_agent: sflow.sub_agent,
            sampling: sflow.sampling.get(),
        };
        Self {
            agent: SflowAgent::new(identity, now),
            targets: sflow.targets.as_slice().into(),
            polling: sflow.polling,
            next_tick: now + TICK,
            ticks: 0,
        }
    }

    fn handle_sampled(
        &mut self,
        sampled: &FrameSample,
        index: impl Fn(PortNo) -> Option<u32>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let Some(stands_for) = sampled.chosen.sflow else {
            return;
        };
        let outputs = sampled.outputs.as_slice();
        let output = match outputs {
            [] => SampleOutput::Nowhere,
            [only] => index(only.port).map_or(SampleOutput::Ports(1), SampleOutput::Interface),
            [..] => SampleOutput::Ports(u32::try_from(outputs.len()).unwrap_or(u32::MAX)),
        };
        let tag = sampled.ingress.tag();
        let sample = FlowSample {
            stands_for,
            input: index(sampled.from.port).unwrap_or(0),
            output,
            frame: &sampled.ingress,
            missed: sampled.missed,
            tags: [tag, outputs.last().map_or(tag, |last| last.frame.tag())],
        };
        let full = self.agent.handle_sample(&sample, now);
        self.send(full, effects);
    }

    /// Exports the counters of the ports that are due.
    fn poll<'a>(
        &mut self,
        ports: impl Iterator<Item = &'a PortEntry> + Clone,
        datapath: DatapathId,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let Some(polling) = self.polling else {
            return;
        };
        let indices = ports.clone().filter_map(|entry| entry.index);
        let present: BTreeSet<u32> = indices.collect();
        self.agent
            .retain_interfaces(|index| present.contains(&index));
        for entry in ports {
            // Each port has its own tick, so that the exports are spread.
            let tick = self.ticks + u64::from(entry.desc.number.0);
            let is_due = tick.is_multiple_of(polling.as_secs().max(1));
            if let Some(index) = entry.index.filter(|_| is_due) {
                let sample = entry.sample(index, datapath);
                let full = self.agent.handle_counters(&sample, now);
                self.send(full, effects);
            }
        }
    }

    fn send(&self, datagram: Option<Vec<u8>>, effects: &mut Vec<Effect>) {
        let to = || Arc::clone(&self.targets);
        effects.extend(datagram.map(|datagram| Effect::Export(to(), datagram)));
    }
}

impl PortEntry {
    /// Returns the counters of a port as an sFlow counter sample.
    fn sample(&self, index: u32, datapath: DatapathId) -> CountersSample {
        let counts = self.counts();
        let lost = counts[Counter::RxOverrun] + counts[Counter::RxTruncated];
        let received = [
            counts[Counter::RxBytes],
            counts[Counter::RxPackets],
            lost,
            counts.rx_dropped() - lost,
        ];
        let sent = [
            counts[Counter::TxBytes],
            counts[Counter::TxPackets],
            counts.tx_dropped() - counts[Counter::TxErrors],
            counts[Counter::TxErrors],
        ];
        CountersSample {
            speed: u64::from(self.desc.speed_kbps) * 1000,
            full_duplex: self.full_duplex,
            up: !self.desc.config.contains(flow::PortConfig::DOWN),
            carrier: !self.desc.state.contains(flow::PortState::LINK_DOWN),
            received,
            sent,
            runts: counts[Counter::RxRunt],
            index,
            datapath,
            port: self.desc.number,
            name: self.desc.name.clone(),
        }
    }
}
