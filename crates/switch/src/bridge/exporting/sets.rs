//! Sets of collectors, to which rules tell frames.

use std::collections::BTreeMap;

use base::{Instant, PortNo};
use flow::IpfixStats;
use openflow::WallTime;
use packet::Frame;

use super::super::{Bridge, Effect};
use super::flows::Flows;
use config::CollectorSet;
use dataplane::program::BridgeId;
use dataplane::sampling::ActionSample;
use dataplane::slots::PortKey;

/// The sets of a bridge, by their numbers.
#[derive(Default)]
pub(super) struct Sets {
    pub(super) flows: BTreeMap<u32, Flows>,
    /// What is left of probabilities of frames that controllers sent.
    left: u32,
}

impl Sets {
    /// Tells these from now on, where it was those. What is kept for others is told now.
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
            let flows = || Flows::new(&set.targets, &set.cache, (0, 0), started);
            self.flows.entry(*id).or_insert_with(flows);
        }
    }
}

impl Bridge {
    /// Takes a frame that a rule has told to a set of collectors.
    pub fn handle_sampled_by_rule(
        &mut self,
        sampled: &ActionSample,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let index = |port: PortNo| self.ports.get(&port).and_then(|entry| entry.index);
        let set = self
            .exporting
            .sets
            .flows
            .get_mut(&sampled.sample.collectors);
        if let Some(flows) = set {
            flows.handle_sampled_by_rule(sampled, index, now, effects);
        }
    }

    /// The same of a frame that a controller sent: as often as the rule says, evenly apart.
    pub(in crate::bridge) fn sample_by_rule(
        &mut self,
        sample: flow::SampleAction,
        from: PortNo,
        frame: &Frame,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let left = &mut self.exporting.sets.left;
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

    /// What was told to sets of collectors, by set.
    pub(in crate::bridge) fn ipfix_statistics_of_sets(&self) -> Vec<IpfixStats> {
        let sets = self.exporting.sets.flows.iter();
        let statistics = sets.map(|(id, flows)| IpfixStats {
            collectors: *id,
            ..flows.statistics()
        });
        statistics.collect()
    }
}
