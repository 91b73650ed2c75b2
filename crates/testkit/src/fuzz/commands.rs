//! Sequences of commands: the tables are equal whether a controller's commands are applied
//! directly, as decoded bytes, or as parsed text.
//!
//! The input selects a version, then commands, members and arguments; every input selects
//! something. Only versions from 1.2 on are selected, because their commands do not depend on
//! existing rules; the tests of the codec cover the differences of 1.0 and 1.1.

use base::{BucketId, Cookie, GroupId, Instant, MeterId, PortNo, QueueId, TableId, Xid};
use flow::text::{parse_flow_line, parse_group_line, parse_meter_line};
use flow::{
    Action, Band, BandKind, Bucket, Field, FlowFlags, FlowMod, FlowModCommand, FlowStatsRequest,
    GroupKind, GroupMod, GroupModCommand, Instructions, Match, MaxLen, MetadataWrite, MeterFlags,
    MeterMod, MeterModCommand, Refusal, Selection, SelectionFields, SelectionMethod,
};
use openflow::{FlowFormat, Message, MultipartReply, Version};
use pipeline::{Limits, Pipeline};

use super::draw::Draw;

/// The most commands of a sequence. Longer sequences only cost time.
const COMMANDS_MAX: usize = 64;

/// Applies the commands that `data` selects to three pipelines: directly, as bytes of a version,
/// and as text. The pipelines must be equal after each command.
///
/// # Panics
/// If they differ.
pub fn commands(data: &[u8]) {
    play(data);
}

/// Applies the commands and returns the resulting tables.
fn play(data: &[u8]) -> Pipeline {
    let mut draw = Draw(data);
    let version = draw.choose(&[Version::V12, Version::V13, Version::V14, Version::V15]);
    let mut plain = Pipeline::new(Limits::default(), 1);
    let (mut decoded, mut parsed) = (plain.clone(), plain.clone());
    for _ in 0..COMMANDS_MAX {
        if draw.0.is_empty() {
            break;
        }
        let command = command(&mut draw);
        let mut bytes = Vec::new();
        // A command that the version cannot encode is applied to none of the three.
        if command.encode(Xid(1), version, &mut bytes).is_err() {
            continue;
        }
        let (_, read) = Message::decode(&bytes, version).expect("an encoded message decodes");
        let expected = apply(&mut plain, &command);
        assert_eq!(
            apply(&mut decoded, &read),
            expected,
            "{version}: {command:?}"
        );
        let text = text_of(&command);
        assert_eq!(
            apply(&mut parsed, &from_text(&command, &text)),
            expected,
            "{text}"
        );
        assert_eq!(
            image(&decoded, version),
            image(&plain, version),
            "{version}: {command:?}"
        );
        assert_eq!(dump(&parsed), dump(&plain), "{text}");
    }
    plain
}

/// Draws a command.
fn command(draw: &mut Draw<'_>) -> Message {
    match draw.below(8) {
        0 => Message::GroupMod(group_mod(draw)),
        1 => Message::MeterMod(meter_mod(draw)),
        _ => Message::FlowMod(flow_mod(draw)),
    }
}

fn flow_mod(draw: &mut Draw<'_>) -> FlowMod {
    use FlowModCommand::{Add, Delete, DeleteStrict, Modify, ModifyStrict};
    let command = draw.choose(&[Add, Add, Add, Modify, ModifyStrict, Delete, DeleteStrict]);
    let deletes = matches!(command, Delete | DeleteStrict);
    let priority = match command {
        // A loose deletion ignores the priority, and its text has none.
        Delete => 0,
        _ => draw.choose(&[0x8000, 1, 7, 0xffff]),
    };
    let instructions = match deletes {
        true => Instructions::default(),
        false => instructions(draw),
    };
    let mut flow = FlowMod::new(command, priority, matching(draw), instructions);
    flow.table = TableId(draw.choose(&[0, 1, 2, 9]));
    if command == Add {
        flow.cookie = Cookie(draw.choose(&[0, 5, 6]));
    } else {
        flow.cookie_mask = draw.choose(&[0, 3, u64::MAX]);
        flow.cookie = Cookie(draw.choose(&[0, 5, 6]) & flow.cookie_mask);
    }
    if deletes {
        flow.out_port = draw.choose(&[PortNo::ANY, PortNo(2)]);
        flow.out_group = draw.choose(&[GroupId::ANY, GroupId(1)]);
    } else {
        flow.flags = draw.choose(&[
            FlowFlags::default(),
            FlowFlags::SEND_FLOW_REMOVED,
            FlowFlags::CHECK_OVERLAP,
            FlowFlags::RESET_COUNTS,
        ]);
    }
    if command == Add {
        flow.idle_timeout_s = draw.choose(&[0, 5]);
        flow.hard_timeout_s = draw.choose(&[0, 9]);
    }
    flow
}

/// Draws a match of a few fields with their prerequisites.
fn matching(draw: &mut Draw<'_>) -> Match {
    let mut terms: Vec<(Field, u128)> = Vec::new();
    if draw.below(2) == 1 {
        terms.push((Field::InPort, draw.choose(&[1, 2, 0xffff_fffe])));
    }
    if draw.below(4) == 1 {
        terms.push((Field::VlanVid, draw.choose(&[0, 0x1005, 0x1fff])));
    }
    if draw.below(4) == 1 {
        terms.push((Field::Metadata, draw.choose(&[0, 7])));
    }
    match draw.below(6) {
        1 => terms.extend([(Field::EthType, 0x0806), (Field::ArpOp, 1)]),
        2 => terms.extend([(Field::EthType, 0x0800), (Field::Ipv4Dst, 0x0a00_0001)]),
        3 => terms.extend([
            (Field::EthType, 0x0800),
            (Field::IpProto, 6),
            (Field::TcpDst, draw.choose(&[23, 80])),
        ]),
        4 => terms.extend([
            (Field::EthType, 0x86dd),
            (Field::IpProto, 17),
            (Field::UdpSrc, 53),
        ]),
        5 => terms.extend([(Field::EthType, 0x8847), (Field::MplsLabel, 77)]),
        _ => {}
    }
    let any = Match::any();
    let all = terms.into_iter();
    all.fold(any, |matching, (field, value)| {
        matching
            .with(field, value)
            .expect("its prerequisites precede it")
    })
}

fn instructions(draw: &mut Draw<'_>) -> Instructions {
    let apply = draw.list(4, action);
    let (clear, write) = (draw.below(5) == 1, draw.below(4) == 1);
    Instructions {
        meter: (draw.below(6) == 1).then(|| MeterId(draw.choose(&[1, 2]))),
        apply,
        clear,
        write: match write {
            true => draw.list(2, action),
            false => Vec::new(),
        },
        metadata: (draw.below(6) == 1).then_some(MetadataWrite { value: 5, mask: 7 }),
        goto: (draw.below(4) == 1).then(|| TableId(draw.choose(&[1, 2, 200]))),
    }
}

/// Draws an action that every version from 1.2 on has.
fn action(draw: &mut Draw<'_>) -> Action {
    match draw.below(14) {
        0 => Action::output(PortNo(draw.choose(&[1, 2, 3]))),
        1 => Action::output(draw.choose(&[PortNo::IN_PORT, PortNo::ALL, PortNo::NORMAL])),
        2 => Action::Output {
            port: PortNo::CONTROLLER,
            max_len: MaxLen(draw.choose(&[64, 0xffff])),
        },
        3 => Action::Group(GroupId(draw.choose(&[1, 2, 3]))),
        4 => Action::SetQueue(QueueId(draw.choose(&[0, 7]))),
        5 => Action::set(Field::EthSrc, 0x0200_0000_0001),
        6 => Action::set(Field::Ipv4Src, 0x0a00_0002),
        7 => Action::set(Field::TcpDst, draw.choose(&[80, 81])),
        8 => Action::PushVlan(draw.choose(&[0x8100, 0x88a8])),
        9 => Action::PopVlan,
        10 => Action::set(Field::VlanVid, 0x1005),
        11 => Action::DecIpTtl,
        12 => Action::PushMpls(0x8847),
        _ => Action::PopMpls(0x0800),
    }
}

fn group_mod(draw: &mut Draw<'_>) -> GroupMod {
    use GroupModCommand::{Add, AddOrModify, Delete, Modify};
    let command = draw.choose(&[Add, Add, Modify, AddOrModify, Delete]);
    let kind = draw.choose(&GroupKind::ALL);
    let deletes = command == Delete;
    let group = match deletes && draw.below(4) == 0 {
        true => GroupId::ALL,
        false => GroupId(draw.choose(&[1, 2, 3])),
    };
    let mut buckets = match deletes {
        true => Vec::new(),
        false => draw.list(3, |draw| bucket(draw, kind)),
    };
    for (bucket, place) in buckets.iter_mut().zip(0..) {
        bucket.id = BucketId(place);
    }
    GroupMod {
        command,
        // The text of a deletion has no group type.
        kind: if deletes { GroupKind::All } else { kind },
        group,
        command_bucket: BucketId::ALL,
        selection: (kind == GroupKind::Select && !deletes)
            .then(|| selection(draw))
            .flatten(),
        buckets,
    }
}

/// Draws the selection method of a `select` group; none in most cases.
fn selection(draw: &mut Draw<'_>) -> Option<Selection> {
    let method = match draw.below(8) {
        0 => SelectionMethod::Datapath,
        1 => {
            let mut fields = SelectionFields::default();
            let field = draw.choose(&[Field::Ipv4Dst, Field::TcpSrc, Field::Reg0]);
            let mask = draw.choose(&[0xff, u128::MAX]);
            fields.add(field, mask).expect("the mask has some bits");
            SelectionMethod::Hash(fields)
        }
        _ => return None,
    };
    let param = draw.choose(&[0, 7]);
    Some(Selection { method, param })
}

fn bucket(draw: &mut Draw<'_>, kind: GroupKind) -> Bucket {
    let watches = kind == GroupKind::FastFailover;
    Bucket {
        id: BucketId(0),
        weight: match kind {
            GroupKind::Select => draw.choose(&[1, 3]),
            _ => 0,
        },
        watch_port: match watches {
            true => draw.choose(&[PortNo(1), PortNo(2), PortNo::ANY]),
            false => PortNo::ANY,
        },
        watch_group: GroupId::ANY,
        actions: draw.list(2, action),
    }
}

fn meter_mod(draw: &mut Draw<'_>) -> MeterMod {
    use MeterModCommand::{Add, Delete, Modify};
    let command = draw.choose(&[Add, Add, Modify, Delete]);
    let deletes = command == Delete;
    let bursts = draw.below(2) == 1;
    let unit = draw.choose(&[MeterFlags::KBPS, MeterFlags::PKTPS]);
    let flags = match (deletes, bursts) {
        (true, _) => MeterFlags::default(),
        (false, true) => unit.with(MeterFlags::BURST),
        (false, false) => unit,
    };
    let band = |draw: &mut Draw<'_>| Band {
        kind: draw.choose(&[BandKind::Drop, BandKind::DscpRemark(1)]),
        rate: draw.choose(&[1, 1000]),
        // Without the flag `burst` the text has no burst size.
        burst: if bursts { draw.choose(&[1, 50]) } else { 0 },
    };
    let bands = match deletes {
        true => Vec::new(),
        // The text has at least one band.
        false => std::iter::once(band(draw))
            .chain(draw.list(2, band))
            .collect(),
    };
    MeterMod {
        command,
        flags,
        meter: MeterId(draw.choose(&[1, 2])),
        bands,
    }
}

/// Applies a command. Returns the number of rules that it removed.
fn apply(tables: &mut Pipeline, command: &Message) -> Result<usize, Refusal> {
    let changes = match command {
        Message::FlowMod(command) => tables.flow_mod(command, Instant::START),
        Message::GroupMod(command) => tables.group_mod(command, Instant::START),
        Message::MeterMod(command) => tables.meter_mod(command, Instant::START),
        other => panic!("unexpected command: {other:?}"),
    };
    changes.map(|changes| changes.removed.len())
}

fn text_of(command: &Message) -> String {
    match command {
        Message::FlowMod(command) => command.to_string(),
        Message::GroupMod(command) => command.to_string(),
        Message::MeterMod(command) => command.to_string(),
        other => panic!("unexpected command: {other:?}"),
    }
}

/// Parses `text` as a command of the same type as `command`.
fn from_text(command: &Message, text: &str) -> Message {
    let read = match command {
        Message::FlowMod(_) => parse_flow_line(text).map(Message::FlowMod),
        Message::GroupMod(_) => parse_group_line(text).map(Message::GroupMod),
        _ => parse_meter_line(text).map(Message::MeterMod),
    };
    read.unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Returns the content of the tables as multipart replies.
fn dump(tables: &Pipeline) -> [MultipartReply; 3] {
    let all = FlowStatsRequest::all();
    let rules = tables.flow_stats(&all, Instant::START);
    let rules = rules.expect("the request covers all tables").collect();
    let meters = tables.meter_configs(MeterId::ALL);
    [
        MultipartReply::Flow(FlowFormat::Standard, rules),
        MultipartReply::GroupDesc(tables.group_descs(GroupId::ALL).collect()),
        MultipartReply::MeterConfig(meters.expect("a request for all meters is valid")),
    ]
}

/// Returns the content of the tables as encoded by a version.
fn image(tables: &Pipeline, version: Version) -> Vec<u8> {
    let mut bytes = Vec::new();
    for reply in dump(tables) {
        let result = Message::reply(reply).encode(Xid(2), version, &mut bytes);
        // 1.2 has no meters.
        assert!(result.is_ok() || version < Version::V13, "{result:?}");
    }
    bytes
}

#[cfg(test)]
mod tests {
    use base::SplitMix64;

    use super::*;

    /// Returns 600 pseudorandom bytes from a seed.
    fn noise(seed: u64) -> Vec<u8> {
        let mut random = SplitMix64::new(seed);
        let words = std::iter::repeat_with(|| random.next_u64().to_be_bytes());
        words.flatten().take(600).collect()
    }

    #[test]
    fn command_sequences_install_rules_groups_and_meters() {
        let mut totals = [0; 3];
        for seed in 0..200 {
            let tables = play(&noise(seed));
            let [flows, groups, meters] = dump(&tables);
            let counts = [&flows, &groups, &meters].map(|reply| match reply {
                MultipartReply::Flow(_, rules) => rules.len(),
                MultipartReply::GroupDesc(groups) => groups.len(),
                MultipartReply::MeterConfig(meters) => meters.len(),
                _ => 0,
            });
            for (sum, count) in totals.iter_mut().zip(counts) {
                *sum += count;
            }
        }
        assert!(totals.iter().all(|count| *count > 50), "{totals:?}");
    }
}
