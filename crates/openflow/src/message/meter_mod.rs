//! Meter-mod: a change to the meter table (OF 1.3.5, 7.3.4.4).

use base::MeterId;
use flow::{Band, BandKind, MeterFlags, MeterMod, MeterModCommand, Refusal};

use super::WireFormat;
use crate::codec::{EncodeError, Malformed, Reader, Writer};

const COMMANDS: [MeterModCommand; 3] = [
    MeterModCommand::Add,
    MeterModCommand::Modify,
    MeterModCommand::Delete,
];

/// Bytes of a band, the same for every type.
const BAND: usize = 16;
const DROP: u16 = 1;
const DSCP_REMARK: u16 = 2;

impl WireFormat for MeterMod {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let bad_command = r.fail(Refusal::MeterModBadCommand);
        let command = usize::from(r.u16()?);
        let command = *COMMANDS.get(command).ok_or(bad_command)?;
        let bad_flags = r.fail(Refusal::MeterModBadFlags);
        let flags = MeterFlags(r.u16()?);
        let both = MeterFlags::KBPS.0 | MeterFlags::PKTPS.0;
        if flags.0 & !MeterFlags::ALL.0 != 0 || flags.0 & both == both {
            return Err(bad_flags);
        }
        let bad_meter = r.fail(Refusal::MeterModInvalidMeter);
        let meter = MeterId(r.u32()?);
        let all = meter == MeterId::ALL && command == MeterModCommand::Delete;
        if !meter.is_ordinary() && !meter.is_virtual() && !all {
            return Err(bad_meter);
        }
        let mut bands = Vec::new();
        while !r.is_empty() {
            bands.push(decode_band(r)?);
        }
        Ok(Self {
            command,
            flags,
            meter,
            bands,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.u16(match self.command {
            MeterModCommand::Add => 0,
            MeterModCommand::Modify => 1,
            MeterModCommand::Delete => 2,
        });
        w.u16(self.flags.0);
        w.u32(self.meter.0);
        self.bands.iter().try_for_each(|band| encode_band(band, w))
    }
}

/// Reads a band.
pub(crate) fn decode_band(r: &mut Reader<'_>) -> Result<Band, Malformed> {
    let start = r.clone();
    let (kind, length) = (r.u16()?, r.u16()?);
    let (rate, burst) = (r.u32()?, r.u32()?);
    if usize::from(length) != BAND {
        return Err(start.fail(Refusal::RequestBadLength));
    }
    let [level, ..] = r.take::<4>()?;
    let kind = match kind {
        DROP => BandKind::Drop,
        DSCP_REMARK => BandKind::DscpRemark(level),
        _ => return Err(start.fail(Refusal::MeterModBadBand)),
    };
    Ok(Band { kind, rate, burst })
}

/// Appends a band.
pub(crate) fn encode_band(band: &Band, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let (kind, level) = match band.kind {
        BandKind::Drop => (DROP, 0),
        BandKind::DscpRemark(level) => (DSCP_REMARK, level),
    };
    w.nested(2, |w| {
        w.u16(kind);
        w.u16(0);
        w.u32(band.rate);
        w.u32(band.burst);
        w.u8(level);
        w.zeros(3);
        Ok(())
    })
    .map(drop)
}
