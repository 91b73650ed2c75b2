//! Features reply: the identity and capabilities of the switch (OF 1.0.1, 5.3.1; OF 1.3.5, 7.3.1).
//! Until 1.2 it lists the ports, and in 1.0 the actions.

use base::DatapathId;
use flow::{Capabilities, PortDesc, SwitchFeatures};

use super::{WireFormat, port};
use crate::action;
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::version::Version;

/// The maximum number of ports in one message.
const PORTS_MAX_V10: usize = (u16::MAX as usize - 32) / port::LENGTH_V10;
const PORTS_MAX_V11: usize = (u16::MAX as usize - 32) / port::LENGTH_V11;

/// The features of the switch and, until OpenFlow 1.2, its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeaturesReply {
    /// The identity and capabilities of the switch.
    pub features: SwitchFeatures,
    /// The ports; none from 1.3 on, where a multipart request returns them. The encoder omits ports
    /// that do not fit one message, which has space for about 1,360 in 1.0 and 1,020 later.
    pub ports: Vec<PortDesc>,
}

/// The capability bits of a version.
const fn known_capabilities(version: Version) -> u32 {
    let common = Capabilities::FLOW_STATS
        .with(Capabilities::TABLE_STATS)
        .with(Capabilities::PORT_STATS)
        .with(Capabilities::IP_REASM)
        .with(Capabilities::QUEUE_STATS);
    match version {
        Version::V10 => common.with(Capabilities::ARP_MATCH_IP).0,
        Version::V11 => {
            common
                .with(Capabilities::GROUP_STATS)
                .with(Capabilities::ARP_MATCH_IP)
                .0
        }
        Version::V12 | Version::V13 => {
            common
                .with(Capabilities::GROUP_STATS)
                .with(Capabilities::PORT_BLOCKED)
                .0
        }
        Version::V14 | Version::V15 => {
            common
                .with(Capabilities::GROUP_STATS)
                .with(Capabilities::PORT_BLOCKED)
                .with(Capabilities::BUNDLES)
                .0
        }
    }
}

/// The maximum number of ports in a reply of this version.
const fn ports_max(version: Version) -> usize {
    match version {
        Version::V10 => PORTS_MAX_V10,
        Version::V11 | Version::V12 => PORTS_MAX_V11,
        Version::V13 | Version::V14 | Version::V15 => 0,
    }
}

/// Returns true if the version has auxiliary connections.
const fn has_auxiliaries(version: Version) -> bool {
    match version {
        Version::V10 | Version::V11 | Version::V12 => false,
        Version::V13 | Version::V14 | Version::V15 => true,
    }
}

/// OpenFlow 1.0's bitmap of actions: all that the codec has a row for.
fn actions_v10() -> u32 {
    action::standard_numbers(Version::V10).fold(0, |bits, number| bits | 1 << number)
}

impl WireFormat for FeaturesReply {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let version = r.version();
        let datapath_id = DatapathId(r.u64()?);
        let (buffers, tables, auxiliary_id) = (r.u32()?, r.u8()?, r.u8()?);
        r.skip(2)?;
        let capabilities = Capabilities(r.u32()? & known_capabilities(version));
        r.skip(4)?;
        let mut ports = Vec::new();
        if ports_max(version) > 0 {
            while !r.is_empty() {
                ports.push(PortDesc::decode(r)?);
            }
        }
        let auxiliary_id = if has_auxiliaries(version) {
            auxiliary_id
        } else {
            0
        };
        let features = SwitchFeatures {
            datapath_id,
            buffers,
            tables,
            auxiliary_id,
            capabilities,
        };
        Ok(Self { features, ports })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let SwitchFeatures {
            datapath_id,
            buffers,
            tables,
            auxiliary_id,
            capabilities,
        } = self.features;
        w.u64(datapath_id.0);
        w.u32(buffers);
        w.u8(tables);
        w.u8(if has_auxiliaries(w.version()) {
            auxiliary_id
        } else {
            0
        });
        w.zeros(2);
        w.u32(capabilities.0 & known_capabilities(w.version()));
        w.u32(match w.version() {
            Version::V10 => actions_v10(),
            Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => 0,
        });
        let ports = self.ports.iter().take(ports_max(w.version()));
        ports.into_iter().try_for_each(|port| port.encode(w))
    }
}
