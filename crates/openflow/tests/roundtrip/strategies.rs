//! Random messages, each in the canonical form that its version decodes.
//!
//! Best-effort encodings (a statistics entry in 1.0's own format, a setter of 1.0 in 1.3) are not
//! included: they do not round-trip.

use std::time::Duration;

use base::{BufferId, Cookie, DatapathId, GroupId, MeterId, PortNo, QueueId, TableId};
use flow::field::Maskable;
use flow::*;
use openflow::*;
use packet::MacAddr;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::extensions::option_term;
use crate::{groups, monitors};

/// A port number that the version can encode.
pub(crate) fn port(version: Version) -> BoxedStrategy<PortNo> {
    let reserved = (0xffff_ff00_u32..=u32::MAX).prop_map(PortNo);
    match version {
        Version::V10 => prop_oneof![4 => (0..0xff00_u32).prop_map(PortNo), 1 => reserved].boxed(),
        _ => prop_oneof![4 => (0..0xffff_ff00_u32).prop_map(PortNo), 1 => reserved].boxed(),
    }
}

/// A match of any terms that are valid after one another.
pub(crate) fn matching(version: Version) -> BoxedStrategy<Match> {
    let protocol = prop_oneof![
        Just(vec![]),
        Just(vec![(Field::EthType, 0x0806)]),
        Just(vec![(Field::EthType, 0x8847)]),
        Just(vec![(Field::EthType, 0x88cc)]),
        (
            any::<bool>(),
            prop::sample::select(vec![1, 6, 17, 58, 132, 255])
        )
            .prop_map(|(ipv6, proto)| {
                let eth_type = if ipv6 { 0x86dd } else { 0x0800 };
                vec![(Field::EthType, eth_type), (Field::IpProto, proto)]
            }),
        prop::sample::select(vec![133, 135, 136]).prop_map(|kind| vec![
            (Field::EthType, 0x86dd),
            (Field::IpProto, 58),
            (Field::Icmpv6Type, kind),
        ]),
    ];
    let fields: Vec<Field> = Field::all()
        .map(|row| row.field)
        .filter(|field| version != Version::V11 || has_member_in_v11(*field))
        .collect();
    let term = (
        prop::sample::select(fields),
        any::<u128>(),
        any::<u128>(),
        any::<bool>(),
    );
    let options = if version == Version::V11 { 0 } else { 3 };
    let options = vec(option_term(), 0..=options);
    (protocol, port(version), vec(term, 0..12), options)
        .prop_map(move |(protocol, in_port, terms, options)| {
            let mut matching = Match::any();
            for (field, value) in protocol {
                matching = matching.with(field, value).expect("in order");
            }
            for (field, value, mask, whole) in terms {
                let full = field.full_mask();
                let masked = !whole
                    && field.info().maskable == Maskable::Any
                    && (version != Version::V11 || has_mask_in_v11(field));
                let mask = if masked { mask & full } else { full };
                let value = match field {
                    Field::InPort => in_port.0.into(),
                    Field::VlanVid if version == Version::V11 => value | 0x1000,
                    Field::ArpOp if version == Version::V11 => value & 0xff,
                    _ => value & mask,
                };
                matching = matching
                    .clone()
                    .with_masked(field, value, mask)
                    .unwrap_or(matching);
            }
            with_options(&matching, options)
        })
        .boxed()
}

/// Adds tunnel options that the match does not have yet.
fn with_options(matching: &Match, options: Vec<OptionTerm>) -> Match {
    let mut building = MatchBuilder::from(matching);
    for OptionTerm { field, value, mask } in options {
        if building.options().iter().all(|term| term.field != field) {
            let added = building.add_option(field, value, mask);
            added.expect("it is not there, and no bit is outside the mask");
        }
    }
    building.build()
}

/// Returns true if the match of 1.1 has the field.
fn has_member_in_v11(field: Field) -> bool {
    use Field::*;
    let others = [
        InPort, EthType, VlanVid, VlanPcp, MplsLabel, MplsTc, ArpOp, IpDscp, IpProto,
    ];
    let ports = [
        TcpSrc, TcpDst, UdpSrc, UdpDst, SctpSrc, SctpDst, Icmpv4Type, Icmpv4Code,
    ];
    has_mask_in_v11(field) || others.contains(&field) || ports.contains(&field)
}

/// Returns true if the match of 1.1 has a mask for the field.
fn has_mask_in_v11(field: Field) -> bool {
    use Field::*;
    [Metadata, EthDst, EthSrc, Ipv4Src, Ipv4Dst, ArpSpa, ArpTpa].contains(&field)
}

/// A write of a whole field, by an action of its own.
fn set_whole(version: Version) -> BoxedStrategy<Action> {
    // 1.0 and 1.1 encode the other fields as loads, or with setters that express less.
    let own_in_v10 = [Field::EthSrc, Field::EthDst, Field::TunnelId];
    let own_in_v11 = [Field::MplsLabel, Field::MplsTc];
    let fields: Vec<Field> = Field::all()
        .filter(|row| row.writable && row.field != Field::IpTtl && row.field.option().is_none())
        .map(|row| row.field)
        .filter(|field| {
            version > Version::V11
                || own_in_v10.contains(field)
                || version == Version::V11 && own_in_v11.contains(field)
        })
        .collect();
    (prop::sample::select(fields), any::<u128>())
        .prop_map(|(field, value)| Action::set(field, value & field.full_mask()))
        .boxed()
}

fn common_action(version: Version) -> BoxedStrategy<Action> {
    let to_controller = any::<u16>().prop_map(|max_len| Action::Output {
        port: PortNo::CONTROLLER,
        max_len: MaxLen(max_len),
    });
    let output = prop_oneof![port(version).prop_map(Action::output), to_controller];
    prop_oneof![
        6 => output,
        4 => set_whole(version),
        4 => crate::extensions::extension(version).prop_map(Action::Extended),
        1 => any::<u32>().prop_map(|queue| Action::SetQueue(QueueId(queue))),
        1 => any::<u32>().prop_map(|group| Action::Group(GroupId(group))),
        1 => Just(Action::PopVlan),
        1 => Just(Action::PushMpls(0x8848)),
        1 => any::<u16>().prop_map(Action::PopMpls),
        1 => any::<u8>().prop_map(Action::SetMplsTtl),
        1 => Just(Action::DecMplsTtl),
        1 => Just(Action::DecIpTtl),
    ]
    .boxed()
}

fn action(version: Version) -> BoxedStrategy<Action> {
    let own = match version {
        Version::V10 => prop_oneof![
            (port(version), any::<u32>()).prop_map(|(port, queue)| Action::Enqueue {
                port,
                queue: QueueId(queue)
            }),
            (0..=0xfff_u16).prop_map(Action::SetVlanVid),
            (0..=7_u8).prop_map(Action::SetVlanPcp),
            any::<u32>().prop_map(Action::SetNwSrc),
            any::<u32>().prop_map(Action::SetNwDst),
            (0..=63_u8).prop_map(|dscp| Action::SetNwTos(dscp << 2)),
            any::<u16>().prop_map(Action::SetTpSrc),
            any::<u16>().prop_map(Action::SetTpDst),
        ]
        .boxed(),
        _ => {
            let mut own = vec![
                Just(Action::PushVlan(0x8100)).boxed(),
                Just(Action::PushVlan(0x88a8)).boxed(),
                Just(Action::CopyTtlIn).boxed(),
                Just(Action::CopyTtlOut).boxed(),
                any::<u8>().prop_map(Action::SetIpTtl).boxed(),
            ];
            if version >= Version::V13 {
                own.push(Just(Action::PushPbb(0x88e7)).boxed());
                own.push(Just(Action::PopPbb).boxed());
            }
            prop::strategy::Union::new(own).boxed()
        }
    };
    prop_oneof![3 => common_action(version), 1 => own].boxed()
}

pub(crate) fn actions(version: Version) -> BoxedStrategy<Vec<Action>> {
    vec(action(version), 0..8).boxed()
}

pub(crate) fn instructions(version: Version) -> BoxedStrategy<Instructions> {
    let metadata =
        (any::<u64>(), any::<u64>()).prop_map(|(value, mask)| MetadataWrite { value, mask });
    let table = (0..=254_u8).prop_map(TableId);
    let ends = (option::of(metadata), option::of(table)).prop_map(move |ends| match ends {
        // 1.0 has resubmit instead.
        (metadata, _) if version == Version::V10 => (metadata, None),
        ends => ends,
    });
    let list = (actions(version), ends);
    let set = match version {
        Version::V10 => Just((None, false, Vec::new())).boxed(),
        _ => (
            option::of(any::<u32>().prop_map(MeterId))
                .prop_map(move |meter| meter.filter(|_| version >= Version::V13)),
            any::<bool>(),
            actions(version),
        )
            .boxed(),
    };
    (list, set)
        .prop_map(
            |((apply, (metadata, goto)), (meter, clear, write))| Instructions {
                meter,
                apply,
                clear,
                write,
                metadata,
                goto,
            },
        )
        .boxed()
}

/// The times and counters that many messages share.
#[derive(Clone, Copy, Debug)]
struct TimesAndCounts {
    duration: Duration,
    packets: u64,
    bytes: u64,
    idle: u16,
    hard: u16,
}

fn counts() -> impl Strategy<Value = TimesAndCounts> {
    let duration = (any::<u32>(), 0..1_000_000_000_u32);
    (
        duration,
        any::<u64>(),
        any::<u64>(),
        any::<u16>(),
        any::<u16>(),
    )
        .prop_map(
            |((seconds, nanos), packets, bytes, idle, hard)| TimesAndCounts {
                duration: Duration::new(seconds.into(), nanos),
                packets,
                bytes,
                idle,
                hard,
            },
        )
}

fn flow_mod(dialect: Dialect) -> BoxedStrategy<Message> {
    let version = dialect.version;
    let command = prop::sample::select(vec![
        FlowModCommand::Add,
        FlowModCommand::Modify,
        FlowModCommand::ModifyStrict,
        FlowModCommand::Delete,
        FlowModCommand::DeleteStrict,
    ]);
    let body = (matching(version), instructions(version), port(version));
    let numbers = any::<(u8, u16, u16, u32, u16)>();
    let cookies = (any::<u64>(), any::<u64>(), option::of(0..u64::MAX));
    let buffer = option::of((0..u32::MAX).prop_map(BufferId));
    (command, body, numbers, cookies, counts(), buffer)
        .prop_map(move |(command, body, numbers, cookies, counts, buffer)| {
            let (matching, instructions, port) = body;
            let (table, priority, flags, group, importance) = numbers;
            let mut built = FlowMod::new(command, priority, matching, instructions);
            built.buffer = buffer;
            (built.idle_timeout_s, built.hard_timeout_s) = (counts.idle, counts.hard);
            if is_delete(command) {
                built.out_port = port;
            }
            let (table, flags) = (TableId(table), FlowFlags(flags));
            let arguments = (table, flags, GroupId(group), cookies);
            match version {
                Version::V10 => finish_v10(&mut built, dialect, arguments),
                _ => finish_later(&mut built, version, arguments),
            }
            if version >= Version::V14 {
                built.importance = importance;
            }
            Message::FlowMod(built)
        })
        .boxed()
}

fn is_delete(command: FlowModCommand) -> bool {
    matches!(
        command,
        FlowModCommand::Delete | FlowModCommand::DeleteStrict
    )
}

/// Table, flags, group and cookies (the cookie, its mask, a new one).
type FlowModArguments = (TableId, FlowFlags, GroupId, (u64, u64, Option<u64>));

/// Sets the members of a flow-mod of 1.0.
fn finish_v10(built: &mut FlowMod, dialect: Dialect, (table, flags, _, cookies): FlowModArguments) {
    built.consistency = Consistency::Waived;
    let (cookie, mask, new_cookie) = cookies;
    let add = built.command == FlowModCommand::Add;
    built.table = match (dialect.table_ids, add) {
        (true, true) => TableId(table.0 & 0x7f),
        (true, false) => table,
        (false, true) => TableId::FIRST,
        (false, false) => TableId::ALL,
    };
    built.flags = FlowFlags(flags.0 & 3);
    if add {
        built.flags = built.flags.with(FlowFlags::RESET_COUNTS);
        built.cookie = Cookie(cookie);
    } else {
        (built.cookie, built.cookie_mask) = (Cookie(cookie & mask), mask);
    }
    if !add && !is_delete(built.command) {
        built.new_cookie = new_cookie.map(Cookie);
    }
}

/// Sets the members of a flow-mod of a later version.
fn finish_later(built: &mut FlowMod, version: Version, arguments: FlowModArguments) {
    let (table, flags, group, (cookie, mask, _)) = arguments;
    built.flags = match version {
        Version::V11 if built.command == FlowModCommand::Add => FlowFlags(flags.0 & 3 | 4),
        Version::V11 => FlowFlags(flags.0 & 3),
        Version::V12 => FlowFlags(flags.0 & 7),
        _ => FlowFlags(flags.0 & 0x1f),
    };
    built.cookie = Cookie(cookie);
    if built.command != FlowModCommand::Add {
        built.cookie_mask = mask;
    }
    if is_delete(built.command) {
        (built.table, built.out_group) = (table, group);
    } else {
        built.table = TableId(table.0 & 0x7f);
    }
    let modifies = built.command != FlowModCommand::Add && !is_delete(built.command);
    if version == Version::V11 && modifies && built.cookie_mask == 0 {
        built.missing = MissingRule::Add;
    }
}

fn flow_stats(format: FlowFormat, version: Version) -> BoxedStrategy<FlowStats> {
    (
        matching(version),
        instructions(version),
        counts(),
        any::<u64>(),
        any::<(u8, u16, u16, u16)>(),
    )
        .prop_map(
            move |(
                matching,
                instructions,
                counts,
                cookie,
                (table, priority, flags, importance),
            )| {
                let age = |seconds: u16| match format {
                    FlowFormat::Nicira => Duration::from_secs(u64::from(seconds).min(65_534)),
                    FlowFormat::Standard | FlowFormat::Counts => Duration::ZERO,
                };
                FlowStats {
                    table: TableId(table),
                    priority,
                    cookie: Cookie(cookie),
                    matching,
                    instructions,
                    idle_timeout_s: counts.idle,
                    hard_timeout_s: counts.hard,
                    importance: if version >= Version::V14 {
                        importance
                    } else {
                        0
                    },
                    flags: FlowFlags(if version >= Version::V13 { flags } else { 0 }),
                    duration: counts.duration,
                    idle_age: age(counts.idle),
                    hard_age: age(counts.hard),
                    packets: counts.packets,
                    bytes: counts.bytes,
                }
            },
        )
        .boxed()
}

/// Flow statistics; in 1.0 in Nicira's format.
fn flow_reply(version: Version) -> BoxedStrategy<Message> {
    let format = lossless_format(version);
    vec(flow_stats(format, version), 0..6)
        .prop_map(move |rules| MultipartReply::Flow(format, rules).into())
        .boxed()
}

/// Flow statistics with counters only, of 1.5.
fn flow_counts(version: Version) -> BoxedStrategy<Message> {
    vec(flow_stats(FlowFormat::Counts, version), 0..6)
        .prop_map(|mut rules| {
            for rule in &mut rules {
                rule.cookie = Cookie(0);
                rule.instructions = Instructions::default();
                (rule.idle_timeout_s, rule.hard_timeout_s) = (0, 0);
                (rule.importance, rule.flags) = (0, FlowFlags::default());
            }
            MultipartReply::Flow(FlowFormat::Counts, rules).into()
        })
        .boxed()
}

/// The format in which a version encodes any match exactly.
fn lossless_format(version: Version) -> FlowFormat {
    match version {
        Version::V10 => FlowFormat::Nicira,
        _ => FlowFormat::Standard,
    }
}

fn flow_request(version: Version) -> BoxedStrategy<Message> {
    let format = lossless_format(version);
    (
        matching(version),
        port(version),
        any::<(u8, u32, u64, u64)>(),
        any::<bool>(),
    )
        .prop_map(
            move |(matching, out_port, (table, group, cookie, mask), aggregate)| {
                let request = FlowStatsRequest {
                    table: TableId(table),
                    out_port,
                    out_group: match version {
                        Version::V10 => GroupId::ANY,
                        _ => GroupId(group),
                    },
                    cookie: Cookie(cookie & mask),
                    cookie_mask: mask,
                    matching,
                };
                Message::MultipartRequest(if aggregate {
                    MultipartRequest::Aggregate(format, request)
                } else {
                    MultipartRequest::Flow(format, request)
                })
            },
        )
        .boxed()
}

fn flow_removed(dialect: Dialect) -> BoxedStrategy<Message> {
    let version = dialect.version;
    (
        matching(version),
        counts(),
        any::<(u64, u16, u8)>(),
        0..6_u8,
    )
        // Without NXM the match of 1.0 becomes wider.
        .prop_map(
            move |(matching, counts, (cookie, priority, table), reason)| {
                let later = version > Version::V10;
                Message::FlowRemoved(FlowRemoved {
                    matching: if later || dialect.nxm {
                        matching
                    } else {
                        Match::any()
                    },
                    cookie: Cookie(cookie),
                    priority,
                    reason: match reason {
                        0 => FlowRemovedReason::IdleTimeout,
                        1 => FlowRemovedReason::HardTimeout,
                        3 if later => FlowRemovedReason::GroupDelete,
                        4 if version >= Version::V14 => FlowRemovedReason::MeterDelete,
                        5 if version >= Version::V14 => FlowRemovedReason::Eviction,
                        _ => FlowRemovedReason::Delete,
                    },
                    table: if later || dialect.nxm {
                        TableId(table)
                    } else {
                        TableId::ALL
                    },
                    duration: counts.duration,
                    idle_timeout_s: counts.idle,
                    hard_timeout_s: if version > Version::V11 {
                        counts.hard
                    } else {
                        0
                    },
                    packets: counts.packets,
                    bytes: counts.bytes,
                })
            },
        )
        .boxed()
}

fn port_desc(version: Version) -> BoxedStrategy<PortDesc> {
    (
        port(version),
        any::<[u8; 6]>(),
        "[a-z0-9]{0,15}",
        any::<[u32; 8]>(),
    )
        .prop_map(move |(number, mac, name, bits)| {
            let [
                config,
                state,
                current,
                advertised,
                supported,
                peer,
                speed,
                max,
            ] = bits;
            let later = version > Version::V10;
            let features = |bits| PortFeatures(if later { bits } else { bits & 0xf87f });
            PortDesc {
                number,
                hw_addr: MacAddr(mac),
                name,
                config: PortConfig(config & if later { 0x65 } else { 0x7f }),
                state: PortState(state & if later { 7 } else { 1 }),
                current: features(current),
                advertised: features(advertised),
                supported: features(supported),
                peer: features(peer),
                speed_kbps: if later { speed } else { 0 },
                speed_kbps_max: if later { max } else { 0 },
            }
        })
        .boxed()
}

/// The age of a port or queue, if the version has it.
fn duration(version: Version, counts: TimesAndCounts) -> Duration {
    if version >= Version::V13 {
        counts.duration
    } else {
        Duration::ZERO
    }
}

/// Returns counters by name, if the version has them.
fn custom(version: Version, count: u64) -> Vec<(String, u64)> {
    let number = if version >= Version::V14 {
        count % 3
    } else {
        0
    };
    let counter = |index: u64| (format!("rx_q{index}_packets"), count);
    (0..number).map(counter).collect()
}

fn port_stats(version: Version) -> BoxedStrategy<PortStats> {
    let valid = option::of(0..u64::MAX);
    let optional = (valid.clone(), valid.clone(), valid.clone(), valid);
    (port(version), any::<[u64; 8]>(), optional, counts())
        .prop_map(
            move |(port, required, (frame, over, crc, collisions), counts)| PortStats {
                port,
                rx_packets: required[0],
                tx_packets: required[1],
                rx_bytes: required[2],
                tx_bytes: required[3],
                rx_dropped: required[4],
                tx_dropped: required[5],
                rx_errors: required[6],
                tx_errors: required[7],
                rx_frame_errors: frame,
                rx_over_errors: over,
                rx_crc_errors: crc,
                collisions,
                custom: custom(version, required[0]),
                duration: duration(version, counts),
            },
        )
        .boxed()
}

fn packet_out(version: Version) -> BoxedStrategy<Message> {
    let buffer = option::of((0..u32::MAX).prop_map(BufferId));
    let registers = crate::packet_in::registers(version, version == Version::V15);
    (
        buffer,
        registers,
        actions(version),
        vec(any::<u8>(), 0..100),
    )
        .prop_map(move |(buffer, mut registers, actions, data)| {
            if version == Version::V10 && registers.in_port == PortNo::ANY {
                registers.in_port = PortNo::CONTROLLER;
            }
            Message::PacketOut(PacketOut {
                buffer,
                registers,
                actions,
                data,
            })
        })
        .boxed()
}

fn port_mod(version: Version) -> BoxedStrategy<Message> {
    (port(version), any::<[u8; 6]>(), any::<(u32, u32, u32)>())
        .prop_map(move |(port, mac, (config, mask, advertise))| {
            let (valid, features) = match version {
                Version::V10 => (0x7f, 0xf87f),
                _ => (0x65, u32::MAX),
            };
            Message::PortMod(PortMod {
                port,
                hw_addr: MacAddr(mac),
                config: PortConfig(config & mask & valid),
                mask: PortConfig(mask & valid),
                advertise: advertise & features,
            })
        })
        .boxed()
}

fn features_reply(version: Version) -> BoxedStrategy<Message> {
    let ports = if version <= Version::V12 {
        vec(port_desc(version), 0..4).boxed()
    } else {
        Just(Vec::new()).boxed()
    };
    (any::<(u64, u32, u8, u8, u32)>(), ports)
        .prop_map(move |((id, buffers, tables, auxiliary_id, bits), ports)| {
            let (auxiliary_id, valid) = match version {
                Version::V10 => (0, 0xe7),
                Version::V11 => (0, 0xef),
                Version::V12 => (0, 0x16f),
                _ => (auxiliary_id, 0x16f),
            };
            Message::FeaturesReply(FeaturesReply {
                features: SwitchFeatures {
                    datapath_id: DatapathId(id),
                    buffers,
                    tables,
                    auxiliary_id,
                    capabilities: Capabilities(bits & valid),
                },
                ports,
            })
        })
        .boxed()
}

fn simple(version: Version) -> BoxedStrategy<Message> {
    prop_oneof![
        vec(any::<u8>(), 0..100).prop_map(Message::EchoRequest),
        vec(any::<u8>(), 0..100).prop_map(Message::EchoReply),
        Just(Message::FeaturesRequest),
        Just(Message::GetConfigRequest),
        Just(Message::BarrierRequest),
        Just(Message::BarrierReply),
        (any::<u16>(), any::<u16>(), vec(any::<u8>(), 0..64)).prop_filter_map(
            "another shape",
            |(kind, code, data)| {
                let code = ErrorCode::Plain { kind, code };
                (kind != 0xffff && kind != 0xb0c2)
                    .then_some(Message::Error(ErrorMessage { code, data }))
            }
        ),
        (any::<u16>(), any::<bool>()).prop_map(move |(miss_send_len, invalid_ttl)| {
            Message::SetConfig(SwitchConfig {
                fragments: FragmentHandling::NxMatch,
                miss_send_len,
                invalid_ttl: invalid_ttl && version < Version::V13,
            })
        }),
        any::<([Option<u32>; 4], [Option<u32>; 4])>().prop_map(move |(active, slave)| {
            let properties = version >= Version::V14;
            // Bits of known reasons only.
            let mask = |mask: Option<u32>, valid: u32| {
                let mask = if properties { mask } else { mask.or(Some(7)) };
                mask.map(|mask| mask & valid)
            };
            let masks = |masks: [Option<u32>; 4]| MaskChange {
                packet_in: mask(masks[0], 7),
                port_status: mask(masks[1], 7),
                flow_removed: mask(masks[2], 0x3f),
                role_status: masks[3].map(|mask| mask & 7).filter(|_| properties),
                table_status: masks[3].map(|mask| mask & 0x18).filter(|_| properties),
                request_forward: masks[2].map(|mask| mask & 3),
                controller_status: masks[1]
                    .map(|mask| mask & 0x3f)
                    .filter(|_| version >= Version::V15),
            };
            Message::SetAsync(AsyncChange {
                active: masks(active),
                slave: masks(slave),
            })
        }),
    ]
    .boxed()
}

fn statistics(version: Version) -> BoxedStrategy<Message> {
    let description = ("[ -~]{0,99}", "[ -~]{0,31}").prop_map(|(text, serial_number)| {
        MultipartReply::Description(SwitchDescription {
            manufacturer: text.clone(),
            hardware: text.chars().rev().collect(),
            software: "1".to_owned(),
            serial_number,
            datapath: text,
        })
    });
    let table = (any::<(u8, u32, u32, u64, u64)>(), "[ -~]{0,31}").prop_map(
        move |((table, flows_max, active, lookups, matched), name)| TableStats {
            table: TableId(table),
            name: if version <= Version::V12 {
                name
            } else {
                String::new()
            },
            flows_max: if version <= Version::V12 {
                flows_max
            } else {
                0
            },
            active,
            lookups,
            matched,
        },
    );
    let queue = (port(version), any::<(u32, u64, u64, u64)>(), counts()).prop_map(
        move |(port, (queue, tx_bytes, tx_packets, tx_errors), counts)| QueueStats {
            port,
            queue: QueueId(queue),
            tx_bytes,
            tx_packets,
            tx_errors,
            duration: duration(version, counts),
        },
    );
    let aggregate = any::<(u64, u64, u32)>().prop_map(|(packets, bytes, flows)| {
        MultipartReply::Aggregate(
            FlowFormat::Standard,
            AggregateStats {
                packets,
                bytes,
                flows,
            },
        )
    });
    prop_oneof![
        description,
        aggregate,
        vec(table, 0..5).prop_map(MultipartReply::Table),
        vec(port_stats(version), 0..5).prop_map(MultipartReply::Port),
        vec(queue, 0..5).prop_map(MultipartReply::Queue),
        vec(port_desc(version), 0..5).prop_map(MultipartReply::PortDesc),
    ]
    .prop_map(Message::from)
    .boxed()
}

/// The additions of 1.4: queue and table descriptions, role-status.
fn new_in_v14(version: Version) -> BoxedStrategy<Message> {
    let rate = any::<(u16, Option<u16>, Option<u16>)>();
    let queue = (port(version), rate).prop_map(|(port, (queue, min_rate, max_rate))| QueueDesc {
        port,
        config: QueueConfig {
            queue: QueueId(queue.into()),
            min_rate,
            max_rate,
        },
    });
    let desc = any::<(u8, u32, Option<u32>, Option<(u8, u8)>)>();
    let table = desc.prop_map(|(table, config, eviction, vacancy)| TableDesc {
        table: TableId(table),
        config: TableFlags(config),
        eviction: eviction.map(EvictionFlags),
        vacancy: vacancy.map(|(down, now)| Vacancy {
            limits: VacancyLimits {
                down: down % 101,
                up: 100,
            },
            now: now % 101,
        }),
    });
    let status = table.clone().prop_map(|table| {
        Message::TableStatus(TableStatus {
            reason: TableReason::VacancyUp,
            table,
        })
    });
    let table_mod = table.clone().prop_map(|desc| {
        Message::TableMod(TableMod {
            table: desc.table,
            config: TableFlags(desc.config.0 & 0xf),
            eviction: desc.eviction,
            vacancy: desc.vacancy.map(|vacancy| vacancy.limits),
        })
    });
    prop_oneof![
        vec(queue, 0..5).prop_map(|queues| MultipartReply::QueueDesc(queues).into()),
        vec(table, 0..5).prop_map(|tables| MultipartReply::TableDesc(tables).into()),
        Just(Message::MultipartRequest(MultipartRequest::TableDesc)),
        status,
        table_mod,
        option::of(0..u64::MAX).prop_map(|generation| Message::RoleStatus(RoleStatus {
            role: Role::Slave,
            reason: RoleReason::MasterRequest,
            generation,
        })),
    ]
    .boxed()
}

/// Controller-status messages of 1.5.
fn controllers() -> BoxedStrategy<Message> {
    let roles = prop::sample::select(vec![Role::Equal, Role::Master, Role::Slave]);
    let reasons = prop::sample::select(vec![
        ControllerReason::Request,
        ControllerReason::ChannelStatus,
        ControllerReason::Role,
        ControllerReason::Added,
        ControllerReason::Removed,
        ControllerReason::ShortId,
        ControllerReason::Experimenter,
    ]);
    let channels = prop::sample::select(vec![ControlChannelStatus::Up, ControlChannelStatus::Down]);
    let valid = (any::<u16>(), option::of("[a-z:.0-9]{0,30}"));
    let status =
        (roles, reasons, channels, valid).prop_map(|(role, reason, channel, (short_id, uri))| {
            ControllerStatus {
                short_id: ShortId::new(short_id),
                role,
                reason,
                channel,
                uri,
            }
        });
    let role = any::<(u16, u64)>().prop_map(|(short_id, generation)| RoleRequest {
        role: Some(Role::Master),
        generation: Some(generation),
        short_id: ShortId::new(short_id),
    });
    prop_oneof![
        status.clone().prop_map(Message::ControllerStatus),
        vec(status, 0..5).prop_map(|all| MultipartReply::ControllerStatus(all).into()),
        Just(Message::MultipartRequest(
            MultipartRequest::ControllerStatus
        )),
        role.prop_map(Message::RoleRequest),
    ]
    .boxed()
}

/// Any message that the dialect can encode.
pub(crate) fn message(dialect: Dialect) -> BoxedStrategy<Message> {
    let version = dialect.version;
    let port_status = port_desc(version).prop_map(|port| {
        Message::PortStatus(PortStatus {
            reason: PortReason::Modify,
            port,
        })
    });
    let own = match version {
        Version::V10 => prop_oneof![
            groups::commands(version),
            Just(Message::NiciraSetting(NiciraSetting::TableIds(true))),
        ]
        .boxed(),
        Version::V11 | Version::V12 => groups::commands(version),
        Version::V13 => prop_oneof![groups::commands(version), groups::meter_replies()].boxed(),
        Version::V14 => prop_oneof![
            groups::commands(version),
            groups::meter_replies(),
            new_in_v14(version)
        ]
        .boxed(),
        Version::V15 => prop_oneof![
            groups::commands(version),
            groups::meter_replies(),
            new_in_v14(version),
            controllers(),
            flow_counts(version)
        ]
        .boxed(),
    };
    prop_oneof![
        4 => flow_mod(dialect),
        2 => flow_reply(version),
        1 => flow_request(version),
        1 => flow_removed(dialect),
        1 => port_status,
        1 => crate::packet_in::packet_in(dialect),
        1 => crate::packet_in::resume(dialect),
        1 => any::<u16>().prop_map(Message::ControllerId),
        1 => any::<u16>().prop_map(Message::FlushZone),
        1 => tlv_table(),
        1 => ipfix(),
        1 => packet_out(version),
        1 => port_mod(version),
        1 => features_reply(version),
        2 => statistics(version),
        2 => simple(version),
        1 => own,
        1 => groups::replies(version),
        1 => monitors::messages(version),
    ]
    .boxed()
}

/// IPFIX statistics requests and replies.
fn ipfix() -> BoxedStrategy<Message> {
    let counts = any::<([u64; 2], [u64; 3], [u64; 3], [u64; 2], u32)>();
    let stats = counts.prop_map(|(flows, sampled, failed, sent, collectors)| IpfixStats {
        flows: flows[0],
        flows_now: flows[1],
        sampled,
        failed,
        sent: sent[0],
        send_failed: sent[1],
        collectors,
    });
    let of = prop::sample::select(vec![IpfixScope::Bridge, IpfixScope::Collectors]);
    prop_oneof![
        of.prop_map(|of| Message::MultipartRequest(MultipartRequest::Ipfix(of))),
        stats
            .clone()
            .prop_map(|one| MultipartReply::Ipfix(IpfixScope::Bridge, vec![one]).into()),
        vec(stats, 0..5).prop_map(|all| MultipartReply::Ipfix(IpfixScope::Collectors, all).into()),
    ]
    .boxed()
}

/// TLV map messages.
fn tlv_table() -> BoxedStrategy<Message> {
    let mapping = (any::<u16>(), any::<u8>(), any::<u8>(), any::<u16>());
    let mapping = mapping.prop_map(|(class, kind, length, index)| TlvMapping {
        class,
        kind,
        length,
        index,
    });
    let commands = vec![TlvCommand::Add, TlvCommand::Delete, TlvCommand::Clear];
    let sizes = (any::<u32>(), any::<u16>());
    (prop::sample::select(commands), sizes, vec(mapping, 0..6))
        .prop_flat_map(|(command, (space_max, fields_max), mappings)| {
            let command = TlvTableMod {
                command,
                mappings: mappings.clone(),
            };
            let table = TlvTable {
                space_max,
                fields_max,
                mappings,
            };
            prop_oneof![
                Just(Message::TlvTableRequest),
                Just(Message::TlvTableMod(command)),
                Just(Message::TlvTableReply(table)),
            ]
        })
        .boxed()
}

/// Random rules, for a best-effort encoding.
pub(crate) fn any_rules() -> BoxedStrategy<Vec<FlowStats>> {
    let rule = (
        flow_stats(FlowFormat::Standard, Version::V13),
        actions(Version::V10),
        actions(Version::V13),
    )
        .prop_map(|(mut rule, old, new)| {
            rule.instructions.apply.extend(old);
            rule.instructions.write.extend(new);
            rule
        });
    vec(rule, 0..6).boxed()
}
