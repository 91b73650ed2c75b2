//! An sFlow agent: samples of frames and counters of ports, packed into datagrams
//! (sFlow version 5, <https://sflow.org/sflow_version_5.txt>).
//!
//! A bridge is one data source of samples, a physical entity, as Open vSwitch's are; each port
//! with an interface is one of counters.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use base::{DatapathId, Instant, PortNo};
use packet::wire::vlan::VlanTag;

use crate::FrameExcerpt;

/// Samples are put together in datagrams of so many bytes, at most, so that none is cut on its
/// way (5., "datagram size").
const DATAGRAM_MAX: usize = 1400;

/// So much of a frame fits a datagram with all that is told beside it.
pub const HEADER_MAX: usize = 1024;

/// Samples wait for others so long, at most (4.2: "within one second").
pub(crate) const DELAY: Duration = Duration::from_secs(1);

/// The first number of bridges among physical entities, as Open vSwitch gives them.
const ENTITY: u32 = 1000;

/// What `source_id` begins with, of a physical entity (5., `sflow_data_source`).
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

/// What is not counted has this number (5., "counter").
const UNKNOWN: u32 = u32::MAX;

/// The bytes of a frame check sequence, which no sample has.
const FCS: usize = 4;

/// Who an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentIdentity {
    /// Its address.
    pub address: IpAddr,
    /// Which of the agents at that address.
    pub sub_agent: u32,
    /// One of so many frames is sampled.
    pub sampling: u32,
}

/// Where a frame went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleOutput {
    /// Nowhere.
    Nowhere,
    /// Out of the interface of this number.
    Interface(u32),
    /// Out of so many ports, or of one that is no interface.
    Ports(u32),
}

impl SampleOutput {
    /// As the format has it (5., `interface`).
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

/// A frame that was sampled.
pub struct FlowSample<'a> {
    /// How many frames it stands for.
    pub stands_for: u64,
    /// How many samples were lost since the last, for want of room.
    pub missed: u32,
    /// The interface that it came in by; zero, if it was none.
    pub input: u32,
    /// Where it went.
    pub output: SampleOutput,
    /// How it came.
    pub frame: &'a FrameExcerpt,
    /// Its tag as it came, and as it left.
    pub tags: [Option<VlanTag>; 2],
}

/// How much has passed a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountersSample {
    /// The interface.
    pub index: u32,
    /// In bits a second; zero, if it is not known.
    pub speed: u64,
    /// Whether both ends may send at once, if that is known.
    pub full_duplex: Option<bool>,
    /// Whether it is administratively up.
    pub up: bool,
    /// Whether something is at the other end.
    pub carrier: bool,
    /// Bytes, frames, drops and errors of what came in.
    pub received: [u64; 4],
    /// The same of what went out.
    pub sent: [u64; 4],
    /// Frames that ended before their header did.
    pub runts: u64,
    /// Its bridge.
    pub datapath: DatapathId,
    /// Its number at the bridge.
    pub port: PortNo,
    /// Its name.
    pub name: String,
}

/// An agent.
#[derive(Debug)]
pub struct SflowAgent {
    identity: AgentIdentity,
    /// When it began.
    started: Instant,
    /// Datagrams so far.
    datagrams: u32,
    /// Samples of frames so far, and how many frames they stand for.
    samples: u32,
    pool: u32,
    /// Samples that were lost.
    missed: u32,
    /// Samples of counters so far, by interface.
    polls: BTreeMap<u32, u32>,
    /// Samples that wait to be sent, and how many they are.
    waiting: Vec<u8>,
    count: u32,
    /// Since when the first of them waits.
    since: Option<Instant>,
}

impl SflowAgent {
    /// One that begins now.
    pub const fn new(identity: AgentIdentity, now: Instant) -> Self {
        Self {
            identity,
            started: now,
            datagrams: 0,
            samples: 0,
            pool: 0,
            missed: 0,
            polls: BTreeMap::new(),
            waiting: Vec::new(),
            count: 0,
            since: None,
        }
    }

    /// Who it is.
    pub const fn identity(&self) -> AgentIdentity {
        self.identity
    }

    /// Takes a sample of a frame. Answers a datagram with those before it, if it has become full.
    pub fn handle_sample(&mut self, sample: &FlowSample<'_>, now: Instant) -> Option<Vec<u8>> {
        self.samples = self.samples.wrapping_add(1);
        self.pool = self.pool.wrapping_add(low(sample.stands_for));
        let mut body = Words::default();
        body.put(self.samples);
        body.put(ENTITIES | (ENTITY + self.identity.sub_agent));
        body.put(self.identity.sampling);
        body.put(self.pool);
        self.missed = self.missed.wrapping_add(sample.missed);
        body.put(self.missed);
        body.put(sample.input);
        body.put(sample.output.number());
        body.put(2);
        body.record(EXTENDED_SWITCH, |words| {
            for tag in sample.tags {
                words.put(tag.map_or(0, |tag| tag.vid.into()));
                words.put(tag.map_or(0, |tag| tag.pcp.into()));
            }
        });
        body.record(SAMPLED_HEADER, |words| sampled_header(words, sample.frame));
        self.add(FLOW_SAMPLE, body, now)
    }

    /// Takes a port's counters, likewise.
    pub fn handle_counters(&mut self, port: &CountersSample, now: Instant) -> Option<Vec<u8>> {
        let number = self.polls.entry(port.index).or_default();
        *number = number.wrapping_add(1);
        let mut body = Words::default();
        body.put(*number);
        body.put(port.index);
        body.put(4);
        body.record(IF_COUNTERS, |words| if_counters(words, port));
        body.record(ETHERNET_COUNTERS, |words| {
            words.put(low(port.runts));
            [UNKNOWN; 12].into_iter().for_each(|other| words.put(other));
        });
        body.record(OF_PORT, |words| {
            words.put_long(port.datapath.0);
            words.put(port.port.0);
        });
        body.record(PORT_NAME, |words| words.put_bytes(port.name.as_bytes()));
        self.add(COUNTERS_SAMPLE, body, now)
    }

    /// A datagram with all that waits, if it has waited long enough.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.next_timeout().filter(|due| *due <= now)?;
        self.flush(now)
    }

    /// When [`SflowAgent::handle_timeout`] has something to do.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.since.map(|since| since + DELAY)
    }

    /// Forgets what it counted of interfaces that are not among these.
    pub fn retain_interfaces(&mut self, is_there: impl Fn(u32) -> bool) {
        self.polls.retain(|index, _| is_there(*index));
    }

    fn add(&mut self, format: u32, body: Words, now: Instant) -> Option<Vec<u8>> {
        let mut sample = Words::default();
        sample.put(format);
        sample.put_bytes(&body.0);
        let is_full = self.header_len() + self.waiting.len() + sample.0.len() > DATAGRAM_MAX;
        let full = is_full.then(|| self.flush(now)).flatten();
        self.waiting.append(&mut sample.0);
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

    /// A datagram with all that waits, if anything does.
    pub fn flush(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.since.take()?;
        self.datagrams = self.datagrams.wrapping_add(1);
        let mut datagram = Words::default();
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
        datagram.0.append(&mut self.waiting);
        Some(datagram.0)
    }
}

fn sampled_header(words: &mut Words, frame: &FrameExcerpt) {
    /// "ETHERNET-ISO88023".
    const ETHERNET: u32 = 1;
    words.put(ETHERNET);
    words.put(low((frame.length + FCS) as u64));
    words.put(low(FCS as u64));
    words.put_bytes(&frame.bytes);
}

fn if_counters(words: &mut Words, port: &CountersSample) {
    /// The type of Ethernet interfaces (`ifType`).
    const ETHERNET: u32 = 6;
    words.put(port.index);
    words.put(ETHERNET);
    words.put_long(port.speed);
    words.put(match port.full_duplex {
        None => 0,
        Some(true) => 1,
        Some(false) => 2,
    });
    words.put(u32::from(port.up) | u32::from(port.up && port.carrier) << 1);
    for ([bytes, frames, drops, errors], unknown) in
        [(port.received, Some(UNKNOWN)), (port.sent, None)]
    {
        words.put_long(bytes);
        words.put(low(frames));
        // Frames for many, and for all, are not counted apart.
        words.put(UNKNOWN);
        words.put(UNKNOWN);
        words.put(low(drops));
        words.put(low(errors));
        unknown.into_iter().for_each(|unknown| words.put(unknown));
    }
    let promiscuous = 0;
    words.put(promiscuous);
}

/// Counters of 32 bits go round.
fn low(count: u64) -> u32 {
    u32::try_from(count & u64::from(u32::MAX)).unwrap_or(0)
}

/// Bytes in the form of XDR: words of four, the first the highest (RFC 4506).
#[derive(Default)]
struct Words(Vec<u8>);

impl Words {
    fn put(&mut self, word: u32) {
        self.0.extend(word.to_be_bytes());
    }

    fn put_long(&mut self, word: u64) {
        self.0.extend(word.to_be_bytes());
    }

    /// Bytes with their count before them, and zeros behind up to the next word.
    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put(low(bytes.len() as u64));
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// What `write` puts, with its format and its length before it.
    fn record(&mut self, format: u32, write: impl FnOnce(&mut Self)) {
        let mut record = Self::default();
        write(&mut record);
        self.put(format);
        self.put_bytes(&record.0);
    }
}

#[cfg(test)]
mod tests;
