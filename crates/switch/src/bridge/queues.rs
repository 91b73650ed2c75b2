//! The egress queues of a bridge's ports: their configuration and statistics.
//!
//! The runtime creates the queues and reports their counters before a request reads them.

use std::collections::BTreeMap;

use base::{Instant, PortNo, QueueId};
use flow::{QueueStats, Refusal};
use openflow::{
    Message, MultipartReply, QueueConfig, QueueConfigReply, QueueDesc, QueueStatsRequest,
};
use ports::shaping::{ClassCounts, EffectiveQos, QosConfig};

use super::Bridge;

/// One queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueEntry {
    config: QueueConfig,
    counts: ClassCounts,
    /// The time at which the queue was added.
    since: Instant,
}

impl Bridge {
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
        let before = std::mem::take(&mut port.queues);
        let Some((shape, shaped)) = qos else {
            return;
        };
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
                counts: ClassCounts::default(),
                since: before.get(id).map_or(now, |entry| entry.since),
            };
            port.queues.insert(*id, entry);
        }
    }

    /// Returns the ports that have queues.
    pub fn ports_with_queues(&self) -> Vec<PortNo> {
        let ports = self.ports.iter();
        let ports = ports.filter(|(_, port)| !port.queues.is_empty());
        ports.map(|(number, _)| *number).collect()
    }

    /// Sets the counters of a port's queues.
    pub fn count_queues(&mut self, number: PortNo, counts: &BTreeMap<QueueId, ClassCounts>) {
        let Some(port) = self.ports.get_mut(&number) else {
            return;
        };
        for (id, entry) in &mut port.queues {
            entry.counts = counts.get(id).copied().unwrap_or_default();
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
        let queues = queues.map(|(port, entry)| QueueStats {
            port,
            queue: entry.config.queue,
            tx_bytes: entry.counts.bytes,
            tx_packets: entry.counts.packets,
            tx_errors: entry.counts.drops,
            duration: now - entry.since,
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
