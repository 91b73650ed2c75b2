//! Atoms: integers, reals, booleans, strings and row UUIDs.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

use crate::schema::AtomicType;
use crate::{Malformed, excerpt};

/// The identifier of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub u128);

/// The text is not a UUID.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a UUID")]
pub struct ParseUuidError(String);

/// The positions of dashes in the text of a UUID.
const DASHES: [usize; 4] = [8, 13, 18, 23];

/// The length of that text in bytes.
const UUID_LEN: usize = 36;

impl FromStr for Uuid {
    type Err = ParseUuidError;

    fn from_str(text: &str) -> Result<Self, ParseUuidError> {
        let well_formed = text.len() == UUID_LEN
            && text.bytes().enumerate().all(|(at, byte)| {
                if DASHES.contains(&at) {
                    byte == b'-'
                } else {
                    byte.is_ascii_hexdigit()
                }
            });
        let digits = || text.replace('-', "");
        let number = well_formed.then(|| u128::from_str_radix(&digits(), 16).ok());
        let bad = || ParseUuidError(text.chars().take(UUID_LEN).collect());
        number.flatten().map(Self).ok_or_else(bad)
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:032x}", self.0);
        let (a, b, c) = (&text[..8], &text[8..12], &text[12..16]);
        write!(f, "{a}-{b}-{c}-{}-{}", &text[16..20], &text[20..])
    }
}

/// An atomic value (RFC 7047, 5.1, `<atom>`).
#[derive(Clone, Debug)]
pub enum Atom {
    /// A 64-bit integer.
    Integer(i64),
    /// A floating-point number.
    Real(f64),
    /// A boolean.
    Boolean(bool),
    /// A string.
    String(String),
    /// A reference to a row.
    Uuid(Uuid),
}

impl Atom {
    /// Parses a value of this type.
    ///
    /// # Errors
    /// The value has another type.
    pub fn from_json(value: &Value, kind: AtomicType) -> Result<Self, Malformed> {
        let read = match kind {
            AtomicType::Integer => value.as_i64().map(Self::Integer),
            AtomicType::Real => value.as_f64().map(Self::Real),
            AtomicType::Boolean => value.as_bool().map(Self::Boolean),
            AtomicType::String => value.as_str().map(|text| Self::String(text.to_owned())),
            AtomicType::Uuid => match value.as_array().map(Vec::as_slice) {
                Some([Value::String(tag), Value::String(text)]) if tag == "uuid" => {
                    text.parse().ok().map(Self::Uuid)
                }
                _ => None,
            },
        };
        read.ok_or_else(|| Malformed(format!("{} is not of type {kind}", excerpt(value))))
    }

    /// Converts the atom to JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Self::Integer(number) => json!(number),
            Self::Real(number) => json!(number),
            Self::Boolean(truth) => json!(truth),
            Self::String(text) => json!(text),
            Self::Uuid(uuid) => json!(["uuid", uuid.to_string()]),
        }
    }

    /// Returns the default value of a column (RFC 7047, 5.2.1).
    #[must_use]
    pub const fn initial(kind: AtomicType) -> Self {
        match kind {
            AtomicType::Integer => Self::Integer(0),
            AtomicType::Real => Self::Real(0.0),
            AtomicType::Boolean => Self::Boolean(false),
            AtomicType::String => Self::String(String::new()),
            AtomicType::Uuid => Self::Uuid(Uuid(0)),
        }
    }

    /// Returns its approximate size in memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        let text = match self {
            Self::String(text) => text.len(),
            Self::Integer(_) | Self::Real(_) | Self::Boolean(_) | Self::Uuid(_) => 0,
        };
        size_of::<Self>() + text
    }

    /// Returns the rank of its type in the order of atoms.
    const fn rank(&self) -> u8 {
        match self {
            Self::Integer(_) => 0,
            Self::Real(_) => 1,
            Self::Boolean(_) => 2,
            Self::String(_) => 3,
            Self::Uuid(_) => 4,
        }
    }
}

impl From<&str> for Atom {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Atom {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<i64> for Atom {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<bool> for Atom {
    fn from(truth: bool) -> Self {
        Self::Boolean(truth)
    }
}

impl From<Uuid> for Atom {
    fn from(uuid: Uuid) -> Self {
        Self::Uuid(uuid)
    }
}

impl Ord for Atom {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Integer(one), Self::Integer(two)) => one.cmp(two),
            (Self::Real(one), Self::Real(two)) => one.total_cmp(two),
            (Self::Boolean(one), Self::Boolean(two)) => one.cmp(two),
            (Self::String(one), Self::String(two)) => one.cmp(two),
            (Self::Uuid(one), Self::Uuid(two)) => one.cmp(two),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Atom {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Atom {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Atom {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuid_round_trips_and_rejects_other_text() {
        let text = "550e8400-e29b-41d4-a716-446655440000";
        let uuid: Uuid = text.parse().expect("a UUID");
        assert_eq!(uuid.to_string(), text);
        for wrong in ["", "550e8400", &text[1..], &text.replace('-', "0")] {
            assert!(wrong.parse::<Uuid>().is_err(), "{wrong}");
        }
        assert!(
            "+50e8400-e29b-41d4-a716-446655440000"
                .parse::<Uuid>()
                .is_err()
        );
    }

    #[test]
    fn atom_of_wrong_type_is_refused() {
        let read = |value, kind| Atom::from_json(&value, kind);
        assert_eq!(read(json!(7), AtomicType::Integer), Ok(Atom::Integer(7)));
        assert_eq!(read(json!(7), AtomicType::Real), Ok(Atom::Real(7.0)));
        assert!(read(json!(7.5), AtomicType::Integer).is_err());
        assert!(read(json!("7"), AtomicType::Integer).is_err());
        assert!(read(json!(["uuid", "7"]), AtomicType::Uuid).is_err());
        assert!(read(json!(["named-uuid", "row"]), AtomicType::Uuid).is_err());
        let received =
            read(json!("x".repeat(1000)), AtomicType::Boolean).expect_err("no truth value");
        assert!(received.0.len() < 200, "{received}");
    }
}
