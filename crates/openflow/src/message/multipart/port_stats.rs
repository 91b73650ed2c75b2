//! The counts of a port (OF 1.0.1, 5.3.5; OF 1.3.5, 7.3.5.6).

use std::time::Duration;

use base::PortNo;
use flow::PortStats;

use crate::codec::{Inexpressible, Malformed, Reader, Writer};
use crate::duration;
use crate::message::Body;
use crate::port_no;
use crate::version::Version;

/// What stands for a count that the port cannot know.
const UNKNOWN: u64 = u64::MAX;

/// Reads which port is asked about.
pub(super) fn decode_request(r: &mut Reader<'_>) -> Result<PortNo, Malformed> {
    let port = port_no::decode(r)?;
    r.skip(padding(r.version()))?;
    Ok(port)
}

/// Appends which port is asked about.
pub(super) fn encode_request(port: PortNo, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
    port_no::encode(port, w)?;
    w.zeros(padding(w.version()));
    Ok(())
}

/// Bytes of padding behind the port's number.
const fn padding(version: Version) -> usize {
    match version {
        Version::V10 => 6,
        Version::V13 => 4,
    }
}

fn decode_count(r: &mut Reader<'_>) -> Result<Option<u64>, Malformed> {
    r.u64().map(|count| (count != UNKNOWN).then_some(count))
}

impl Body for PortStats {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let port = decode_request(r)?;
        Ok(Self {
            port,
            rx_packets: r.u64()?,
            tx_packets: r.u64()?,
            rx_bytes: r.u64()?,
            tx_bytes: r.u64()?,
            rx_dropped: r.u64()?,
            tx_dropped: r.u64()?,
            rx_errors: r.u64()?,
            tx_errors: r.u64()?,
            rx_frame_errors: decode_count(r)?,
            rx_over_errors: decode_count(r)?,
            rx_crc_errors: decode_count(r)?,
            collisions: decode_count(r)?,
            duration: match r.version() {
                Version::V10 => Duration::ZERO,
                Version::V13 => duration::decode(r)?,
            },
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        encode_request(self.port, w)?;
        for count in [
            self.rx_packets,
            self.tx_packets,
            self.rx_bytes,
            self.tx_bytes,
            self.rx_dropped,
            self.tx_dropped,
            self.rx_errors,
            self.tx_errors,
            self.rx_frame_errors.unwrap_or(UNKNOWN),
            self.rx_over_errors.unwrap_or(UNKNOWN),
            self.rx_crc_errors.unwrap_or(UNKNOWN),
            self.collisions.unwrap_or(UNKNOWN),
        ] {
            w.u64(count);
        }
        match w.version() {
            Version::V10 => {}
            Version::V13 => duration::encode(self.duration, w),
        }
        Ok(())
    }
}
