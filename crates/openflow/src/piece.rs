//! Parts of messages that have a text of their own: a list of actions, what a rule does, a
//! match. A person has such bytes from a trace, or wants them for a program.

use flow::{Action, Instructions, Match};

use crate::action::{self, Context};
use crate::codec::{EncodeError, Reader, Writer};
use crate::dialect::{Dialect, NiciraSetting};
use crate::faith::Faith;
use crate::oxm::{self, Filter};
use crate::print;
use crate::version::Version;
use crate::{entries, instruction};

/// A part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessagePart {
    /// A list of actions.
    Actions,
    /// What a rule does: instructions; in 1.0 a list of actions.
    Instructions,
    /// A match as a list of entries, OXM or NXM, without head and padding.
    Match,
}

/// The text of a part, as `ovs-ofctl` has it: of a match its entries, and in a second line
/// what they mean. What cannot be read is said with Open vSwitch's name for it.
#[must_use]
pub fn print_part(piece: MessagePart, bytes: &[u8], version: Version) -> String {
    let r = Reader::new(bytes, dialect(version));
    let told = match piece {
        MessagePart::Actions => print::actions(r).map(|told| format!("actions={told}")),
        MessagePart::Instructions => print::instructions(r).map(|told| format!("actions={told}")),
        MessagePart::Match => told_match(&r),
    };
    told.unwrap_or_else(|name| format!("***decode error: {name}***")) + "\n"
}

fn told_match(r: &Reader<'_>) -> Result<String, &'static str> {
    let Filter { matching, cookies } = oxm::decode_filter(r.clone()).map_err(print::reason)?;
    let listed = entries::write(r).map_err(print::reason)?;
    let mut meant = matching.to_string();
    if cookies.mask != 0 {
        let apart = if meant.is_empty() { "" } else { "," };
        let (cookie, mask) = (cookies.cookie.0, cookies.mask);
        meant = format!("cookie={cookie:#x}/{mask:#x}{apart}{meant}");
    }
    Ok(format!("{listed}\n{meant}"))
}

/// The bytes of a list of actions, for frames of which nothing is known.
///
/// # Errors
/// The version has no words for one of them.
pub fn encode_actions(actions: &[Action], version: Version) -> Result<Vec<u8>, EncodeError> {
    encoded(version, |w| {
        action::encode(actions, any(&Match::default()), w)
    })
}

/// The bytes of what a rule does, for frames of which nothing is known.
///
/// # Errors
/// The version has no words for a part of it.
pub fn encode_instructions(
    instructions: &Instructions,
    version: Version,
) -> Result<Vec<u8>, EncodeError> {
    encoded(version, |w| {
        instruction::encode(instructions, any(&Match::default()), w)
    })
}

/// The entries of a match: OXM, or NXM in 1.0 and 1.1, which have none of their own.
///
/// # Errors
/// A field has no header that a version of that number knows.
pub fn encode_match(matching: &Match, version: Version) -> Result<Vec<u8>, EncodeError> {
    encoded(version, |w| match version {
        Version::V10 | Version::V11 => oxm::encode_filter(&Filter::of(matching.clone()), w),
        Version::V12 | Version::V13 | Version::V14 | Version::V15 => oxm::encode(matching, w),
    })
}

/// As `ovs-ofctl` speaks 1.0.
const fn dialect(version: Version) -> Dialect {
    Dialect::new(version).after(NiciraSetting::TableIds(true))
}

const fn any(matching: &Match) -> Context<'_> {
    Context {
        matching,
        faith: Faith::Exact,
    }
}

fn encoded(
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
    fn what_a_rule_does_has_the_bytes_of_its_version() {
        let does: Instructions = "output:2,goto_table:5".parse().expect("it is one");
        let bytes = encode_instructions(&does, Version::V13).expect("1.3 can");
        let told = print_part(MessagePart::Instructions, &bytes, Version::V13);
        assert_eq!(told, "actions=output:2,goto_table:5\n");
        let bytes = [0, 0, 0, 8, 0, 2, 0, 0];
        let told = print_part(MessagePart::Instructions, &bytes, Version::V10);
        assert_eq!(told, "actions=output:2\n");
        let told = print_part(MessagePart::Actions, &bytes, Version::V13);
        assert_eq!(told, "***decode error: OFPBAC_BAD_LEN***\n");
    }

    #[test]
    fn a_match_is_told_by_its_entries_and_by_what_they_mean() {
        let matching: Match = "tcp,in_port=1".parse().expect("it is one");
        let bytes = encode_match(&matching, Version::V12).expect("1.2 can");
        let told = print_part(MessagePart::Match, &bytes, Version::V12);
        let wanted = "OXM_OF_IN_PORT(00000001), OXM_OF_ETH_TYPE(0800), OXM_OF_IP_PROTO(06)\n\
                      tcp,in_port=1\n";
        assert_eq!(told, wanted);
        let bytes = encode_match(&matching, Version::V10).expect("NXM can");
        let told = print_part(MessagePart::Match, &bytes, Version::V10);
        assert!(told.starts_with("NXM_OF_IN_PORT(0001), "), "{told}");
        let bytes = crate::parse_oxm_text("NXM_NX_COOKIE(0000000000000005)").expect("it is one");
        let told = print_part(MessagePart::Match, &bytes, Version::V10);
        assert!(
            told.ends_with("\ncookie=0x5/0xffffffffffffffff\n"),
            "{told}"
        );
    }
}
