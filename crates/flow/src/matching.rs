//! What a rule asks of a frame: a conjunction of terms, one a field, legal by
//! construction. An absent field is a wildcard.
//!
//! This is meaning only: how 1.0, OXM and NXM write a match is the codec's
//! business, and how it is found quickly the fast path's.

use crate::field::{Field, Maskable, Masked, Prerequisite, VID_PRESENT, View, view, widen};
use crate::key::Key;
use crate::refusal::Refusal;

/// One condition: the field, under the mask, equals the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    /// The field.
    pub field: Field,
    /// The bits wanted; none outside the mask.
    pub value: u128,
    /// The bits that count; never zero.
    pub mask: u128,
}

impl Term {
    /// Whether every bit of the field counts.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.mask == self.field.full_mask()
    }

    /// Whether the field of the frame is there and is as wanted.
    #[must_use]
    pub fn accepts(&self, key: &Key) -> bool {
        key.get(self.field)
            .is_some_and(|value| value & self.mask == self.value)
    }
}

/// Terms in the order of [`Field`], at most one for each.
///
/// Two matches are equal when they accept the same frames by the same terms;
/// the order in which terms were given leaves no trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Match {
    terms: Vec<Term>,
}

impl Match {
    /// The match that every frame satisfies.
    #[must_use]
    pub const fn any() -> Self {
        Self { terms: Vec::new() }
    }

    /// The terms, in order.
    #[must_use]
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// The term on `field`; none if it is a wildcard.
    #[must_use]
    pub fn term(&self, field: Field) -> Option<&Term> {
        self.terms.iter().find(|term| term.field == field)
    }

    /// The value of `field`, if all of it is given.
    #[must_use]
    pub fn exact(&self, field: Field) -> Option<u128> {
        self.term(field)
            .filter(|term| term.is_exact())
            .map(|term| term.value)
    }

    /// This match and also `field == value`.
    ///
    /// # Errors
    /// As for [`Match::with_masked`].
    pub fn with(self, field: Field, value: u128) -> Result<Self, Refusal> {
        self.with_masked(field, value, field.full_mask())
    }

    /// This match and also `field & mask == value`. A mask of zero adds nothing;
    /// what is asked of a view is asked of the fields that it is made of.
    ///
    /// # Errors
    /// The field is already there, its prerequisites are not, it takes no such
    /// mask, or the value has bits outside the mask or the field (OF 1.3.5,
    /// 7.2.3.6 and 7.4.4.4).
    pub fn with_masked(mut self, field: Field, value: u128, mask: u128) -> Result<Self, Refusal> {
        let full = field.full_mask();
        if value & !full != 0 {
            return Err(Refusal::MatchBadValue);
        }
        let mask = mask & full;
        if value & !mask != 0 {
            return Err(Refusal::MatchBadWildcards);
        }
        if mask != full && mask != 0 && field.info().maskable == Maskable::No {
            return Err(Refusal::MatchBadMask);
        }
        if let Some(view) = field.view() {
            return self.with_view(view, (value, mask));
        }
        if field == Field::VlanPcp && self.exact(Field::VlanVid) == Some(0) {
            return Err(Refusal::MatchBadPrerequisite);
        }
        if !self.satisfies(field.info().needs) {
            return Err(Refusal::MatchBadPrerequisite);
        }
        match self.terms.binary_search_by_key(&field, |term| term.field) {
            Ok(_) => return Err(Refusal::MatchDuplicateField),
            Err(place) if mask != 0 => self.terms.insert(place, Term { field, value, mask }),
            Err(_) => {}
        }
        Ok(self)
    }

    /// This match and also what is asked of a view.
    fn with_view(self, view: View, (value, mask): Masked) -> Result<Self, Refusal> {
        match view {
            View::Registers { first, count } => view::on_registers(first, count, (value, mask))
                .try_fold(self, |built, (register, (value, mask))| {
                    built.with_masked(register, value, mask)
                }),
            View::InPort => match u16::try_from(value) {
                Ok(port) if mask != 0 => self.with(Field::InPort, widen(port).into()),
                Ok(_) => Ok(self),
                Err(_) => Err(Refusal::MatchBadValue),
            },
            View::VlanTci => self.with_tci(value, mask),
            View::IpTos if value & ((1 << view::TOS_SHIFT) - 1) != 0 => Err(Refusal::MatchBadValue),
            View::IpTos if mask == 0 => Ok(self),
            View::IpTos => self.with(Field::IpDscp, value >> view::TOS_SHIFT),
        }
    }

    /// This match and also these bits of the outermost tag (`ovs-fields(7)`,
    /// `vlan_tci`): all zero where there is no tag.
    fn with_tci(self, value: u128, mask: u128) -> Result<Self, Refusal> {
        let present = u128::from(VID_PRESENT);
        let (pcp, pcp_mask) = (value >> view::PCP_SHIFT, mask >> view::PCP_SHIFT);
        let (mut vid, mut vid_mask) = (value & view::TCI_VID, mask & view::TCI_VID);
        if pcp != 0 && mask & present == 0 {
            // Only a tag has a priority other than zero.
            vid |= present;
            vid_mask |= present;
        }
        let built = self.with_masked(Field::VlanVid, vid, vid_mask)?;
        match (vid & present != 0, pcp, pcp_mask) {
            (_, _, 0) => Ok(built),
            (true, _, 7) => built.with(Field::VlanPcp, pcp),
            // No tag: its priority is zero, as the rest of it.
            (false, 0, _) if vid_mask & present != 0 => Ok(built),
            (false, _, _) | (true, _, _) => Err(Refusal::MatchBadMask),
        }
    }

    /// Whether every frame that matches fulfils `needs`, by what the terms say.
    #[must_use]
    pub fn satisfies(&self, needs: Prerequisite) -> bool {
        let eth_type = |wanted: &[u128]| {
            self.exact(Field::EthType)
                .is_some_and(|value| wanted.contains(&value))
        };
        let ip_proto = |wanted| self.exact(Field::IpProto) == Some(wanted);
        let icmpv6_type = |wanted: &[u128]| {
            self.exact(Field::Icmpv6Type)
                .is_some_and(|value| wanted.contains(&value))
        };
        match needs {
            Prerequisite::None => true,
            Prerequisite::InPort => self.term(Field::InPort).is_some(),
            Prerequisite::VlanTag => self
                .term(Field::VlanVid)
                .is_some_and(|term| term.value & u128::from(VID_PRESENT) != 0),
            Prerequisite::Mpls => eth_type(&[0x8847, 0x8848]),
            Prerequisite::Pbb => eth_type(&[0x88e7]),
            Prerequisite::Arp => eth_type(&[0x0806, 0x8035]),
            Prerequisite::Ip => eth_type(&[0x0800, 0x86dd]),
            Prerequisite::Ipv4 => eth_type(&[0x0800]),
            Prerequisite::Ipv6 => eth_type(&[0x86dd]),
            Prerequisite::Tcp => eth_type(&[0x0800, 0x86dd]) && ip_proto(6),
            Prerequisite::Udp => eth_type(&[0x0800, 0x86dd]) && ip_proto(17),
            Prerequisite::Sctp => eth_type(&[0x0800, 0x86dd]) && ip_proto(132),
            Prerequisite::Icmpv4 => eth_type(&[0x0800]) && ip_proto(1),
            Prerequisite::Icmpv6 => eth_type(&[0x86dd]) && ip_proto(58),
            Prerequisite::Nd => self.satisfies(Prerequisite::Icmpv6) && icmpv6_type(&[135, 136]),
            Prerequisite::NdSolicitation => {
                self.satisfies(Prerequisite::Icmpv6) && icmpv6_type(&[135])
            }
            Prerequisite::NdAdvertisement => {
                self.satisfies(Prerequisite::Icmpv6) && icmpv6_type(&[136])
            }
        }
    }

    /// Whether the frame satisfies every term.
    #[must_use]
    pub fn accepts(&self, key: &Key) -> bool {
        self.terms.iter().all(|term| term.accepts(key))
    }

    /// Whether every frame that `other` accepts is accepted by `self`: what a
    /// loose modification or deletion asks (OF 1.3.5, 6.4).
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.terms.iter().all(|mine| {
            other.term(mine.field).is_some_and(|theirs| {
                theirs.mask & mine.mask == mine.mask && theirs.value & mine.mask == mine.value
            })
        })
    }

    /// Whether some frame could satisfy both: what `check_overlap` asks.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.terms.iter().all(|mine| {
            other
                .term(mine.field)
                .is_none_or(|theirs| (mine.value ^ theirs.value) & mine.mask & theirs.mask == 0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp_port(port: u128) -> Match {
        Match::any()
            .with(Field::EthType, 0x0800)
            .and_then(|m| m.with(Field::IpProto, 6))
            .and_then(|m| m.with(Field::TcpDst, port))
            .expect("prerequisites are there")
    }

    #[test]
    fn a_field_needs_its_prerequisites_before_it() {
        assert_eq!(
            Match::any().with(Field::TcpDst, 80),
            Err(Refusal::MatchBadPrerequisite)
        );
        assert_eq!(tcp_port(80).terms().len(), 3);
    }

    #[test]
    fn what_the_specification_forbids_is_refused_by_name() {
        let any = Match::any;
        assert_eq!(
            any().with(Field::VlanVid, 0x2000),
            Err(Refusal::MatchBadValue)
        );
        assert_eq!(
            any().with_masked(Field::EthSrc, 3, 1),
            Err(Refusal::MatchBadWildcards)
        );
        assert_eq!(
            any().with_masked(Field::EthType, 0x0800, 0xff00),
            Err(Refusal::MatchBadMask)
        );
        assert_eq!(
            tcp_port(80).with(Field::TcpDst, 80),
            Err(Refusal::MatchDuplicateField)
        );
        let untagged = any().with(Field::VlanVid, 0).expect("legal");
        assert_eq!(
            untagged.with(Field::VlanPcp, 1),
            Err(Refusal::MatchBadPrerequisite)
        );
    }

    #[test]
    fn a_zero_mask_is_a_wildcard() {
        assert_eq!(
            Match::any().with_masked(Field::EthSrc, 0, 0),
            Ok(Match::any())
        );
    }

    #[test]
    fn covering_and_overlapping() {
        let net = |value, mask| {
            Match::any()
                .with(Field::EthType, 0x0800)
                .and_then(|m| m.with_masked(Field::Ipv4Dst, value, mask))
                .expect("legal")
        };
        let (eight, sixteen, other) = (
            net(0x0a00_0000, 0xff00_0000),
            net(0x0a01_0000, 0xffff_0000),
            net(0x0b00_0000, 0xff00_0000),
        );
        assert!(Match::any().covers(&eight) && eight.covers(&sixteen) && !sixteen.covers(&eight));
        assert!(eight.overlaps(&sixteen) && sixteen.overlaps(&eight) && !eight.overlaps(&other));
        assert!(eight.overlaps(&tcp_port(80)) && !eight.covers(&tcp_port(80)));
    }
}
