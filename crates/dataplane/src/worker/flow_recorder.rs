//! Counts of received frames by flow, while the control thread lists the active flows. Frames with
//! the same values of all fields have one record, so the control thread computes the megaflow of a
//! record, not of a frame. The records are exact: their fields are compared completely.
//!
//! A frame costs a second parse and a search here, but only while the list is requested. The
//! number of records is bounded.

use std::collections::BTreeMap;
use std::net::IpAddr;

use base::Instant;
use base::sync::mpsc::Sender;
use flow::{FlowKey, PipelineFields};
use packet::tunnel::TunnelPayload;
use packet::{Depth, Frame, Link};

use super::forwarder::BatchForwarder;
use crate::counters::WorkerDrop;
use crate::messages::{CrossingTunnel, FlowRecord};
use crate::program::CrossingMode;
use crate::slots::PortKey;

/// The maximum number of records: some megabytes of frames.
const RECORDS_MAX: usize = 4096;

/// The number of bytes of the MPLS labels that a flow has.
const LABELS_LEN: usize = 12;

/// The records of a worker.
pub(super) struct FlowRecorder {
    /// The records, by the values of all fields.
    records: BTreeMap<Box<[u64]>, FlowRecord>,
    /// The values of the current frame.
    words: Vec<u64>,
    /// The fields of the current frame.
    key: FlowKey,
}

impl FlowRecorder {
    fn new() -> Self {
        Self {
            records: BTreeMap::new(),
            words: Vec::new(),
            key: FlowKey::new(),
        }
    }

    /// Reads the values of all fields of a frame. Returns false if the frame is malformed.
    fn read(&mut self, from: PortKey, tunnel: Option<&CrossingTunnel>, frame: &Frame) -> bool {
        let fields = PipelineFields::new(from.port);
        let fields = tunnel.map_or(&fields, |tunnel| &tunnel.fields);
        if !self.key.read(frame, Depth::Transport, fields) {
            return false;
        }
        self.words.clear();
        self.words
            .extend([u64::from(from.bridge.0), u64::from(from.port.0)]);
        if let Some(tunnel) = tunnel {
            append_tunnel(tunnel, &mut self.words);
        }
        append_tags(frame, &mut self.words);
        self.key.append_words(&mut self.words);
        true
    }
}

/// Appends the values of the tunnel packet that a data path's flow has.
fn append_tunnel(tunnel: &CrossingTunnel, words: &mut Vec<u64>) {
    let CrossingTunnel { outer, header, .. } = tunnel;
    for address in [outer.src, outer.dst] {
        let octets = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        append_bytes(&octets, words);
    }
    let payload = match header.payload {
        TunnelPayload::Ethernet => 0,
        TunnelPayload::Packet(eth_type) => eth_type.0,
    };
    let flags = [outer.dont_fragment, header.oam, header.summed];
    words.extend([outer.tos, outer.ttl].map(u64::from));
    words.extend(flags.map(u64::from));
    words.push(payload.into());
}

/// Appends the tags and MPLS labels, of which the fields are only the outermost.
fn append_tags(frame: &Frame, words: &mut Vec<u64>) {
    const TAGS: usize = 12;
    const MPLS: [u8; 2] = [0x88, 0x47];
    const MPLS_MULTICAST: [u8; 2] = [0x88, 0x48];
    let bytes = frame.bytes();
    let Ok(link) = Link::parse(bytes) else {
        return;
    };
    let payload = link.payload_at();
    if link.tags() > 0 {
        append_bytes(bytes.get(TAGS..payload).unwrap_or_default(), words);
    }
    let eth_type = bytes.get(payload - 2..payload);
    if [MPLS, MPLS_MULTICAST]
        .iter()
        .any(|mpls| eth_type == Some(mpls.as_slice()))
    {
        let labels = bytes.get(payload..).unwrap_or_default();
        append_bytes(&labels[..labels.len().min(LABELS_LEN)], words);
    }
}

/// Appends bytes, after their number.
fn append_bytes(bytes: &[u8], words: &mut Vec<u64>) {
    words.push(bytes.len() as u64);
    for chunk in bytes.chunks(8) {
        let word = chunk
            .iter()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        words.push(word);
    }
}

impl BatchForwarder {
    /// Begins or ends the counts by flow.
    pub(super) fn record_flows(&mut self, crossing: CrossingMode) {
        match crossing {
            CrossingMode::Count if self.flow_recorder.is_none() => {
                self.flow_recorder = Some(Box::new(FlowRecorder::new()));
            }
            CrossingMode::Count => {}
            CrossingMode::Off | CrossingMode::Report => self.flow_recorder = None,
        }
    }

    /// Sends all records. They are lost if the control thread has stopped waiting.
    pub(super) fn send_flows(&mut self, back: &Sender<Vec<FlowRecord>>) {
        let recorder = self.flow_recorder.as_mut();
        let records = recorder.map(|recorder| std::mem::take(&mut recorder.records));
        let records = records.unwrap_or_default().into_values().collect();
        if let Err(unsent) = back.send(records) {
            let packets = unsent.0.iter().map(|record| record.packets).sum();
            self.count_unrecorded(packets);
        }
    }

    fn count_unrecorded(&self, packets: u64) {
        let lost = usize::try_from(packets).unwrap_or(usize::MAX);
        let counters = &self.reporter.links.counters;
        counters.add(WorkerDrop::FlowUnrecorded, lost);
    }

    /// Counts a received frame. A malformed frame has no flow.
    pub(super) fn record_frame(
        &mut self,
        from: PortKey,
        tunnel: Option<CrossingTunnel>,
        frame: &Frame,
        now: Instant,
    ) {
        let Some(recorder) = self.flow_recorder.as_mut() else {
            return;
        };
        if !recorder.read(from, tunnel.as_ref(), frame) {
            return;
        }
        if let Some(record) = recorder.records.get_mut(recorder.words.as_slice()) {
            record.packets += frame.wire_frames();
            record.bytes += frame.wire_bytes();
            record.used = now;
            return;
        }
        let first = match recorder.records.len() < RECORDS_MAX {
            true => self.first_segment(frame),
            false => None,
        };
        let (Some(recorder), Some(first)) = (self.flow_recorder.as_mut(), first) else {
            return self.count_unrecorded(frame.wire_frames());
        };
        let record = FlowRecord {
            from,
            tunnel: tunnel.map(Box::new),
            frame: first,
            packets: frame.wire_frames(),
            bytes: frame.wire_bytes(),
            used: now,
        };
        let words = recorder.words.as_slice().into();
        recorder.records.insert(words, record);
    }

    /// Returns the frame as it would be on the wire, or the first of its segments.
    fn first_segment(&mut self, frame: &Frame) -> Option<Box<[u8]>> {
        let mut segments = Vec::new();
        packet::segment(frame, &mut self.pool, &mut segments).ok()?;
        let first = segments.first().map(|segment| segment.bytes().into());
        segments
            .into_iter()
            .for_each(|segment| self.pool.put(segment));
        first
    }
}
