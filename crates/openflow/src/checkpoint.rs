//! The checkpoint of a switch's tables as bytes: the file from which a switch that crashed restores
//! its rules before controllers are back.
//!
//! The tables are OpenFlow messages that would build them again: TLV maps, meters, groups and rules,
//! in this order. So the file needs no codec of its own, and any message that a controller can send
//! can be stored. Integers are in network byte order:
//!
//! ```text
//! file    := "COMPORTA" version:u32 length:u64 checksum:u64 record*   length, checksum: of the records
//! record  := kind:u8 length:u32 payload
//! kind 1  := datapath-id:u64 name                          a bridge; the rest belongs to it
//! kind 2  := an OpenFlow message of version 1.4 or 1.5     TLV, meter, group or flow mod that adds
//! kind 3  := vlan:u16 flags:u8 port:u32 address:[u8; 6]    forwarding database; flag 1: static
//! ```
//!
//! The checksum (FNV-1a, 64 bits) detects damage, not intent: the file has the owner of the process.
//! A file is whole or refused; there is no partial restore.

use std::fmt;

use base::{DatapathId, PortNo, Xid};
use flow::{FlowModCommand, GroupModCommand, MeterModCommand, TlvCommand};
use packet::MacAddr;

use crate::codec::Malformed;
use crate::header::{Header, split_message};
use crate::message::Message;
use crate::version::Version;

/// The beginning of each file.
const MAGIC: &[u8; 8] = b"COMPORTA";

/// The version of the format.
const FORMAT: u32 = 1;

/// The length of the magic, the version, the length and the checksum.
const HEADER_LEN: usize = 28;

/// The length of a record's kind and length.
const RECORD_HEADER_LEN: usize = 5;

/// The kinds of records.
const BRIDGE: u8 = 1;
const MESSAGE: u8 = 2;
const ADDRESS: u8 = 3;

/// The flag of a static address.
const STATIC: u8 = 1;

/// The versions that store a message: the first that expresses it without loss.
const VERSIONS: [Version; 2] = [Version::V14, Version::V15];

/// The maximum length of a bridge's name: that of an interface has fifteen bytes.
const NAME_LEN_MAX: usize = 255;

/// The tables of all bridges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// The bridges.
    pub bridges: Vec<CheckpointBridge>,
}

/// The tables of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointBridge {
    /// The name.
    pub name: String,
    /// The datapath id.
    pub datapath_id: DatapathId,
    /// The messages that build the tables.
    pub messages: Vec<Message>,
    /// The forwarding database, least recently used entries first.
    pub addresses: Vec<CheckpointAddress>,
}

/// An entry of the forwarding database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointAddress {
    /// The VLAN.
    pub vid: u16,
    /// The Ethernet address.
    pub mac: MacAddr,
    /// The port.
    pub port: PortNo,
    /// True for an entry that does not expire.
    pub is_static: bool,
}

/// The reason why bytes are no checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// The file does not begin like a checkpoint.
    #[error("not a checkpoint")]
    NoCheckpoint,
    /// Another version of this program wrote the file.
    #[error("format {0} is not supported, only format 1")]
    Format(u32),
    /// The file ends early, or bytes follow it.
    #[error("{present} bytes of records, but the header announces {announced}")]
    Length {
        /// The announced length.
        announced: u64,
        /// The length that is there.
        present: usize,
    },
    /// The file is damaged.
    #[error("the checksum is wrong")]
    Checksum,
    /// A record is malformed.
    #[error("record at byte {at}: {problem}")]
    Record {
        /// The place in the file.
        at: usize,
        /// The problem.
        problem: RecordProblem,
    },
}

/// The problem of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordProblem {
    /// The record is longer than the file.
    TooLong,
    /// There is no such kind.
    Kind(u8),
    /// A record of this kind has another length.
    Length(usize),
    /// The name of a bridge is no text.
    Name,
    /// No bridge precedes the record.
    NoBridge,
    /// The message is malformed.
    Message(Malformed),
    /// The message is none that adds to a table.
    Purpose,
}

impl fmt::Display for RecordProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => f.write_str("longer than the file"),
            Self::Kind(kind) => write!(f, "unknown kind {kind}"),
            Self::Length(length) => write!(f, "no record of its kind has {length} bytes"),
            Self::Name => f.write_str("the name of the bridge is no text"),
            Self::NoBridge => f.write_str("no bridge precedes it"),
            Self::Message(malformed) => write!(f, "malformed message: {malformed}"),
            Self::Purpose => f.write_str("the message does not add to a table"),
        }
    }
}

/// The number of messages by the result of their encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointCounts {
    /// Messages that are stored without loss.
    pub exact: usize,
    /// Messages of which a part is lost.
    pub lossy: usize,
    /// Messages that no version can express.
    pub omitted: usize,
}

/// Encodes a checkpoint, record by record.
#[derive(Debug)]
pub struct CheckpointWriter {
    bytes: Vec<u8>,
    counts: CheckpointCounts,
}

impl Default for CheckpointWriter {
    fn default() -> Self {
        let mut bytes = Vec::with_capacity(HEADER_LEN);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT.to_be_bytes());
        bytes.resize(HEADER_LEN, 0);
        Self {
            bytes,
            counts: CheckpointCounts::default(),
        }
    }
}

impl CheckpointWriter {
    /// Begins a bridge: the following records belong to it.
    pub fn begin_bridge(&mut self, name: &str, datapath_id: DatapathId) {
        let mut payload = datapath_id.0.to_be_bytes().to_vec();
        payload.extend_from_slice(name.as_bytes());
        self.push(BRIDGE, &payload);
    }

    /// Adds a message of the bridge.
    pub fn add_message(&mut self, message: &Message) {
        let mut lossy = None;
        for version in VERSIONS {
            let mut bytes = Vec::new();
            if message.encode(Xid(0), version, &mut bytes).is_err() {
                continue;
            }
            let decoded = Message::decode(&bytes, version);
            if decoded.is_ok_and(|(_, decoded)| is_equivalent(message, &decoded)) {
                self.counts.exact += 1;
                return self.push(MESSAGE, &bytes);
            }
            lossy.get_or_insert(bytes);
        }
        match lossy {
            // A message that cannot be read back would make the whole file invalid.
            Some(bytes) if parse_message(&bytes).is_ok() => {
                self.counts.lossy += 1;
                self.push(MESSAGE, &bytes);
            }
            _ => self.counts.omitted += 1,
        }
    }

    /// Adds an entry of the bridge's forwarding database.
    pub fn add_address(&mut self, entry: CheckpointAddress) {
        let mut payload = entry.vid.to_be_bytes().to_vec();
        payload.push(if entry.is_static { STATIC } else { 0 });
        payload.extend_from_slice(&entry.port.0.to_be_bytes());
        payload.extend_from_slice(&entry.mac.0);
        self.push(ADDRESS, &payload);
    }

    /// Returns the file, and the results of the messages.
    #[must_use]
    pub fn finish(mut self) -> (Vec<u8>, CheckpointCounts) {
        let (header, records) = self.bytes.split_at_mut(HEADER_LEN);
        let length = records.len() as u64;
        header[12..20].copy_from_slice(&length.to_be_bytes());
        header[20..28].copy_from_slice(&checksum(records).to_be_bytes());
        (self.bytes, self.counts)
    }

    fn push(&mut self, kind: u8, payload: &[u8]) {
        let length = u32::try_from(payload.len()).expect("a record is at most a message");
        self.bytes.push(kind);
        self.bytes.extend_from_slice(&length.to_be_bytes());
        self.bytes.extend_from_slice(payload);
    }
}

impl Checkpoint {
    /// Parses a file.
    ///
    /// # Errors
    /// The file is truncated, damaged, or of another version.
    pub fn parse(file: &[u8]) -> Result<Self, CheckpointError> {
        let rest = file.strip_prefix(MAGIC);
        let rest = rest.ok_or(CheckpointError::NoCheckpoint)?;
        let missing = || CheckpointError::Length {
            announced: 0,
            present: rest.len(),
        };
        let (format, rest) = rest.split_first_chunk().ok_or_else(missing)?;
        match u32::from_be_bytes(*format) {
            FORMAT => {}
            other => return Err(CheckpointError::Format(other)),
        }
        let (announced, rest) = rest.split_first_chunk().ok_or_else(missing)?;
        let (sum, records) = rest.split_first_chunk().ok_or_else(missing)?;
        let announced = u64::from_be_bytes(*announced);
        if announced != records.len() as u64 {
            return Err(CheckpointError::Length {
                announced,
                present: records.len(),
            });
        }
        if checksum(records) != u64::from_be_bytes(*sum) {
            return Err(CheckpointError::Checksum);
        }
        Self::parse_records(records)
    }

    /// Parses the records behind a valid header.
    ///
    /// # Errors
    /// A record is malformed.
    pub fn parse_records(records: &[u8]) -> Result<Self, CheckpointError> {
        let mut checkpoint = Self::default();
        let mut rest = records;
        while !rest.is_empty() {
            let at = HEADER_LEN + (records.len() - rest.len());
            let failed = |problem| CheckpointError::Record { at, problem };
            let (kind, payload, behind) = split_record(rest).map_err(failed)?;
            checkpoint.add_record(kind, payload).map_err(failed)?;
            rest = behind;
        }
        Ok(checkpoint)
    }

    fn add_record(&mut self, kind: u8, payload: &[u8]) -> Result<(), RecordProblem> {
        if kind == BRIDGE {
            self.bridges.push(parse_bridge(payload)?);
            return Ok(());
        }
        let last = self.bridges.last_mut();
        match kind {
            MESSAGE => {
                let message = parse_message(payload)?;
                last.ok_or(RecordProblem::NoBridge)?.messages.push(message);
            }
            ADDRESS => {
                let entry = parse_address(payload)?;
                last.ok_or(RecordProblem::NoBridge)?.addresses.push(entry);
            }
            other => return Err(RecordProblem::Kind(other)),
        }
        Ok(())
    }

    /// Returns the file of this checkpoint.
    #[must_use]
    pub fn encode(&self) -> (Vec<u8>, CheckpointCounts) {
        let mut writer = CheckpointWriter::default();
        for bridge in &self.bridges {
            writer.begin_bridge(&bridge.name, bridge.datapath_id);
            for message in &bridge.messages {
                writer.add_message(message);
            }
            for entry in &bridge.addresses {
                writer.add_address(*entry);
            }
        }
        writer.finish()
    }
}

/// Returns the kind and the payload of the first record, and the bytes behind it.
fn split_record(records: &[u8]) -> Result<(u8, &[u8], &[u8]), RecordProblem> {
    let header = records.split_first_chunk::<RECORD_HEADER_LEN>();
    let ([kind, length @ ..], rest) = header.ok_or(RecordProblem::TooLong)?;
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    let (payload, behind) = rest
        .split_at_checked(length)
        .ok_or(RecordProblem::TooLong)?;
    Ok((*kind, payload, behind))
}

fn parse_bridge(payload: &[u8]) -> Result<CheckpointBridge, RecordProblem> {
    let wrong = || RecordProblem::Length(payload.len());
    let (id, name) = payload.split_first_chunk().ok_or_else(wrong)?;
    if name.is_empty() || name.len() > NAME_LEN_MAX {
        return Err(wrong());
    }
    let name = std::str::from_utf8(name).map_err(|_| RecordProblem::Name)?;
    Ok(CheckpointBridge {
        name: name.to_owned(),
        datapath_id: DatapathId(u64::from_be_bytes(*id)),
        messages: Vec::new(),
        addresses: Vec::new(),
    })
}

fn parse_message(payload: &[u8]) -> Result<Message, RecordProblem> {
    let wrong = RecordProblem::Length(payload.len());
    match split_message(payload) {
        Ok(Some((_, []))) => {}
        _ => return Err(wrong),
    }
    let header = Header::peek(payload).ok_or(wrong)?;
    let version = VERSIONS
        .into_iter()
        .find(|version| version.number() == header.version);
    let version = version.ok_or(RecordProblem::Purpose)?;
    let (_, message) = Message::decode(payload, version).map_err(RecordProblem::Message)?;
    let adds = match &message {
        Message::FlowMod(command) => command.command == FlowModCommand::Add,
        Message::GroupMod(command) => command.command == GroupModCommand::Add,
        Message::MeterMod(command) => command.command == MeterModCommand::Add,
        Message::TlvTableMod(command) => command.command == TlvCommand::Add,
        _ => false,
    };
    adds.then_some(message).ok_or(RecordProblem::Purpose)
}

fn parse_address(payload: &[u8]) -> Result<CheckpointAddress, RecordProblem> {
    let wrong = RecordProblem::Length(payload.len());
    let bytes: [u8; 13] = payload.try_into().map_err(|_| wrong)?;
    let [v, w, flags, p, q, r, s, mac @ ..] = bytes;
    Ok(CheckpointAddress {
        vid: u16::from_be_bytes([v, w]),
        mac: MacAddr(mac),
        port: PortNo(u32::from_be_bytes([p, q, r, s])),
        is_static: flags & STATIC != 0,
    })
}

/// Returns true if a message that was decoded builds the same entry as the one that was encoded.
fn is_equivalent(encoded: &Message, decoded: &Message) -> bool {
    let (Message::FlowMod(one), Message::FlowMod(other)) = (encoded, decoded) else {
        return encoded == decoded;
    };
    // The other members of a flow-mod do not matter to an addition.
    let entry = |rule: &flow::FlowMod| {
        (
            (rule.table, rule.priority, rule.cookie),
            (rule.idle_timeout_s, rule.hard_timeout_s),
            (rule.importance, rule.flags),
        )
    };
    entry(one) == entry(other)
        && one.matching == other.matching
        && one.instructions == other.instructions
}

/// FNV-1a with 64 bits.
fn checksum(bytes: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(OFFSET, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(PRIME)
    })
}

#[cfg(test)]
mod tests;
