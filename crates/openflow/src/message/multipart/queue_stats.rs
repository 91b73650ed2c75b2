//! The counters of queues (OF 1.0.1, 5.3.5; OF 1.3.5, 7.3.5.8; OF 1.4.1, 7.3.5.9).

use std::time::Duration;

use base::{PortNo, QueueId};
use flow::{QueueStats, Refusal};

use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::duration;
use crate::message::WireFormat;
use crate::port_no;
use crate::version::Version;

/// The requested queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStatsRequest {
    /// The port; [`PortNo::ANY`] for every port.
    pub port: PortNo,
    /// Its queue; [`QueueId::ALL`] for every queue.
    pub queue: QueueId,
}

impl WireFormat for QueueStatsRequest {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        // "Every port" is OFPP_ALL in 1.0 and OFPP_ANY in later versions.
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

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
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

impl WireFormat for QueueStats {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        match r.version() {
            Version::V10 | Version::V11 | Version::V12 | Version::V13 => decode_plain(r),
            Version::V14 | Version::V15 => {
                let length = usize::from(r.clone().u16()?);
                let mut r = r.sub_or(length, Refusal::RequestBadLength)?;
                r.skip(8)?;
                let stats = decode_plain(&mut r)?;
                // Only experimenters define properties here.
                r.rest();
                Ok(stats)
            }
        }
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        match w.version() {
            Version::V10 | Version::V11 | Version::V12 | Version::V13 => encode_plain(self, w),
            Version::V14 | Version::V15 => w
                .nested(0, |w| {
                    w.zeros(8);
                    encode_plain(self, w)
                })
                .map(drop),
        }
    }
}

/// Returns true if the version has the duration of a queue.
const fn has_duration(version: Version) -> bool {
    match version {
        Version::V10 | Version::V11 | Version::V12 => false,
        Version::V13 | Version::V14 | Version::V15 => true,
    }
}

fn decode_plain(r: &mut Reader<'_>) -> Result<QueueStats, Malformed> {
    let port = port_no::decode(r)?;
    if r.version() == Version::V10 {
        r.skip(2)?;
    }
    Ok(QueueStats {
        port,
        queue: QueueId(r.u32()?),
        tx_bytes: r.u64()?,
        tx_packets: r.u64()?,
        tx_errors: r.u64()?,
        duration: if has_duration(r.version()) {
            duration::decode(r)?
        } else {
            Duration::ZERO
        },
    })
}

fn encode_plain(stats: &QueueStats, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    port_no::encode(stats.port, w)?;
    if w.version() == Version::V10 {
        w.zeros(2);
    }
    w.u32(stats.queue.0);
    for count in [stats.tx_bytes, stats.tx_packets, stats.tx_errors] {
        w.u64(count);
    }
    if has_duration(w.version()) {
        duration::encode(stats.duration, w);
    }
    Ok(())
}
