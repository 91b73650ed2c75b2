//! Port-mod: a change of a port's configuration (OF 1.0.1, 5.3.3; OF 1.3.5, 7.3.4.3; OF 1.4.1,
//! 7.3.4.3, where the advertised features are a property).

use flow::{PortConfig, PortMod, Refusal};
use packet::MacAddr;

use super::port::{ETHERNET, decode_features, encode_features, known_config};
use super::{WireFormat, property};
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::port_no;
use crate::version::Version;

impl WireFormat for PortMod {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let port = port_no::decode(r)?;
        if r.version() != Version::V10 {
            r.skip(4)?;
        }
        let hw_addr = MacAddr(r.take()?);
        if r.version() != Version::V10 {
            r.skip(2)?;
        }
        let bad_config = r.fail(Refusal::PortModBadConfig);
        let (config, mask) = (PortConfig(r.u32()?), PortConfig(r.u32()?));
        if mask.0 & !known_config(r.version()).0 != 0 {
            return Err(bad_config);
        }
        let advertise = match r.version() {
            Version::V10 | Version::V11 | Version::V12 | Version::V13 => {
                let advertise = decode_features(r)?.0;
                r.skip(4)?;
                advertise
            }
            Version::V14 | Version::V15 => decode_properties(r)?,
        };
        Ok(Self {
            port,
            hw_addr,
            config: PortConfig(config.0 & mask.0),
            mask,
            advertise,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        if self.mask.0 & !known_config(w.version()).0 != 0 {
            return Err(w.unsupported("this port configuration"));
        }
        port_no::encode(self.port, w)?;
        if w.version() != Version::V10 {
            w.zeros(4);
        }
        w.bytes(&self.hw_addr.0);
        if w.version() != Version::V10 {
            w.zeros(2);
        }
        w.u32(self.config.0 & self.mask.0);
        w.u32(self.mask.0);
        match w.version() {
            Version::V10 | Version::V11 | Version::V12 | Version::V13 => {
                encode_features(flow::PortFeatures(self.advertise), w);
                w.zeros(4);
                Ok(())
            }
            Version::V14 | Version::V15 if self.advertise == 0 => Ok(()),
            Version::V14 | Version::V15 => property::put_u32(ETHERNET, self.advertise, w),
        }
    }
}

/// Decodes the properties. Ethernet ports have only the advertised features.
fn decode_properties(r: &mut Reader<'_>) -> Result<u32, Malformed> {
    let mut advertise = None;
    while !r.is_empty() {
        let mut property = property::next(r)?;
        if property.kind != ETHERNET {
            return Err(property.unknown());
        }
        let bits = property.value.u32()?;
        property.value.end()?;
        if advertise.replace(bits).is_some() {
            return Err(property.fail(Refusal::PropertyDuplicate));
        }
    }
    Ok(advertise.unwrap_or(0))
}
