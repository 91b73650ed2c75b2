//! How a select group chooses, where it has been told (Netronome's group property,
//! `ovs-ofctl(8)`, `selection_method`).
//!
//! Not here: the hash itself, which nobody prescribes; it is the pipeline's.

use std::collections::BTreeMap;

use crate::field::{Depth, Field, Maskable};
use crate::refusal::Refusal;

/// How a select group chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// What is hashed.
    pub method: SelectionMethod,
    /// What the hash begins with; another number shares the frames out another way.
    pub param: u64,
}

/// What of a frame is hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectionMethod {
    /// These bits of these fields (`hash`); if there are none, what is hashed in a group
    /// that is told nothing.
    Hash(SelectionFields),
    /// What the data path hashes (`dp_hash`): as in a group that is told nothing.
    Datapath,
}

impl SelectionMethod {
    /// The name, as it stands in messages and in texts.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Hash(_) => "hash",
            Self::Datapath => "dp_hash",
        }
    }
}

/// Fields and the bits of each that count: at most one mask a field, never zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectionFields(BTreeMap<Field, u128>);

impl SelectionFields {
    /// These fields and also the bits of `field` in `mask`. Ones beyond the field's own
    /// bits mean nothing: fields have more on the wire.
    ///
    /// # Errors
    /// The field is there already; the mask is zero, or part of a field that can only be
    /// had whole; or it is an option of a tunnel, by which no group chooses.
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

    /// The mask of a field that counts.
    #[must_use]
    pub fn mask(&self, field: Field) -> Option<u128> {
        self.0.get(&field).copied()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How deep a frame must be read for them.
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
    fn a_field_has_one_mask_and_some_bits() {
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
