//! The counts of queues (OF 1.0.1, 5.3.5; OF 1.3.5, 7.3.5.8).

use std::time::Duration;

use base::{PortNo, QueueId};
use flow::QueueStats;

use crate::codec::{Inexpressible, Malformed, Reader, Writer};
use crate::duration;
use crate::message::Body;
use crate::port_no;
use crate::version::Version;

/// Which queues are asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStatsRequest {
    /// The port; [`PortNo::ANY`] for every port.
    pub port: PortNo,
    /// Its queue; [`QueueId::ALL`] for every queue.
    pub queue: QueueId,
}

impl Body for QueueStatsRequest {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        // 1.0 says "every port" by OFPP_ALL, later versions by OFPP_ANY.
        let port = match (r.version(), port_no::decode(r)?) {
            (Version::V10, PortNo::ALL) => PortNo::ANY,
            (_, port) => port,
        };
        if r.version() == Version::V10 {
            r.skip(2)?;
        }
        let queue = QueueId(r.u32()?);
        Ok(Self { port, queue })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        let port = match (w.version(), self.port) {
            (Version::V10, PortNo::ANY) => PortNo::ALL,
            (_, port) => port,
        };
        port_no::encode(port, w)?;
        w.pad_to(4);
        w.u32(self.queue.0);
        Ok(())
    }
}

impl Body for QueueStats {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let port = port_no::decode(r)?;
        if r.version() == Version::V10 {
            r.skip(2)?;
        }
        Ok(Self {
            port,
            queue: QueueId(r.u32()?),
            tx_bytes: r.u64()?,
            tx_packets: r.u64()?,
            tx_errors: r.u64()?,
            duration: match r.version() {
                Version::V10 => Duration::ZERO,
                Version::V13 => duration::decode(r)?,
            },
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        port_no::encode(self.port, w)?;
        if w.version() == Version::V10 {
            w.zeros(2);
        }
        w.u32(self.queue.0);
        for count in [self.tx_bytes, self.tx_packets, self.tx_errors] {
            w.u64(count);
        }
        match w.version() {
            Version::V10 => {}
            Version::V13 => duration::encode(self.duration, w),
        }
        Ok(())
    }
}
