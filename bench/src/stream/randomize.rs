//! Frames with random addresses and ports, so that hardly any belongs to an earlier flow.
//!
//! Only untagged IPv4 without options; checksums are those of the written frames.

use capture_file::pcap::{PACKET_HEADER_LEN, PcapHeader};
use clap::ValueEnum;
use testkit::workload::splitmix64;

use crate::Failure;

/// A field that is randomized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Field {
    /// The IPv4 source address.
    Source,
    /// The IPv4 destination address.
    Target,
    /// The TCP or UDP source port.
    SourcePort,
    /// The TCP or UDP destination port.
    TargetPort,
}

impl Field {
    /// All fields.
    pub(crate) const ALL: [Self; 4] = [
        Self::Source,
        Self::Target,
        Self::SourcePort,
        Self::TargetPort,
    ];

    /// The bits of the field in the concatenation of all four.
    const fn bits(self) -> u128 {
        match self {
            Self::Source => 0xffff_ffff << 64,
            Self::Target => 0xffff_ffff << 32,
            Self::SourcePort => 0xffff << 16,
            Self::TargetPort => 0xffff,
        }
    }

    /// Returns true if ICMP lacks the field.
    const fn is_port(self) -> bool {
        matches!(self, Self::SourcePort | Self::TargetPort)
    }
}

/// The offset of the four fields in a frame, and their total length in bytes.
const FLOW: usize = 26;
const FLOW_LEN: usize = 12;

/// The offsets of the IPv4, TCP and UDP checksums.
const OF_IPV4: usize = 24;
const OF_TCP: usize = 34 + 16;
const OF_UDP: usize = 34 + 6;

/// A checksum in a frame, and its sum without the four fields.
#[derive(Clone, Copy)]
struct PartialChecksum {
    at: usize,
    rest: u64,
}

/// A frame with fields to randomize.
struct FrameModel {
    /// The frame after its record header.
    record: Vec<u8>,
    /// The four fields, with zeros in the randomized bits.
    fixed_bits: u128,
    /// The mask of the randomized bits.
    random_bits: u128,
    /// True for a frame of the receiver: what is random of the sender is so in the other place.
    is_reply: bool,
    /// The checksum over the addresses, and the one over addresses and ports.
    ipv4: PartialChecksum,
    transport: Option<PartialChecksum>,
}

impl FrameModel {
    /// Prepares a frame; of a reply, `fields` are those of the frames it answers.
    fn new(frame: &[u8], fields: &[Field], is_reply: bool) -> Result<Self, Failure> {
        let refused = || "only IPv4 frames without options can be randomized".to_owned();
        let is_ipv4 = frame.get(12..15) == Some(&[0x08, 0x00, 0x45]);
        let flow = frame.get(FLOW..FLOW + FLOW_LEN).filter(|_| is_ipv4);
        let flow = number(flow.ok_or_else(refused)?);
        let (at, has_ports) = match frame[23] {
            6 => (Some(OF_TCP), true),
            17 if frame.get(OF_UDP..OF_UDP + 2) == Some(&[0, 0]) => (None, true),
            17 => (Some(OF_UDP), true),
            _ => (None, false),
        };
        let fields = fields.iter().filter(|field| has_ports || !field.is_port());
        let random_bits = fields.fold(0, |bits, field| bits | field.bits());
        let random_bits = match is_reply {
            true => reversed(random_bits),
            false => random_bits,
        };
        // Subtracts the changing words from a checksum (RFC 1624): adding the complement subtracts
        // in one's complement arithmetic.
        let checksum = |at: usize, places: &[u32]| -> Option<PartialChecksum> {
            let sum = number(frame.get(at..at + 2)?);
            let words = places.iter().map(|place| !word(flow, *place) & 0xffff);
            let rest = (!low(sum) & 0xffff) + words.sum::<u64>();
            Some(PartialChecksum { at, rest })
        };
        let mut record = Vec::new();
        PcapHeader::ETHERNET.append_packet(&mut record, frame);
        Ok(Self {
            record,
            fixed_bits: flow & !random_bits,
            random_bits,
            is_reply,
            ipv4: checksum(OF_IPV4, &ADDRESSES).ok_or_else(refused)?,
            transport: at
                .map(|at| checksum(at, &ALL_WORDS).ok_or_else(refused))
                .transpose()?,
        })
    }

    /// Appends the frame with fields from `random`.
    fn write(&self, random: u128, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        let random = match self.is_reply {
            true => reversed(random),
            false => random,
        };
        bytes.extend_from_slice(&self.record);
        let frame = &mut bytes[start + PACKET_HEADER_LEN..];
        let flow = self.fixed_bits | random & self.random_bits;
        frame[FLOW..FLOW + FLOW_LEN].copy_from_slice(&flow.to_be_bytes()[4..]);
        let addresses: u64 = ADDRESSES.iter().map(|place| word(flow, *place)).sum();
        put(frame, self.ipv4, addresses);
        if let Some(checksum) = self.transport {
            put(frame, checksum, addresses + word(flow, 0) + word(flow, 1));
        }
    }
}

/// The indices of the words of the four fields, from the last one on.
const ALL_WORDS: [u32; 6] = [0, 1, 2, 3, 4, 5];
const ADDRESSES: [u32; 4] = [2, 3, 4, 5];

/// The four fields of a frame in the other direction.
const fn reversed(flow: u128) -> u128 {
    const ADDRESS: u128 = 0xffff_ffff;
    const PORT: u128 = 0xffff;
    (flow >> 32 & ADDRESS) << 64
        | (flow >> 64 & ADDRESS) << 32
        | (flow & PORT) << 16
        | flow >> 16 & PORT
}

/// A 16-bit word of the four fields.
const fn word(flow: u128, place: u32) -> u64 {
    low(flow >> (16 * place)) & 0xffff
}

/// The lower half of a number.
#[expect(clippy::cast_possible_truncation, reason = "the rest is not wanted")]
const fn low(number: u128) -> u64 {
    number as u64
}

/// Reads big-endian bytes as a number.
fn number(bytes: &[u8]) -> u128 {
    let shifted = |number: u128, byte: &u8| number << 8 | u128::from(*byte);
    bytes.iter().fold(0, shifted)
}

/// Writes a checksum, given the `sum` of the randomized words.
fn put(frame: &mut [u8], checksum: PartialChecksum, sum: u64) {
    let mut sum = checksum.rest + sum;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    let [.., upper, lower] = (!sum).to_be_bytes();
    frame[checksum.at..checksum.at + 2].copy_from_slice(&[upper, lower]);
}

/// Sessions that take turns: each sends a frame before the first one sends its next.
const IN_FLIGHT: u64 = 256;

/// An endless source of frames.
pub(crate) struct RandomStream {
    models: Vec<FrameModel>,
    /// The number of frames after which the sequence repeats.
    cycle: u64,
    /// True if the models are the frames of one session.
    has_sessions: bool,
    /// The number of the next frame.
    next: u64,
}

impl RandomStream {
    /// A source of these frames in turn, with random `fields`. The sequence repeats after `cycle`
    /// frames, if given.
    pub(crate) fn new(
        frames: &[Vec<u8>],
        fields: &[Field],
        cycle: Option<u64>,
    ) -> Result<Self, Failure> {
        if frames.is_empty() {
            return Err("no frame to randomize".into());
        }
        let models = frames.iter();
        let models = models.map(|frame| FrameModel::new(frame, fields, false));
        Ok(Self {
            models: models.collect::<Result<_, _>>()?,
            cycle: cycle.unwrap_or(u64::MAX),
            has_sessions: false,
            next: 0,
        })
    }

    /// A source of sessions, [`IN_FLIGHT`] at a time. `frames` are one of them; `fields` of its
    /// sender, which are random in each session, are in its replies those of the receiver.
    pub(crate) fn sessions(frames: &[Vec<u8>], fields: &[Field]) -> Result<Self, Failure> {
        let flow = |frame: &Vec<u8>| frame.get(FLOW..FLOW + FLOW_LEN).map(number);
        let sender = frames.first().and_then(flow).ok_or("no IPv4 frame")?;
        let models = frames.iter().map(|frame| match flow(frame) {
            Some(same) if same == sender => FrameModel::new(frame, fields, false),
            Some(reply) if reply == reversed(sender) => FrameModel::new(frame, fields, true),
            _ => Err("a session has frames of two ends only".into()),
        });
        Ok(Self {
            models: models.collect::<Result<_, _>>()?,
            cycle: u64::MAX,
            has_sessions: true,
            next: 0,
        })
    }

    /// Returns the number of the random fields of the next frame, and its model.
    fn place(&self) -> (u64, &FrameModel) {
        let count = self.models.len() as u64;
        let (number, model) = match self.has_sessions {
            false => (self.next, self.next % count),
            true => {
                let (round, at) = (
                    self.next / (count * IN_FLIGHT),
                    self.next % (count * IN_FLIGHT),
                );
                (round * IN_FLIGHT + at % IN_FLIGHT, at / IN_FLIGHT)
            }
        };
        (
            number,
            &self.models[usize::try_from(model).unwrap_or_default()],
        )
    }

    /// Appends all frames, with record headers, that begin within `len` bytes.
    pub(crate) fn fill(&mut self, len: usize, bytes: &mut Vec<u8>) {
        while bytes.len() < len {
            let (number, model) = self.place();
            let [upper, lower] = [0, 1].map(|half| splitmix64(2 * number + half));
            let random = u128::from(upper) << 64 | u128::from(lower);
            model.write(random, bytes);
            self.next += 1;
            if self.next == self.cycle {
                self.next = 0;
            }
        }
    }

    /// The mean length of a frame with its record header, in bytes.
    pub(crate) fn mean_len(&self) -> f64 {
        let sum: usize = self.models.iter().map(|model| model.record.len()).sum();
        sum as f64 / self.models.len() as f64
    }
}
