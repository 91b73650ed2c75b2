//! The value of a column in a row: a set of atoms, or a map (RFC 7047, 5.1). A single value is a
//! set of one, an absent one an empty set.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::schema::ColumnType;
use crate::{Atom, Malformed, Uuid, excerpt};

/// The value of a column in a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Datum {
    /// A set of atoms.
    Set(BTreeSet<Atom>),
    /// A map of atoms.
    Map(BTreeMap<Atom, Atom>),
}

impl Datum {
    /// Returns an empty set.
    #[must_use]
    pub const fn none() -> Self {
        Self::Set(BTreeSet::new())
    }

    /// Returns a single value.
    pub fn one(atom: impl Into<Atom>) -> Self {
        Self::Set(BTreeSet::from([atom.into()]))
    }

    /// Returns a single value or an empty set.
    pub fn optional(atom: Option<impl Into<Atom>>) -> Self {
        Self::Set(atom.into_iter().map(Into::into).collect())
    }

    /// Returns a set of several values.
    pub fn set(atoms: impl IntoIterator<Item = impl Into<Atom>>) -> Self {
        Self::Set(atoms.into_iter().map(Into::into).collect())
    }

    /// Returns a map.
    pub fn map(pairs: impl IntoIterator<Item = (impl Into<Atom>, impl Into<Atom>)>) -> Self {
        let pairs = pairs.into_iter();
        Self::Map(
            pairs
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        )
    }

    /// Parses the value of a column of this type.
    ///
    /// # Errors
    /// The value has another type, has duplicates, or has more or fewer elements than the type
    /// allows.
    pub fn from_json(value: &Value, of: &ColumnType) -> Result<Self, Malformed> {
        let datum = Self::difference_from_json(value, of)?;
        if !of.allows(datum.len()) {
            let (len, what) = (datum.len(), excerpt(value));
            return Err(Malformed(format!("{len} values are not allowed: {what}")));
        }
        Ok(datum)
    }

    /// Parses a difference of a column of this type, which may have more or fewer elements than the
    /// type allows.
    ///
    /// # Errors
    /// The value has another type, or has duplicates.
    pub fn difference_from_json(value: &Value, of: &ColumnType) -> Result<Self, Malformed> {
        let twice = || Malformed(format!("duplicate value in {}", excerpt(value)));
        let Some(kind_of_values) = of.value else {
            let atoms = match tagged(value, "set") {
                Some(atoms) => atoms,
                None => std::slice::from_ref(value),
            };
            let atoms = atoms.iter().map(|atom| Atom::from_json(atom, of.key));
            let (mut set, mut fresh) = (BTreeSet::new(), true);
            for atom in atoms {
                fresh &= set.insert(atom?);
            }
            return fresh.then_some(Self::Set(set)).ok_or_else(twice);
        };
        let pairs = tagged(value, "map");
        let pairs = pairs.ok_or_else(|| Malformed(format!("{} is not a map", excerpt(value))))?;
        let (mut map, mut fresh) = (BTreeMap::new(), true);
        for pair in pairs {
            let Some([key, value]) = pair.as_array().map(Vec::as_slice) else {
                return Err(Malformed(format!("{} is not a pair", excerpt(pair))));
            };
            let key = Atom::from_json(key, of.key)?;
            fresh &= map
                .insert(key, Atom::from_json(value, kind_of_values)?)
                .is_none();
        }
        fresh.then_some(Self::Map(map)).ok_or_else(twice)
    }

    /// Converts the datum to JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Set(set) => match (set.len(), set.first()) {
                (1, Some(only)) => only.to_json(),
                _ => json!(["set", set.iter().map(Atom::to_json).collect::<Vec<_>>()]),
            },
            Self::Map(map) => {
                let pair = |(key, value): (&Atom, &Atom)| json!([key.to_json(), value.to_json()]);
                json!(["map", map.iter().map(pair).collect::<Vec<_>>()])
            }
        }
    }

    /// Returns the default value of a column of this type (RFC 7047, 5.2.1).
    #[must_use]
    pub fn initial(of: &ColumnType) -> Self {
        let any = of.min > 0;
        let key = || Atom::initial(of.key);
        match of.value {
            None => Self::Set(any.then(key).into_iter().collect()),
            Some(value) => {
                let pair = any.then(|| (key(), Atom::initial(value)));
                Self::Map(pair.into_iter().collect())
            }
        }
    }

    /// Applies a difference (ovsdb-server(7), `update2`). For a column of at most one value it is
    /// the new value. For a set it is the symmetric difference. For a map, pairs that exist are
    /// removed, and other pairs are inserted or replace the value of their key.
    #[must_use]
    pub fn with_difference(self, difference: Self, of: &ColumnType) -> Self {
        if !of.holds_several() {
            return difference;
        }
        match (self, difference) {
            (Self::Set(mut set), Self::Set(difference)) => {
                for atom in difference {
                    if !set.remove(&atom) {
                        set.insert(atom);
                    }
                }
                Self::Set(set)
            }
            (Self::Map(mut map), Self::Map(difference)) => {
                for (key, value) in difference {
                    if map.get(&key) == Some(&value) {
                        map.remove(&key);
                    } else {
                        map.insert(key, value);
                    }
                }
                Self::Map(map)
            }
            (_, difference) => difference,
        }
    }

    /// Returns its approximate size in memory in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        match self {
            Self::Set(set) => set.iter().map(Atom::memory).sum(),
            Self::Map(map) => map
                .iter()
                .map(|(key, value)| key.memory() + value.memory())
                .sum(),
        }
    }

    /// Returns the number of values or pairs.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Set(set) => set.len(),
            Self::Map(map) => map.len(),
        }
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns its values; none for a map.
    pub fn atoms(&self) -> impl Iterator<Item = &Atom> {
        let set = match self {
            Self::Set(set) => Some(set),
            Self::Map(_) => None,
        };
        set.into_iter().flatten()
    }

    /// Returns its pairs; none for a set.
    pub fn pairs(&self) -> impl Iterator<Item = (&Atom, &Atom)> {
        let map = match self {
            Self::Set(_) => None,
            Self::Map(map) => Some(map),
        };
        map.into_iter().flatten()
    }

    /// Returns the strings among its values.
    pub fn strings(&self) -> impl Iterator<Item = &str> {
        self.atoms().filter_map(|atom| match atom {
            Atom::String(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Returns the integers among its values.
    pub fn integers(&self) -> impl Iterator<Item = i64> {
        self.atoms().filter_map(|atom| match atom {
            Atom::Integer(number) => Some(*number),
            _ => None,
        })
    }

    /// Returns the row references among its values.
    pub fn uuids(&self) -> impl Iterator<Item = Uuid> {
        self.atoms().filter_map(|atom| match atom {
            Atom::Uuid(uuid) => Some(*uuid),
            _ => None,
        })
    }

    /// Returns whether it contains the boolean `true`.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.atoms().any(|atom| *atom == Atom::Boolean(true))
    }

    /// Returns the pairs of strings among its pairs.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs().filter_map(|pair| match pair {
            (Atom::String(key), Atom::String(value)) => Some((key.as_str(), value.as_str())),
            _ => None,
        })
    }
}

/// Returns the elements of a JSON array with this tag.
fn tagged<'a>(value: &'a Value, tag: &str) -> Option<&'a [Value]> {
    match value.as_array().map(Vec::as_slice) {
        Some([Value::String(found), Value::Array(inner)]) if found == tag => Some(inner),
        _ => None,
    }
}
