//! Random Nicira actions that the wire format can express.

use std::sync::Arc;

use base::{Cookie, MeterId, PortNo, TableId};
use flow::field::{EXPERIMENTER, FieldInfo, TUNNEL_OPTION_BYTES};
use flow::{
    Action, BundleAction, BundleAlgorithm, ConntrackAction, ConntrackFlags, ConntrackZone,
    ControllerAction, Encap, Extension, Field, HashFields, Learn, LearnFlags, LearnSource,
    LearnSpec, MaxLen, Multipath, MultipathAlgorithm, NatAction, NatAddresses, NatFlags,
    NshProperty, OptionTerm, PacketInReason, PacketType, SampleAction, SampleDirection, SampleId,
    Subfield, Wide,
};
use openflow::Version;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// A part of a field, at most `bits` bits wide.
fn part_of(fields: Vec<Field>, bits: u16) -> impl Strategy<Value = Subfield> {
    (select(fields), any::<Index>(), any::<Index>()).prop_map(move |(field, a, b)| {
        let width = field.info().bits;
        let bits = 1 + a.index(width.min(bits).into());
        let offset = b.index(usize::from(width) - bits + 1);
        let narrow = |number: usize| u16::try_from(number).expect("at most 992");
        Subfield::new(field, narrow(offset), narrow(bits)).expect("it is within the field")
    })
}

fn any_part() -> impl Strategy<Value = Subfield> {
    let fields = Field::all().map(|row| row.field);
    part_of(
        fields.filter(|field| *field != Field::InPhyPort).collect(),
        64,
    )
}

fn target() -> impl Strategy<Value = Subfield> {
    let rows = Field::all().filter(|row| row.writable && !is_experimenters(row));
    part_of(rows.map(|row| row.field).collect(), 64)
}

/// Returns true for an experimenter field: a load of a part of it is encoded as a set-field, and
/// decodes as one.
fn is_experimenters(row: &FieldInfo) -> bool {
    row.nxm.is_some_and(|id| id.class == EXPERIMENTER)
}

/// A number of any width.
pub(crate) fn wide() -> impl Strategy<Value = Wide> {
    vec(any::<u8>(), 0..=TUNNEL_OPTION_BYTES)
        .prop_map(|bytes| Wide::from_be_bytes(&bytes).expect("it is not too wide"))
}

/// A condition on any tunnel option.
pub(crate) fn option_term() -> impl Strategy<Value = OptionTerm> {
    let mask = prop_oneof![Just(Wide::ONES), wide()];
    let fields = Field::tunnel_options().to_vec();
    (select(fields), wide(), mask).prop_map(|(field, value, mask)| OptionTerm {
        field,
        value: value & mask,
        mask,
    })
}

/// A port number that fits 16 and 32 bits.
fn port() -> impl Strategy<Value = PortNo> {
    prop_oneof![(1..0xff00_u32).prop_map(PortNo), Just(PortNo::LOCAL)]
}

/// Another part of the same width.
fn twin(part: Subfield) -> Subfield {
    Subfield::new(Field::Xxreg0, 3, part.bits()).expect("128 bits are enough")
}

fn to_controller() -> impl Strategy<Value = ControllerAction> {
    let reasons = vec![
        PacketInReason::Action,
        PacketInReason::NoMatch,
        PacketInReason::InvalidTtl,
    ];
    (
        any::<u16>().prop_map(MaxLen),
        any::<u16>(),
        select(reasons),
        vec(any::<u8>(), 0..9),
        option::of((1..=u32::MAX).prop_map(MeterId)),
        any::<bool>(),
    )
        .prop_map(
            |(max_len, controller, reason, userdata, meter, pause)| ControllerAction {
                max_len,
                controller,
                reason,
                userdata,
                meter,
                pause,
            },
        )
}

fn source(to: Subfield) -> impl Strategy<Value = LearnSource> {
    prop_oneof![
        any::<u128>().prop_map(move |value| LearnSource::Value((value & to.ones()).into())),
        Just(LearnSource::Subfield(twin(to))),
        Just(LearnSource::Subfield(to)),
    ]
}

fn spec() -> impl Strategy<Value = LearnSpec> {
    prop_oneof![
        any_part()
            .prop_flat_map(|to| source(to).prop_map(move |from| LearnSpec::Match { to, from })),
        target().prop_flat_map(|to| source(to).prop_map(move |from| LearnSpec::Load { to, from })),
        any_part().prop_map(LearnSpec::Output),
    ]
}

fn learn() -> impl Strategy<Value = Learn> {
    let bit = part_of(vec![Field::Reg0, Field::Xxreg3, Field::Metadata], 1);
    (
        (0..=254_u8, any::<u16>(), any::<u64>(), any::<u32>()),
        any::<[u16; 4]>(),
        0..4_u16,
        option::of(bit),
        vec(spec(), 0..5),
    )
        .prop_map(
            |((table, priority, cookie, limit), times, flags, result, specs)| Learn {
                table: TableId(table),
                priority,
                cookie: Cookie(cookie),
                idle_timeout_s: times[0],
                hard_timeout_s: times[1],
                fin_idle_timeout_s: times[2],
                fin_hard_timeout_s: times[3],
                flags: LearnFlags(flags),
                limit,
                result,
                specs,
            },
        )
}

fn hash_fields() -> impl Strategy<Value = HashFields> {
    select(HashFields::ALL.map(|(fields, _)| fields).to_vec())
}

fn multipath() -> impl Strategy<Value = Multipath> {
    let algorithms = MultipathAlgorithm::ALL.map(|(algorithm, _)| algorithm);
    let numbers = (any::<u16>(), any::<u16>(), any::<u32>());
    (
        hash_fields(),
        select(algorithms.to_vec()),
        numbers,
        target(),
    )
        .prop_map(
            |(fields, algorithm, (basis, link_max, argument), to)| Multipath {
                fields,
                basis,
                algorithm,
                link_max: link_max & u16::try_from(to.ones() & 0xffff).expect("16 bits"),
                argument,
                to,
            },
        )
}

fn bundle() -> impl Strategy<Value = BundleAction> {
    let algorithms = BundleAlgorithm::ALL.map(|(algorithm, _)| algorithm);
    let choice = (hash_fields(), any::<u16>(), select(algorithms.to_vec()));
    // The action has no space for the experimenter id of a field.
    let to = option::of(target());
    (choice, to, vec(port(), 0..6)).prop_map(|((fields, basis, algorithm), to, members)| {
        BundleAction {
            fields,
            basis,
            algorithm,
            to,
            members,
        }
    })
}

fn sample() -> impl Strategy<Value = SampleAction> {
    let directions = vec![
        SampleDirection::Unspecified,
        SampleDirection::Ingress,
        SampleDirection::Egress,
    ];
    let id = || {
        prop_oneof![
            any::<u32>().prop_map(SampleId::Number),
            Just(SampleId::Subfield(Subfield::whole(Field::Reg3))),
        ]
    };
    let numbers = (1..=u16::MAX, any::<u32>(), id(), id());
    (numbers, option::of(port()), select(directions)).prop_map(
        |((probability, collectors, domain, point), port, direction)| SampleAction {
            probability,
            collectors,
            domain,
            point,
            port,
            direction,
        },
    )
}

/// A header to push, with valid properties.
fn encap() -> impl Strategy<Value = Encap> {
    let tlv = (any::<u16>(), any::<u8>(), vec(any::<u8>(), 0..20));
    let property = prop_oneof![
        (1..=2_u8).prop_map(NshProperty::MdType),
        tlv.prop_map(|(class, kind, value)| NshProperty::Tlv { class, kind, value }),
    ];
    prop_oneof![
        Just(Encap::Ethernet),
        Just(Encap::Mpls),
        Just(Encap::MplsMulticast),
        vec(property, 0..5).prop_map(|properties| Encap::Nsh(properties.into())),
    ]
}

/// An action without nested actions.
fn simple() -> BoxedStrategy<Extension> {
    let resubmit = (option::of(port()), 0..=254_u8, any::<bool>());
    let resubmit = resubmit.prop_map(|(port, table, by_connection)| {
        let table = (port.is_none() || table > 100).then_some(TableId(table));
        let port = port.unwrap_or(PortNo::IN_PORT);
        match by_connection {
            true => Extension::ResubmitConnection { port, table },
            false => Extension::Resubmit { port, table },
        }
    });
    let load = (target(), any::<u64>()).prop_map(|(to, value)| Extension::Load {
        to,
        value: value & u64::try_from(to.ones()).expect("64 bits at most"),
    });
    prop_oneof![
        resubmit,
        load,
        any_part().prop_map(|from| Extension::Move {
            from,
            to: twin(from)
        }),
        any_part().prop_map(Extension::Push),
        target().prop_map(Extension::Pop),
        (any_part(), any::<u16>()).prop_map(|(from, len)| Extension::OutputReg {
            from,
            max_len: MaxLen(len)
        }),
        (port(), any::<u32>())
            .prop_map(|(port, max_len)| Extension::OutputTruncated { port, max_len }),
        to_controller().prop_map(|to_controller| Extension::Controller(Arc::new(to_controller))),
        vec(any::<u16>(), 1..5).prop_map(|ids| Extension::DecTtl(ids.into())),
        (0..4_usize, any::<u8>())
            .prop_map(|(words, byte)| Extension::Note(vec![byte; 6 + 8 * words].into())),
        Just(Extension::Exit),
        Just(Extension::PopQueue),
        Just(Extension::ConntrackClear),
        Just(Extension::DebugSlow),
        Just(Extension::DebugRecirc),
        learn().prop_map(|learn| Extension::Learn(Arc::new(learn))),
        any::<(u16, u16)>().prop_map(|(idle_s, hard_s)| Extension::FinTimeout { idle_s, hard_s }),
        multipath().prop_map(Extension::Multipath),
        bundle().prop_map(|bundle| Extension::Bundle(Arc::new(bundle))),
        any::<(u32, u8, u8)>().prop_map(|(id, clause, clauses)| Extension::Conjunction {
            id,
            clause,
            clauses
        }),
        (any::<u16>(), part_of(vec![Field::Reg3, Field::Metadata], 1))
            .prop_map(|(bytes, to)| Extension::CheckPacketLarger { bytes, to }),
        sample().prop_map(Extension::Sample),
        encap().prop_map(Extension::Encap),
        option::of((0..0xfffe_u32).prop_map(PacketType)).prop_map(|left| Extension::Decap { left }),
        Just(Extension::DecNshTtl),
        option_term()
            .prop_filter("there is a bit to write", |term| !term.mask.is_zero())
            .prop_map(|term| Extension::SetOption(Arc::new(term))),
    ]
    .boxed()
}

/// Any extension action of the version, including clones.
pub(crate) fn extension(version: Version) -> BoxedStrategy<Extension> {
    let simple = simple().prop_map(move |extension| match extension {
        // 1.5 has one action for all writes.
        Extension::Load { to, .. } if version == Version::V15 => Extension::Push(to),
        Extension::Encap(_) | Extension::Decap { .. } | Extension::DecNshTtl
            if version < Version::V13 =>
        {
            Extension::Exit
        }
        extension => extension,
    });
    let simple = simple.boxed();
    let inside = vec(simple.clone().prop_map(Action::Extended), 0..3);
    let clone = inside.prop_map(|actions| Extension::Clone(actions.into()));
    prop_oneof![9 => simple, 1 => clone, 1 => conntrack(version)].boxed()
}

/// Addresses and ports to choose from: the second is not less than the first.
fn nat() -> impl Strategy<Value = NatAction> {
    let kinds = vec![
        NatFlags::SOURCE,
        NatFlags::DESTINATION.with(NatFlags::PERSISTENT),
        NatFlags::SOURCE.with(NatFlags::HASH),
        NatFlags::DESTINATION.with(NatFlags::RANDOM),
    ];
    let v4 = (1..1000_u32, option::of(1000..=u32::MAX));
    let v6 = (1..1000_u128, option::of(1000..=u128::MAX));
    let addresses = prop_oneof![
        v4.prop_map(|(min, max)| NatAddresses::V4(min.into(), max.map(Into::into))),
        v6.prop_map(|(min, max)| NatAddresses::V6(min.into(), max.map(Into::into))),
    ];
    let ports = option::of((1..1000_u16, option::of(1000..=u16::MAX)));
    (select(kinds), addresses, ports).prop_map(|(flags, addresses, ports)| NatAction {
        flags,
        addresses,
        ports,
    })
}

/// Connection tracking with or without actions on the connection.
fn conntrack(version: Version) -> impl Strategy<Value = Extension> {
    let zone = prop_oneof![
        any::<u16>().prop_map(ConntrackZone::Number),
        (0..17_u16).prop_map(|offset| {
            let part = Subfield::new(Field::Reg3, offset, 16);
            ConntrackZone::Subfield(part.expect("it is within the register"))
        }),
    ];
    let mark = any::<u32>().prop_map(move |value| match version {
        // 1.5 has one action for all writes.
        Version::V15 => Action::set(Field::CtMark, value.into()),
        _ => Action::Extended(Extension::Load {
            to: Subfield::whole(Field::CtMark),
            value: value.into(),
        }),
    });
    let nat = nat().prop_map(|nat| Action::Extended(Extension::Nat(Arc::new(nat))));
    let committed =
        (any::<bool>(), vec(prop_oneof![mark, nat], 0..4)).prop_map(|(force, inner)| {
            let force = u16::from(force) * ConntrackFlags::FORCE.0;
            (ConntrackFlags(ConntrackFlags::COMMIT.0 | force), inner)
        });
    let restored = any::<bool>().prop_map(|nat| {
        let nat = nat.then(|| Action::Extended(Extension::Nat(Arc::default())));
        (ConntrackFlags::default(), nat.into_iter().collect())
    });
    let table = option::of((0..=254_u8).prop_map(TableId));
    (prop_oneof![committed, restored], zone, table, any::<u16>()).prop_map(
        |((flags, actions), zone, table, alg)| {
            Extension::Conntrack(Arc::new(ConntrackAction {
                flags,
                zone,
                table,
                alg,
                actions,
            }))
        },
    )
}
