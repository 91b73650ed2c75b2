//! The counters of a port (OF 1.0.1, 5.3.5; OF 1.3.5, 7.3.5.6; OF 1.4.1, 7.3.5.7, where the
//! counters of an Ethernet port are a property).

use std::time::Duration;

use base::PortNo;
use flow::{PortStats, Refusal};

use super::custom_counters;
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::duration;
use crate::message::port::ETHERNET;
use crate::message::property::EXPERIMENTER;
use crate::message::{WireFormat, property};
use crate::port_no;
use crate::version::Version;

/// The value of an unsupported counter.
const UNKNOWN: u64 = u64::MAX;

/// Decodes the requested port.
pub(super) fn decode_request(r: &mut Reader<'_>) -> Result<PortNo, Malformed> {
    let port = port_no::decode(r)?;
    r.skip(padding(r.version()))?;
    Ok(port)
}

/// Appends the requested port.
pub(super) fn encode_request(port: PortNo, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    port_no::encode(port, w)?;
    w.zeros(padding(w.version()));
    Ok(())
}

/// Bytes of padding after the port number.
const fn padding(version: Version) -> usize {
    match version {
        Version::V10 => 6,
        Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => 4,
    }
}

fn decode_count(r: &mut Reader<'_>) -> Result<Option<u64>, Malformed> {
    r.u64().map(|count| (count != UNKNOWN).then_some(count))
}

impl WireFormat for PortStats {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        match r.version() {
            Version::V10 | Version::V11 | Version::V12 | Version::V13 => {
                let port = decode_request(r)?;
                let mut stats = decode_common(port, r)?;
                decode_ethernet(r, &mut stats)?;
                if r.version() == Version::V13 {
                    stats.duration = duration::decode(r)?;
                }
                Ok(stats)
            }
            Version::V14 | Version::V15 => decode_with_properties(r),
        }
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        match w.version() {
            Version::V10 | Version::V11 | Version::V12 | Version::V13 => {
                encode_request(self.port, w)?;
                encode_common(self, w);
                encode_ethernet(self, w);
                if w.version() == Version::V13 {
                    duration::encode(self.duration, w);
                }
                Ok(())
            }
            Version::V14 | Version::V15 => encode_with_properties(self, w),
        }
    }
}

/// Decodes the counters that every port has.
fn decode_common(port: PortNo, r: &mut Reader<'_>) -> Result<PortStats, Malformed> {
    Ok(PortStats {
        port,
        rx_packets: r.u64()?,
        tx_packets: r.u64()?,
        rx_bytes: r.u64()?,
        tx_bytes: r.u64()?,
        rx_dropped: r.u64()?,
        tx_dropped: r.u64()?,
        rx_errors: r.u64()?,
        tx_errors: r.u64()?,
        rx_frame_errors: None,
        rx_over_errors: None,
        rx_crc_errors: None,
        collisions: None,
        custom: Vec::new(),
        duration: Duration::ZERO,
    })
}

fn encode_common(stats: &PortStats, w: &mut Writer<'_>) {
    for count in [
        stats.rx_packets,
        stats.tx_packets,
        stats.rx_bytes,
        stats.tx_bytes,
        stats.rx_dropped,
        stats.tx_dropped,
        stats.rx_errors,
        stats.tx_errors,
    ] {
        w.u64(count);
    }
}

/// Decodes the counters of an Ethernet port.
fn decode_ethernet(r: &mut Reader<'_>, stats: &mut PortStats) -> Result<(), Malformed> {
    stats.rx_frame_errors = decode_count(r)?;
    stats.rx_over_errors = decode_count(r)?;
    stats.rx_crc_errors = decode_count(r)?;
    stats.collisions = decode_count(r)?;
    Ok(())
}

fn encode_ethernet(stats: &PortStats, w: &mut Writer<'_>) {
    for count in [
        stats.rx_frame_errors,
        stats.rx_over_errors,
        stats.rx_crc_errors,
        stats.collisions,
    ] {
        w.u64(count.unwrap_or(UNKNOWN));
    }
}

/// Decodes the format of 1.4 and 1.5. Skips properties of optical ports.
fn decode_with_properties(r: &mut Reader<'_>) -> Result<PortStats, Malformed> {
    let length = usize::from(r.clone().u16()?);
    let mut r = r.sub_or(length, Refusal::RequestBadLength)?;
    r.skip(4)?;
    let port = port_no::decode(&mut r)?;
    let duration = duration::decode(&mut r)?;
    let mut stats = decode_common(port, &mut r)?;
    stats.duration = duration;
    while !r.is_empty() {
        let mut property = property::next(&mut r)?;
        if property.kind == ETHERNET {
            property.value.skip(4)?;
            decode_ethernet(&mut property.value, &mut stats)?;
        } else if property.kind == EXPERIMENTER {
            stats.custom.extend(custom_counters::decode(&property)?);
        }
    }
    Ok(stats)
}

fn encode_with_properties(stats: &PortStats, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    w.nested(0, |w| {
        w.zeros(4);
        port_no::encode(stats.port, w)?;
        duration::encode(stats.duration, w);
        encode_common(stats, w);
        property::put(ETHERNET, w, |w| {
            w.zeros(4);
            encode_ethernet(stats, w);
            Ok(())
        })?;
        custom_counters::encode(&stats.custom, w)
    })
    .map(drop)
}
