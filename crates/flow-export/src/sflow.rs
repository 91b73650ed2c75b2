//! An sFlow agent: samples of frames and counters of ports, packed into datagrams (sFlow version 5,
//! <https://sflow.org/sflow_version_5.txt>).
//!
//! A bridge is one data source of flow samples, a physical entity as in Open vSwitch; each port
//! with an interface is a data source of counter samples.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use base::{DatapathId, Instant, PortNo};
use packet::wire::vlan::VlanTag;

use crate::FrameExcerpt;

/// The maximum length of a datagram of several samples in bytes, so that no datagram is fragmented
/// (5., "datagram size").
const DATAGRAM_MAX: usize = 1400;

/// The maximum length of a sampled header in bytes: it fits a datagram with the rest of its sample.
pub const HEADER_MAX: usize = 1024;

/// The maximum delay of a sample (4.2: "within one second").
pub(crate) const DELAY: Duration = Duration::from_secs(1);

/// The first physical entity number of bridges, as in Open vSwitch.
const ENTITY: u32 = 1000;

/// The type bits of `source_id` for a physical entity (5., `sflow_data_source`).
const ENTITIES: u32 = 2 << 24;

/// Numbers of formats (5., `flow_sample`, `counters_sample`, `sampled_header`,
/// `extended_switch`, `if_counters`, `ethernet_counters`; "sFlow OpenFlow Structures", `of_port`, `port_name`).
const FLOW_SAMPLE: u32 = 1;
const COUNTERS_SAMPLE: u32 = 2;
const SAMPLED_HEADER: u32 = 1;
const EXTENDED_SWITCH: u32 = 1001;
const IF_COUNTERS: u32 = 1;
const ETHERNET_COUNTERS: u32 = 2;
const OF_PORT: u32 = 1004;
const PORT_NAME: u32 = 1005;

/// The value of an unknown counter (5., "counter").
const UNKNOWN: u32 = u32::MAX;

/// The length of a frame check sequence in bytes, which samples do not contain.
const FCS: usize = 4;

/// The identity of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentIdentity {
    /// Its address.
    pub address: IpAddr,
    /// The number of the agent among those at that address.
    pub sub_agent: u32,
    /// The sampling rate: one of `sampling` frames is sampled.
    pub sampling: u32,
}

/// The output of a sampled frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleOutput {
    /// No output: the frame was dropped.
    Nowhere,
    /// The interface of this number.
    Interface(u32),
    /// This number of ports, or one port that is no interface.
    Ports(u32),
}

impl SampleOutput {
    /// Returns the encoded output (5., `interface`).
    fn number(self) -> u32 {
        /// "Dropped, for an unknown reason".
        const DROPPED: u32 = 1 << 30 | 256;
        const SEVERAL: u32 = 1 << 31;
        match self {
            Self::Nowhere => DROPPED,
            Self::Interface(index) => index,
            Self::Ports(count) => SEVERAL | count,
        }
    }
}

/// A sampled frame.
pub struct FlowSample<'a> {
    /// The number of frames that it represents.
    pub stands_for: u64,
    /// The number of samples lost since the last one, for lack of room.
    pub missed: u32,
    /// The ingress interface; zero if the port is no interface.
    pub input: u32,
    /// The output.
    pub output: SampleOutput,
    /// The frame as received.
    pub frame: &'a FrameExcerpt,
    /// Its VLAN tag as received, and as sent.
    pub tags: [Option<VlanTag>; 2],
}

/// The counters of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountersSample {
    /// The interface.
    pub index: u32,
    /// The speed in bits per second; zero if unknown.
    pub speed: u64,
    /// True for full duplex; none if unknown.
    pub full_duplex: Option<bool>,
    /// True if the port is administratively up.
    pub up: bool,
    /// True if the port has a carrier.
    pub carrier: bool,
    /// Bytes, frames, drops and errors on receive.
    pub received: [u64; 4],
    /// Bytes, frames, drops and errors on transmit.
    pub sent: [u64; 4],
    /// Received frames that were shorter than an Ethernet header.
    pub runts: u64,
    /// The datapath id of its bridge.
    pub datapath: DatapathId,
    /// Its OpenFlow port number.
    pub port: PortNo,
    /// Its name.
    pub name: String,
}

/// An sFlow agent.
#[derive(Debug)]
pub struct SflowAgent {
    identity: AgentIdentity,
    /// The time of its start.
    started: Instant,
    /// The number of datagrams so far.
    datagrams: u32,
    /// The number of flow samples so far, and of the frames that they represent.
    samples: u32,
    pool: u32,
    /// The number of lost samples.
    missed: u32,
    /// The number of counter samples so far, by interface.
    polls: BTreeMap<u32, u32>,
    /// Encoded samples that are not yet sent, and their number.
    pending: Vec<u8>,
    count: u32,
    /// The time at which the first of them was added.
    since: Option<Instant>,
}

impl SflowAgent {
    /// Returns an agent that starts now.
    pub const fn new(identity: AgentIdentity, now: Instant) -> Self {
        Self {
            identity,
            started: now,
            datagrams: 0,
            samples: 0,
            pool: 0,
            missed: 0,
            polls: BTreeMap::new(),
            pending: Vec::new(),
            count: 0,
            since: None,
        }
    }

    /// Returns its identity.
    pub const fn identity(&self) -> AgentIdentity {
        self.identity
    }

    /// Adds a flow sample. Returns the previous samples as a datagram if it is full.
    pub fn handle_sample(&mut self, sample: &FlowSample<'_>, now: Instant) -> Option<Vec<u8>> {
        self.samples = self.samples.wrapping_add(1);
        self.pool = self.pool.wrapping_add(low(sample.stands_for));
        let mut body = XdrBuffer::default();
        body.put(self.samples);
        body.put(ENTITIES | (ENTITY + self.identity.sub_agent));
        body.put(self.identity.sampling);
        body.put(self.pool);
        self.missed = self.missed.wrapping_add(sample.missed);
        body.put(self.missed);
        body.put(sample.input);
        body.put(sample.output.number());
        body.put(2);
        body.record(EXTENDED_SWITCH, |buffer| {
            for tag in sample.tags {
                buffer.put(tag.map_or(0, |tag| tag.vid.into()));
                buffer.put(tag.map_or(0, |tag| tag.pcp.into()));
            }
        });
        body.record(SAMPLED_HEADER, |buffer| {
            sampled_header(buffer, sample.frame)
        });
        self.add(FLOW_SAMPLE, body, now)
    }

    /// Adds a counter sample. Returns the previous samples as a datagram if it is full.
    pub fn handle_counters(&mut self, port: &CountersSample, now: Instant) -> Option<Vec<u8>> {
        let number = self.polls.entry(port.index).or_default();
        *number = number.wrapping_add(1);
        let mut body = XdrBuffer::default();
        body.put(*number);
        body.put(port.index);
        body.put(4);
        body.record(IF_COUNTERS, |buffer| if_counters(buffer, port));
        body.record(ETHERNET_COUNTERS, |buffer| {
            buffer.put(low(port.runts));
            [UNKNOWN; 12]
                .into_iter()
                .for_each(|other| buffer.put(other));
        });
        body.record(OF_PORT, |buffer| {
            buffer.put_long(port.datapath.0);
            buffer.put(port.port.0);
        });
        body.record(PORT_NAME, |buffer| buffer.put_bytes(port.name.as_bytes()));
        self.add(COUNTERS_SAMPLE, body, now)
    }

    /// Returns a datagram with all pending samples, if their delay has expired.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.next_timeout().filter(|due| *due <= now)?;
        self.flush(now)
    }

    /// Returns the time at which [`SflowAgent::handle_timeout`] must be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.since.map(|since| since + DELAY)
    }

    /// Removes the state of interfaces that no longer exist.
    pub fn retain_interfaces(&mut self, is_there: impl Fn(u32) -> bool) {
        self.polls.retain(|index, _| is_there(*index));
    }

    fn add(&mut self, format: u32, body: XdrBuffer, now: Instant) -> Option<Vec<u8>> {
        let mut sample = XdrBuffer::default();
        sample.put(format);
        sample.put_bytes(&body.0);
        let is_full = self.header_len() + self.pending.len() + sample.0.len() > DATAGRAM_MAX;
        let full = is_full.then(|| self.flush(now)).flatten();
        self.pending.append(&mut sample.0);
        self.count += 1;
        self.since.get_or_insert(now);
        full
    }

    fn header_len(&self) -> usize {
        match self.identity.address {
            IpAddr::V4(_) => 28,
            IpAddr::V6(_) => 40,
        }
    }

    /// Returns a datagram with all pending samples, if there are any.
    pub fn flush(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.since.take()?;
        self.datagrams = self.datagrams.wrapping_add(1);
        let mut datagram = XdrBuffer::default();
        datagram.put(5);
        match self.identity.address {
            IpAddr::V4(address) => {
                datagram.put(1);
                datagram.0.extend(address.octets());
            }
            IpAddr::V6(address) => {
                datagram.put(2);
                datagram.0.extend(address.octets());
            }
        }
        datagram.put(self.identity.sub_agent);
        datagram.put(self.datagrams);
        let uptime = (now - self.started).as_millis();
        datagram.put(u32::try_from(uptime & u128::from(u32::MAX)).unwrap_or(0));
        datagram.put(std::mem::take(&mut self.count));
        datagram.0.append(&mut self.pending);
        Some(datagram.0)
    }
}

fn sampled_header(buffer: &mut XdrBuffer, frame: &FrameExcerpt) {
    /// "ETHERNET-ISO88023".
    const ETHERNET: u32 = 1;
    buffer.put(ETHERNET);
    buffer.put(low((frame.length + FCS) as u64));
    buffer.put(low(FCS as u64));
    buffer.put_bytes(&frame.bytes);
}

fn if_counters(buffer: &mut XdrBuffer, port: &CountersSample) {
    /// The type of Ethernet interfaces (`ifType`).
    const ETHERNET: u32 = 6;
    buffer.put(port.index);
    buffer.put(ETHERNET);
    buffer.put_long(port.speed);
    buffer.put(match port.full_duplex {
        None => 0,
        Some(true) => 1,
        Some(false) => 2,
    });
    buffer.put(u32::from(port.up) | u32::from(port.up && port.carrier) << 1);
    for ([bytes, frames, drops, errors], unknown) in
        [(port.received, Some(UNKNOWN)), (port.sent, None)]
    {
        buffer.put_long(bytes);
        buffer.put(low(frames));
        // Multicast and broadcast frames are not counted separately.
        buffer.put(UNKNOWN);
        buffer.put(UNKNOWN);
        buffer.put(low(drops));
        buffer.put(low(errors));
        unknown.into_iter().for_each(|unknown| buffer.put(unknown));
    }
    let promiscuous = 0;
    buffer.put(promiscuous);
}

/// Returns the low 32 bits: the counters wrap.
fn low(count: u64) -> u32 {
    u32::try_from(count & u64::from(u32::MAX)).unwrap_or(0)
}

/// Bytes in XDR encoding: big-endian words of four bytes (RFC 4506).
#[derive(Default)]
struct XdrBuffer(Vec<u8>);

impl XdrBuffer {
    fn put(&mut self, word: u32) {
        self.0.extend(word.to_be_bytes());
    }

    fn put_long(&mut self, word: u64) {
        self.0.extend(word.to_be_bytes());
    }

    /// Appends bytes with their length before them, padded with zeros to a whole word.
    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put(low(bytes.len() as u64));
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// Appends the output of `write` with its format and length before it.
    fn record(&mut self, format: u32, write: impl FnOnce(&mut Self)) {
        let mut record = Self::default();
        write(&mut record);
        self.put(format);
        self.put_bytes(&record.0);
    }
}

#[cfg(test)]
mod tests;
