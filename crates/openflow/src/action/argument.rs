//! Validity of action arguments, and the meaning of old setters.

use flow::field::VID_PRESENT;
use flow::{Action, Field, Refusal};

use crate::version::Version;

/// The action of a VLAN id setter: in 1.0 it adds a missing tag, in 1.1 the packet must have one
/// (OF 1.1.0, A.2.5).
pub(super) fn set_vlan_vid(vid: u16, version: Version) -> Action {
    match version {
        Version::V10 => Action::SetVlanVid(vid),
        _ => Action::set(Field::VlanVid, (VID_PRESENT | vid).into()),
    }
}

/// The action of a VLAN priority setter, analogous to that of an id.
pub(super) fn set_vlan_pcp(pcp: u8, version: Version) -> Action {
    match version {
        Version::V10 => Action::SetVlanPcp(pcp),
        _ => Action::set(Field::VlanPcp, pcp.into()),
    }
}

/// Returns `value` if it does not exceed `highest`.
pub(super) fn at_most<T: PartialOrd>(value: T, highest: T) -> Result<T, Refusal> {
    if value <= highest {
        Ok(value)
    } else {
        Err(Refusal::ActionBadArgument)
    }
}

/// The EtherType of a header to push, if it is one of `known` (OF 1.3.5, 5.12: the types that
/// should be used; 7.4.4.3, `OFPBAC_BAD_TAG`: the others are not supported).
pub(super) fn tag_of(value: u16, known: &[u16]) -> Result<u16, Refusal> {
    if known.contains(&value) {
        Ok(value)
    } else {
        Err(Refusal::ActionBadTag)
    }
}
