//! Statistics, configuration and features of meters (OF 1.3.5, 7.3.5.12 to 7.3.5.14).

use base::MeterId;
use flow::{BandKinds, BandStats, MeterConfig, MeterFeatures, MeterFlags, MeterStats, Refusal};

use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::duration;
use crate::message::WireFormat;
use crate::message::meter_mod::{decode_band, encode_band};
use crate::version::Version;

/// Bytes of a meter's counters before those of its bands, and of a band's counters.
const STATS_HEAD: usize = 40;
const BAND_STATS: usize = 16;

/// Bytes of a meter's configuration before its bands.
const CONFIG_HEAD: usize = 8;

/// Additional bytes of the features in 1.5: optional features, of which this switch has none
/// (OF 1.5.1, 7.3.5.16).
const fn features_tail(version: Version) -> usize {
    match version {
        Version::V15 => 8,
        Version::V10 | Version::V11 | Version::V12 | Version::V13 | Version::V14 => 0,
    }
}

/// Decodes the requested meter.
pub(super) fn decode_request(r: &mut Reader<'_>) -> Result<MeterId, Malformed> {
    let meter = MeterId(r.u32()?);
    r.skip(4)?;
    Ok(meter)
}

impl WireFormat for MeterStats {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut head = r.clone();
        head.skip(4)?;
        let length = usize::from(head.u16()?);
        if length < STATS_HEAD {
            return Err(r.fail(Refusal::RequestBadLength));
        }
        let mut r = r.sub(length)?;
        let meter = MeterId(r.u32()?);
        r.skip(8)?;
        let mut stats = Self {
            meter,
            flows: r.u32()?,
            packets: r.u64()?,
            bytes: r.u64()?,
            duration: duration::decode(&mut r)?,
            bands: Vec::with_capacity(r.len() / BAND_STATS),
        };
        while !r.is_empty() {
            stats.bands.push(BandStats {
                packets: r.u64()?,
                bytes: r.u64()?,
            });
        }
        Ok(stats)
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.nested(4, |w| {
            w.u32(self.meter.0);
            w.zeros(8);
            w.u32(self.flows);
            w.u64(self.packets);
            w.u64(self.bytes);
            duration::encode(self.duration, w);
            for band in &self.bands {
                w.u64(band.packets);
                w.u64(band.bytes);
            }
            Ok(())
        })
        .map(drop)
    }
}

impl WireFormat for MeterConfig {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let length = usize::from(r.clone().u16()?);
        if length < CONFIG_HEAD {
            return Err(r.fail(Refusal::RequestBadLength));
        }
        let mut r = r.sub(length)?;
        r.skip(2)?;
        let (flags, meter) = (MeterFlags(r.u16()?), MeterId(r.u32()?));
        let mut bands = Vec::new();
        while !r.is_empty() {
            bands.push(decode_band(&mut r)?);
        }
        Ok(Self {
            flags,
            meter,
            bands,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.nested(0, |w| {
            w.u16(0);
            w.u16(self.flags.0);
            w.u32(self.meter.0);
            self.bands.iter().try_for_each(|band| encode_band(band, w))
        })
        .map(drop)
    }
}

impl WireFormat for MeterFeatures {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let meters_max = r.u32()?;
        let (kinds, flags) = (BandKinds(r.u32()?), r.u32()?);
        let stats = Self {
            meters_max,
            kinds,
            // The flags are the meters' flags, which have 16 bits.
            flags: MeterFlags(u16::try_from(flags).unwrap_or(u16::MAX)),
            bands_max: r.u8()?,
            colours_max: r.u8()?,
        };
        r.skip(2)?;
        // Open vSwitch 3.1 omits the additional bytes.
        if !r.is_empty() {
            r.skip(features_tail(r.version()))?;
        }
        Ok(stats)
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.u32(self.meters_max);
        w.u32(self.kinds.0);
        w.u32(self.flags.0.into());
        w.u8(self.bands_max);
        w.u8(self.colours_max);
        // As in 1.3, without the flags of OF 1.5.1, 7.3.5.14, of which none is supported: Open
        // vSwitch's library refuses a longer reply.
        w.zeros(2);
        Ok(())
    }
}
