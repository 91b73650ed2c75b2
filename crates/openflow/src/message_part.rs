//! Text and encoding of parts of messages: a list of actions, instructions, a match. Users have
//! such bytes from a trace or need them for a program.

use flow::{Action, Instructions, Match};

use crate::action::{self, EncodeContext};
use crate::codec::{EncodeError, Reader, Writer};
use crate::dialect::{Dialect, NiciraSetting};
use crate::fidelity::Fidelity;
use crate::oxm::{self, NxmMatch};
use crate::print;
use crate::version::Version;
use crate::{instruction, oxm_text};

/// A part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessagePart {
    /// A list of actions.
    Actions,
    /// Instructions; in 1.0 a list of actions.
    Instructions,
    /// A match as a list of OXM or NXM fields, without its header and padding.
    Match,
}

/// Formats a part as `ovs-ofctl` does. A match has its fields in the first line and its meaning in
/// the second. Malformed bytes are reported with Open vSwitch's name of the error.
#[must_use]
pub fn print_part(piece: MessagePart, bytes: &[u8], version: Version) -> String {
    let r = Reader::new(bytes, dialect(version));
    let text = match piece {
        MessagePart::Actions => print::actions(r).map(|text| format!("actions={text}")),
        MessagePart::Instructions => print::instructions(r).map(|text| format!("actions={text}")),
        MessagePart::Match => match_text(&r),
    };
    text.unwrap_or_else(|name| format!("***decode error: {name}***")) + "\n"
}

fn match_text(r: &Reader<'_>) -> Result<String, &'static str> {
    let NxmMatch { matching, cookies } =
        oxm::decode_nxm_fields(r.clone()).map_err(print::reason)?;
    let fields = oxm_text::format(r).map_err(print::reason)?;
    let mut meaning = matching.to_string();
    if cookies.mask != 0 {
        let separator = if meaning.is_empty() { "" } else { "," };
        let (cookie, mask) = (cookies.cookie.0, cookies.mask);
        meaning = format!("cookie={cookie:#x}/{mask:#x}{separator}{meaning}");
    }
    Ok(format!("{fields}\n{meaning}"))
}

/// Encodes a list of actions for packets about which nothing is known.
///
/// # Errors
/// The version lacks one of the actions.
pub fn encode_actions(actions: &[Action], version: Version) -> Result<Vec<u8>, EncodeError> {
    encode_with(version, |w| {
        action::encode(actions, any_frame(&Match::default()), w)
    })
}

/// Encodes instructions for packets about which nothing is known.
///
/// # Errors
/// The version lacks a part of them.
pub fn encode_instructions(
    instructions: &Instructions,
    version: Version,
) -> Result<Vec<u8>, EncodeError> {
    encode_with(version, |w| {
        instruction::encode(instructions, any_frame(&Match::default()), w)
    })
}

/// Encodes the fields of a match as OXM, or as NXM in 1.0 and 1.1, which have no OXM.
///
/// # Errors
/// A field has no header in this version.
pub fn encode_match(matching: &Match, version: Version) -> Result<Vec<u8>, EncodeError> {
    encode_with(version, |w| match version {
        Version::V10 | Version::V11 => oxm::encode_nxm_fields(&NxmMatch::of(matching.clone()), w),
        Version::V12 | Version::V13 | Version::V14 | Version::V15 => oxm::encode(matching, w),
    })
}

/// The dialect of `ovs-ofctl`, which enables table ids in 1.0 flow-mods.
const fn dialect(version: Version) -> Dialect {
    Dialect::new(version).after(NiciraSetting::TableIds(true))
}

const fn any_frame(matching: &Match) -> EncodeContext<'_> {
    EncodeContext {
        matching,
        fidelity: Fidelity::Lossless,
    }
}

fn encode_with(
    version: Version,
    encode: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::new();
    encode(&mut Writer::new(&mut bytes, dialect(version)))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_encode_per_version() {
        let instructions: Instructions = "output:2,goto_table:5".parse().expect("it is one");
        let bytes = encode_instructions(&instructions, Version::V13).expect("1.3 can");
        let text = print_part(MessagePart::Instructions, &bytes, Version::V13);
        assert_eq!(text, "actions=output:2,goto_table:5\n");
        let bytes = [0, 0, 0, 8, 0, 2, 0, 0];
        let text = print_part(MessagePart::Instructions, &bytes, Version::V10);
        assert_eq!(text, "actions=output:2\n");
        let text = print_part(MessagePart::Actions, &bytes, Version::V13);
        assert_eq!(text, "***decode error: OFPBAC_BAD_LEN***\n");
    }

    #[test]
    fn match_prints_entries_and_meaning() {
        let matching: Match = "tcp,in_port=1".parse().expect("it is one");
        let bytes = encode_match(&matching, Version::V12).expect("1.2 can");
        let text = print_part(MessagePart::Match, &bytes, Version::V12);
        let expected = "OXM_OF_IN_PORT(00000001), OXM_OF_ETH_TYPE(0800), OXM_OF_IP_PROTO(06)\n\
                      tcp,in_port=1\n";
        assert_eq!(text, expected);
        let bytes = encode_match(&matching, Version::V10).expect("NXM can");
        let text = print_part(MessagePart::Match, &bytes, Version::V10);
        assert!(text.starts_with("NXM_OF_IN_PORT(0001), "), "{text}");
        let bytes = crate::parse_oxm_text("NXM_NX_COOKIE(0000000000000005)").expect("it is one");
        let text = print_part(MessagePart::Match, &bytes, Version::V10);
        assert!(
            text.ends_with("\ncookie=0x5/0xffffffffffffffff\n"),
            "{text}"
        );
    }
}
