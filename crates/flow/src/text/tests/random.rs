//! Random matches, actions and flow-mods that the text form must represent.

use std::sync::Arc;

use base::{Cookie, GroupId, MeterId, PortNo, QueueId, TableId};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::action::{Action, Instructions, MaxLen, MetadataWrite};
use crate::command::{FlowFlags, FlowMod, FlowModCommand};
use crate::extension::Extension;
use crate::field::{Field, Maskable, TUNNEL_OPTION_BYTES};
use crate::matching::Match;
use crate::options::OptionTerm;
use crate::text::DEFAULT_PRIORITY;
use crate::wide::Wide;

/// Any field.
fn field() -> impl Strategy<Value = Field> {
    select(Field::all().map(|row| row.field).collect::<Vec<_>>())
}

/// Random value and mask for `field`: mostly exact, otherwise a prefix or any bits.
fn masked(field: Field) -> impl Strategy<Value = (Field, u128, u128)> {
    let full = field.full_mask();
    let maskable = field.info().maskable == Maskable::Any;
    (any::<u128>(), any::<u128>(), 0..128_u32, 0..4).prop_map(move |(value, bits, wild, kind)| {
        let mask = match kind {
            2 if maskable => full & (u128::MAX << (wild % u32::from(field.info().bits))),
            3 if maskable && bits & full != 0 => bits & full,
            _ => full,
        };
        let value = match field {
            Field::InPort | Field::InPhyPort => u128::from(narrow(value)),
            _ => value,
        };
        (field, value & mask, mask)
    })
}

/// Port number that all versions encode alike: the reserved numbers of OpenFlow 1.0 are read as
/// their 32-bit equivalents.
fn narrow(value: u128) -> u32 {
    match u32::try_from(value & u128::from(u32::MAX)).expect("32 bits") {
        number @ 0xfff7..=0xffff => number - 0x1000,
        number => number,
    }
}

/// Any port, reserved or not.
fn port() -> impl Strategy<Value = PortNo> {
    prop_oneof![
        any::<u32>().prop_map(|number| PortNo(narrow(number.into()))),
        (1..100_u32).prop_map(PortNo),
        select(PortNo::RESERVED.map(|(port, _)| port).to_vec()),
    ]
}

/// Random match. Terms that the others do not permit are omitted.
pub(crate) fn matching() -> impl Strategy<Value = Match> {
    let eth_types = vec![
        0x0800, 0x0806, 0x8035, 0x86dd, 0x8847, 0x8848, 0x88cc, 0x05ff,
    ];
    let eth_type = option::weighted(0.9, select(eth_types));
    let ip_proto = option::of(select(vec![1, 2, 6, 17, 58, 89, 132]));
    let icmpv6_type = option::of(select(vec![128, 135, 136]));
    let terms = vec(field().prop_flat_map(masked), 0..24);
    (eth_type, ip_proto, icmpv6_type, terms).prop_map(|(eth_type, ip_proto, icmpv6_type, terms)| {
        let chosen = [
            (Field::EthType, eth_type),
            (Field::IpProto, ip_proto),
            (Field::Icmpv6Type, icmpv6_type),
        ];
        let chosen = chosen.into_iter().filter_map(|(field, value)| {
            value.map(|value: u128| (field, value, field.full_mask()))
        });
        let mut all: Vec<_> = chosen.chain(terms).collect();
        all.sort_by_key(|(field, ..)| *field);
        all.iter()
            .fold(Match::any(), |built, (field, value, mask)| {
                built
                    .clone()
                    .with_masked(*field, *value, *mask)
                    .unwrap_or(built)
            })
    })
}

/// Random set-field of a writable field.
fn set_field() -> impl Strategy<Value = Action> {
    let of_frames = |field: &Field| field.info().writable && field.option().is_none();
    field()
        .prop_filter("can be set", of_frames)
        .prop_flat_map(masked)
        .prop_map(|(field, value, mask)| Action::SetField { field, value, mask })
}

/// A write of any bits of a tunnel option.
fn set_option() -> impl Strategy<Value = Action> {
    let fields = select(Field::tunnel_options().to_vec());
    let bytes = || vec(any::<u8>(), 1..=TUNNEL_OPTION_BYTES);
    (fields, bytes(), option::of(bytes())).prop_map(|(field, value, mask)| {
        let wide = |bytes: Vec<u8>| Wide::from_be_bytes(&bytes).expect("it is not too wide");
        let mask = mask.map_or(Wide::ONES, |mask| wide(mask) | Wide::from(1));
        let value = wide(value) & mask;
        Action::Extended(Extension::SetOption(Arc::new(OptionTerm {
            field,
            value,
            mask,
        })))
    })
}

/// An output to any port.
fn output() -> impl Strategy<Value = Action> {
    (port(), any::<u16>()).prop_map(|(port, length)| match port {
        PortNo::CONTROLLER => Action::Output {
            port,
            max_len: MaxLen(length),
        },
        _ => Action::output(port),
    })
}

/// Any action.
pub(super) fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => output(),
        4 => set_field(),
        1 => set_option(),
        1 => (port(), any::<u32>()).prop_map(|(port, queue)| Action::Enqueue { port, queue: QueueId(queue) }),
        1 => any::<u32>().prop_map(|queue| Action::SetQueue(QueueId(queue))),
        1 => any::<u32>().prop_map(|group| Action::Group(GroupId(group))),
        1 => Just(Action::Extended(Extension::PopQueue)),
        1 => Just(Action::Extended(Extension::DebugSlow)),
        1 => Just(Action::Extended(Extension::DebugRecirc)),
        1 => (0..0x1000_u16).prop_map(Action::SetVlanVid),
        1 => (0..8_u8).prop_map(Action::SetVlanPcp),
        1 => any::<u32>().prop_map(Action::SetNwSrc),
        1 => any::<u32>().prop_map(Action::SetNwDst),
        1 => any::<u8>().prop_map(|tos| Action::SetNwTos(tos & 0xfc)),
        1 => any::<u16>().prop_map(Action::SetTpSrc),
        1 => any::<u16>().prop_map(Action::SetTpDst),
        1 => any::<u16>().prop_map(Action::PushVlan),
        1 => any::<u16>().prop_map(Action::PushMpls),
        1 => any::<u16>().prop_map(Action::PopMpls),
        1 => any::<u16>().prop_map(Action::PushPbb),
        1 => any::<u8>().prop_map(Action::SetMplsTtl),
        1 => any::<u8>().prop_map(Action::SetIpTtl),
        1 => select(vec![
            Action::PopVlan, Action::PopPbb, Action::DecMplsTtl, Action::DecIpTtl, Action::CopyTtlOut, Action::CopyTtlIn,
        ]),
    ]
}

/// Any instructions.
pub(super) fn instructions() -> impl Strategy<Value = Instructions> {
    let metadata =
        (any::<u64>(), any::<u64>(), any::<bool>()).prop_map(|(value, mask, all)| MetadataWrite {
            value,
            mask: if all { u64::MAX } else { mask },
        });
    (
        option::weighted(0.2, any::<u32>().prop_map(MeterId)),
        vec(action(), 0..5),
        any::<bool>(),
        vec(action(), 0..3),
        option::of(metadata),
        option::of(any::<u8>().prop_map(TableId)),
    )
        .prop_map(
            |(meter, apply, clear, write, metadata, goto)| Instructions {
                meter,
                apply,
                clear,
                write,
                metadata,
                goto,
            },
        )
}

/// Random flow-mod with the parts that its command uses.
pub(super) fn flow_mod() -> impl Strategy<Value = FlowMod> {
    use FlowModCommand::{Add, Delete, DeleteStrict, Modify, ModifyStrict};
    let command = select(vec![Add, Modify, ModifyStrict, Delete, DeleteStrict]);
    let numbers = (any::<u8>(), any::<u16>());
    let cookies = (
        any::<u64>(),
        option::of(any::<u64>()),
        option::of(any::<u64>()),
    );
    let timeouts = (any::<u16>(), any::<u16>(), 0..32_u16);
    let out = (option::of(port()), option::of(any::<u32>()));
    (
        command,
        numbers,
        cookies,
        timeouts,
        out,
        matching(),
        instructions(),
    )
        .prop_map(
            |(
                command,
                (table, priority),
                (cookie, mask, new_cookie),
                timeouts,
                out,
                matching,
                instructions,
            )| {
                let mut flow = FlowMod::new(command, priority, matching, instructions);
                flow.table = TableId(table);
                flow.cookie_mask = mask.filter(|_| command != Add).unwrap_or(0);
                flow.cookie = match command {
                    Add => Cookie(cookie),
                    _ => Cookie(cookie & flow.cookie_mask),
                };
                if matches!(command, Delete | DeleteStrict) {
                    flow.instructions = Instructions::default();
                    flow.out_port = out.0.unwrap_or(PortNo::ANY);
                    flow.out_group = out.1.map_or(GroupId::ANY, GroupId);
                } else {
                    (flow.idle_timeout_s, flow.hard_timeout_s) = (timeouts.0, timeouts.1);
                    flow.importance = timeouts.1;
                    flow.flags = FlowFlags(timeouts.2);
                    flow.new_cookie = new_cookie.filter(|_| command != Add).map(Cookie);
                }
                if command == Delete {
                    flow.priority = DEFAULT_PRIORITY;
                }
                flow
            },
        )
}
