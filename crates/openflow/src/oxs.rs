//! Counters as a list of type-length-value fields: OXS, of OpenFlow 1.5 (OF 1.5.1, 7.2.4). The
//! decoder skips unknown fields.

use std::time::Duration;

use flow::Refusal;

use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::duration;

/// `OFPXSC_OPENFLOW_BASIC`.
const BASIC: u16 = 0x8002;

/// `OFPXST_OFB_*`, shifted as in the second byte of a header: above a reserved bit.
mod field {
    pub(super) const DURATION: u8 = 0 << 1;
    pub(super) const IDLE_TIME: u8 = 1 << 1;
    pub(super) const FLOW_COUNT: u8 = 3 << 1;
    pub(super) const PACKET_COUNT: u8 = 4 << 1;
    pub(super) const BYTE_COUNT: u8 = 5 << 1;
}

/// The counters of a list of fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OxsCounts {
    pub(crate) duration: Option<Duration>,
    pub(crate) idle: Option<Duration>,
    pub(crate) flows: Option<u32>,
    pub(crate) packets: Option<u64>,
    pub(crate) bytes: Option<u64>,
}

/// Decodes an `ofp_stats` structure with its padding.
pub(crate) fn decode(r: &mut Reader<'_>) -> Result<OxsCounts, Malformed> {
    let bad = r.fail(Refusal::RequestBadLength);
    let mut head = r.clone();
    head.skip(2)?;
    let length = usize::from(head.u16()?);
    let mut structure = r.sub(length.next_multiple_of(8))?;
    structure.skip(4)?;
    let mut fields = structure.sub(length.checked_sub(4).ok_or(bad)?)?;
    let mut counts = OxsCounts::default();
    while !fields.is_empty() {
        let class = fields.u16()?;
        let [number, length] = fields.take()?;
        let mut value = fields.sub(length.into())?;
        match (class, number & !1) {
            (BASIC, field::DURATION) => counts.duration = Some(duration::decode(&mut value)?),
            (BASIC, field::IDLE_TIME) => counts.idle = Some(duration::decode(&mut value)?),
            (BASIC, field::FLOW_COUNT) => counts.flows = Some(value.u32()?),
            (BASIC, field::PACKET_COUNT) => counts.packets = Some(value.u64()?),
            (BASIC, field::BYTE_COUNT) => counts.bytes = Some(value.u64()?),
            _ => continue,
        }
        value.end()?;
    }
    Ok(counts)
}

/// Appends an `ofp_stats` structure with its padding.
pub(crate) fn encode(counts: &OxsCounts, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    w.nested_padded(2, |w| {
        w.u16(0);
        w.u16(0);
        if let Some(duration) = counts.duration {
            put_head(field::DURATION, 8, w);
            duration::encode(duration, w);
        }
        if let Some(idle) = counts.idle {
            put_head(field::IDLE_TIME, 8, w);
            duration::encode(idle, w);
        }
        if let Some(flows) = counts.flows {
            put_head(field::FLOW_COUNT, 4, w);
            w.u32(flows);
        }
        if let Some(packets) = counts.packets {
            put_head(field::PACKET_COUNT, 8, w);
            w.u64(packets);
        }
        if let Some(bytes) = counts.bytes {
            put_head(field::BYTE_COUNT, 8, w);
            w.u64(bytes);
        }
        Ok(())
    })
    .map(drop)
}

fn put_head(number: u8, length: u8, w: &mut Writer<'_>) {
    w.u16(BASIC);
    w.u8(number);
    w.u8(length);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;
    use crate::version::Version;

    const V15: Dialect = Dialect::new(Version::V15);

    #[test]
    fn counts_round_trip() {
        let counts = OxsCounts {
            duration: Some(Duration::new(3, 4)),
            idle: None,
            flows: Some(5),
            packets: Some(6),
            bytes: Some(u64::MAX),
        };
        let mut out = Vec::new();
        encode(&counts, &mut Writer::new(&mut out, V15)).expect("they are short");
        // The header, two fields of twelve bytes, one of eight, one of twelve, and padding.
        assert_eq!(out.len(), (4 + 3 * 12 + 8_usize).next_multiple_of(8));
        assert_eq!(out[2..4], [0, 48]);
        assert_eq!(decode(&mut Reader::new(&out, V15)), Ok(counts));
    }

    #[test]
    fn unknown_oxs_fields_are_skipped() {
        let bytes = [0, 0, 0, 13, 0x80, 2, 9 << 1, 5, 1, 2, 3, 4, 5, 0, 0, 0];
        let mut r = Reader::new(&bytes, V15);
        assert_eq!(decode(&mut r), Ok(OxsCounts::default()));
        assert!(r.is_empty());
    }

    #[test]
    fn wrong_oxs_length_is_refused() {
        for length in [3, 9, 200] {
            let bytes = [0, 0, 0, length, 0x80, 2, 4 << 1, 8];
            let refusal = decode(&mut Reader::new(&bytes, V15)).map_err(|bad| bad.refusal);
            assert_eq!(refusal, Err(Refusal::RequestBadLength), "{length}");
        }
    }
}
