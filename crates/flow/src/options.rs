//! Tunnel options of a frame on arrival or at egress, by the fields that they are mapped to
//! (`ovs-fields(7)`, "Tunnel Metadata").

use std::collections::BTreeMap;

use crate::field::Field;
use crate::wide::Wide;

/// Term on a tunnel option, or bits to write into one. With a zero mask the term requires that the
/// option is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OptionTerm {
    /// Field that the option is mapped to.
    pub field: Field,
    /// Bits; none outside the mask.
    pub value: Wide,
    /// Mask of the bits that are compared or written.
    pub mask: Wide,
}

impl OptionTerm {
    /// True if all bits are compared.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.mask == Wide::ONES
    }

    /// Length of value and mask in bytes, without leading zeros.
    #[must_use]
    pub fn width(&self) -> usize {
        if self.is_exact() {
            self.value.width()
        } else {
            self.mask.width()
        }
    }

    /// True if the options satisfy the term. An absent option has the value zero.
    #[must_use]
    pub fn accepts(&self, options: &TunnelOptions) -> bool {
        match options.value(self.field) {
            None if self.mask.is_zero() => false,
            value => value.unwrap_or_default() & self.mask == self.value,
        }
    }

    /// True if a request with this term selects the rules with `other`: those that accept no other
    /// options. A term on the presence selects all terms on the option, as in Open vSwitch, also
    /// one on the value zero, which an absent option has too.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        other.mask & self.mask == self.mask && other.value & self.mask == self.value
    }

    /// True if some options satisfy both terms.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let both = self.mask & other.mask;
        self.value & both == other.value & both
    }
}

/// Tunnel options of a frame with their values. One word for most frames, which have none.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TunnelOptions {
    /// Never an empty map.
    values: Option<Box<OptionValues>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct OptionValues(BTreeMap<Field, Wide>);

impl TunnelOptions {
    /// Returns an empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { values: None }
    }

    /// True if there are no options.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.values.is_none()
    }

    /// Returns the value of the option mapped to `field`, if it is present.
    #[must_use]
    pub fn value(&self, field: Field) -> Option<Wide> {
        self.values.as_ref()?.0.get(&field).copied()
    }

    /// Sets the value of an option, which is then present.
    pub fn set(&mut self, field: Field, value: Wide) {
        self.values.get_or_insert_default().0.insert(field, value);
    }

    /// Removes an option.
    pub fn remove(&mut self, field: Field) {
        if let Some(values) = &mut self.values {
            values.0.remove(&field);
        }
        self.values.take_if(|values| values.0.is_empty());
    }

    /// Returns the present options in order.
    pub fn iter(&self) -> impl Iterator<Item = (Field, Wide)> + '_ {
        let values = self.values.iter().flat_map(|values| &values.0);
        values.map(|(field, value)| (*field, *value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(value: u128, mask: Wide) -> OptionTerm {
        OptionTerm {
            field: Field::TunMetadata63,
            value: value.into(),
            mask,
        }
    }

    #[test]
    fn absent_option_is_zero() {
        let (is_there, is_zero) = (term(0, Wide::ZERO), term(0, Wide::ONES));
        let mut options = TunnelOptions::new();
        assert!(!is_there.accepts(&options) && is_zero.accepts(&options));
        options.set(Field::TunMetadata63, Wide::ZERO);
        assert!(is_there.accepts(&options) && is_zero.accepts(&options));
        options.set(Field::TunMetadata63, Wide::from(5));
        assert!(is_there.accepts(&options) && !is_zero.accepts(&options));
        assert!(term(1, Wide::from(3)).accepts(&options));
    }

    #[test]
    fn presence_term_covers_all_values() {
        let (is_there, is_zero) = (term(0, Wide::ZERO), term(0, Wide::ONES));
        let (one, odd) = (term(1, Wide::ONES), term(1, Wide::from(1)));
        assert!(is_there.covers(&one) && is_there.covers(&odd) && is_there.covers(&is_there));
        assert!(is_there.covers(&is_zero) && !one.covers(&is_there) && odd.covers(&one));
        assert!(!is_zero.covers(&is_there) && is_zero.overlaps(&is_there));
        assert!(!one.overlaps(&is_zero) && one.overlaps(&odd) && one.overlaps(&is_there));
    }
}
