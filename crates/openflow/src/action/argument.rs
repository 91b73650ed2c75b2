//! The arguments of actions: which are legal, and what an old setter's means.

use flow::field::VID_PRESENT;
use flow::{Action, Field, Refusal};

use crate::version::Version;

/// The setter of an id: in 1.0 it sets a tag where there is none, in 1.1 there has
/// to be one (OF 1.1.0, A.2.5).
pub(super) fn set_vlan_vid(vid: u16, version: Version) -> Action {
    match version {
        Version::V10 => Action::SetVlanVid(vid),
        _ => Action::set(Field::VlanVid, (VID_PRESENT | vid).into()),
    }
}

/// The setter of a priority, which goes as that of an id.
pub(super) fn set_vlan_pcp(pcp: u8, version: Version) -> Action {
    match version {
        Version::V10 => Action::SetVlanPcp(pcp),
        _ => Action::set(Field::VlanPcp, pcp.into()),
    }
}

/// `value`, if it is no more than that.
pub(super) fn at_most<T: PartialOrd>(value: T, highest: T) -> Result<T, Refusal> {
    if value <= highest {
        Ok(value)
    } else {
        Err(Refusal::ActionBadArgument)
    }
}

/// The type of a header to be put on, if it is one of those that can be (OF 1.3.5, 5.12:
/// those that should be used; 7.4.4.3, `OFPBAC_BAD_TAG`: the others are not supported).
pub(super) fn tag_of(value: u16, known: &[u16]) -> Result<u16, Refusal> {
    if known.contains(&value) {
        Ok(value)
    } else {
        Err(Refusal::ActionBadTag)
    }
}
