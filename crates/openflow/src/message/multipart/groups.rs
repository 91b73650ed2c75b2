//! What is told of groups (OF 1.3.5, 7.3.5.9 to 7.3.5.11; in OpenFlow 1.0 Nicira's
//! `NXST_GROUP*`, whose descriptions are laid out as by OpenFlow 1.5.1, 7.3.5.11).

use std::time::Duration;

use base::{GroupId, PortNo};
use flow::{
    Bucket, BucketStats, GroupCapabilities, GroupDesc, GroupFeatures, GroupKind, GroupStats, Match,
    Refusal,
};

use crate::action::{self, Context};
use crate::codec::{Inexpressible, Malformed, Reader, Writer};
use crate::duration;
use crate::faith::Faith;
use crate::message::Body;
use crate::message::group_mod::{decode_bucket, encode_bucket, kind_number};
use crate::version::Version;

/// The longest that a description may be: what a message holds behind the longest
/// header of replies, Nicira's.
const ENTRY_MAX: usize = u16::MAX as usize - 24;

/// Bytes of the counts of a bucket.
const BUCKET_STATS: usize = 16;

/// Whether a group's age is told: from 1.3 on, and by Nicira's extension of 1.0.
const fn tells_age(version: Version) -> bool {
    !matches!(version, Version::V11 | Version::V12)
}

/// Bytes of a group's counts before those of its buckets.
const fn stats_head(version: Version) -> usize {
    if tells_age(version) { 40 } else { 32 }
}

/// Bytes of a property's head.
const PROPERTY_HEAD: usize = 4;

/// `OFPGBPT_*`: what is said of a bucket, in the layout of OpenFlow 1.5.
mod property {
    pub(super) const WEIGHT: u16 = 0;
    pub(super) const WATCH_PORT: u16 = 1;
    pub(super) const WATCH_GROUP: u16 = 2;
}

/// Reads which group is asked about.
pub(super) fn decode_request(r: &mut Reader<'_>) -> Result<GroupId, Malformed> {
    let group = GroupId(r.u32()?);
    r.skip(4)?;
    Ok(group)
}

/// Appends which group is asked about.
pub(super) fn encode_request(group: GroupId, w: &mut Writer<'_>) {
    w.u32(group.0);
    w.zeros(4);
}

impl Body for GroupStats {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut r = entry(r, stats_head(r.version()))?;
        r.skip(2)?;
        let (group, references) = (GroupId(r.u32()?), r.u32()?);
        r.skip(4)?;
        let mut told = Self {
            group,
            references,
            packets: r.u64()?,
            bytes: r.u64()?,
            duration: match tells_age(r.version()) {
                true => duration::decode(&mut r)?,
                false => Duration::ZERO,
            },
            buckets: Vec::with_capacity(r.len() / BUCKET_STATS),
        };
        while !r.is_empty() {
            told.buckets.push(BucketStats {
                packets: r.u64()?,
                bytes: r.u64()?,
            });
        }
        Ok(told)
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        w.nested(0, |w| {
            w.zeros(4);
            w.u32(self.group.0);
            w.u32(self.references);
            w.zeros(4);
            w.u64(self.packets);
            w.u64(self.bytes);
            if tells_age(w.version()) {
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

impl Body for GroupDesc {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut r = entry(r, 8)?;
        let bad_type = r.fail(Refusal::GroupModBadType);
        let kind = *GroupKind::ALL.get(usize::from(r.u8()?)).ok_or(bad_type)?;
        r.skip(1)?;
        let group = GroupId(r.u32()?);
        let mut buckets = Vec::new();
        match r.version() {
            Version::V10 | Version::V15 => {
                let length = usize::from(r.u16()?);
                r.skip(6)?;
                let mut list = r.sub(length)?;
                while !list.is_empty() {
                    buckets.push(decode_bucket_with_properties(&mut list)?);
                }
            }
            Version::V11 | Version::V12 | Version::V13 | Version::V14 => {
                while !r.is_empty() {
                    buckets.push(decode_bucket(&mut r)?);
                }
            }
        }
        Ok(Self {
            kind,
            group,
            buckets,
        })
    }

    /// A group that is too long for any message, which translation can make it, is
    /// told without its buckets.
    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
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
    told: &GroupDesc,
    buckets: &[Bucket],
    w: &mut Writer<'_>,
) -> Result<usize, Inexpressible> {
    w.nested(0, |w| {
        w.u16(0);
        w.u8(kind_number(told.kind));
        w.zeros(1);
        w.u32(told.group.0);
        match w.version() {
            Version::V10 | Version::V15 => w
                .counted(
                    |w| {
                        w.zeros(6);
                        Ok(())
                    },
                    |w| {
                        let mut numbered = (0..).zip(buckets);
                        numbered.try_for_each(|(id, bucket)| {
                            encode_bucket_with_properties(id, bucket, told.kind, w)
                        })
                    },
                )
                .map(drop),
            Version::V11 | Version::V12 | Version::V13 | Version::V14 => buckets
                .iter()
                .try_for_each(|bucket| encode_bucket(bucket, Faith::Good, w)),
        }
    })
}

/// Reads a bucket in the layout of OpenFlow 1.5. Its number is its place here.
fn decode_bucket_with_properties(r: &mut Reader<'_>) -> Result<Bucket, Malformed> {
    let bad = r.fail(Refusal::GroupModBadBucket);
    let length = usize::from(r.clone().u16()?);
    let mut r = r.sub_or(length, bad.fault)?;
    r.skip(2)?;
    let actions = usize::from(r.u16()?);
    r.skip(4)?;
    let mut bucket = Bucket {
        weight: 0,
        watch_port: PortNo::ANY,
        watch_group: GroupId::ANY,
        actions: action::decode(&mut r.sub(actions)?)?,
    };
    while !r.is_empty() {
        let (kind, length) = (r.u16()?, usize::from(r.u16()?));
        let value = length.checked_sub(PROPERTY_HEAD).ok_or(bad)?;
        let mut value = r.sub(value)?;
        r.skip(length.next_multiple_of(8) - length)?;
        match kind {
            property::WEIGHT => bucket.weight = value.u16()?,
            property::WATCH_PORT => bucket.watch_port = PortNo(value.u32()?),
            property::WATCH_GROUP => bucket.watch_group = GroupId(value.u32()?),
            _ => {}
        }
    }
    Ok(bucket)
}

fn encode_bucket_with_properties(
    id: u32,
    bucket: &Bucket,
    kind: GroupKind,
    w: &mut Writer<'_>,
) -> Result<(), Inexpressible> {
    let context = Context {
        matching: &Match::any(),
        faith: Faith::Good,
    };
    w.nested(0, |w| {
        w.u16(0);
        w.counted(
            |w| {
                w.u32(id);
                Ok(())
            },
            |w| action::encode(&bucket.actions, context, w),
        )?;
        if kind == GroupKind::Select {
            put(property::WEIGHT, u32::from(bucket.weight) << 16, w);
        }
        if bucket.watch_port != PortNo::ANY {
            put(property::WATCH_PORT, bucket.watch_port.0, w);
        }
        if bucket.watch_group != GroupId::ANY {
            put(property::WATCH_GROUP, bucket.watch_group.0, w);
        }
        Ok(())
    })
    .map(drop)
}

/// Appends a property of four bytes; two that are zero may be its padding.
fn put(kind: u16, value: u32, w: &mut Writer<'_>) {
    w.u16(kind);
    w.u16(8);
    w.u32(value);
}

impl Body for GroupFeatures {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (kinds, capabilities) = (r.u32()?, GroupCapabilities(r.u32()?));
        let mut groups_max = [0; 4];
        for (kind, most) in groups_max.iter_mut().enumerate() {
            let told = r.u32()?;
            *most = if kinds >> kind & 1 == 1 { told } else { 0 };
        }
        // Which actions another switch's buckets can do is not read.
        r.skip(16)?;
        Ok(Self {
            capabilities,
            groups_max,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        let is_there = self.groups_max.map(|most| most != 0);
        let kinds = (0..).zip(is_there);
        w.u32(kinds.fold(0, |bits, (kind, is_there)| {
            bits | u32::from(is_there) << kind
        }));
        w.u32(self.capabilities.0);
        self.groups_max.iter().for_each(|most| w.u32(*most));
        let numbers = action::bucket_numbers(w.version()).filter(|number| *number < 32);
        let actions = numbers.fold(0, |bits, number| bits | 1 << number);
        for is_there in is_there {
            w.u32(if is_there { actions } else { 0 });
        }
        Ok(())
    }
}

/// The entry at hand, of at least so many bytes, behind its length.
fn entry<'a>(r: &mut Reader<'a>, least: usize) -> Result<Reader<'a>, Malformed> {
    let length = usize::from(r.clone().u16()?);
    if length < least {
        return Err(r.fail(Refusal::RequestBadLength));
    }
    let mut entry = r.sub(length)?;
    entry.skip(2)?;
    Ok(entry)
}
