//! Port-mod: a change to a port's behaviour (OF 1.0.1, 5.3.3; OF 1.3.5,
//! 7.3.4.3).

use flow::{PortConfig, PortMod, Refusal};
use packet::MacAddr;

use super::Body;
use super::port::{decode_features, encode_features, known_config};
use crate::codec::{Inexpressible, Malformed, Reader, Writer};
use crate::port_no;
use crate::version::Version;

impl Body for PortMod {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let port = port_no::decode(r)?;
        if r.version() == Version::V13 {
            r.skip(4)?;
        }
        let hw_addr = MacAddr(r.take()?);
        if r.version() == Version::V13 {
            r.skip(2)?;
        }
        let bad_config = r.fail(Refusal::PortModBadConfig);
        let (config, mask) = (PortConfig(r.u32()?), PortConfig(r.u32()?));
        if mask.0 & !known_config(r.version()).0 != 0 {
            return Err(bad_config);
        }
        let advertise = decode_features(r)?.0;
        r.skip(4)?;
        Ok(Self {
            port,
            hw_addr,
            config: PortConfig(config.0 & mask.0),
            mask,
            advertise,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        if self.mask.0 & !known_config(w.version()).0 != 0 {
            return Err(w.cannot("this port configuration"));
        }
        port_no::encode(self.port, w)?;
        if w.version() == Version::V13 {
            w.zeros(4);
        }
        w.bytes(&self.hw_addr.0);
        if w.version() == Version::V13 {
            w.zeros(2);
        }
        w.u32(self.config.0 & self.mask.0);
        w.u32(self.mask.0);
        encode_features(flow::PortFeatures(self.advertise), w);
        w.zeros(4);
        Ok(())
    }
}
