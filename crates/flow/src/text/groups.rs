//! Groups as text, the way `ovs-ofctl` 3.1 reads and prints them.
//!
//! ```text
//! group  = [command] "group_id=" number "," "type=" kind {"," "bucket=" bucket}
//! bucket = {name (":" | "=") value ","} ["actions="] actions
//! ```
//!
//! Not here: bucket ids and selection methods, which OpenFlow 1.5 adds.

use std::fmt;

use base::{BucketId, GroupId, PortNo};

use super::error::ParseError;
use super::match_write::Commas;
use super::number::number;
use super::piece::{Item, Items, Piece};
use super::{address, instructions};
use crate::group::{Bucket, GroupDesc, GroupKind, GroupMod, GroupModCommand};

/// The commands by the words of group files.
const COMMANDS: [(GroupModCommand, &str); 4] = [
    (GroupModCommand::Add, "add"),
    (GroupModCommand::Modify, "modify"),
    (GroupModCommand::AddOrModify, "add_or_mod"),
    (GroupModCommand::Delete, "delete"),
];

/// The kinds by name; the first of a kind is the one printed.
const KINDS: [(GroupKind, &str); 5] = [
    (GroupKind::All, "all"),
    (GroupKind::Select, "select"),
    (GroupKind::Indirect, "indirect"),
    (GroupKind::FastFailover, "ff"),
    (GroupKind::FastFailover, "fast_failover"),
];

/// What only later versions have words for.
const FOREIGN: [&str; 5] = [
    "bucket_id",
    "command_bucket_id",
    "fields",
    "selection_method",
    "selection_method_param",
];

/// The weight of a bucket that names none.
const fn usual_weight(kind: GroupKind) -> u16 {
    match kind {
        GroupKind::Select => 1,
        GroupKind::All | GroupKind::Indirect | GroupKind::FastFailover => 0,
    }
}

/// The command word that the line begins with, and the rest of the line.
pub(super) fn command(line: Piece<'_>) -> (GroupModCommand, Piece<'_>) {
    let start = line.trim();
    let len = start.text.find([',', ' ', '\t']);
    let (word, rest) = start.cut(len.unwrap_or(start.text.len()));
    match COMMANDS.iter().find(|(_, name)| *name == word.text) {
        Some((command, _)) => (*command, rest),
        None => (GroupModCommand::Add, start),
    }
}

/// Reads a group-mod, behind its command word.
pub(super) fn group_mod(command: GroupModCommand, line: Piece<'_>) -> Result<GroupMod, ParseError> {
    let (head, texts) = split_buckets(line)?;
    let head = Head::read(head)?;
    let end = line.cut(line.text.len()).1;
    let deletes = command == GroupModCommand::Delete;
    let group = match head.group {
        Some(GroupId::ALL) if !deletes => return Err(line.wrong("one group is wanted, not all")),
        Some(group) => group,
        None if deletes => GroupId::ALL,
        None => return Err(end.wrong("the group is missing: `group_id=`")),
    };
    let kind = match (head.kind, deletes, texts.first()) {
        (None, true, None) => GroupKind::All,
        (_, true, _) => return Err(line.wrong("a deletion names the group and nothing else")),
        (Some(kind), false, _) => kind,
        (None, false, _) => return Err(end.wrong("the kind of group is missing: `type=`")),
    };
    // Where nothing else is said, a bucket's number is its place.
    let buckets = (0..).zip(texts);
    let buckets = buckets.map(|(id, text)| bucket(kind, BucketId(id), text));
    Ok(GroupMod {
        command,
        kind,
        group,
        place: BucketId::ALL,
        buckets: buckets.collect::<Result<_, _>>()?,
    })
}

/// What stands before the buckets.
#[derive(Default)]
struct Head {
    group: Option<GroupId>,
    kind: Option<GroupKind>,
}

impl Head {
    fn read(text: Piece<'_>) -> Result<Self, ParseError> {
        let mut head = Self::default();
        let mut items = Items::new(text);
        while let Some(item) = items.next_item()? {
            let given_before = match item.key.text {
                "group_id" => head.group.replace(group_id(item.required()?)?).is_some(),
                "type" => head.kind.replace(kind(item.required()?)?).is_some(),
                name if FOREIGN.contains(&name) => return Err(foreign(item)),
                _ => return Err(item.key.wrong("unknown key of a group")),
            };
            if given_before {
                return Err(item.key.wrong("given before"));
            }
        }
        Ok(head)
    }
}

fn foreign(item: Item<'_>) -> ParseError {
    item.key.wrong("not supported yet: OpenFlow 1.5 has this")
}

fn kind(piece: Piece<'_>) -> Result<GroupKind, ParseError> {
    let known = KINDS.iter().find(|(_, name)| *name == piece.text);
    let (kind, _) = known.ok_or_else(|| piece.wrong("all, select, indirect or ff is wanted"))?;
    Ok(*kind)
}

/// Reads a group's number, or `all`.
fn group_id(piece: Piece<'_>) -> Result<GroupId, ParseError> {
    match piece.text {
        "all" => Ok(GroupId::ALL),
        _ => number(piece).map(GroupId),
    }
}

/// Parts the line before and behind each `bucket=`.
fn split_buckets(line: Piece<'_>) -> Result<(Piece<'_>, Vec<Piece<'_>>), ParseError> {
    let mut items = Items::new(line);
    let mut parts = Vec::new();
    let mut start = line;
    loop {
        let before = items.rest();
        let item = items.next_item()?;
        let cut = match item {
            Some(item) if item.key.text == "bucket" => item.key,
            Some(_) => continue,
            None => break,
        };
        parts.push(start.cut(before.at - start.at).0);
        let (_, behind) = line.cut(cut.at - line.at + cut.text.len());
        if !behind.text.starts_with(['=', ':']) {
            return Err(cut.wrong("`bucket=` is wanted"));
        }
        start = behind.cut(1).1;
    }
    parts.push(start);
    let head = parts.remove(0);
    Ok((head, parts))
}

/// Reads a bucket: what is said of it, then its actions.
fn bucket(kind: GroupKind, id: BucketId, text: Piece<'_>) -> Result<Bucket, ParseError> {
    let mut bucket = Bucket {
        id,
        weight: usual_weight(kind),
        watch_port: PortNo::ANY,
        watch_group: GroupId::ANY,
        actions: Vec::new(),
    };
    let mut items = Items::new(text);
    loop {
        let actions = items.rest();
        let Some(item) = items.next_item()? else {
            return Err(text.wrong("the bucket's actions are missing"));
        };
        match item.key.text {
            "weight" => bucket.weight = number(item.required()?)?,
            "watch_port" => bucket.watch_port = address::port(item.required()?)?,
            "watch_group" => bucket.watch_group = GroupId(number(item.required()?)?),
            "actions" | "action" => {
                let (_, behind) = text.cut(item.key.at - text.at + item.key.text.len());
                if !behind.text.starts_with(['=', ':']) {
                    return Err(item.key.wrong("`actions=` is wanted"));
                }
                bucket.actions = instructions::action_list(behind.cut(1).1)?;
                return Ok(bucket);
            }
            name if FOREIGN.contains(&name) => return Err(foreign(item)),
            _ => {
                bucket.actions = instructions::action_list(actions)?;
                return Ok(bucket);
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
        write_group(f, self.group, self.kind, &self.buckets)
    }
}

impl fmt::Display for GroupMod {
    /// Writes a line of a group file, which reads as the same group-mod; of a
    /// deletion only what it means.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, word) = COMMANDS
            .iter()
            .find(|(command, _)| *command == self.command)
            .expect("the table has every command");
        write!(f, "{word} ")?;
        match (self.command, self.group) {
            (GroupModCommand::Delete, GroupId::ALL) => f.write_str("group_id=all"),
            (GroupModCommand::Delete, group) => write!(f, "group_id={}", group.0),
            _ => write_group(f, self.group, self.kind, &self.buckets),
        }
    }
}

fn write_group(
    f: &mut fmt::Formatter<'_>,
    group: GroupId,
    kind: GroupKind,
    buckets: &[Bucket],
) -> fmt::Result {
    write!(f, "group_id={},type={kind}", group.0)?;
    buckets
        .iter()
        .try_for_each(|bucket| write_bucket(f, kind, bucket))
}

fn write_bucket(f: &mut fmt::Formatter<'_>, kind: GroupKind, bucket: &Bucket) -> fmt::Result {
    f.write_str(",bucket=")?;
    if bucket.weight != usual_weight(kind) {
        write!(f, "weight:{},", bucket.weight)?;
    }
    if bucket.watch_port != PortNo::ANY {
        write!(f, "watch_port:{},", bucket.watch_port)?;
    }
    if bucket.watch_group != GroupId::ANY {
        write!(f, "watch_group:{},", bucket.watch_group.0)?;
    }
    f.write_str("actions=")?;
    let mut list = Commas::new(f);
    for action in &bucket.actions {
        write!(list.next()?, "{action}")?;
    }
    if list.is_empty() {
        list.next()?.write_str("drop")?;
    }
    Ok(())
}
