//! An IPFIX exporter: turns ingress and egress samples into flow records.

use std::net::SocketAddr;
use std::sync::Arc;

use base::{Instant, PortNo};
use flow::{IpfixStats, SampleDirection};
use openflow::WallTime;

use super::super::Effect;
use config::IpfixCache;
use dataplane::sampling::{ActionSample, FrameSample};
use flow_export::ipfix::{IpfixExporter, IpfixObservation};

/// An IPFIX exporter and its collectors.
pub(super) struct IpfixExport {
    exporter: IpfixExporter,
    targets: Arc<[SocketAddr]>,
    domain: u32,
    point: u32,
    /// Messages that could not be sent.
    unsent: u64,
}

impl IpfixExport {
    /// Returns an exporter to `targets`, with a default observation domain and point.
    pub(super) fn new(
        targets: &[SocketAddr],
        cache: &IpfixCache,
        (domain, point): (u32, u32),
        started: WallTime,
    ) -> Self {
        Self {
            exporter: IpfixExporter::new(cache.clone(), started.0.as_secs()),
            targets: targets.into(),
            domain,
            point,
            unsent: 0,
        }
    }

    pub(super) fn handle_sampled(
        &mut self,
        sampled: &FrameSample,
        index: impl Fn(PortNo) -> Option<u32>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let mut messages = Vec::new();
        let input = index(sampled.from.port).unwrap_or(0);
        let observation = |leaves, output| IpfixObservation {
            domain: self.domain,
            point: self.point,
            leaves,
            interfaces: [input, output],
        };
        let [arriving, leaving] = sampled.chosen.ipfix;
        if let Some(stands_for) = arriving {
            let observed = observation(false, 0);
            let frame = &sampled.ingress;
            self.exporter
                .handle_sample(observed, frame, stands_for, now, &mut messages);
        }
        if let Some(stands_for) = leaving {
            for departure in &sampled.outputs {
                let observed = observation(true, index(departure.port).unwrap_or(0));
                let frame = &departure.frame;
                self.exporter
                    .handle_sample(observed, frame, stands_for, now, &mut messages);
            }
        }
        self.send(messages, effects);
    }

    /// Handles a frame of a `sample` action. If the action names an output port other than the
    /// ingress port, the observation is on egress of that port, unless the action names a
    /// direction.
    pub(super) fn handle_sampled_by_rule(
        &mut self,
        sampled: &ActionSample,
        index: impl Fn(PortNo) -> Option<u32>,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let (sample, from) = (&sampled.sample, sampled.from.port);
        let output = sample.port.filter(|port| *port != from);
        let observation = IpfixObservation {
            domain: sample.domain.number(),
            point: sample.point.number(),
            leaves: match sample.direction {
                SampleDirection::Unspecified => output.is_some(),
                SampleDirection::Ingress => false,
                SampleDirection::Egress => true,
            },
            interfaces: [index(from), output.and_then(&index)].map(Option::unwrap_or_default),
        };
        let mut messages = Vec::new();
        let (frame, stands_for) = (&sampled.frame, sampled.stands_for);
        self.exporter
            .handle_sample(observation, frame, stands_for, now, &mut messages);
        self.send(messages, effects);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let mut messages = Vec::new();
        self.exporter.handle_timeout(now, &mut messages);
        self.send(messages, effects);
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.exporter.next_timeout()
    }

    /// Exports all records.
    pub(super) fn end(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let mut messages = Vec::new();
        self.exporter.flush(now, &mut messages);
        self.send(messages, effects);
    }

    pub(super) fn handle_unsent(&mut self, targets: &Arc<[SocketAddr]>, count: u64) {
        if Arc::ptr_eq(&self.targets, targets) {
            self.unsent += count;
        }
    }

    /// Returns the statistics. A message to several collectors counts for each.
    pub(super) fn statistics(&self) -> IpfixStats {
        let stats = self.exporter.statistics();
        IpfixStats {
            sent: stats.sent.saturating_sub(self.unsent),
            send_failed: self.unsent,
            ..stats
        }
    }

    fn send(&mut self, messages: Vec<Vec<u8>>, effects: &mut Vec<Effect>) {
        let count = (messages.len() * self.targets.len()) as u64;
        self.exporter.note_sent(count);
        let to = || Arc::clone(&self.targets);
        effects.extend(
            messages
                .into_iter()
                .map(|message| Effect::Export(to(), message)),
        );
    }
}
