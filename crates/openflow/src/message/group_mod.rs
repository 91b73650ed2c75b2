//! Group-mod: a change to the group table (OF 1.3.5, 7.3.4.2; OF 1.5.1, 7.3.4.3, where buckets have
//! ids and can be inserted and removed one by one).
//!
//! Before 1.5 a bucket has no id on the wire: the decoder assigns its position.

use base::{BucketId, GroupId, PortNo};
use flow::{Bucket, GroupKind, GroupMod, GroupModCommand, Match, Refusal};

use super::{WireFormat, property, selection};
use crate::action::{self, EncodeContext};
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::fidelity::Fidelity;
use crate::port_no;
use crate::version::Version;

/// Nicira's `OFPGC_ADD_OR_MOD`, which `ovs-ofctl --may-create mod-group` uses in every version.
pub(crate) const ADD_OR_MODIFY: u16 = 0x8000;

/// Bytes of a bucket before its actions; in 1.5 before its actions and properties.
const BUCKET_HEAD: usize = 16;
const BUCKET_HEAD_V15: usize = 8;

/// `OFPGBPT_*`: the properties of a bucket in 1.5.
mod bucket_property {
    pub(super) const WEIGHT: u16 = 0;
    pub(super) const WATCH_PORT: u16 = 1;
    pub(super) const WATCH_GROUP: u16 = 2;
}

/// Returns true if buckets have ids and properties: in 1.5, and in Nicira's extension of 1.0, which
/// has the same format.
const fn numbers_buckets(version: Version) -> bool {
    matches!(version, Version::V10 | Version::V15)
}

/// The command with this number. The last two need bucket ids.
fn command_of(number: u16, version: Version) -> Option<GroupModCommand> {
    match (number, version) {
        (0, _) => Some(GroupModCommand::Add),
        (1, _) => Some(GroupModCommand::Modify),
        (2, _) => Some(GroupModCommand::Delete),
        (ADD_OR_MODIFY, _) => Some(GroupModCommand::AddOrModify),
        (3, version) if numbers_buckets(version) => Some(GroupModCommand::InsertBuckets),
        (5, version) if numbers_buckets(version) => Some(GroupModCommand::RemoveBuckets),
        _ => None,
    }
}

const fn number_of(command: GroupModCommand) -> u16 {
    match command {
        GroupModCommand::Add => 0,
        GroupModCommand::Modify => 1,
        GroupModCommand::AddOrModify => ADD_OR_MODIFY,
        GroupModCommand::Delete => 2,
        GroupModCommand::InsertBuckets => 3,
        GroupModCommand::RemoveBuckets => 5,
    }
}

impl WireFormat for GroupMod {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let bad_command = r.fail(Refusal::GroupModBadCommand);
        let command = command_of(r.u16()?, r.version()).ok_or(bad_command)?;
        let bad_type = r.fail(Refusal::GroupModBadType);
        let kind = usize::from(r.u8()?);
        let kind = *GroupKind::ALL.get(kind).ok_or(bad_type)?;
        r.skip(1)?;
        let bad_group = r.fail(Refusal::GroupModInvalidGroup);
        let group = GroupId(r.u32()?);
        let all = group == GroupId::ALL && command == GroupModCommand::Delete;
        if group > GroupId::MAX && !all {
            return Err(bad_group);
        }
        let mut read = Self {
            command,
            kind,
            group,
            command_bucket: BucketId::ALL,
            selection: None,
            buckets: Vec::new(),
        };
        if numbers_buckets(r.version()) {
            decode_buckets_v15(r, &mut read)?;
        }
        while !r.is_empty() {
            let place = read.buckets.len();
            read.buckets.push(decode_bucket(r, place)?);
        }
        Ok(read)
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        if command_of(number_of(self.command), w.version()).is_none() {
            return Err(w.unsupported("the insertion or removal of buckets"));
        }
        w.u16(number_of(self.command));
        w.u8(kind_number(self.kind));
        w.zeros(1);
        w.u32(self.group.0);
        let mut buckets = self.buckets.iter();
        if !numbers_buckets(w.version()) {
            if self.selection.is_some() {
                return Err(w.unsupported("a selection method"));
            }
            return buckets.try_for_each(|bucket| encode_bucket(bucket, Fidelity::Lossless, w));
        }
        let position = |w: &mut Writer<'_>| {
            w.zeros(2);
            w.u32(self.command_bucket.0);
            Ok(())
        };
        let buckets = |w: &mut Writer<'_>| {
            let fidelity = Fidelity::Lossless;
            buckets.try_for_each(|bucket| encode_bucket_v15(bucket, self.kind, fidelity, w))
        };
        w.counted(position, buckets)?;
        match &self.selection {
            Some(selection) => selection::encode(selection, w),
            None => Ok(()),
        }
    }
}

/// The number of a group type (`OFPGT_*`).
pub(crate) const fn kind_number(kind: GroupKind) -> u8 {
    match kind {
        GroupKind::All => 0,
        GroupKind::Select => 1,
        GroupKind::Indirect => 2,
        GroupKind::FastFailover => 3,
    }
}

/// Decodes the members of 1.5 after the group id: the command's bucket, the buckets, and
/// properties.
fn decode_buckets_v15(r: &mut Reader<'_>, read: &mut GroupMod) -> Result<(), Malformed> {
    let length = usize::from(r.u16()?);
    r.skip(2)?;
    let bad_place = r.fail(Refusal::GroupModUnknownBucket);
    read.command_bucket = BucketId(r.u32()?);
    let reserved = [BucketId::FIRST, BucketId::LAST, BucketId::ALL];
    if read.command_bucket > BucketId::MAX && !reserved.contains(&read.command_bucket) {
        return Err(bad_place);
    }
    let mut buckets = r.sub_or(length, Refusal::GroupModBadBucket)?;
    while !buckets.is_empty() {
        read.buckets.push(decode_bucket_v15(&mut buckets)?);
    }
    read.selection = selection::decode(r, may_have_selection(read.command, read.kind))?;
    Ok(())
}

/// Returns true if a group-mod may have a selection method.
const fn may_have_selection(command: GroupModCommand, kind: GroupKind) -> bool {
    use GroupModCommand::{Add, AddOrModify, Modify};
    matches!(
        (command, kind),
        (Add | Modify | AddOrModify, GroupKind::Select)
    )
}

/// An empty bucket with this id.
const fn empty_bucket(id: BucketId) -> Bucket {
    Bucket {
        id,
        weight: 0,
        watch_port: PortNo::ANY,
        watch_group: GroupId::ANY,
        actions: Vec::new(),
    }
}

/// Splits off the next bucket, which has at least `head` bytes before its actions, and skips its
/// length.
fn next_bucket<'a>(r: &mut Reader<'a>, head: usize) -> Result<Reader<'a>, Malformed> {
    let bad = r.fail(Refusal::GroupModBadBucket);
    let length = usize::from(r.clone().on_short(bad.refusal).u16()?);
    if length < head || length % 8 != 0 {
        return Err(bad);
    }
    let mut bucket = r.sub_or(length, bad.refusal)?;
    bucket.skip(2)?;
    Ok(bucket)
}

/// Decodes a bucket of 1.1 to 1.4; its id is its position.
pub(crate) fn decode_bucket(r: &mut Reader<'_>, place: usize) -> Result<Bucket, Malformed> {
    let mut r = next_bucket(r, BUCKET_HEAD)?;
    let id = u32::try_from(place).expect("a message has a few thousand buckets at most");
    let mut bucket = empty_bucket(BucketId(id));
    bucket.weight = r.u16()?;
    (bucket.watch_port, bucket.watch_group) = (port_no::decode(&mut r)?, GroupId(r.u32()?));
    r.skip(4)?;
    bucket.actions = action::decode(&mut r)?;
    Ok(bucket)
}

/// Decodes a bucket of 1.5 or of Nicira's extension of 1.0.
pub(crate) fn decode_bucket_v15(r: &mut Reader<'_>) -> Result<Bucket, Malformed> {
    let mut r = next_bucket(r, BUCKET_HEAD_V15)?;
    let actions_len = usize::from(r.u16()?);
    let bad = r.fail(Refusal::GroupModBadBucket);
    let mut bucket = empty_bucket(BucketId(r.u32()?));
    if bucket.id > BucketId::MAX {
        return Err(bad);
    }
    bucket.actions = action::decode(&mut r.sub_or(actions_len, bad.refusal)?)?;
    while !r.is_empty() {
        let mut property = property::next(&mut r)?;
        let value = &mut property.value.clone().on_short(Refusal::PropertyBadLength);
        match property.kind {
            bucket_property::WEIGHT => {
                bucket.weight = value.u16()?;
                value.skip(2)?;
            }
            bucket_property::WATCH_PORT => bucket.watch_port = PortNo(value.u32()?),
            bucket_property::WATCH_GROUP => bucket.watch_group = GroupId(value.u32()?),
            _ => return Err(property.unknown()),
        }
        value.end()?;
        property.value.rest();
    }
    Ok(bucket)
}

/// Rules with any match can send packets to a group.
const fn context(fidelity: Fidelity) -> EncodeContext<'static> {
    const ANY: &Match = &Match::any();
    EncodeContext {
        matching: ANY,
        fidelity,
    }
}

/// Appends a bucket of 1.1 to 1.4.
pub(crate) fn encode_bucket(
    bucket: &Bucket,
    fidelity: Fidelity,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    w.nested(0, |w| {
        w.u16(0);
        w.u16(bucket.weight);
        port_no::encode(bucket.watch_port, w)?;
        w.u32(bucket.watch_group.0);
        w.zeros(4);
        action::encode(&bucket.actions, context(fidelity), w)
    })
    .map(drop)
}

/// Appends a bucket of 1.5 or of Nicira's extension of 1.0.
pub(crate) fn encode_bucket_v15(
    bucket: &Bucket,
    kind: GroupKind,
    fidelity: Fidelity,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    w.nested(0, |w| {
        w.u16(0);
        let id = |w: &mut Writer<'_>| {
            w.u32(bucket.id.0);
            Ok(())
        };
        w.counted(id, |w| {
            action::encode(&bucket.actions, context(fidelity), w)
        })?;
        if kind == GroupKind::Select || bucket.weight != 0 {
            property::put(bucket_property::WEIGHT, w, |w| {
                w.u16(bucket.weight);
                w.zeros(2);
                Ok(())
            })?;
        }
        if bucket.watch_port != PortNo::ANY {
            property::put_u32(bucket_property::WATCH_PORT, bucket.watch_port.0, w)?;
        }
        if bucket.watch_group != GroupId::ANY {
            property::put_u32(bucket_property::WATCH_GROUP, bucket.watch_group.0, w)?;
        }
        Ok(())
    })
    .map(drop)
}
