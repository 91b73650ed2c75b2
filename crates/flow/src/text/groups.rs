//! Reader and writer of groups, in the form of `ovs-ofctl` 3.1.
//!
//! ```text
//! group  = [command] "group_id=" number ["," "type=" kind] ["," "command_bucket_id=" place]
//!          ["," selection] {"," "bucket=" bucket}
//! place  = number | "first" | "last" | "all"
//! bucket = {name (":" | "=") value ","} ["actions="] actions
//! ```
//!
//! Hash selection has the module `selection`.

use std::collections::BTreeSet;
use std::fmt;

use base::{BucketId, GroupId, PortNo};

use super::error::ParseError;
use super::lexer::{KeyValues, Token};
use super::match_write::CommaList;
use super::name_map::{NameMap, WithNames};
use super::number::number;
use super::{address, instructions, selection};
use crate::group::{Bucket, GroupDesc, GroupKind, GroupMod, GroupModCommand, Selection};

/// The commands by the words of group files.
const COMMANDS: [(GroupModCommand, &str); 6] = [
    (GroupModCommand::Add, "add"),
    (GroupModCommand::Modify, "modify"),
    (GroupModCommand::AddOrModify, "add_or_mod"),
    (GroupModCommand::Delete, "delete"),
    (GroupModCommand::InsertBuckets, "insert_bucket"),
    (GroupModCommand::RemoveBuckets, "remove_bucket"),
];

/// Positions in a list of buckets by their names.
const PLACES: [(BucketId, &str); 3] = [
    (BucketId::FIRST, "first"),
    (BucketId::LAST, "last"),
    (BucketId::ALL, "all"),
];

/// Names of the kinds; the first name of a kind is printed.
const KINDS: [(GroupKind, &str); 5] = [
    (GroupKind::All, "all"),
    (GroupKind::Select, "select"),
    (GroupKind::Indirect, "indirect"),
    (GroupKind::FastFailover, "ff"),
    (GroupKind::FastFailover, "fast_failover"),
];

/// Default weight of a bucket.
const fn default_weight(kind: GroupKind) -> u16 {
    match kind {
        GroupKind::Select => 1,
        GroupKind::All | GroupKind::Indirect | GroupKind::FastFailover => 0,
    }
}

/// Splits the command from the front of a line.
pub(super) fn command(line: Token<'_>) -> (GroupModCommand, Token<'_>) {
    let (command, rest) = line.strip_keyword(&COMMANDS);
    (command.unwrap_or(GroupModCommand::Add), rest)
}

/// Parses a group-mod after its command.
pub(super) fn group_mod(command: GroupModCommand, line: Token<'_>) -> Result<GroupMod, ParseError> {
    let (head, texts) = split_buckets(line)?;
    let head = GroupLine::read(head)?;
    let end = line.split_at(line.text.len()).1;
    let deletes = command == GroupModCommand::Delete;
    let group = match head.group {
        Some(GroupId::ALL) if !deletes => {
            return Err(line.error("expected a single group, not all"));
        }
        Some(group) => group,
        None if deletes => GroupId::ALL,
        None => return Err(end.error("missing group: `group_id=`")),
    };
    let (kind, place) = head.kind_and_place(command, !texts.is_empty(), line)?;
    let selection = head.selection(kind)?;
    let buckets = texts.into_iter().map(|text| bucket(kind, text));
    Ok(GroupMod {
        command,
        kind,
        group,
        command_bucket: place,
        selection,
        buckets: assign_ids(buckets.collect::<Result<_, _>>()?),
    })
}

/// Assigns the lowest free ids to buckets without one.
fn assign_ids(buckets: Vec<(Option<BucketId>, Bucket)>) -> Vec<Bucket> {
    let given: BTreeSet<BucketId> = buckets.iter().filter_map(|(id, _)| *id).collect();
    let mut left = (0..).map(BucketId).filter(|id| !given.contains(id));
    let named = buckets.into_iter().map(|(id, bucket)| {
        let id = id.or_else(|| left.next());
        Bucket {
            id: id.expect("there are more numbers than buckets in a line"),
            ..bucket
        }
    });
    named.collect()
}

/// Keys before the buckets.
#[derive(Default)]
struct GroupLine<'a> {
    group: Option<GroupId>,
    kind: Option<GroupKind>,
    place: Option<BucketId>,
    selection: selection::SelectionDraft<'a>,
}

impl<'a> GroupLine<'a> {
    fn read(text: Token<'a>) -> Result<Self, ParseError> {
        let mut head = Self::default();
        let mut items = KeyValues::new(text);
        while let Some(item) = items.next_pair()? {
            let given_before = match item.key.text {
                "group_id" => head
                    .group
                    .replace(group_id(item.required_value()?)?)
                    .is_some(),
                "type" => head.kind.replace(kind(item.required_value()?)?).is_some(),
                "command_bucket_id" => {
                    let place = bucket_id(item.required_value()?, &PLACES)?;
                    head.place.replace(place).is_some()
                }
                _ => match head.selection.take(item)? {
                    Some(first) => !first,
                    None => return Err(item.key.error("unknown key of a group")),
                },
            };
            if given_before {
                return Err(item.key.error("duplicate key"));
            }
        }
        Ok(head)
    }

    /// Returns the hash selection, which only select groups have.
    fn selection(self, kind: GroupKind) -> Result<Option<Selection>, ParseError> {
        match self.selection.first_token() {
            Some(word) if kind != GroupKind::Select => {
                Err(word.error("only permitted when a select group is added or modified"))
            }
            _ => self.selection.finish(),
        }
    }

    /// Returns the kind of the group and the bucket position, as far as the command has them.
    fn kind_and_place(
        &self,
        command: GroupModCommand,
        has_buckets: bool,
        line: Token<'_>,
    ) -> Result<(GroupKind, BucketId), ParseError> {
        use GroupModCommand::{Add, AddOrModify, Delete, InsertBuckets, Modify, RemoveBuckets};
        let end = line.split_at(line.text.len()).1;
        match (command, self.kind, self.place) {
            (Add | Modify | AddOrModify, _, Some(_)) => Err(line.error(
                "`command_bucket_id=` is only permitted when buckets are inserted or removed",
            )),
            (Add | Modify | AddOrModify, Some(kind), None) => Ok((kind, BucketId::ALL)),
            (Add | Modify | AddOrModify, None, None) => {
                Err(end.error("missing kind of group: `type=`"))
            }
            (Delete, None, None) if !has_buckets => Ok((GroupKind::All, BucketId::ALL)),
            (Delete, ..) => Err(line.error("a deletion contains only the group")),
            (InsertBuckets | RemoveBuckets, Some(_), _) => {
                Err(line.error("unexpected `type=`: the group has a kind"))
            }
            (InsertBuckets, None, None | Some(BucketId::ALL)) => {
                Err(end.error("expected `command_bucket_id=` with a number, first or last"))
            }
            (InsertBuckets, None, Some(place)) => Ok((GroupKind::All, place)),
            (RemoveBuckets, None, _) if has_buckets => {
                Err(line.error("buckets are removed by id, without a description"))
            }
            (RemoveBuckets, None, place) => Ok((GroupKind::All, place.unwrap_or(BucketId::ALL))),
        }
    }
}

/// Parses a bucket id or one of the names.
fn bucket_id(token: Token<'_>, names: &[(BucketId, &str)]) -> Result<BucketId, ParseError> {
    if let Some((id, _)) = names.iter().find(|(_, name)| *name == token.text) {
        return Ok(*id);
    }
    let id = number(token).map(BucketId)?;
    if id > BucketId::MAX {
        return Err(token.error("invalid bucket id"));
    }
    Ok(id)
}

fn kind(token: Token<'_>) -> Result<GroupKind, ParseError> {
    let known = KINDS.iter().find(|(_, name)| *name == token.text);
    let (kind, _) = known.ok_or_else(|| token.error("expected all, select, indirect or ff"))?;
    Ok(*kind)
}

/// Reads a group's number, or `all`.
fn group_id(token: Token<'_>) -> Result<GroupId, ParseError> {
    match token.text {
        "all" => Ok(GroupId::ALL),
        _ => number(token).map(GroupId),
    }
}

/// Splits a line at each `bucket=`.
fn split_buckets(line: Token<'_>) -> Result<(Token<'_>, Vec<Token<'_>>), ParseError> {
    let mut items = KeyValues::new(line);
    let mut parts = Vec::new();
    let mut start = line;
    loop {
        let before = items.rest();
        let item = items.next_pair()?;
        let cut = match item {
            Some(item) if item.key.text == "bucket" => item.key,
            Some(_) => continue,
            None => break,
        };
        parts.push(start.split_at(before.at - start.at).0);
        let (_, behind) = line.split_at(cut.at - line.at + cut.text.len());
        if !behind.text.starts_with(['=', ':']) {
            return Err(cut.error("expected `bucket=`"));
        }
        start = behind.split_at(1).1;
    }
    parts.push(start);
    let head = parts.remove(0);
    Ok((head, parts))
}

/// Parses a bucket: its properties, then its actions. Returns its id too, if it has one.
fn bucket(kind: GroupKind, text: Token<'_>) -> Result<(Option<BucketId>, Bucket), ParseError> {
    let mut id = None;
    let mut bucket = Bucket {
        id: BucketId::ALL,
        weight: default_weight(kind),
        watch_port: PortNo::ANY,
        watch_group: GroupId::ANY,
        actions: Vec::new(),
    };
    let mut items = KeyValues::new(text);
    loop {
        let actions = items.rest();
        let Some(item) = items.next_pair()? else {
            return Err(text.error("missing actions of the bucket"));
        };
        match item.key.text {
            "bucket_id" => id = Some(bucket_id(item.required_value()?, &[])?),
            "weight" => bucket.weight = number(item.required_value()?)?,
            "watch_port" => bucket.watch_port = address::port(item.required_value()?)?,
            "watch_group" => bucket.watch_group = GroupId(number(item.required_value()?)?),
            "actions" | "action" => {
                let (_, behind) = text.split_at(item.key.at - text.at + item.key.text.len());
                if !behind.text.starts_with(['=', ':']) {
                    return Err(item.key.error("expected `actions=`"));
                }
                bucket.actions = instructions::action_list(behind.split_at(1).1)?;
                return Ok((id, bucket));
            }
            _ => {
                bucket.actions = instructions::action_list(actions)?;
                return Ok((id, bucket));
            }
        }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, name) = KINDS
            .iter()
            .find(|(kind, _)| kind == self)
            .expect("the table has every kind");
        f.write_str(name)
    }
}

impl fmt::Display for GroupDesc {
    /// Writes the group as `ovs-ofctl dump-groups` does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&WithNames(self, NameMap::empty()), f)
    }
}

impl fmt::Display for WithNames<'_, GroupDesc> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(group, names) = *self;
        write!(f, "group_id={},type={}", group.group.0, group.kind)?;
        write_selection(f, group.selection.as_ref())?;
        write_buckets(f, group.kind, &group.buckets, names)
    }
}

impl fmt::Display for GroupMod {
    /// Writes a line of a group file, which reads as the same group-mod.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, word) = COMMANDS
            .iter()
            .find(|(command, _)| *command == self.command)
            .expect("the table has every command");
        write!(f, "{word} ")?;
        match (self.command, self.group) {
            (GroupModCommand::Delete, GroupId::ALL) => f.write_str("group_id=all"),
            (GroupModCommand::Delete, group) => write!(f, "group_id={}", group.0),
            (
                GroupModCommand::Add | GroupModCommand::Modify | GroupModCommand::AddOrModify,
                group,
            ) => {
                write!(f, "group_id={},type={}", group.0, self.kind)?;
                write_selection(f, self.selection.as_ref())?;
                write_buckets(f, self.kind, &self.buckets, NameMap::empty())
            }
            (GroupModCommand::InsertBuckets | GroupModCommand::RemoveBuckets, group) => {
                write!(f, "group_id={},command_bucket_id=", group.0)?;
                match PLACES
                    .iter()
                    .find(|(place, _)| *place == self.command_bucket)
                {
                    Some((_, name)) => f.write_str(name)?,
                    None => write!(f, "{}", self.command_bucket.0)?,
                }
                write_buckets(f, self.kind, &self.buckets, NameMap::empty())
            }
        }
    }
}

/// Writes the hash selection, if any.
fn write_selection(f: &mut fmt::Formatter<'_>, selection: Option<&Selection>) -> fmt::Result {
    selection.map_or(Ok(()), |selection| write!(f, ",{selection}"))
}

/// Writes buckets, with their ids unless these equal their indices.
fn write_buckets(
    f: &mut fmt::Formatter<'_>,
    kind: GroupKind,
    buckets: &[Bucket],
    names: &NameMap,
) -> fmt::Result {
    let mut placed = (0..).zip(buckets);
    let numbered = placed.any(|(place, bucket)| bucket.id != BucketId(place));
    buckets.iter().try_for_each(|bucket| {
        if numbered {
            write!(f, ",bucket=bucket_id:{},", bucket.id.0)?;
        } else {
            f.write_str(",bucket=")?;
        }
        write_bucket(f, kind, bucket, names)
    })
}

/// Writes the properties of a bucket after its id.
fn write_bucket(
    f: &mut fmt::Formatter<'_>,
    kind: GroupKind,
    bucket: &Bucket,
    names: &NameMap,
) -> fmt::Result {
    if bucket.weight != default_weight(kind) {
        write!(f, "weight:{},", bucket.weight)?;
    }
    if bucket.watch_port != PortNo::ANY {
        write!(f, "watch_port:{},", WithNames(&bucket.watch_port, names))?;
    }
    if bucket.watch_group != GroupId::ANY {
        write!(f, "watch_group:{},", bucket.watch_group.0)?;
    }
    f.write_str("actions=")?;
    let mut list = CommaList::new(f);
    for action in &bucket.actions {
        write!(list.next()?, "{}", WithNames(action, names))?;
    }
    if list.is_empty() {
        list.next()?.write_str("drop")?;
    }
    Ok(())
}
