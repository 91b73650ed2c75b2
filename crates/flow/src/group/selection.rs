//! Hash selection of a select group (Netronome's group property, `ovs-ofctl(8)`,
//! `selection_method`).
//!
//! No specification defines the hash function; crate `pipeline` does.

use std::collections::BTreeMap;

use crate::field::{Depth, Field, Maskable};
use crate::refusal::Refusal;

/// Hash selection of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Fields that are hashed.
    pub method: SelectionMethod,
    /// Initial value of the hash; another value distributes the frames differently.
    pub param: u64,
}

/// Fields that a group hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectionMethod {
    /// These bits of these fields (`hash`); without any, the default fields.
    Hash(SelectionFields),
    /// The data path's hash (`dp_hash`): the default fields.
    Datapath,
}

impl SelectionMethod {
    /// Name in messages and in the text form.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Hash(_) => "hash",
            Self::Datapath => "dp_hash",
        }
    }
}

/// Fields with the mask of the bits that are hashed: at most one mask for each field, not zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectionFields(BTreeMap<Field, u128>);

impl SelectionFields {
    /// Adds the bits of `field` in `mask`. Bits beyond the field's width are ignored, because
    /// fields are wider on the wire.
    ///
    /// # Errors
    /// The field was added before, the mask is zero or not permitted, or the field is a tunnel
    /// option, which groups cannot hash.
    pub fn add(&mut self, field: Field, mask: u128) -> Result<(), Refusal> {
        if field.option().is_some() {
            return Err(Refusal::MatchBadField);
        }
        let mask = mask & field.full_mask();
        let whole = mask == field.full_mask();
        if mask == 0 || !whole && field.info().maskable == Maskable::No {
            return Err(Refusal::MatchBadMask);
        }
        match self.0.insert(field, mask) {
            None => Ok(()),
            Some(_) => Err(Refusal::MatchDuplicateField),
        }
    }

    /// The fields and their masks, in the order of [`Field`].
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Field, u128)> + '_ {
        self.0.iter().map(|(field, mask)| (*field, *mask))
    }

    /// Returns the mask of a field, if it was added.
    #[must_use]
    pub fn mask(&self, field: Field) -> Option<u128> {
        self.0.get(&field).copied()
    }

    /// True if there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the parse depth that the fields require.
    #[must_use]
    pub fn depth(&self) -> Depth {
        let depths = self.0.keys().map(|field| field.info().depth);
        depths.max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selection_field_has_one_valid_mask() {
        let mut fields = SelectionFields::default();
        assert_eq!(fields.add(Field::TcpDst, 0xff), Ok(()));
        let again = fields.clone().add(Field::TcpDst, 1);
        assert_eq!(again, Err(Refusal::MatchDuplicateField));
        assert_eq!(fields.add(Field::IpProto, 3), Err(Refusal::MatchBadMask));
        assert_eq!(fields.add(Field::TcpSrc, 0), Err(Refusal::MatchBadMask));
        assert_eq!(fields.add(Field::IpDscp, 0xff), Ok(()));
        assert_eq!(fields.mask(Field::IpDscp), Some(0x3f));
        assert_eq!(fields.depth(), Depth::Transport);
    }
}
