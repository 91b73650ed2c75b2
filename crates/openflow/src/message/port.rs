//! A port's description (OF 1.0.1, 5.2.1; OF 1.3.5, 7.2.1), in feature replies,
//! port-status and port descriptions.

use flow::{PortConfig, PortDesc, PortFeatures, PortState};
use packet::MacAddr;

use super::Body;
use crate::codec::{Inexpressible, Malformed, Reader, Writer};
use crate::port_no;
use crate::version::Version;

/// Bytes of OpenFlow 1.0's structure.
pub(crate) const LENGTH_V10: usize = 48;

/// Bytes of the name, the zero byte behind it included.
const NAME: usize = 16;

/// The lowest seven bits of features, speeds up to 10 Gbit/s, are the same in
/// all versions; medium and negotiation moved up by four in 1.1.
const SAME_FEATURES: u32 = 0x7f;
const MOVED_FEATURES_V10: u32 = 0x1f << 7;
const MOVED_FEATURES: u32 = 0x1f << 11;

/// The state bits that 1.0 has too: the others are a spanning tree's there.
const STATE_V10: u32 = PortState::LINK_DOWN.0;
const STATE_V13: u32 = 0x7;

/// The configuration bits that a version has.
pub(crate) const fn known_config(version: Version) -> PortConfig {
    match version {
        Version::V10 => PortConfig(0x7f),
        Version::V13 => PortConfig(
            PortConfig::DOWN.0
                | PortConfig::NO_RECV.0
                | PortConfig::NO_FWD.0
                | PortConfig::NO_PACKET_IN.0,
        ),
    }
}

/// Reads feature bits.
pub(crate) fn decode_features(r: &mut Reader<'_>) -> Result<PortFeatures, Malformed> {
    let bits = r.u32()?;
    Ok(PortFeatures(match r.version() {
        Version::V10 => bits & SAME_FEATURES | (bits & MOVED_FEATURES_V10) << 4,
        Version::V13 => bits,
    }))
}

/// Appends feature bits; those that the version lacks are left out.
pub(crate) fn encode_features(PortFeatures(bits): PortFeatures, w: &mut Writer<'_>) {
    let bits = match w.version() {
        Version::V10 => bits & SAME_FEATURES | (bits & MOVED_FEATURES) >> 4,
        Version::V13 => bits,
    };
    w.u32(bits);
}

impl Body for PortDesc {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let version = r.version();
        let number = port_no::decode(r)?;
        if version == Version::V13 {
            r.skip(4)?;
        }
        let hw_addr = MacAddr(r.take()?);
        if version == Version::V13 {
            r.skip(2)?;
        }
        let name = r.text(NAME)?;
        let config = PortConfig(r.u32()? & known_config(version).0);
        let state = r.u32()?;
        let [current, advertised, supported, peer] = [
            decode_features(r)?,
            decode_features(r)?,
            decode_features(r)?,
            decode_features(r)?,
        ];
        let (state, speed_kbps, speed_kbps_max) = match version {
            Version::V10 => (state & STATE_V10, 0, 0),
            Version::V13 => (state & STATE_V13, r.u32()?, r.u32()?),
        };
        Ok(Self {
            number,
            hw_addr,
            name,
            config,
            state: PortState(state),
            current,
            advertised,
            supported,
            peer,
            speed_kbps,
            speed_kbps_max,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        let version = w.version();
        port_no::encode(self.number, w)?;
        if version == Version::V13 {
            w.zeros(4);
        }
        w.bytes(&self.hw_addr.0);
        if version == Version::V13 {
            w.zeros(2);
        }
        w.text(NAME, &self.name);
        w.u32(self.config.0 & known_config(version).0);
        w.u32(match version {
            Version::V10 => self.state.0 & STATE_V10,
            Version::V13 => self.state.0 & STATE_V13,
        });
        for features in [self.current, self.advertised, self.supported, self.peer] {
            encode_features(features, w);
        }
        if version == Version::V13 {
            w.u32(self.speed_kbps);
            w.u32(self.speed_kbps_max);
        }
        Ok(())
    }
}
