//! The statistics of IPFIX export: `NXST_IPFIX_BRIDGE` and `NXST_IPFIX_FLOW` (`nicira-ext.h` of
//! Open vSwitch 3.1, nx_ipfix_stats_reply).

use flow::{IpfixScope, IpfixStats};

use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::kinds::MultipartKind;
use crate::message::WireFormat;

/// The multipart type of these statistics.
pub(super) const fn kind(of: IpfixScope) -> MultipartKind {
    match of {
        IpfixScope::Bridge => MultipartKind::IpfixBridge,
        IpfixScope::Collectors => MultipartKind::IpfixFlow,
    }
}

impl WireFormat for IpfixStats {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut three = || Ok([r.u64()?, r.u64()?, r.u64()?]);
        let [flows, flows_now, sampled] = three()?;
        let [sampled_ipv4, sampled_ipv6, failed] = three()?;
        let [failed_ipv4, failed_ipv6, sent] = three()?;
        let (send_failed, collectors) = (r.u64()?, r.u32()?);
        r.skip(4)?;
        Ok(Self {
            flows,
            flows_now,
            sampled: [sampled, sampled_ipv4, sampled_ipv6],
            failed: [failed, failed_ipv4, failed_ipv6],
            sent,
            send_failed,
            collectors,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.u64(self.flows);
        w.u64(self.flows_now);
        self.sampled.into_iter().for_each(|count| w.u64(count));
        self.failed.into_iter().for_each(|count| w.u64(count));
        w.u64(self.sent);
        w.u64(self.send_failed);
        w.u32(self.collectors);
        w.zeros(4);
        Ok(())
    }
}
