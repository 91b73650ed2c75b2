//! Statistics and descriptions of groups (OF 1.3.5, 7.3.5.9 to 7.3.5.11; in OpenFlow 1.0 Nicira's
//! `NXST_GROUP*`, with descriptions in the layout of OpenFlow 1.5.1, 7.3.5.11).

use std::time::Duration;

use base::GroupId;
use flow::{
    Bucket, BucketStats, GroupCapabilities, GroupDesc, GroupFeatures, GroupKind, GroupStats,
    Refusal,
};

use crate::action;
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::duration;
use crate::fidelity::Fidelity;
use crate::message::group_mod::{
    decode_bucket, decode_bucket_v15, encode_bucket, encode_bucket_v15, kind_number,
};
use crate::message::{WireFormat, selection};
use crate::version::Version;

/// The maximum length of a description: the payload of a message with the longest reply header,
/// Nicira's.
const ENTRY_MAX: usize = u16::MAX as usize - 24;

/// Bytes of a bucket's counters.
const BUCKET_STATS: usize = 16;

/// Returns true if the format has a group's duration: from 1.3 on, and in Nicira's extension of
/// 1.0.
const fn has_duration(version: Version) -> bool {
    !matches!(version, Version::V11 | Version::V12)
}

/// Bytes of a group's counters before those of its buckets.
const fn stats_head(version: Version) -> usize {
    if has_duration(version) { 40 } else { 32 }
}

/// Decodes the requested group.
pub(super) fn decode_request(r: &mut Reader<'_>) -> Result<GroupId, Malformed> {
    let group = GroupId(r.u32()?);
    r.skip(4)?;
    Ok(group)
}

/// Appends the requested group.
pub(super) fn encode_request(group: GroupId, w: &mut Writer<'_>) {
    w.u32(group.0);
    w.zeros(4);
}

impl WireFormat for GroupStats {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut r = next_entry(r, stats_head(r.version()))?;
        r.skip(2)?;
        let (group, references) = (GroupId(r.u32()?), r.u32()?);
        r.skip(4)?;
        let mut stats = Self {
            group,
            references,
            packets: r.u64()?,
            bytes: r.u64()?,
            duration: match has_duration(r.version()) {
                true => duration::decode(&mut r)?,
                false => Duration::ZERO,
            },
            buckets: Vec::with_capacity(r.len() / BUCKET_STATS),
        };
        while !r.is_empty() {
            stats.buckets.push(BucketStats {
                packets: r.u64()?,
                bytes: r.u64()?,
            });
        }
        Ok(stats)
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.nested(0, |w| {
            w.zeros(4);
            w.u32(self.group.0);
            w.u32(self.references);
            w.zeros(4);
            w.u64(self.packets);
            w.u64(self.bytes);
            if has_duration(w.version()) {
                duration::encode(self.duration, w);
            }
            for bucket in &self.buckets {
                w.u64(bucket.packets);
                w.u64(bucket.bytes);
            }
            Ok(())
        })
        .map(drop)
    }
}

impl WireFormat for GroupDesc {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut r = next_entry(r, 8)?;
        let bad_type = r.fail(Refusal::GroupModBadType);
        let kind = *GroupKind::ALL.get(usize::from(r.u8()?)).ok_or(bad_type)?;
        r.skip(1)?;
        let group = GroupId(r.u32()?);
        let (mut buckets, mut selection) = (Vec::new(), None);
        match r.version() {
            Version::V10 | Version::V15 => {
                let length = usize::from(r.u16()?);
                r.skip(6)?;
                let mut list = r.sub(length)?;
                while !list.is_empty() {
                    buckets.push(decode_bucket_v15(&mut list)?);
                }
                selection = selection::decode(&mut r, kind == GroupKind::Select)?;
            }
            Version::V11 | Version::V12 | Version::V13 | Version::V14 => {
                while !r.is_empty() {
                    buckets.push(decode_bucket(&mut r, buckets.len())?);
                }
            }
        }
        Ok(Self {
            kind,
            group,
            selection,
            buckets,
        })
    }

    /// If the translation exceeds the maximum length, it omits the buckets.
    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let before = w.len();
        let written = encode_desc(self, &self.buckets, w);
        if written.is_ok_and(|length| length <= ENTRY_MAX) {
            return Ok(());
        }
        w.truncate(before);
        encode_desc(self, &[], w).map(drop)
    }
}

fn encode_desc(
    desc: &GroupDesc,
    buckets: &[Bucket],
    w: &mut Writer<'_>,
) -> Result<usize, EncodeError> {
    w.nested(0, |w| {
        w.u16(0);
        w.u8(kind_number(desc.kind));
        w.zeros(1);
        w.u32(desc.group.0);
        match w.version() {
            Version::V10 | Version::V15 => {
                let padding = |w: &mut Writer<'_>| {
                    w.zeros(6);
                    Ok(())
                };
                let mut buckets = buckets.iter();
                w.counted(padding, |w| {
                    buckets.try_for_each(|bucket| {
                        encode_bucket_v15(bucket, desc.kind, Fidelity::BestEffort, w)
                    })
                })?;
                match &desc.selection {
                    Some(selection) => selection::encode(selection, w),
                    None => Ok(()),
                }
            }
            Version::V11 | Version::V12 | Version::V13 | Version::V14 => buckets
                .iter()
                .try_for_each(|bucket| encode_bucket(bucket, Fidelity::BestEffort, w)),
        }
    })
}

impl WireFormat for GroupFeatures {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (kinds, capabilities) = (r.u32()?, GroupCapabilities(r.u32()?));
        let mut groups_max = [0; 4];
        for (kind, most) in groups_max.iter_mut().enumerate() {
            let count = r.u32()?;
            *most = if kinds >> kind & 1 == 1 { count } else { 0 };
        }
        // The supported actions of a peer's buckets are ignored.
        r.skip(16)?;
        Ok(Self {
            capabilities,
            groups_max,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let is_there = self.groups_max.map(|most| most != 0);
        let kinds = (0..).zip(is_there);
        w.u32(kinds.fold(0, |bits, (kind, is_there)| {
            bits | u32::from(is_there) << kind
        }));
        w.u32(self.capabilities.0);
        self.groups_max.iter().for_each(|most| w.u32(*most));
        let numbers = action::standard_numbers(w.version()).filter(|number| *number < 32);
        let actions = numbers.fold(0, |bits, number| bits | 1 << number);
        for is_there in is_there {
            w.u32(if is_there { actions } else { 0 });
        }
        Ok(())
    }
}

/// Splits off the next entry, of at least `least` bytes, and skips its length.
fn next_entry<'a>(r: &mut Reader<'a>, least: usize) -> Result<Reader<'a>, Malformed> {
    let length = usize::from(r.clone().u16()?);
    if length < least {
        return Err(r.fail(Refusal::RequestBadLength));
    }
    let mut entry = r.sub(length)?;
    entry.skip(2)?;
    Ok(entry)
}
