//! Datagrams of an agent, decoded word by word.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

fn agent(address: IpAddr) -> SflowAgent {
    let identity = AgentIdentity {
        address,
        sub_agent: 3,
        sampling: 400,
    };
    SflowAgent::new(identity, Instant::from_secs(10))
}

fn excerpt(length: usize, snap: usize) -> FrameExcerpt {
    FrameExcerpt {
        bytes: vec![0xab; length.min(snap)].into(),
        length,
        headers: None,
    }
}

fn sample(frame: &FrameExcerpt) -> FlowSample<'_> {
    let tag = |vid, pcp| VlanTag {
        tpid: 0x8100,
        pcp,
        dei: false,
        vid,
    };
    FlowSample {
        stands_for: 390,
        missed: 2,
        input: 7,
        output: SampleOutput::Interface(8),
        frame,
        tags: [Some(tag(10, 3)), None],
    }
}

fn port(name: &str) -> CountersSample {
    CountersSample {
        index: 7,
        speed: 10_000_000_000,
        full_duplex: Some(true),
        up: true,
        carrier: true,
        received: [1 << 40, 1 << 33, 3, 4],
        sent: [5, 6, 7, 8],
        runts: 9,
        datapath: DatapathId(0xab),
        port: PortNo(1),
        name: name.to_owned(),
    }
}

/// A reader of words of four bytes.
struct XdrReader<'a>(&'a [u8]);

impl<'a> XdrReader<'a> {
    fn word(&mut self) -> u32 {
        let (word, rest) = self.0.split_first_chunk().expect("a word more");
        self.0 = rest;
        u32::from_be_bytes(*word)
    }

    fn words<const N: usize>(&mut self) -> [u32; N] {
        std::array::from_fn(|_| self.word())
    }

    /// Returns bytes that follow their length.
    fn bytes(&mut self) -> &'a [u8] {
        let count = self.word() as usize;
        let (bytes, rest) = self.0.split_at(count.next_multiple_of(4));
        self.0 = rest;
        &bytes[..count]
    }

    /// Returns a record of this format.
    fn record(&mut self, format: u32) -> Self {
        assert_eq!(self.word(), format);
        Self(self.bytes())
    }
}

#[test]
fn sflow_flow_sample_has_header_and_output() {
    let mut agent = agent(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
    let now = Instant::from_secs(12);
    let frame = excerpt(1000, 128);
    assert_eq!(agent.handle_sample(&sample(&frame), now), None);
    assert_eq!(agent.handle_timeout(now), None, "others may follow");
    let due = agent.next_timeout().expect("one waits");
    let datagram = agent.handle_timeout(due).expect("it has waited");
    let mut reader = XdrReader(&datagram);
    assert_eq!(reader.words(), [5, 1, 0x0a00_0001, 3, 1, 3000, 1]);
    let mut flow = reader.record(FLOW_SAMPLE);
    assert_eq!(flow.words(), [1, 2 << 24 | 1003, 400, 390, 2, 7, 8, 2]);
    let mut switch = flow.record(EXTENDED_SWITCH);
    assert_eq!(switch.words(), [10, 3, 0, 0]);
    let mut header = flow.record(SAMPLED_HEADER);
    assert_eq!(header.words(), [1, 1004, 4]);
    assert_eq!(header.bytes(), [0xab; 128]);
    assert!(reader.0.is_empty() && flow.0.is_empty() && switch.0.is_empty());
    assert_eq!(agent.next_timeout(), None);
}

#[test]
fn sflow_counter_sample_has_port_number_and_name() {
    let mut agent = agent(IpAddr::V6(Ipv6Addr::LOCALHOST));
    let now = Instant::from_secs(10);
    assert_eq!(agent.handle_counters(&port("eth10"), now), None);
    let datagram = agent.handle_timeout(now + DELAY).expect("it has waited");
    let mut reader = XdrReader(&datagram);
    assert_eq!(reader.words(), [5, 2, 0, 0, 0, 1, 3, 1, 1000, 1]);
    let mut counters = reader.record(COUNTERS_SAMPLE);
    assert_eq!(counters.words(), [1, 7, 4]);
    let mut generic = counters.record(IF_COUNTERS);
    let none = u32::MAX;
    let speed = [2, 0x540b_e400];
    assert_eq!(generic.words(), [7, 6, speed[0], speed[1], 1, 3]);
    let received = [256, 0, 0, none, none, 3, 4, none];
    assert_eq!(generic.words(), received, "counters of 32 bits go round");
    assert_eq!(generic.words(), [0, 5, 6, none, none, 7, 8, 0]);
    let mut ethernet = counters.record(ETHERNET_COUNTERS);
    assert_eq!(ethernet.word(), 9);
    assert_eq!(ethernet.words(), [none; 12]);
    let mut openflow = counters.record(OF_PORT);
    assert_eq!(openflow.words(), [0, 0xab, 1]);
    let mut name = counters.record(PORT_NAME);
    assert_eq!(name.bytes(), b"eth10");
    assert!(reader.0.is_empty() && generic.0.is_empty() && openflow.0.is_empty());
}

#[test]
fn sflow_output_encodings_match_specification() {
    assert_eq!(SampleOutput::Nowhere.number(), 0x4000_0100);
    assert_eq!(SampleOutput::Interface(8).number(), 8);
    assert_eq!(SampleOutput::Ports(3).number(), 0x8000_0003);
}

proptest! {
    /// For all samples: no datagram is too long, each contains whole samples, as many as it says,
    /// and their sequence numbers are consecutive.
    #[test]
    fn sflow_datagrams_are_complete_and_bounded(
        samples in prop::collection::vec((0..3_usize, 0..2000_usize), 1..60),
        is_v6 in any::<bool>(),
    ) {
        let address = match is_v6 {
            true => IpAddr::V6(Ipv6Addr::LOCALHOST),
            false => IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        let mut agent = agent(address);
        let now = Instant::from_secs(10);
        let mut datagrams = Vec::new();
        for (kind, length) in &samples {
            let full = match kind {
                0 => agent.handle_counters(&port(&"p".repeat(length % 300)), now),
                _ => agent.handle_sample(&sample(&excerpt(*length, HEADER_MAX)), now),
            };
            datagrams.extend(full);
        }
        datagrams.extend(agent.handle_timeout(now + DELAY));
        let (mut count, mut number, mut of_frames) = (0, 0, 0);
        for datagram in &datagrams {
            prop_assert!(datagram.len() <= DATAGRAM_MAX, "{}", datagram.len());
            let mut reader = XdrReader(datagram);
            reader.words::<2>();
            match is_v6 {
                true => drop(reader.words::<4>()),
                false => drop(reader.word()),
            }
            reader.word();
            number += 1;
            prop_assert_eq!(reader.word(), number);
            reader.word();
            let within = reader.word();
            prop_assert!(within > 0);
            for _ in 0..within {
                let format = reader.word();
                let mut body = XdrReader(reader.bytes());
                if format == FLOW_SAMPLE {
                    of_frames += 1;
                    prop_assert_eq!(body.word(), of_frames);
                }
                count += 1;
            }
            prop_assert!(reader.0.is_empty());
        }
        prop_assert_eq!(count, samples.len());
    }
}
