//! The encoding of instructions: OpenFlow 1.1 and later have instructions, 1.0 has a list of
//! actions (OF 1.3.5, 7.2.4; OF 1.5.1, 7.2.5; OF 1.0.1, 5.3.3). In 1.5 a meter is an action: the
//! first action of `apply_actions` replaces the meter instruction.

use base::{MeterId, PortNo, TableId};
use flow::{Action, Extension, Field, Instructions, MetadataWrite, Refusal};

use crate::action::{self, ActionItem, EncodeContext};
use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::fidelity::Fidelity;
use crate::version::Version;

const GOTO_TABLE: u16 = 1;
const WRITE_METADATA: u16 = 2;
pub(crate) const WRITE_ACTIONS: u16 = 3;
pub(crate) const APPLY_ACTIONS: u16 = 4;
const CLEAR_ACTIONS: u16 = 5;
const METER: u16 = 6;
const STAT_TRIGGER: u16 = 7;
const EXPERIMENTER: u16 = 0xffff;

/// The instructions that this switch supports in a version, for table features.
pub(crate) fn supported_numbers(version: Version) -> impl Iterator<Item = u16> {
    let all = [
        GOTO_TABLE,
        WRITE_METADATA,
        WRITE_ACTIONS,
        APPLY_ACTIONS,
        CLEAR_ACTIONS,
        METER,
    ];
    all.into_iter()
        .filter(move |number| *number != METER || has_meter(version))
}

/// The instructions of a table: from the last table no other can be reached.
pub(crate) fn numbers_of_table(version: Version, table: TableId) -> impl Iterator<Item = u16> {
    let has = move |number: &u16| *number != GOTO_TABLE || table < TableId::LAST;
    supported_numbers(version).filter(has)
}

/// Decodes instructions to the end of `r`.
pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Instructions, Malformed> {
    let mut read = Instructions::default();
    decode_into(r, &mut read)?;
    Ok(read)
}

/// Like [`decode`], but into empty instructions.
pub(crate) fn decode_into(r: &mut Reader<'_>, read: &mut Instructions) -> Result<(), Malformed> {
    match r.version() {
        Version::V10 => decode_list_into(r, read),
        Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => {
            decode_instructions(r, read)
        }
    }
}

/// Decodes a list of actions. Nicira's forms of `write_metadata` and `goto_table` may end it.
pub(crate) fn decode_list(r: &mut Reader<'_>) -> Result<Instructions, Malformed> {
    let mut read = Instructions::default();
    decode_list_into(r, &mut read)?;
    Ok(read)
}

fn decode_list_into(r: &mut Reader<'_>, read: &mut Instructions) -> Result<(), Malformed> {
    read.apply.reserve_exact(action::capacity_hint(r));
    while !r.is_empty() {
        let start = r.clone();
        let item = action::decode_one(r)?;
        let late = read.goto.is_some() || read.metadata.is_some();
        match item {
            // `goto_table` after `write_metadata`, as `ovs-ofctl` encodes it in 1.0.
            ActionItem::Action(Action::Extended(Extension::Resubmit {
                port: PortNo::IN_PORT,
                table: Some(table),
            })) if read.metadata.is_some() && read.goto.is_none() => read.goto = Some(table),
            _ if late => return Err(start.fail(Refusal::ActionUnsupportedOrder)),
            ActionItem::Action(action) => read.apply.push(action),
            ActionItem::PopQueue => {
                action::pop_queue(&mut read.apply);
            }
            ActionItem::Metadata(write) => read.metadata = Some(write),
        }
    }
    Ok(())
}

fn decode_instructions(r: &mut Reader<'_>, read: &mut Instructions) -> Result<(), Malformed> {
    let mut seen = 0_u8;
    while !r.is_empty() {
        let start = r.clone();
        let mut head = r.clone().on_short(Refusal::InstructionBadLength);
        let (kind, length) = (head.u16()?, usize::from(head.u16()?));
        if length < 8 || length % 8 != 0 {
            return Err(start.fail(Refusal::InstructionBadLength));
        }
        let mut body = r.sub_or(length, Refusal::InstructionBadLength)?;
        body.skip(4)?;
        decode_body(kind, &mut body, read)?;
        body.end()?;
        // There are six instructions, so a byte has a bit for each.
        let bit = 1 << kind;
        if seen & bit != 0 {
            return Err(start.fail(Refusal::InstructionDuplicate));
        }
        seen |= bit;
    }
    Ok(())
}

/// Returns true if the version has a meter instruction. In 1.5 a meter is an action.
const fn has_meter(version: Version) -> bool {
    match version {
        Version::V10 | Version::V11 | Version::V12 | Version::V15 => false,
        Version::V13 | Version::V14 => true,
    }
}

/// Decodes the body of one instruction.
fn decode_body(kind: u16, r: &mut Reader<'_>, read: &mut Instructions) -> Result<(), Malformed> {
    match kind {
        GOTO_TABLE => {
            read.goto = Some(TableId(r.u8()?));
            r.skip(3)
        }
        WRITE_METADATA => {
            r.skip(4)?;
            let (value, mask) = (r.u64()?, r.u64()?);
            read.metadata = Some(MetadataWrite { value, mask });
            Ok(())
        }
        WRITE_ACTIONS => {
            r.skip(4)?;
            read.write = action::decode(r)?;
            Ok(())
        }
        APPLY_ACTIONS => {
            r.skip(4)?;
            if r.version() == Version::V15 {
                read.meter = action::decode_meter(r)?;
            }
            action::decode_into(r, &mut read.apply)
        }
        CLEAR_ACTIONS => {
            read.clear = true;
            r.skip(4)
        }
        METER if has_meter(r.version()) => {
            read.meter = Some(MeterId(r.u32()?));
            Ok(())
        }
        STAT_TRIGGER if r.version() == Version::V15 => Err(r.fail(Refusal::InstructionUnsupported)),
        EXPERIMENTER => Err(r.fail(Refusal::InstructionBadExperimenter)),
        _ => Err(r.fail(Refusal::InstructionUnknown)),
    }
}

/// Appends instructions. With [`Fidelity::BestEffort`] it omits those that the version lacks.
pub(crate) fn encode(
    instructions: &Instructions,
    context: EncodeContext<'_>,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    match w.version() {
        Version::V10 => encode_list(instructions, context, w),
        Version::V11 | Version::V12 | Version::V13 | Version::V14 | Version::V15 => {
            encode_instructions(instructions, context, w)
        }
    }
}

/// Appends instructions as a list of actions. In versions after 1.0 it omits a metadata write that
/// no `goto_table` follows.
pub(crate) fn encode_list(
    instructions: &Instructions,
    context: EncodeContext<'_>,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let Instructions {
        meter,
        apply,
        clear,
        write,
        metadata,
        goto,
    } = instructions;
    if context.fidelity == Fidelity::Lossless && (meter.is_some() || *clear || !write.is_empty()) {
        return Err(w.unsupported("an action set or a meter"));
    }
    action::encode(apply, context, w)?;
    match (metadata, goto) {
        (None, None) => Ok(()),
        (Some(_), None) if w.version() > Version::V10 => Ok(()),
        (Some(write), None) => action::encode_metadata(*write, w),
        (None, Some(table)) => action::encode_goto(*table, w),
        (Some(write), Some(table)) => {
            // `ovs-ofctl` accepts no action after `write_metadata`, and `goto_table` is an action
            // here. Therefore the register is written as a field.
            let load = Action::SetField {
                field: Field::Metadata,
                value: u128::from(write.value & write.mask),
                mask: write.mask.into(),
            };
            action::encode(&[load], context, w)?;
            action::encode_goto(*table, w)
        }
    }
}

fn encode_instructions(
    instructions: &Instructions,
    context: EncodeContext<'_>,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let is_action = w.version() == Version::V15;
    let (instruction, first) = match instructions.meter {
        Some(meter) if is_action => (None, Some(meter)),
        meter => (meter, None),
    };
    if let Some(meter) = instruction {
        encode_meter(meter, context.fidelity, w)?;
    }
    if first.is_some() || !instructions.apply.is_empty() {
        put(APPLY_ACTIONS, w, |w| {
            w.zeros(4);
            if let Some(meter) = first {
                action::encode_meter(meter, w)?;
            }
            action::encode(&instructions.apply, context, w)
        })?;
    }
    if instructions.clear {
        put(CLEAR_ACTIONS, w, |_| Ok(()))?;
    }
    if !instructions.write.is_empty() {
        put(WRITE_ACTIONS, w, |w| {
            w.zeros(4);
            action::encode(&instructions.write, context, w)
        })?;
    }
    if let Some(MetadataWrite { value, mask }) = instructions.metadata {
        put(WRITE_METADATA, w, |w| {
            w.zeros(4);
            w.u64(value);
            w.u64(mask);
            Ok(())
        })?;
    }
    if let Some(table) = instructions.goto {
        put(GOTO_TABLE, w, |w| {
            w.u8(table.0);
            Ok(())
        })?;
    }
    Ok(())
}

fn encode_meter(meter: MeterId, fidelity: Fidelity, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    match (has_meter(w.version()), fidelity) {
        (true, _) => put(METER, w, |w| {
            w.u32(meter.0);
            Ok(())
        }),
        (false, Fidelity::BestEffort) => Ok(()),
        (false, Fidelity::Lossless) => Err(w.unsupported("a meter")),
    }
}

/// Appends an instruction, padded to eight bytes.
fn put(
    kind: u16,
    w: &mut Writer<'_>,
    arguments: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    w.nested(2, |w| {
        w.u16(kind);
        w.u16(0);
        arguments(w)?;
        w.pad_to(8);
        Ok(())
    })
    .map(drop)
}

#[cfg(test)]
mod tests;
