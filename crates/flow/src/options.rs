//! The options of the tunnel that a frame came by, or shall leave by, by the fields that they
//! are bound to (`ovs-fields(7)`, "Tunnel Metadata").

use std::collections::BTreeMap;

use crate::field::Field;
use crate::wide::Wide;

/// What is asked of a tunnel's option, or written into it. Without any bit that counts a rule
/// asks whether there is the option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OptionTerm {
    /// The field that it is bound to.
    pub field: Field,
    /// The bits; none outside the mask.
    pub value: Wide,
    /// The bits that count.
    pub mask: Wide,
}

impl OptionTerm {
    /// Whether every bit counts.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.mask == Wide::ONES
    }

    /// Bytes that the value takes, and the mask likewise, where leading zeros are left out.
    #[must_use]
    pub fn width(&self) -> usize {
        if self.is_exact() {
            self.value.width()
        } else {
            self.mask.width()
        }
    }

    /// Whether the options of a frame are as wanted. One that is not there is zero.
    #[must_use]
    pub fn accepts(&self, options: &TunnelOptions) -> bool {
        match options.value(self.field) {
            None if self.mask.is_zero() => false,
            value => value.unwrap_or_default() & self.mask == self.value,
        }
    }

    /// Whether all options that `other` accepts are accepted by this one.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        if self.mask.is_zero() {
            // It must be there, as it is where it is not zero.
            return other.mask.is_zero() || !other.value.is_zero();
        }
        other.mask & self.mask == self.mask && other.value & self.mask == self.value
    }

    /// Whether some option could satisfy both.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let both = self.mask & other.mask;
        self.value & both == other.value & both
    }
}

/// The options that there are, with their values. Most frames have none, for which this is no
/// more than a word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunnelOptions {
    /// Never without any.
    values: Option<Box<OptionValues>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OptionValues(BTreeMap<Field, Wide>);

impl TunnelOptions {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self { values: None }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.values.is_none()
    }

    /// The value of the option that `field` is bound to, if it is there.
    #[must_use]
    pub fn value(&self, field: Field) -> Option<Wide> {
        self.values.as_ref()?.0.get(&field).copied()
    }

    /// Gives the option a value; with it, it is there.
    pub fn set(&mut self, field: Field, value: Wide) {
        self.values.get_or_insert_default().0.insert(field, value);
    }

    /// Takes the option away.
    pub fn remove(&mut self, field: Field) {
        if let Some(values) = &mut self.values {
            values.0.remove(&field);
        }
        self.values.take_if(|values| values.0.is_empty());
    }

    /// Those that are there, in order.
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
    fn an_option_that_is_not_there_is_zero_and_not_there() {
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
    fn to_be_there_is_less_than_to_have_a_value() {
        let (is_there, is_zero) = (term(0, Wide::ZERO), term(0, Wide::ONES));
        let (one, odd) = (term(1, Wide::ONES), term(1, Wide::from(1)));
        assert!(is_there.covers(&one) && is_there.covers(&odd) && is_there.covers(&is_there));
        assert!(!is_there.covers(&is_zero) && !one.covers(&is_there) && odd.covers(&one));
        assert!(!is_zero.covers(&is_there) && is_zero.overlaps(&is_there));
        assert!(!one.overlaps(&is_zero) && one.overlaps(&odd) && one.overlaps(&is_there));
    }
}
