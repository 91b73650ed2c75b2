//! Random packet-ins in the format of the dialect, and random resumes.

use base::{Cookie, PortNo, TableId};
use flow::{
    Action, Continuation, ContinuationStep, Extension, Instructions, MaxLen, PacketIn,
    PacketInReason, PipelineFields, Resume, Wide,
};
use openflow::{Dialect, Message, PacketInFormat, Version};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::strategies::{actions, instructions, port};

/// Random pipeline fields, or only a port.
pub(crate) fn registers(version: Version, all: bool) -> impl Strategy<Value = PipelineFields> {
    let some = (any::<[u64; 2]>(), any::<[u32; 3]>(), any::<[u128; 2]>());
    let general = vec(prop_oneof![Just(0), any::<u32>()], 16);
    (port(version), some, general).prop_map(move |(in_port, some, general)| {
        if !all {
            return PipelineFields::new(in_port);
        }
        let ([metadata, tunnel_id], [mark, src, dst], tunnel_v6) = some;
        PipelineFields {
            metadata,
            tunnel_id,
            tunnel_v4: [src, dst],
            tunnel_v6,
            mark,
            general: general.try_into().expect("sixteen"),
            ..PipelineFields::new(in_port)
        }
    })
}

fn reason(version: Version) -> impl Strategy<Value = PacketInReason> {
    let mut reasons = vec![
        PacketInReason::NoMatch,
        PacketInReason::Action,
        PacketInReason::InvalidTtl,
    ];
    if version >= Version::V14 {
        reasons.extend([
            PacketInReason::ActionSet,
            PacketInReason::Group,
            PacketInReason::PacketOut,
        ]);
    }
    prop::sample::select(reasons)
}

/// Whole words of eight bytes, as in a continuation.
fn continuation() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<[u8; 8]>(), 0..4).prop_map(|words| words.concat())
}

pub(crate) fn packet_in(dialect: Dialect) -> BoxedStrategy<Message> {
    let Dialect {
        version, packet_in, ..
    } = dialect;
    let standard = packet_in == PacketInFormat::Standard;
    let registers = registers(version, !standard || version >= Version::V12);
    let second = packet_in == PacketInFormat::Nicira2;
    let frame = (vec(any::<u8>(), 0..100), 0..1000_u16);
    let more = (vec(any::<u8>(), 0..20), continuation());
    let of_rule = (any::<u8>(), any::<u64>());
    (reason(version), registers, of_rule, frame, more)
        .prop_map(
            move |(reason, registers, (table, cookie), (data, cut), (userdata, left))| {
                let len = u16::try_from(data.len()).expect("short");
                let from = |first| !standard || version >= first;
                Message::PacketIn(PacketIn {
                    reason,
                    table: if from(Version::V11) {
                        TableId(table)
                    } else {
                        TableId::ALL
                    },
                    cookie: if from(Version::V13) {
                        Cookie(cookie)
                    } else {
                        Cookie::NONE
                    },
                    registers,
                    total_len: len + cut,
                    data,
                    userdata: if second { userdata } else { Vec::new() },
                    continuation: if second { left } else { Vec::new() },
                })
            },
        )
        .boxed()
}

/// Random state of a paused packet.
pub(crate) fn continuation_state() -> impl Strategy<Value = Continuation> {
    let version = prop::sample::select(Version::ALL.to_vec());
    let step = version
        .prop_flat_map(|version| (any::<(u8, u64)>(), instructions(version)))
        .prop_map(|((table, cookie), rest)| ContinuationStep {
            table: TableId(table),
            cookie: Cookie(cookie),
            rest: normalized(rest),
        });
    let set = prop::option::of(actions(Version::V10)).prop_map(|set| set.map(normalized_actions));
    let entry =
        (any::<u128>(), 0..992_usize).prop_map(|(number, place)| Wide::from(number) << place);
    let state = (vec(entry, 0..4), vec(step, 0..4), set, any::<u32>());
    state.prop_map(|(stack, steps, set, mirrors)| Continuation {
        stack,
        steps,
        set,
        mirrors,
    })
}

/// Removes values without a meaning: `max_len` of a port other than the controller. The text also
/// omits it for a port that a field names: the controller then receives the whole frame.
fn normalized(instructions: Instructions) -> Instructions {
    Instructions {
        apply: normalized_actions(instructions.apply),
        write: normalized_actions(instructions.write),
        ..instructions
    }
}

fn normalized_actions(actions: Vec<Action>) -> Vec<Action> {
    let one = |action| match action {
        Action::Output { port, .. } if port != PortNo::CONTROLLER => Action::output(port),
        Action::Extended(Extension::OutputReg { from, .. }) => {
            let max_len = MaxLen::WHOLE;
            Action::Extended(Extension::OutputReg { from, max_len })
        }
        Action::Extended(Extension::Clone(inside)) => {
            Action::Extended(Extension::Clone(normalized_actions(inside.to_vec()).into()))
        }
        action => action,
    };
    // A conjunction clause is never executed, so it never remains.
    let is_clause =
        |action: &Action| matches!(action, Action::Extended(Extension::Conjunction { .. }));
    let done = actions.into_iter().filter(|action| !is_clause(action));
    done.map(one).collect()
}

pub(crate) fn resume(dialect: Dialect) -> BoxedStrategy<Message> {
    let registers = registers(dialect.version, true);
    (registers, vec(any::<u8>(), 1..100), continuation())
        .prop_map(|(registers, data, continuation)| {
            Message::Resume(Resume {
                registers,
                data,
                continuation,
            })
        })
        .boxed()
}
