//! Group-mod: a change to the group table (OF 1.3.5, 7.3.4.2).

use base::GroupId;
use flow::{Bucket, GroupKind, GroupMod, GroupModCommand, Match, Refusal};

use super::Body;
use crate::action::{self, Context};
use crate::codec::{Inexpressible, Malformed, Reader, Writer};
use crate::faith::Faith;
use crate::port_no;

const COMMANDS: [GroupModCommand; 3] = [
    GroupModCommand::Add,
    GroupModCommand::Modify,
    GroupModCommand::Delete,
];

/// Bytes of a bucket before its actions.
const BUCKET_HEAD: usize = 16;

impl Body for GroupMod {
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let bad_command = r.fail(Refusal::GroupModBadCommand);
        let command = usize::from(r.u16()?);
        let command = *COMMANDS.get(command).ok_or(bad_command)?;
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
        let mut buckets = Vec::new();
        while !r.is_empty() {
            buckets.push(decode_bucket(r)?);
        }
        Ok(Self {
            command,
            kind,
            group,
            buckets,
        })
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), Inexpressible> {
        w.u16(match self.command {
            GroupModCommand::Add => 0,
            GroupModCommand::Modify => 1,
            GroupModCommand::Delete => 2,
        });
        w.u8(kind_number(self.kind));
        w.zeros(1);
        w.u32(self.group.0);
        self.buckets
            .iter()
            .try_for_each(|bucket| encode_bucket(bucket, Faith::Exact, w))
    }
}

/// The number of a kind of group (`OFPGT_*`).
pub(crate) const fn kind_number(kind: GroupKind) -> u8 {
    match kind {
        GroupKind::All => 0,
        GroupKind::Select => 1,
        GroupKind::Indirect => 2,
        GroupKind::FastFailover => 3,
    }
}

/// Reads a bucket.
pub(crate) fn decode_bucket(r: &mut Reader<'_>) -> Result<Bucket, Malformed> {
    let bad = r.fail(Refusal::GroupModBadBucket);
    let length = usize::from(r.clone().on_short(bad.fault).u16()?);
    if length < BUCKET_HEAD || length % 8 != 0 {
        return Err(bad);
    }
    let mut r = r.sub_or(length, bad.fault)?;
    r.skip(2)?;
    let weight = r.u16()?;
    let (watch_port, watch_group) = (port_no::decode(&mut r)?, GroupId(r.u32()?));
    r.skip(4)?;
    Ok(Bucket {
        weight,
        watch_port,
        watch_group,
        actions: action::decode(&mut r)?,
    })
}

/// Appends a bucket.
pub(crate) fn encode_bucket(
    bucket: &Bucket,
    faith: Faith,
    w: &mut Writer<'_>,
) -> Result<(), Inexpressible> {
    // A group meets the frames of whatever rules send there.
    let context = Context {
        matching: &Match::any(),
        faith,
    };
    w.nested(0, |w| {
        w.u16(0);
        w.u16(bucket.weight);
        port_no::encode(bucket.watch_port, w)?;
        w.u32(bucket.watch_group.0);
        w.zeros(4);
        action::encode(&bucket.actions, context, w)
    })
    .map(drop)
}
