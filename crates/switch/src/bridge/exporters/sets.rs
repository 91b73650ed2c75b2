//! Collector sets, the targets of `sample` actions.

use std::collections::BTreeMap;

use base::{Instant, PortNo};
use flow::IpfixStats;
use openflow::WallTime;
use packet::Frame;

use super::super::{Bridge, Effect};
use super::flows::IpfixExport;
use config::CollectorSet;
use dataplane::program::BridgeId;
use dataplane::sampling::ActionSample;
use dataplane::slots::PortKey;

/// The collector sets of a bridge, by id.
#[derive(Default)]
pub(super) struct CollectorSets {
    pub(super) flows: BTreeMap<u32, IpfixExport>,
    /// The accumulated probability of packet-outs, in units of 1/65535.
    left: u32,
}

impl CollectorSets {
    /// Replaces the collector sets. Records of changed or removed sets are exported now.
    pub(super) fn set(
        &mut self,
        [old, new]: [&BTreeMap<u32, CollectorSet>; 2],
        started: WallTime,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        self.flows.retain(|id, flows| {
            let stays = old.get(id) == new.get(id);
            if !stays {
                flows.end(now, effects);
            }
            stays
        });
        for (id, set) in new {
            let flows = || IpfixExport::new(&set.targets, &set.cache, (0, 0), started);
            self.flows.entry(*id).or_insert_with(flows);
        }
    }
}

impl CollectorSets {
    /// Returns the IPFIX statistics of the collector sets.
    pub(in crate::bridge) fn statistics(&self) -> Vec<IpfixStats> {
        let sets = self.flows.iter();
        let statistics = sets.map(|(id, flows)| IpfixStats {
            collectors: *id,
            ..flows.statistics()
        });
        statistics.collect()
    }
}

impl Bridge {
    /// Handles a frame that a `sample` action sends to a collector set.
    pub fn handle_sampled_by_rule(
        &mut self,
        sampled: &ActionSample,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let index = |port: PortNo| self.ports.get(&port).and_then(|entry| entry.index);
        let set = self
            .exporters
            .sets
            .flows
            .get_mut(&sampled.sample.collectors);
        if let Some(flows) = set {
            flows.handle_sampled_by_rule(sampled, index, now, effects);
        }
    }

    /// Samples a packet-out with the probability of the action, at even distances.
    pub(in crate::bridge) fn sample_by_rule(
        &mut self,
        sample: flow::SampleAction,
        from: PortNo,
        frame: &Frame,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let left = &mut self.exporters.sets.left;
        *left += u32::from(sample.probability);
        if let Some(less) = left.checked_sub(u16::MAX.into()) {
            *left = less;
            let from = PortKey {
                bridge: BridgeId::HOST,
                port: from,
            };
            let sampled = ActionSample::of(frame, from, sample);
            self.handle_sampled_by_rule(&sampled, now, effects);
        }
    }
}
