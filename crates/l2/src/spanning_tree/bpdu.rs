//! Encoding of BPDUs (IEEE 802.1D-2004, 9.3).

use super::port::PortRole;
use super::vector::{PriorityVector, TreeBridgeId, TreePortId, TreeTimes};

/// The LLC header before a BPDU: the spanning tree address as DSAP and SSAP, and an unnumbered
/// information frame (7.12.3).
pub(crate) const BPDU_LLC: [u8; 3] = [0x42, 0x42, 0x03];

/// Lengths of the configuration BPDU (9.3.1), the topology change notification (9.3.2) and the
/// rapid BPDU (9.3.3), in bytes, from the protocol identifier on.
const CONFIGURATION_LEN: usize = 35;
const CHANGE_LEN: usize = 4;
const RAPID_LEN: usize = 36;

const CONFIGURATION: u8 = 0x00;
const CHANGE: u8 = 0x80;
const RAPID: u8 = 0x02;

const TOPOLOGY_CHANGE: u8 = 0x01;
const PROPOSAL: u8 = 0x02;
const ROLE_SHIFT: u8 = 2;
const LEARNING: u8 = 0x10;
const FORWARDING: u8 = 0x20;
const AGREEMENT: u8 = 0x40;
const ACKNOWLEDGED: u8 = 0x80;

/// A malformed BPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedBpdu {
    /// The LLC header is not that of spanning tree.
    #[error("the LLC header is not that of spanning tree")]
    NotSpanningTree,
    /// The BPDU is truncated.
    #[error("truncated")]
    Short,
    /// The protocol identifier, version or type is unknown.
    #[error("unknown protocol, version or type")]
    Unknown,
    /// The message age exceeds the maximum age (9.3.4).
    #[error("the message age exceeds the maximum age")]
    TooOld,
}

/// Flags of a rapid BPDU, other than the topology change flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RapidFlags {
    /// The role of the sending port; `None` is unknown.
    pub(crate) role: Option<PortRole>,
    /// The sender proposes to forward.
    pub(crate) proposal: bool,
    /// The sender agrees to a proposal.
    pub(crate) agreement: bool,
    /// The sending port learns.
    pub(crate) learning: bool,
    /// The sending port forwards.
    pub(crate) forwarding: bool,
}

/// The content of a configuration BPDU or a rapid BPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConfigBpdu {
    /// The priority vector.
    pub(crate) priority: PriorityVector,
    /// The timer values.
    pub(crate) times: TreeTimes,
    /// The topology change flag.
    pub(crate) change: bool,
    /// The topology change acknowledgment flag.
    pub(crate) acknowledged: bool,
    /// The flags of a rapid BPDU; `None` in a configuration BPDU.
    pub(crate) rapid: Option<RapidFlags>,
}

/// A BPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bpdu {
    /// A configuration BPDU or a rapid BPDU.
    Config(ConfigBpdu),
    /// A topology change notification of STP.
    TopologyChange,
}

impl Bpdu {
    /// Parses the bytes that follow the length field of an 802.3 frame.
    ///
    /// # Errors
    /// The BPDU is malformed (9.3.4).
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, MalformedBpdu> {
        let bytes = bytes
            .strip_prefix(&BPDU_LLC)
            .ok_or(MalformedBpdu::NotSpanningTree)?;
        let [protocol @ .., _, _] = bytes
            .first_chunk::<CHANGE_LEN>()
            .ok_or(MalformedBpdu::Short)?;
        if *protocol != [0, 0] {
            return Err(MalformedBpdu::Unknown);
        }
        match (bytes[2], bytes[3]) {
            (_, CHANGE) => Ok(Self::TopologyChange),
            (_, CONFIGURATION) => parse_config(bytes, CONFIGURATION_LEN, false),
            (version, RAPID) if version >= 2 => parse_config(bytes, RAPID_LEN, true),
            _ => Err(MalformedBpdu::Unknown),
        }
    }

    /// Returns the encoding, with the LLC header.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = BPDU_LLC.to_vec();
        let Self::Config(config) = self else {
            bytes.extend([0, 0, 0, CHANGE]);
            return bytes;
        };
        let (version, kind) = match config.rapid {
            None => (0, CONFIGURATION),
            Some(_) => (2, RAPID),
        };
        bytes.extend([0, 0, version, kind, flags(config)]);
        bytes.extend(config.priority.root.0.to_be_bytes());
        bytes.extend(config.priority.cost.to_be_bytes());
        bytes.extend(config.priority.bridge.0.to_be_bytes());
        bytes.extend(config.priority.port.0.to_be_bytes());
        let times = &config.times;
        for seconds in [
            times.message_age,
            times.max_age,
            times.hello_time,
            times.forward_delay,
        ] {
            // In units of 1/256 s (9.2.8).
            bytes.extend(seconds.saturating_mul(256).to_be_bytes());
        }
        if config.rapid.is_some() {
            // The version 1 length is zero (9.3.3, 12).
            bytes.push(0);
        }
        bytes
    }
}

fn flags(config: &ConfigBpdu) -> u8 {
    let bit = |set: bool, bit: u8| if set { bit } else { 0 };
    let mut flags = bit(config.change, TOPOLOGY_CHANGE);
    match config.rapid {
        None => flags |= bit(config.acknowledged, ACKNOWLEDGED),
        Some(rapid) => {
            let role = match rapid.role {
                None | Some(PortRole::Disabled) => 0,
                Some(PortRole::Alternate | PortRole::Backup) => 1,
                Some(PortRole::Root) => 2,
                Some(PortRole::Designated) => 3,
            };
            flags |= bit(rapid.proposal, PROPOSAL)
                | role << ROLE_SHIFT
                | bit(rapid.learning, LEARNING)
                | bit(rapid.forwarding, FORWARDING)
                | bit(rapid.agreement, AGREEMENT);
        }
    }
    flags
}

fn parse_config(bytes: &[u8], len: usize, is_rapid: bool) -> Result<Bpdu, MalformedBpdu> {
    let bytes = bytes.get(..len).ok_or(MalformedBpdu::Short)?;
    let (flags, body) = (bytes[4], &bytes[5..]);
    let long = |at: usize| {
        let part = body[at..].first_chunk().expect("the length was checked");
        u64::from_be_bytes(*part)
    };
    let short = |at: usize| u16::from_be_bytes([body[at], body[at + 1]]);
    let seconds = |at: usize| short(at).div_ceil(256);
    let config = ConfigBpdu {
        priority: PriorityVector {
            root: TreeBridgeId(long(0)),
            cost: u32::from_be_bytes([body[8], body[9], body[10], body[11]]),
            bridge: TreeBridgeId(long(12)),
            port: TreePortId(short(20)),
        },
        times: TreeTimes {
            message_age: seconds(22),
            max_age: seconds(24),
            hello_time: seconds(26).max(1),
            forward_delay: seconds(28),
        },
        change: flags & TOPOLOGY_CHANGE != 0,
        acknowledged: !is_rapid && flags & ACKNOWLEDGED != 0,
        rapid: is_rapid.then_some(RapidFlags {
            role: match flags >> ROLE_SHIFT & 3 {
                1 => Some(PortRole::Alternate),
                2 => Some(PortRole::Root),
                3 => Some(PortRole::Designated),
                _ => None,
            },
            proposal: flags & PROPOSAL != 0,
            agreement: flags & AGREEMENT != 0,
            learning: flags & LEARNING != 0,
            forwarding: flags & FORWARDING != 0,
        }),
    };
    // In configuration BPDUs only (9.3.4): outdated information of a rapid BPDU expires by its
    // timer.
    if !is_rapid && short(22) >= short(24) {
        return Err(MalformedBpdu::TooOld);
    }
    Ok(Bpdu::Config(config))
}
