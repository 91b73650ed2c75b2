//! Features reply: what the switch is and can (OF 1.0.1, 5.3.1; OF 1.3.5,
//! 7.3.1). OpenFlow 1.0 lists the ports and the actions in it.

use base::DatapathId;
use flow::{Capabilities, Features, PortDesc};

use super::{Body, port};
use crate::action;
use crate::codec::{Inexpressible, Malformed, Reader, Writer};
use crate::version::Version;

/// The longest that the ports of OpenFlow 1.0 may be in one message.
const PORTS_MAX: usize = (u16::MAX as usize - 32) / port::LENGTH_V10;

/// What the switch is, and in OpenFlow 1.0 its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeaturesReply {
    /// What the switch is.
    pub features: Features,
    /// Its ports; none in 1.3, where they are asked for apart. As many as fit one
    /// message, some 1,360, are told.
    pub ports: Vec<PortDesc>,
}

/// The capability bits that a version has.
const fn known(version: Version) -> u32 {
    let common = Capabilities::FLOW_STATS
        .with(Capabilities::TABLE_STATS)
        .with(Capabilities::PORT_STATS)
        .with(Capabilities::IP_REASM)
        .with(Capabilities::QUEUE_STATS);
    match version {
        Version::V10 => common.with(Capabilities::ARP_MATCH_IP).0,
        Version::V13 => {
            common
                .with(Capabilities::GROUP_STATS)
                .with(Capabilities::PORT_BLOCKED)
                .0
        }
    }
}

/// OpenFlow 1.0's bitmap of actions: each that the codec has a row for.
fn actions_v10() -> u32 {
    action::own_numbers(Version::V10).fold(0, |bits, number| bits | 1 << number)
}

impl Body for FeaturesReply {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let version = r.version();
        let datapath_id = DatapathId(r.u64()?);
        let (buffers, tables, auxiliary_id) = (r.u32()?, r.u8()?, r.u8()?);
        r.skip(2)?;
        let capabilities = Capabilities(r.u32()? & known(version));
        r.skip(4)?;
        let mut ports = Vec::new();
        if version == Version::V10 {
            while !r.is_empty() {
                ports.push(PortDesc::decode(r)?);
            }
        }
        let auxiliary_id = match version {
            Version::V10 => 0,
            Version::V13 => auxiliary_id,
        };
        let features = Features {
            datapath_id,
            buffers,
            tables,
            auxiliary_id,
            capabilities,
        };
        Ok(Self { features, ports })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        let Features {
            datapath_id,
            buffers,
            tables,
            auxiliary_id,
            capabilities,
        } = self.features;
        w.u64(datapath_id.0);
        w.u32(buffers);
        w.u8(tables);
        w.u8(match w.version() {
            Version::V10 => 0,
            Version::V13 => auxiliary_id,
        });
        w.zeros(2);
        w.u32(capabilities.0 & known(w.version()));
        match w.version() {
            Version::V10 => {
                w.u32(actions_v10());
                for port in self.ports.iter().take(PORTS_MAX) {
                    port.encode(w)?;
                }
            }
            Version::V13 => w.zeros(4),
        }
        Ok(())
    }
}
