//! The encoding of a continuation, which a switch sends to a controller and receives back in
//! `NXT_RESUME`.
//!
//! It is a list of properties, as in Open vSwitch, so that its tools can print it: the bridge, the
//! stack and the mirrors have Open vSwitch's numbers. The remaining instructions are encoded as
//! text, the only form that has every action in every OpenFlow version. The text omits `max_len` of
//! an output to a port that a field names: if that port is the controller, it receives the whole
//! frame.

use base::{Cookie, DatapathId, TableId};
use flow::text::parse_actions;
use flow::{CONTINUATION_BYTES_MAX, Continuation, ContinuationStep, Instructions, Refusal, Wide};

use crate::codec::{EncodeError, Malformed, Reader, Writer};
use crate::dialect::Dialect;
use crate::message::property;
use crate::version::Version;

/// `NXCPT_BRIDGE`: sixteen bytes, the last eight are the datapath id.
const BRIDGE: u16 = 0x8000;
/// `NXCPT_STACK`: an entry of the stack.
const STACK: u16 = 0x8001;
/// Minimum bytes of a stack entry.
const ENTRY_BYTES: usize = 16;
/// `NXCPT_MIRRORS`: the mirrors that have copied the frame.
const MIRRORS: u16 = 0x8002;
/// A step: its table, its cookie and the remaining instructions as text. Not in Open vSwitch.
const STEP: u16 = 0x8100;
/// The action set as text, if the end of the pipeline executes it. Not in Open vSwitch.
const ACTION_SET: u16 = 0x8101;

/// All versions encode properties in the same way.
const DIALECT: Dialect = Dialect::new(Version::V15);

/// Encodes a continuation of the switch `of`. Returns none if the encoding would exceed
/// [`CONTINUATION_BYTES_MAX`].
#[must_use]
pub fn encode(continuation: &Continuation, of: DatapathId) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let done = put(continuation, of, &mut Writer::new(&mut out, DIALECT));
    let fits = done.is_ok() && out.len() <= CONTINUATION_BYTES_MAX;
    fits.then_some(out)
}

fn put(continuation: &Continuation, of: DatapathId, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    property::put(BRIDGE, w, |w| {
        w.zeros(8);
        w.u64(of.0);
        Ok(())
    })?;
    for entry in &continuation.stack {
        property::put(STACK, w, |w| {
            let bytes = entry.to_be_bytes();
            let width = entry.width().max(ENTRY_BYTES);
            w.bytes(&bytes[bytes.len() - width..]);
            Ok(())
        })?;
    }
    if continuation.mirrors != 0 {
        property::put_u32(MIRRORS, continuation.mirrors, w)?;
    }
    for step in &continuation.steps {
        property::put(STEP, w, |w| {
            w.u8(step.table.0);
            w.zeros(3);
            w.u64(step.cookie.0);
            w.bytes(step.rest.to_string().as_bytes());
            Ok(())
        })?;
    }
    let Some(set) = &continuation.set else {
        return Ok(());
    };
    let set = Instructions::apply(set.clone()).to_string();
    property::put(ACTION_SET, w, |w| {
        w.bytes(set.as_bytes());
        Ok(())
    })
}

/// Decodes a continuation that [`encode`] wrote for the switch `of`.
///
/// # Errors
/// The bytes are from another switch or are no continuation.
pub fn decode(bytes: &[u8], of: DatapathId) -> Result<Continuation, Refusal> {
    let mut r = Reader::new(bytes, DIALECT);
    let stale = |_| Refusal::ResumeStale;
    let mut read = Continuation::default();
    if bytes.len() > CONTINUATION_BYTES_MAX || decode_bridge(&mut r).map_err(stale)? != of {
        return Err(Refusal::ResumeStale);
    }
    while !r.is_empty() {
        let mut property = property::next(&mut r).map_err(stale)?;
        let value = &mut property.value;
        match property.kind {
            STACK => {
                let entry = Wide::from_be_bytes(value.rest());
                read.stack.push(entry.ok_or(Refusal::ResumeStale)?);
            }
            MIRRORS => read.mirrors = value.u32().map_err(stale)?,
            STEP => read.steps.push(decode_step(value)?),
            ACTION_SET => {
                let set = parse_actions(decode_text(value)?).map_err(|_| Refusal::ResumeStale)?;
                read.set = Some(set);
            }
            _ => return Err(Refusal::ResumeStale),
        }
        value.end().map_err(stale)?;
    }
    Ok(read)
}

fn decode_bridge(r: &mut Reader<'_>) -> Result<DatapathId, Malformed> {
    let mut property = property::next(r)?;
    property.value.skip(8)?;
    let of = property.value.u64()?;
    property.value.end()?;
    match property.kind {
        BRIDGE => Ok(DatapathId(of)),
        _ => Err(property.unknown()),
    }
}

fn decode_step(value: &mut Reader<'_>) -> Result<ContinuationStep, Refusal> {
    let mut head = || -> Result<_, Malformed> {
        let table = TableId(value.u8()?);
        value.skip(3)?;
        Ok((table, Cookie(value.u64()?)))
    };
    let (table, cookie) = head().map_err(|_| Refusal::ResumeStale)?;
    let rest = decode_text(value)?
        .parse()
        .map_err(|_| Refusal::ResumeStale)?;
    Ok(ContinuationStep {
        table,
        cookie,
        rest,
    })
}

fn decode_text<'a>(value: &mut Reader<'a>) -> Result<&'a str, Refusal> {
    std::str::from_utf8(value.rest()).map_err(|_| Refusal::ResumeStale)
}

#[cfg(test)]
mod tests {
    use flow::Action;

    use super::*;

    const DATAPATH: DatapathId = DatapathId(0x1234);

    fn sample() -> Continuation {
        let rest = "push:NXM_NX_REG1[],clear_actions,write_actions(output:2),goto_table:7";
        let step = ContinuationStep {
            table: TableId(3),
            cookie: Cookie(0x55),
            rest: rest.parse().expect("instructions"),
        };
        let last = ContinuationStep {
            table: TableId(0),
            cookie: Cookie::NONE,
            rest: Instructions::default(),
        };
        Continuation {
            stack: vec![Wide::from(7), Wide::from(u128::MAX), Wide::ONES],
            steps: vec![step, last],
            set: Some(vec![Action::PopVlan]),
            mirrors: 5,
        }
    }

    #[test]
    fn continuation_round_trips() {
        for continuation in [sample(), Continuation::default()] {
            let bytes = encode(&continuation, DATAPATH).expect("it is short");
            assert_eq!(decode(&bytes, DATAPATH), Ok(continuation));
        }
    }

    #[test]
    fn continuation_of_other_switch_or_damaged_bytes_is_stale() {
        let bytes = encode(&sample(), DATAPATH).expect("it is short");
        assert_eq!(decode(&bytes, DatapathId(1)), Err(Refusal::ResumeStale));
        assert_eq!(decode(&[], DATAPATH), Err(Refusal::ResumeStale));
        for at in 0..bytes.len() {
            assert!(
                decode(&bytes[..at], DATAPATH).is_err() || at % 8 == 0,
                "{at}"
            );
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                drop(decode(&changed, DATAPATH));
            }
        }
        let long = vec![0; CONTINUATION_BYTES_MAX + 1];
        assert_eq!(decode(&long, DATAPATH), Err(Refusal::ResumeStale));
    }

    #[test]
    fn continuation_beyond_limit_is_not_encoded() {
        let mut continuation = sample();
        continuation.stack = vec![Wide::from(1); CONTINUATION_BYTES_MAX / 24];
        assert_eq!(encode(&continuation, DATAPATH), None);
    }
}
