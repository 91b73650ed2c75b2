//! The Link Layer Discovery Protocol (IEEE 802.1AB-2009, 8 and 9): its data units, with the TLVs of
//! Avaya's auto-attach (draft-unbehagen-lldp-spb) that Open vSwitch sends.
//!
//! ```text
//!  0          7          16                        A data unit: chassis id (1), port id (2), time
//! +----------+----------+---------------            to live (3), any others, and the end (0).
//! | type (7) |length (9)| value, 0 to 511 bytes
//! +----------+----------+---------------
//! ```

use super::ethernet::{EtherType, Ethernet};
use super::u16_at;
use crate::{Link, MacAddr};

/// The type of the frames.
pub const TYPE: EtherType = EtherType(0x88cc);
/// The destination "nearest bridge", which no bridge forwards (802.1AB-2009, table 7-1).
pub const ADDRESS: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0, 0, 0x0e]);
/// The subtype of a chassis id that is a MAC address.
pub const CHASSIS_MAC: u8 = 4;
/// The subtype of a port id that is the name of an interface.
pub const PORT_INTERFACE_NAME: u8 = 5;
/// The capability of a bridge.
pub const CAPABILITY_BRIDGE: u16 = 1 << 2;
/// The auto-attach element type of a virtual switch.
pub const ELEMENT_VIRTUAL_SWITCH: u8 = 14;

/// The limit of I-SID mappings in one data unit: as many as fit its TLV.
pub const MAPPINGS_MAX: usize = (VALUE_MAX - ORGANIZATION_LEN - DIGEST_LEN) / MAPPING_LEN;

/// TLV types.
const END: u8 = 0;
const CHASSIS_ID: u8 = 1;
const PORT_ID: u8 = 2;
const TIME_TO_LIVE: u8 = 3;
const PORT_DESCRIPTION: u8 = 4;
const SYSTEM_NAME: u8 = 5;
const SYSTEM_DESCRIPTION: u8 = 6;
const CAPABILITIES: u8 = 7;
const MANAGEMENT_ADDRESS: u8 = 8;
const ORGANIZATION: u8 = 127;

/// The longest value of a TLV, in bytes.
const VALUE_MAX: usize = 511;
/// The longest identifier, in bytes, without its subtype (802.1AB-2009, 8.5.2).
const ID_MAX: usize = 255;
/// Length of the organization's code and subtype, in bytes.
const ORGANIZATION_LEN: usize = 4;
/// Avaya's TLVs: element, and I-SID mappings.
const ELEMENT: [u8; ORGANIZATION_LEN] = [0x00, 0x04, 0x0d, 11];
const MAPPINGS: [u8; ORGANIZATION_LEN] = [0x00, 0x04, 0x0d, 12];
/// Length of the authentication digest, in bytes. It is zero: there is no key.
const DIGEST_LEN: usize = 32;
/// Length of an element after the digest, in bytes.
const ELEMENT_LEN: usize = 14;
/// Length of a mapping, in bytes.
const MAPPING_LEN: usize = 5;

/// The identifier of a chassis or of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LldpId {
    /// The kind of identifier.
    pub subtype: u8,
    /// The identifier, 1 to 255 bytes.
    pub bytes: Vec<u8>,
}

/// An element of auto-attach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AutoAttachElement {
    /// The kind of element, six bits.
    pub kind: u8,
    /// The requirements on VLAN tags and on provisioning, six bits.
    pub state: u8,
    /// The management VLAN.
    pub management_vlan: u16,
    /// The system identifier: MAC address, connection type and reserved bits.
    pub system_id: [u8; 10],
}

/// A mapping of a VLAN to a service (I-SID).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AutoAttachMapping {
    /// The status, four bits.
    pub status: u8,
    /// The VLAN.
    pub vlan: u16,
    /// The service, 24 bits.
    pub isid: u32,
}

/// An LLDP data unit. TLVs of other kinds are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LldpDataUnit {
    /// The sender.
    pub chassis: LldpId,
    /// The sender's port.
    pub port: LldpId,
    /// The time for which the information is valid, in seconds; zero: the sender shuts down.
    pub time_to_live: u16,
    /// The description of the port.
    pub port_description: Option<Vec<u8>>,
    /// The name of the system.
    pub system_name: Option<Vec<u8>>,
    /// The description of the system.
    pub system_description: Option<Vec<u8>>,
    /// The available and the enabled capabilities.
    pub capabilities: Option<[u16; 2]>,
    /// The auto-attach element.
    pub element: Option<AutoAttachElement>,
    /// The auto-attach mappings.
    pub mappings: Vec<AutoAttachMapping>,
    /// Number of TLVs that are not recognized.
    pub unrecognized: u32,
}

/// The reason to discard a data unit (802.1AB-2009, 9.2.7.7), in Open vSwitch's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedLldp {
    /// The frame is no LLDP frame.
    #[error("non LLDP frame")]
    Frame,
    /// A TLV is truncated.
    #[error("frame too short for tlv")]
    Truncated,
    /// The first TLVs are not chassis id, port id and time to live, or one of them is repeated.
    #[error("mandatory tlv missing or out of order")]
    Order,
    /// The end has a value.
    #[error("lldp end with size not null")]
    End,
    /// The value of a TLV is shorter than its kind requires.
    #[error("{0} TLV too short")]
    Short(&'static str),
    /// An identifier is too long.
    #[error("Port/Chassis Id TLV too large")]
    Long,
    /// The list of mappings ends within a mapping.
    #[error("malformed vlan-isid mappings tlv")]
    Mappings,
}

/// Returns true if a frame is an LLDP frame; VLAN tags are skipped.
#[must_use]
pub fn is_lldp(frame: &[u8]) -> bool {
    Link::parse(frame).is_ok_and(|link| link.eth_type == TYPE)
}

impl LldpDataUnit {
    /// Parses a frame.
    ///
    /// # Errors
    /// The frame must be discarded.
    pub fn parse(frame: &[u8]) -> Result<Self, MalformedLldp> {
        let link = Link::parse(frame).map_err(|_| MalformedLldp::Frame)?;
        if link.eth_type != TYPE {
            return Err(MalformedLldp::Frame);
        }
        let mut rest = frame.get(link.payload_at()..).unwrap_or_default();
        let mut unit = Self::default();
        for place in 0.. {
            let (kind, value, after) = split_tlv(rest)?;
            let mandatory = [CHASSIS_ID, PORT_ID, TIME_TO_LIVE];
            if mandatory.get(place).copied() != Some(kind)
                && (place < mandatory.len() || mandatory.contains(&kind))
            {
                return Err(MalformedLldp::Order);
            }
            if kind == END {
                break;
            }
            unit.read(kind, value)?;
            rest = after;
        }
        Ok(unit)
    }

    /// Reads one TLV.
    fn read(&mut self, kind: u8, value: &[u8]) -> Result<(), MalformedLldp> {
        let text = || (!value.is_empty()).then(|| value.to_vec());
        match kind {
            CHASSIS_ID => self.chassis = LldpId::parse(value)?,
            PORT_ID => self.port = LldpId::parse(value)?,
            TIME_TO_LIVE => {
                let value = value
                    .first_chunk::<2>()
                    .ok_or(MalformedLldp::Short("TTL"))?;
                self.time_to_live = u16::from_be_bytes(*value);
            }
            PORT_DESCRIPTION => self.port_description = text(),
            SYSTEM_NAME => self.system_name = text(),
            SYSTEM_DESCRIPTION => self.system_description = text(),
            CAPABILITIES => {
                let short = MalformedLldp::Short("System capabilities");
                let value = value.first_chunk::<4>().ok_or(short)?;
                self.capabilities = Some([u16_at(value, 0), u16_at(value, 2)]);
            }
            MANAGEMENT_ADDRESS => check_management_address(value)?,
            ORGANIZATION => self.read_organization(value)?,
            _ => self.unrecognized += 1,
        }
        Ok(())
    }

    /// Reads a TLV of an organization.
    fn read_organization(&mut self, value: &[u8]) -> Result<(), MalformedLldp> {
        let short = MalformedLldp::Short("Organisational");
        let (organization, value) = value.split_first_chunk().ok_or(short)?;
        match *organization {
            ELEMENT => {
                let short = MalformedLldp::Short("ELEMENT");
                let value = value.get(DIGEST_LEN..).ok_or(short)?;
                let value: &[u8; ELEMENT_LEN] = value.first_chunk().ok_or(short)?;
                self.element = Some(AutoAttachElement::parse(value));
            }
            MAPPINGS => {
                let short = MalformedLldp::Short("ISID_VLAN_ASGNS");
                let value = value.get(DIGEST_LEN..).ok_or(short)?;
                let (mappings, rest) = value.as_chunks::<MAPPING_LEN>();
                if !rest.is_empty() {
                    return Err(MalformedLldp::Mappings);
                }
                self.mappings = mappings.iter().map(AutoAttachMapping::parse).collect();
            }
            _ => self.unrecognized += 1,
        }
        Ok(())
    }

    /// Returns the frame of the data unit. Values beyond the length of a TLV are cut off.
    #[must_use]
    pub fn emit(&self, src: MacAddr) -> Vec<u8> {
        let mut frame = Ethernet { dst: ADDRESS, src }.emit(TYPE.0).to_vec();
        self.chassis.emit(CHASSIS_ID, &mut frame);
        self.port.emit(PORT_ID, &mut frame);
        put(
            TIME_TO_LIVE,
            &[&self.time_to_live.to_be_bytes()],
            &mut frame,
        );
        let texts = [
            (SYSTEM_NAME, &self.system_name),
            (SYSTEM_DESCRIPTION, &self.system_description),
            (PORT_DESCRIPTION, &self.port_description),
        ];
        for (kind, text) in texts {
            if let Some(text) = text {
                put(kind, &[text.get(..ID_MAX).unwrap_or(text)], &mut frame);
            }
        }
        if let Some([available, enabled]) = self.capabilities {
            let words = [available.to_be_bytes(), enabled.to_be_bytes()];
            put(CAPABILITIES, &[&words.concat()], &mut frame);
        }
        let digest = [0; DIGEST_LEN];
        if let Some(element) = &self.element {
            put(
                ORGANIZATION,
                &[&ELEMENT, &digest, &element.emit()],
                &mut frame,
            );
        }
        if !self.mappings.is_empty() {
            let mappings = self.mappings.iter().take(MAPPINGS_MAX);
            let mappings: Vec<u8> = mappings.flat_map(AutoAttachMapping::emit).collect();
            put(ORGANIZATION, &[&MAPPINGS, &digest, &mappings], &mut frame);
        }
        put(END, &[], &mut frame);
        frame
    }
}

impl LldpId {
    fn parse(value: &[u8]) -> Result<Self, MalformedLldp> {
        match value {
            [] | [_] => Err(MalformedLldp::Short("Port/Chassis Id")),
            [_, bytes @ ..] if bytes.len() > ID_MAX => Err(MalformedLldp::Long),
            [subtype, bytes @ ..] => Ok(Self {
                subtype: *subtype,
                bytes: bytes.to_vec(),
            }),
        }
    }

    fn emit(&self, kind: u8, into: &mut Vec<u8>) {
        let bytes = self.bytes.get(..ID_MAX).unwrap_or(&self.bytes);
        put(kind, &[&[self.subtype], bytes], into);
    }
}

impl AutoAttachElement {
    fn parse(value: &[u8; ELEMENT_LEN]) -> Self {
        let [a, b, c, _, system_id @ ..] = *value;
        Self {
            kind: a >> 2,
            state: (a & 0x3) << 4 | b >> 4,
            management_vlan: u16::from_be_bytes([b & 0x0f, c]),
            system_id,
        }
    }

    fn emit(&self) -> [u8; ELEMENT_LEN] {
        let [high, low] = self.management_vlan.to_be_bytes();
        let mut value = [0; ELEMENT_LEN];
        value[0] = self.kind << 2 | self.state >> 4 & 0x3;
        value[1] = self.state << 4 | high & 0x0f;
        value[2] = low;
        value[4..].copy_from_slice(&self.system_id);
        value
    }
}

impl AutoAttachMapping {
    fn parse(value: &[u8; MAPPING_LEN]) -> Self {
        let [high, low, isid @ ..] = *value;
        Self {
            status: high >> 4,
            vlan: u16::from_be_bytes([high & 0x0f, low]),
            isid: u32::from_be_bytes([0, isid[0], isid[1], isid[2]]),
        }
    }

    fn emit(&self) -> [u8; MAPPING_LEN] {
        let [high, low] = self.vlan.to_be_bytes();
        let [_, a, b, c] = self.isid.to_be_bytes();
        [self.status << 4 | high & 0x0f, low, a, b, c]
    }
}

/// Checks the lengths of a management address (802.1AB-2009, 8.5.9); its value is not used.
fn check_management_address(value: &[u8]) -> Result<(), MalformedLldp> {
    /// The longest address with its family, in bytes.
    const ADDRESS_MAX: usize = 32;
    /// Length of the interface's number and its kind, in bytes.
    const INTERFACE_LEN: usize = 5;
    let short = MalformedLldp::Short("Management address");
    let (len, rest) = value.split_first().ok_or(short)?;
    let len = usize::from(*len);
    let fits = (1..=ADDRESS_MAX).contains(&len) && rest.len() >= len + INTERFACE_LEN;
    fits.then_some(()).ok_or(short)
}

/// Splits a TLV off: its type, its value, and the rest.
fn split_tlv(bytes: &[u8]) -> Result<(u8, &[u8], &[u8]), MalformedLldp> {
    let (header, rest) = bytes
        .split_first_chunk::<2>()
        .ok_or(MalformedLldp::Truncated)?;
    let [kind, low] = *header;
    let len = usize::from(u16::from_be_bytes([kind & 1, low]));
    let value = rest.get(..len).ok_or(MalformedLldp::Truncated)?;
    let kind = kind >> 1;
    if kind == END && len > 0 {
        return Err(MalformedLldp::End);
    }
    Ok((kind, value, &rest[len..]))
}

/// Appends a TLV, whose value the caller keeps within [`VALUE_MAX`] bytes.
fn put(kind: u8, parts: &[&[u8]], into: &mut Vec<u8>) {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let [high, low] = u16::try_from(len)
        .ok()
        .filter(|_| len <= VALUE_MAX)
        .expect("the value fits a TLV")
        .to_be_bytes();
    into.extend([kind << 1 | high, low]);
    parts.iter().for_each(|part| into.extend_from_slice(part));
}

#[cfg(test)]
mod tests {
    use super::*;

    const SRC: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);

    fn unit() -> LldpDataUnit {
        LldpDataUnit {
            chassis: LldpId {
                subtype: CHASSIS_MAC,
                bytes: SRC.0.to_vec(),
            },
            port: LldpId {
                subtype: PORT_INTERFACE_NAME,
                bytes: b"p1".to_vec(),
            },
            time_to_live: 120,
            port_description: None,
            system_name: Some(b"sw".to_vec()),
            system_description: Some(b"a switch".to_vec()),
            capabilities: Some([CAPABILITY_BRIDGE; 2]),
            element: Some(AutoAttachElement {
                kind: ELEMENT_VIRTUAL_SWITCH,
                state: 0x2a,
                management_vlan: 0xabc,
                system_id: [2, 0, 0, 0, 0, 9, 0, 0, 0, 1],
            }),
            mappings: vec![AutoAttachMapping {
                status: 2,
                vlan: 0x123,
                isid: 0x04_0506,
            }],
            unrecognized: 0,
        }
    }

    #[test]
    fn lldp_data_unit_round_trips() {
        let frame = unit().emit(SRC);
        assert!(is_lldp(&frame));
        let begin = [2, 7, 4, 2, 0, 0, 0, 0, 9, 4, 3, 5, b'p', b'1', 6, 2, 0, 120];
        assert_eq!(frame[14..14 + begin.len()], begin);
        assert_eq!(LldpDataUnit::parse(&frame), Ok(unit()));
        let tagged = [&frame[..12], &[0x81, 0, 0, 5], &frame[12..]].concat();
        assert_eq!(LldpDataUnit::parse(&tagged), Ok(unit()));
    }

    #[test]
    fn malformed_lldp_data_unit_is_refused() {
        let frame = unit().emit(SRC);
        for len in 0..frame.len() {
            assert!(LldpDataUnit::parse(&frame[..len]).is_err(), "{len}");
        }
        let header = &frame[..14];
        let mandatory = [2, 2, 4, 1, 4, 2, 5, b'p', 6, 2, 0, 120];
        let parse = |tlvs: &[u8]| {
            let unit = LldpDataUnit::parse(&[header, &mandatory[..], tlvs].concat());
            unit.map(|unit| unit.unrecognized)
        };
        assert_eq!(parse(&[0, 0, 9, 9]), Ok(0), "padding follows the end");
        assert_eq!(parse(&[18, 1, 0, 254, 4, 1, 2, 3, 4, 0, 0]), Ok(2));
        assert_eq!(parse(&[0, 1, 0]), Err(MalformedLldp::End));
        assert_eq!(parse(&mandatory[..4]), Err(MalformedLldp::Order));
        assert_eq!(parse(&[6, 1, 0]), Err(MalformedLldp::Order));
        let short = parse(&[254, 5, 0, 4, 13, 12, 1, 0, 0]).map_err(|error| error.to_string());
        assert_eq!(short, Err("ISID_VLAN_ASGNS TLV too short".to_owned()));
        assert_eq!(
            parse(&[16, 7, 1, 1, 1, 0, 0, 0, 0, 0, 0]),
            Ok(0),
            "a management address"
        );
    }
}
