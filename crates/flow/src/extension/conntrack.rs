//! Connection tracking and address translation: `ct` and `nat` (`ovs-actions(7)`).
//!
//! The interpreter executes them with the tracker of the bridge.

use std::net::{Ipv4Addr, Ipv6Addr};

use base::TableId;

use super::{Extension, Subfield};
use crate::action::Action;
use crate::field::Field;
use crate::refusal::Refusal;

/// Parameters of the action `ct`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConntrackAction {
    /// Flags.
    pub flags: ConntrackFlags,
    /// Zone: connections of different zones are distinct.
    pub zone: ConntrackZone,
    /// Table in which the tracked packet continues, if any.
    pub table: Option<TableId>,
    /// Port of the helper for related connections; zero for none.
    pub alg: u16,
    /// Actions on the connection: `nat`, and writes of `ct_mark` and `ct_label`.
    pub actions: Vec<Action>,
}

/// `NX_CT_F_*`. Unknown flags have no meaning, and are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConntrackFlags(pub u16);

impl ConntrackFlags {
    /// Commit the connection.
    pub const COMMIT: Self = Self(1 << 0);
    /// Replace an existing connection of the other direction.
    pub const FORCE: Self = Self(1 << 1);

    /// True if all flags of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The zone of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConntrackZone {
    /// A constant.
    Number(u16),
    /// Sixteen bits of a field.
    Subfield(Subfield),
}

impl Default for ConntrackZone {
    fn default() -> Self {
        Self::Number(0)
    }
}

/// Parameters of the action `nat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NatAction {
    /// Flags; none to translate as the connection was committed.
    pub flags: NatFlags,
    /// Addresses to choose from.
    pub addresses: NatAddresses,
    /// First port, and the last one, to choose from.
    pub ports: Option<(u16, Option<u16>)>,
}

/// `NX_NAT_F_*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NatFlags(pub u16);

impl NatFlags {
    /// Translate the source.
    pub const SOURCE: Self = Self(1 << 0);
    /// Translate the destination.
    pub const DESTINATION: Self = Self(1 << 1);
    /// Keep the translation of a client across restarts.
    pub const PERSISTENT: Self = Self(1 << 2);
    /// Choose the port by a hash.
    pub const HASH: Self = Self(1 << 3);
    /// Choose the port at random.
    pub const RANDOM: Self = Self(1 << 4);
    /// All flags.
    pub const ALL: Self = Self(0x1f);

    /// True if all flags of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the union of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NatAddresses {
    /// None.
    #[default]
    Unspecified,
    /// The first and the last IPv4 address.
    V4(Ipv4Addr, Option<Ipv4Addr>),
    /// The first and the last IPv6 address.
    V6(Ipv6Addr, Option<Ipv6Addr>),
}

impl ConntrackAction {
    /// Checks the flags and the actions on the connection, as Open vSwitch does.
    ///
    /// # Errors
    /// `force` without `commit`; an action that is no action on a connection; or one that is not
    /// committed, other than `nat` without arguments.
    pub fn check(&self) -> Result<(), Refusal> {
        let is_committed = self.flags.contains(ConntrackFlags::COMMIT);
        if self.flags.contains(ConntrackFlags::FORCE) && !is_committed {
            return Err(Refusal::ActionBadArgument);
        }
        let is_permitted = |action: &Action| match action {
            Action::Extended(Extension::Nat(nat)) => {
                nat.check().is_ok() && (is_committed || **nat == NatAction::default())
            }
            write => is_committed && writes_connection(write),
        };
        let are_permitted = self.actions.iter().all(is_permitted);
        are_permitted
            .then_some(())
            .ok_or(Refusal::ActionBadArgument)
    }
}

impl NatAction {
    /// Checks that flags and ranges fit each other, as Open vSwitch does.
    ///
    /// # Errors
    /// They do not.
    pub fn check(&self) -> Result<(), Refusal> {
        let flags = self.flags;
        let both = NatFlags::SOURCE.with(NatFlags::DESTINATION);
        let is_exclusive = |pair: NatFlags| !flags.contains(pair);
        let addresses_fit = match self.addresses {
            NatAddresses::Unspecified => self.ports.is_none(),
            NatAddresses::V4(first, last) => {
                !first.is_unspecified() && last.is_none_or(|last| first <= last)
            }
            NatAddresses::V6(first, last) => {
                !first.is_unspecified() && last.is_none_or(|last| first <= last)
            }
        };
        let ports_fit = self
            .ports
            .is_none_or(|(first, last)| first != 0 && last.is_none_or(|last| first <= last));
        let fits = flags.0 & !NatFlags::ALL.0 == 0
            && is_exclusive(both)
            && is_exclusive(NatFlags::HASH.with(NatFlags::RANDOM))
            && addresses_fit
            && ports_fit;
        fits.then_some(()).ok_or(Refusal::ActionBadArgument)
    }
}

/// True if an action writes a field of the connection, which only `ct` may do.
#[must_use]
pub fn writes_connection(action: &Action) -> bool {
    let is_of_connection = |field: Field| matches!(field, Field::CtMark | Field::CtLabel);
    match action {
        Action::SetField { field, .. } => is_of_connection(*field),
        Action::Extended(
            Extension::Load { to, .. } | Extension::Move { to, .. } | Extension::Pop(to),
        ) => is_of_connection(to.field()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Action, Extension, text};

    fn check(line: &str) -> bool {
        match text::parse_actions(line).expect(line).as_slice() {
            [Action::Extended(Extension::Conntrack(ct))] => ct.check().is_ok(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn conntrack_checks_its_actions() {
        assert!(check("ct(table=1,nat)"));
        assert!(check(
            "ct(commit,force,zone=5,exec(load:1->NXM_NX_CT_MARK[]))"
        ));
        assert!(check("ct(commit,nat(src=10.0.0.1-10.0.0.9:1-5,random))"));
        assert!(!check("ct(nat(src=10.0.0.1))"));
        assert!(!check("ct(exec(set_field:1->ct_mark))"));
        assert!(!check("ct(commit,exec(output:1))"));
        assert!(!check("ct(commit,exec(set_field:1->reg0))"));
    }
}
