//! The egress queues of a bridge's ports: their configuration and statistics.
//!
//! The runtime creates the queues and reports their counters before a request reads them.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{Instant, PortNo, QueueId};
use flow::{QueueStats, Refusal, UNAVAILABLE};
use openflow::{
    Message, MultipartReply, QueueConfig, QueueConfigReply, QueueDesc, QueueStatsRequest,
};
use ports::shaping::{ClassCounts, EffectiveQos, QosConfig};

use super::{Bridge, CustomCounters, PortEntry};

/// One queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueEntry {
    config: QueueConfig,
    /// The counters, unless the queue has none.
    counts: Option<ClassCounts>,
    /// The time at which the queue was added.
    since: Instant,
}

/// Returns the queues of a port without QoS: none, or the one of a dummy, which has no counters
/// (as in Open vSwitch).
fn default_queues(is_dummy: bool, now: Instant) -> BTreeMap<QueueId, QueueEntry> {
    let queue = QueueId(0);
    let config = QueueConfig {
        queue,
        min_rate: None,
        max_rate: None,
    };
    let entry = QueueEntry {
        config,
        counts: None,
        since: now,
    };
    is_dummy.then_some((queue, entry)).into_iter().collect()
}

impl Bridge {
    /// Marks a port as a dummy: it has one queue, counts no errors, and has further counters.
    pub fn set_dummy(&mut self, number: PortNo, custom: CustomCounters, now: Instant) {
        if let Some(port) = self.ports.get_mut(&number) {
            port.is_dummy = true;
            port.custom = Some(custom);
            port.queues = default_queues(true, now);
        }
    }

    /// Sets the queues of a port: their configuration, and the rates that are in effect.
    pub fn set_queues(
        &mut self,
        number: PortNo,
        qos: Option<(&QosConfig, &EffectiveQos)>,
        now: Instant,
    ) {
        let Some(port) = self.ports.get_mut(&number) else {
            return;
        };
        let default = default_queues(port.is_dummy, now);
        let before = std::mem::replace(&mut port.queues, default);
        let Some((shape, shaped)) = qos else {
            return;
        };
        port.queues.clear();
        for (id, service) in &shaped.queues {
            let configured = shape.queues.get(id);
            let share = |rate: u64| share(rate, shaped.total.max);
            let min = configured.and_then(|queue| queue.min_rate);
            let max = configured.and_then(|queue| queue.max_rate);
            let entry = QueueEntry {
                config: QueueConfig {
                    queue: *id,
                    min_rate: min.map(|_| share(service.min)),
                    max_rate: max.map(|_| share(service.max)),
                },
                counts: Some(ClassCounts::default()),
                since: before.get(id).map_or(now, |entry| entry.since),
            };
            port.queues.insert(*id, entry);
        }
    }

    /// Returns the ports that have queues with counters.
    pub fn ports_with_queues(&self) -> Vec<PortNo> {
        let ports = self.ports.iter();
        let has_counts = |port: &PortEntry| {
            let mut queues = port.queues.values();
            queues.any(|entry| entry.counts.is_some())
        };
        let ports = ports.filter(|(_, port)| has_counts(port));
        ports.map(|(number, _)| *number).collect()
    }

    /// Sets the counters of a port's queues.
    pub fn count_queues(&mut self, number: PortNo, counts: &BTreeMap<QueueId, ClassCounts>) {
        let Some(port) = self.ports.get_mut(&number) else {
            return;
        };
        for (id, entry) in &mut port.queues {
            if let Some(own) = &mut entry.counts {
                *own = counts.get(id).copied().unwrap_or_default();
            }
        }
    }

    /// Returns the queue configuration of one port or all (OF 1.3.5, 7.3.6).
    pub(super) fn queues(&self, port: PortNo) -> Result<Message, Refusal> {
        let request = QueueStatsRequest {
            port,
            queue: QueueId::ALL,
        };
        let queues = self.queue_list(request)?;
        Ok(Message::QueueConfigReply(QueueConfigReply { port, queues }))
    }

    /// Returns queue descriptions (OF 1.4.1, 7.3.5.16).
    pub(super) fn queue_descs(
        &self,
        request: QueueStatsRequest,
    ) -> Result<MultipartReply, Refusal> {
        Ok(MultipartReply::QueueDesc(self.queue_list(request)?))
    }

    fn queue_list(&self, request: QueueStatsRequest) -> Result<Vec<QueueDesc>, Refusal> {
        let queues = self.selected_queues(request)?.into_iter();
        let queues = queues.map(|(port, entry)| QueueDesc {
            port,
            config: entry.config,
        });
        Ok(queues.collect())
    }

    /// Returns queue statistics (OF 1.3.5, 7.3.5.8).
    pub(super) fn queue_stats(
        &self,
        request: QueueStatsRequest,
        now: Instant,
    ) -> Result<MultipartReply, Refusal> {
        let queues = self.selected_queues(request)?.into_iter();
        let queues = queues.map(|(port, entry)| {
            let count = |of: fn(&ClassCounts) -> u64| entry.counts.as_ref().map_or(UNAVAILABLE, of);
            QueueStats {
                port,
                queue: entry.config.queue,
                tx_bytes: count(|counts| counts.bytes),
                tx_packets: count(|counts| counts.packets),
                tx_errors: count(|counts| counts.drops),
                duration: match entry.counts {
                    Some(_) => now - entry.since,
                    None => Duration::MAX,
                },
            }
        });
        Ok(MultipartReply::Queue(queues.collect()))
    }

    /// Returns the queues that a request selects.
    fn selected_queues(
        &self,
        request: QueueStatsRequest,
    ) -> Result<Vec<(PortNo, &QueueEntry)>, Refusal> {
        if request.port != PortNo::ANY && !self.ports.contains_key(&request.port) {
            return Err(Refusal::QueueBadPort);
        }
        let ports = self.ports.iter();
        let ports = ports.filter(|(port, _)| [PortNo::ANY, **port].contains(&request.port));
        let queues = ports.flat_map(|(number, port)| {
            let queues = port.queues.iter();
            let queues = queues.filter(|(id, _)| [QueueId::ALL, **id].contains(&request.queue));
            queues.map(|(_, entry)| (*number, entry))
        });
        let queues: Vec<_> = queues.collect();
        if queues.is_empty() && request.queue != QueueId::ALL {
            return Err(Refusal::QueueBadQueue);
        }
        Ok(queues)
    }
}

/// Returns a rate in tenths of a percent of the port's total rate.
fn share(rate: u64, of: u64) -> u16 {
    let share = u128::from(rate) * 1000 / u128::from(of.max(1));
    u16::try_from(share.min(1000)).unwrap_or(u16::MAX)
}
