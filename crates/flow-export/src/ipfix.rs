//! An IPFIX exporter (RFC 7011): flows of sampled frames, with the numbers and lengths of the
//! frames that the samples represent, in records described by templates.
//!
//! `record` contains the flow keys and counters; `template` contains the layout of records. A flow
//! is exported when its active timeout expires, or when the cache is full; without a cache each
//! sample is exported at once.

mod record;
mod template;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use base::Instant;
use flow::IpfixStats;
use packet::wire::IpProto;
use packet::wire::ethernet::EtherType;

use crate::FrameExcerpt;
use config::IpfixCache;
use record::{IpfixFlowCounts, IpfixFlowKey};
use template::TemplateKind;

/// The maximum length of a message in bytes, so that no message is fragmented.
const MESSAGE_MAX: usize = 1400;

/// The lengths of the headers of a message and of a set (RFC 7011, 3.1 and 3.3.2).
const HEADER_LEN: usize = 16;
const SET_LEN: usize = 4;

/// The set ID of template sets (RFC 7011, 3.3.2).
const TEMPLATES: u16 = 2;

/// The interval at which templates are sent again: a collector may have started later, or have lost
/// them (RFC 7011, 8.4). Open vSwitch uses the same interval.
const TEMPLATE_INTERVAL: Duration = Duration::from_secs(600);

/// The maximum number of observation domains with state. A domain without state receives its
/// templates again.
const DOMAINS_MAX: usize = 1024;

/// The upper limit of the cache, whatever the database requests: a flow takes some hundreds of
/// bytes.
pub const FLOWS_MAX: usize = 1 << 18;

/// The observation domain and point of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IpfixObservation {
    /// The observation domain.
    pub domain: u32,
    /// The observation point.
    pub point: u32,
    /// True if the sample was taken at egress.
    pub leaves: bool,
    /// The ingress and egress interface; zero if unknown.
    pub interfaces: [u32; 2],
}

/// The reason for the export of a flow (flowEndReason, RFC 5102, 5.11.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlowEndReason {
    /// The active timeout expired.
    Active = 2,
    /// The exporter ends.
    Forced = 4,
    /// The cache is full.
    Resources = 5,
}

/// An IPFIX exporter.
#[derive(Debug)]
pub struct IpfixExporter {
    cache: IpfixCache,
    /// The time at which the clock started, in seconds since 1970.
    epoch: u64,
    flows: BTreeMap<IpfixFlowKey, IpfixFlowCounts>,
    /// The flows in the order in which they began.
    order: VecDeque<(Instant, IpfixFlowKey)>,
    /// State of the observation domains.
    domains: BTreeMap<u32, ObservationDomain>,
    statistics: IpfixStats,
}

#[derive(Debug, Default)]
struct ObservationDomain {
    records: u32,
    templates_sent: Option<Instant>,
}

impl IpfixExporter {
    /// Returns an exporter without flows. Its clock started `epoch` seconds after 1970.
    pub fn new(cache: IpfixCache, epoch: u64) -> Self {
        Self {
            cache,
            epoch,
            flows: BTreeMap::new(),
            order: VecDeque::new(),
            domains: BTreeMap::new(),
            statistics: IpfixStats::default(),
        }
    }

    /// Adds a sample that represents `stands_for` frames, and appends messages that are due to
    /// `messages`.
    pub fn handle_sample(
        &mut self,
        observation: IpfixObservation,
        frame: &FrameExcerpt,
        stands_for: u64,
        now: Instant,
        messages: &mut Vec<Vec<u8>>,
    ) {
        let Some((key, lengths)) = record::read(observation, frame) else {
            self.statistics.failed[0] += 1;
            return;
        };
        self.count_sample(frame);
        match self.flows.get_mut(&key) {
            Some(counts) => counts.add(lengths, stands_for, now),
            None => {
                self.statistics.flows += 1;
                let mut counts = IpfixFlowCounts::new(now);
                counts.add(lengths, stands_for, now);
                self.order.push_back((now, key.clone()));
                self.flows.insert(key, counts);
            }
        }
        self.expire(now, messages);
    }

    /// Counts a sampled frame. As in Open vSwitch, an IP packet without a transport protocol that
    /// has a template of its own counts as an error, though its flow is exported.
    fn count_sample(&mut self, frame: &FrameExcerpt) {
        self.statistics.sampled[0] += 1;
        let Some(headers) = &frame.headers else {
            return;
        };
        let (network, icmp) = match headers.link.eth_type {
            EtherType::IPV4 => (1, IpProto::ICMPV4),
            EtherType::IPV6 => (2, IpProto::ICMPV6),
            _ => return,
        };
        let known = [IpProto::TCP, IpProto::UDP, IpProto::SCTP, icmp];
        match headers.ip_proto() {
            Some(protocol) if known.contains(&protocol) => self.statistics.sampled[network] += 1,
            _ => {
                self.statistics.failed[0] += 1;
                self.statistics.failed[network] += 1;
            }
        }
    }

    /// Exports flows that are due.
    pub fn handle_timeout(&mut self, now: Instant, messages: &mut Vec<Vec<u8>>) {
        self.expire(now, messages);
    }

    /// Returns the time at which [`IpfixExporter::handle_timeout`] must be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        let (began, _) = self.order.front()?;
        Some(*began + self.cache.active)
    }

    /// Exports all flows, at the end.
    pub fn flush(&mut self, now: Instant, messages: &mut Vec<Vec<u8>>) {
        while let Some((_, key)) = self.order.pop_front() {
            self.export_flow(&key, FlowEndReason::Forced, now, messages);
        }
    }

    /// Returns the statistics of the exporter.
    pub fn statistics(&self) -> IpfixStats {
        IpfixStats {
            flows_now: self.flows.len() as u64,
            ..self.statistics
        }
    }

    /// Adds `sent` to the number of sent messages.
    pub fn note_sent(&mut self, sent: u64) {
        self.statistics.sent += sent;
    }

    fn expire(&mut self, now: Instant, messages: &mut Vec<Vec<u8>>) {
        let flows_max = self.cache.flows_max.min(FLOWS_MAX);
        while let Some((began, _)) = self.order.front() {
            let reason = match *began + self.cache.active <= now {
                true => FlowEndReason::Active,
                false if self.order.len() > flows_max => FlowEndReason::Resources,
                false => return,
            };
            if let Some((_, key)) = self.order.pop_front() {
                self.export_flow(&key, reason, now, messages);
            }
        }
    }

    /// Exports a flow, in the last of the messages if it has room.
    fn export_flow(
        &mut self,
        key: &IpfixFlowKey,
        reason: FlowEndReason,
        now: Instant,
        messages: &mut Vec<Vec<u8>>,
    ) {
        let Some(counts) = self.flows.remove(key) else {
            return;
        };
        let domain = key.observation.domain;
        self.export_templates(domain, now, messages);
        let mut set = Vec::new();
        set.extend(key.template.id().to_be_bytes());
        set.extend([0; 2]);
        let name = self.cache.name.as_deref();
        record::write(key, &counts, name, reason as u8, now, &mut set);
        end_set(&mut set);
        self.append_set(domain, &set, 1, now, messages);
    }

    /// Sends the templates of a domain, if they were not sent recently.
    fn export_templates(&mut self, domain: u32, now: Instant, messages: &mut Vec<Vec<u8>>) {
        if self.domains.len() >= DOMAINS_MAX && !self.domains.contains_key(&domain) {
            self.domains.pop_first();
        }
        let templates_sent = &mut self.domains.entry(domain).or_default().templates_sent;
        if templates_sent.is_some_and(|sent| now < sent + TEMPLATE_INTERVAL) {
            return;
        }
        *templates_sent = Some(now);
        let is_named = self.cache.name.is_some();
        for template in TemplateKind::all() {
            let mut set = Vec::new();
            set.extend(TEMPLATES.to_be_bytes());
            set.extend([0; 2]);
            template.describe(is_named, &mut set);
            end_set(&mut set);
            self.append_set(domain, &set, 0, now, messages);
        }
    }

    /// Appends a set of `records` records to the last message, or to a new one.
    fn append_set(
        &mut self,
        domain: u32,
        set: &[u8],
        records: u32,
        now: Instant,
        messages: &mut Vec<Vec<u8>>,
    ) {
        let state = self.domains.entry(domain).or_default();
        let has_room = |message: &&mut Vec<u8>| {
            message[12..16] == domain.to_be_bytes() && message.len() + set.len() <= MESSAGE_MAX
        };
        match messages.last_mut().filter(has_room) {
            Some(message) => message.extend(set),
            None => {
                let seconds = self.epoch + now.as_nanos() / 1_000_000_000;
                let seconds = u32::try_from(seconds & u64::from(u32::MAX)).unwrap_or(0);
                let mut message = Vec::with_capacity(HEADER_LEN + set.len());
                message.extend([0, 10, 0, 0]);
                message.extend(seconds.to_be_bytes());
                message.extend(state.records.to_be_bytes());
                message.extend(domain.to_be_bytes());
                message.extend(set);
                messages.push(message);
            }
        }
        state.records = state.records.wrapping_add(records);
        if let Some(message) = messages.last_mut() {
            end_message(message);
        }
    }
}

/// Writes the length of a set into its header (RFC 7011, 3.3.2).
fn end_set(set: &mut [u8]) {
    let length = u16::try_from(set.len()).expect("sets are short");
    set[2..SET_LEN].copy_from_slice(&length.to_be_bytes());
}

/// Writes the length of a message into its header (RFC 7011, 3.1).
fn end_message(bytes: &mut [u8]) {
    let length = u16::try_from(bytes.len()).expect("messages are short");
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests;
