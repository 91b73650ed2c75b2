//! BPDUs as bytes (IEEE 802.1D-2004, 9.3): what bridges say to each other.

use super::port::PortRole;
use super::vector::{PriorityVector, TreeBridgeId, TreePortId, TreeTimes};

/// What stands before a BPDU behind the length of its frame: the address of spanning trees in
/// LLC, twice, and an unnumbered information frame (7.12.3).
pub(crate) const BPDU_LLC: [u8; 3] = [0x42, 0x42, 0x03];

/// Bytes of a configuration BPDU (9.3.1), one of topology change (9.3.2) and a rapid one
/// (9.3.3), from the protocol's identifier on.
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

/// Why bytes are no BPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedBpdu {
    /// Not in LLC as spanning trees are.
    #[error("not to the spanning tree's address in LLC")]
    NotSpanningTree,
    /// Too few bytes for its kind.
    #[error("cut short")]
    Short,
    /// Of another protocol, or of a kind that there is not.
    #[error("of an unknown kind")]
    Unknown,
    /// What it says is older than it may grow (9.3.4).
    #[error("older than its own limit")]
    TooOld,
}

/// What the flags of a rapid BPDU say beside the topology change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rapid {
    /// The sender's role; none is unknown.
    pub(crate) role: Option<PortRole>,
    /// It would forward, if the receiver agrees.
    pub(crate) proposal: bool,
    /// It agrees.
    pub(crate) agreement: bool,
    /// It learns.
    pub(crate) learning: bool,
    /// It forwards.
    pub(crate) forwarding: bool,
}

/// What a BPDU says that has a priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// Of the root.
    pub(crate) priority: PriorityVector,
    /// With these times.
    pub(crate) times: TreeTimes,
    /// The topology has changed.
    pub(crate) change: bool,
    /// A topology change was heard of.
    pub(crate) acknowledged: bool,
    /// Of the rapid protocol, what it says beside; none of the older one.
    pub(crate) rapid: Option<Rapid>,
}

/// A BPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bpdu {
    /// With a priority: a configuration BPDU, or a rapid one.
    Said(Said),
    /// A notification that the topology has changed, of the older protocol.
    Change,
}

impl Bpdu {
    /// Reads what follows the length of an 802.3 frame.
    ///
    /// # Errors
    /// It is none (9.3.4).
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
            (_, CHANGE) => Ok(Self::Change),
            (_, CONFIGURATION) => parse_said(bytes, CONFIGURATION_LEN, false),
            (version, RAPID) if version >= 2 => parse_said(bytes, RAPID_LEN, true),
            _ => Err(MalformedBpdu::Unknown),
        }
    }

    /// As bytes, with the LLC header.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = BPDU_LLC.to_vec();
        let Self::Said(said) = self else {
            bytes.extend([0, 0, 0, CHANGE]);
            return bytes;
        };
        let (version, kind) = match said.rapid {
            None => (0, CONFIGURATION),
            Some(_) => (2, RAPID),
        };
        bytes.extend([0, 0, version, kind, flags(said)]);
        bytes.extend(said.priority.root.0.to_be_bytes());
        bytes.extend(said.priority.cost.to_be_bytes());
        bytes.extend(said.priority.bridge.0.to_be_bytes());
        bytes.extend(said.priority.port.0.to_be_bytes());
        let times = &said.times;
        for seconds in [
            times.message_age,
            times.max_age,
            times.hello_time,
            times.forward_delay,
        ] {
            // In units of a 256th of a second (9.2.8).
            bytes.extend(seconds.saturating_mul(256).to_be_bytes());
        }
        if said.rapid.is_some() {
            // There is nothing of the first version (9.3.3, 12).
            bytes.push(0);
        }
        bytes
    }
}

fn flags(said: &Said) -> u8 {
    let bit = |set: bool, bit: u8| if set { bit } else { 0 };
    let mut flags = bit(said.change, TOPOLOGY_CHANGE);
    match said.rapid {
        None => flags |= bit(said.acknowledged, ACKNOWLEDGED),
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

fn parse_said(bytes: &[u8], len: usize, is_rapid: bool) -> Result<Bpdu, MalformedBpdu> {
    let bytes = bytes.get(..len).ok_or(MalformedBpdu::Short)?;
    let (flags, body) = (bytes[4], &bytes[5..]);
    let long = |at: usize| {
        let part = body[at..].first_chunk().expect("the length was looked at");
        u64::from_be_bytes(*part)
    };
    let short = |at: usize| u16::from_be_bytes([body[at], body[at + 1]]);
    let seconds = |at: usize| short(at).div_ceil(256);
    let said = Said {
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
        rapid: is_rapid.then_some(Rapid {
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
    // Of the older protocol only (9.3.4): a rapid one that is too old dies by its timer.
    if !is_rapid && short(22) >= short(24) {
        return Err(MalformedBpdu::TooOld);
    }
    Ok(Bpdu::Said(said))
}
