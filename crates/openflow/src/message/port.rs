//! The description of a port (OF 1.0.1, 5.2.1; OF 1.3.5, 7.2.1; OF 1.4.1, 7.2.1) in feature
//! replies, port-status and port descriptions.

use flow::{PortConfig, PortDesc, PortFeatures, PortState, Refusal};
use packet::MacAddr;

use super::{WireFormat, property};
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::port_no;
use crate::version::Version;

/// Bytes of OpenFlow 1.0's structure.
pub(crate) const LENGTH_V10: usize = 48;

/// Bytes of the structure of 1.1 to 1.3.
pub(crate) const LENGTH_V11: usize = 64;

/// Bytes of the name, including its terminating zero.
const NAME: usize = 16;

/// `OFPPDPT_ETHERNET`, and in port-mod and statistics `OFPPMPT_ETHERNET` and
/// `OFPPSPT_ETHERNET`.
pub(crate) const ETHERNET: u16 = 0;

/// The lowest seven bits of features, speeds up to 10 Gbit/s, are the same in all versions. In 1.1
/// the bits of medium and negotiation moved up by four.
const SAME_FEATURES: u32 = 0x7f;
const MOVED_FEATURES_V10: u32 = 0x1f << 7;
const MOVED_FEATURES: u32 = 0x1f << 11;

/// The configuration bits of a version.
pub(crate) const fn known_config(version: Version) -> PortConfig {
    match version {
        Version::V10 => PortConfig(0x7f),
        Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => PortConfig(
            PortConfig::DOWN.0
                | PortConfig::NO_RECV.0
                | PortConfig::NO_FWD.0
                | PortConfig::NO_PACKET_IN.0,
        ),
    }
}

/// The state bits of a version: 1.0 has those of a spanning tree.
const fn known_state(version: Version) -> u32 {
    match version {
        Version::V10 => PortState::LINK_DOWN.0 | PortState::STP_MASK.0,
        Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => {
            PortState::LINK_DOWN.0 | PortState::BLOCKED.0 | PortState::LIVE.0
        }
    }
}

/// Decodes feature bits.
pub(crate) fn decode_features(r: &mut Reader<'_>) -> Result<PortFeatures, Malformed> {
    let bits = r.u32()?;
    Ok(PortFeatures(match r.version() {
        Version::V10 => bits & SAME_FEATURES | (bits & MOVED_FEATURES_V10) << 4,
        Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => bits,
    }))
}

/// Appends feature bits, without those that the version lacks.
pub(crate) fn encode_features(PortFeatures(bits): PortFeatures, w: &mut Writer<'_>) {
    let bits = match w.version() {
        Version::V10 => bits & SAME_FEATURES | (bits & MOVED_FEATURES) >> 4,
        Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => bits,
    };
    w.u32(bits);
}

impl WireFormat for PortDesc {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        match r.version() {
            Version::V10 | Version::V11 | Version::V12 | Version::V13 => {
                let mut port = decode_head(r)?;
                decode_ethernet(r, &mut port)?;
                Ok(port)
            }
            Version::V14 | Version::V15 => decode_with_properties(r),
        }
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        match w.version() {
            Version::V10 | Version::V11 | Version::V12 | Version::V13 => {
                encode_head(self, w)?;
                encode_ethernet(self, w);
                Ok(())
            }
            Version::V14 | Version::V15 => w
                .nested(4, |w| {
                    encode_head(self, w)?;
                    property::put(ETHERNET, w, |w| {
                        w.zeros(4);
                        encode_ethernet(self, w);
                        Ok(())
                    })
                })
                .map(drop),
        }
    }
}

/// Decodes the members that all versions share: number, address, name, configuration and state. In
/// 1.4 and 1.5 the length follows the number, as two bytes.
fn decode_head(r: &mut Reader<'_>) -> Result<PortDesc, Malformed> {
    let version = r.version();
    let number = port_no::decode(r)?;
    if version != Version::V10 {
        r.skip(4)?;
    }
    let hw_addr = MacAddr(r.take()?);
    if version != Version::V10 {
        r.skip(2)?;
    }
    Ok(PortDesc {
        number,
        hw_addr,
        name: r.text(NAME)?,
        config: PortConfig(r.u32()? & known_config(version).0),
        state: PortState(r.u32()? & known_state(version)),
        current: PortFeatures(0),
        advertised: PortFeatures(0),
        supported: PortFeatures(0),
        peer: PortFeatures(0),
        speed_kbps: 0,
        speed_kbps_max: 0,
    })
}

fn encode_head(port: &PortDesc, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let version = w.version();
    port_no::encode(port.number, w)?;
    if version != Version::V10 {
        w.zeros(4);
    }
    w.bytes(&port.hw_addr.0);
    if version != Version::V10 {
        w.zeros(2);
    }
    w.text(NAME, &port.name);
    w.u32(port.config.0 & known_config(version).0);
    w.u32(port.state.0 & known_state(version));
    Ok(())
}

/// Decodes the members of an Ethernet port: features and, from 1.1 on, speeds.
fn decode_ethernet(r: &mut Reader<'_>, port: &mut PortDesc) -> Result<(), Malformed> {
    port.current = decode_features(r)?;
    port.advertised = decode_features(r)?;
    port.supported = decode_features(r)?;
    port.peer = decode_features(r)?;
    if r.version() != Version::V10 {
        (port.speed_kbps, port.speed_kbps_max) = (r.u32()?, r.u32()?);
    }
    Ok(())
}

fn encode_ethernet(port: &PortDesc, w: &mut Writer<'_>) {
    for features in [port.current, port.advertised, port.supported, port.peer] {
        encode_features(features, w);
    }
    if w.version() != Version::V10 {
        w.u32(port.speed_kbps);
        w.u32(port.speed_kbps_max);
    }
}

/// Decodes the structure of 1.4 and 1.5. Skips properties of optical ports and of pipelines.
fn decode_with_properties(r: &mut Reader<'_>) -> Result<PortDesc, Malformed> {
    let mut head = r.clone();
    head.skip(4)?;
    let length = usize::from(head.u16()?);
    let mut r = r.sub_or(length, Refusal::RequestBadLength)?;
    let mut port = decode_head(&mut r)?;
    while !r.is_empty() {
        let mut property = property::next(&mut r)?;
        if property.kind == ETHERNET {
            property.value.skip(4)?;
            decode_ethernet(&mut property.value, &mut port)?;
        }
    }
    Ok(port)
}
