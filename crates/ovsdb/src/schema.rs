//! The schema of a database: its tables, and the type of each column (RFC 7047, 3.2).

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::{Malformed, excerpt};

/// The type of an atom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicType {
    /// A 64-bit integer.
    Integer,
    /// A floating-point number.
    Real,
    /// A boolean.
    Boolean,
    /// A string.
    String,
    /// A reference to a row.
    Uuid,
}

/// The atomic types by their names in schemas.
const KINDS: [(&str, AtomicType); 5] = [
    ("integer", AtomicType::Integer),
    ("real", AtomicType::Real),
    ("boolean", AtomicType::Boolean),
    ("string", AtomicType::String),
    ("uuid", AtomicType::Uuid),
];

impl fmt::Display for AtomicType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kinds = KINDS.iter();
        let name = kinds.find(|(_, kind)| kind == self).map(|(name, _)| *name);
        f.write_str(name.expect("each kind has a row"))
    }
}

/// The maximum number of elements of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxCount {
    /// A number.
    Count(usize),
    /// No limit.
    Unlimited,
}

/// The type of a column (RFC 7047, 3.2, `<type>`). The server enforces further constraints on
/// values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnType {
    /// The type of its values, or of the keys of a map.
    pub key: AtomicType,
    /// The type of the values of a map; none for a set.
    pub value: Option<AtomicType>,
    /// The minimum number of elements: zero or one.
    pub min: usize,
    /// The maximum number of elements.
    pub max: MaxCount,
}

impl ColumnType {
    /// Returns whether the column may have more than one value or pair.
    #[must_use]
    pub fn holds_several(&self) -> bool {
        self.max != MaxCount::Count(1)
    }

    /// Returns whether the column may have this number of elements.
    #[must_use]
    pub fn allows(&self, len: usize) -> bool {
        let below = match self.max {
            MaxCount::Count(most) => len <= most,
            MaxCount::Unlimited => true,
        };
        below && len >= self.min
    }

    fn from_json(value: &Value) -> Result<Self, Malformed> {
        if value.is_string() {
            return Ok(Self {
                key: kind(value)?,
                value: None,
                min: 1,
                max: MaxCount::Count(1),
            });
        }
        let wrong = |what: &str| Malformed(format!("{what}: {}", excerpt(value)));
        let key = value
            .get("key")
            .ok_or_else(|| wrong("type without a key"))?;
        let min = value.get("min").map_or(Some(1), Value::as_u64);
        let min = min.filter(|min| *min <= 1);
        let max = match value.get("max") {
            None => Some(MaxCount::Count(1)),
            Some(Value::String(word)) if word == "unlimited" => Some(MaxCount::Unlimited),
            Some(max) => {
                let max = max.as_u64().and_then(|max| usize::try_from(max).ok());
                max.filter(|max| *max > 0).map(MaxCount::Count)
            }
        };
        Ok(Self {
            key: kind(key)?,
            value: value.get("value").map(kind).transpose()?,
            min: usize::from(min.ok_or_else(|| wrong("type with invalid min"))? == 1),
            max: max.ok_or_else(|| wrong("type with invalid max"))?,
        })
    }
}

/// Parses a `<base-type>`: a name, or an object with the name as its `type`.
fn kind(value: &Value) -> Result<AtomicType, Malformed> {
    let name = value.as_str().or_else(|| value.get("type")?.as_str());
    let kind = name.and_then(|name| KINDS.iter().find(|(known, _)| *known == name));
    let malformed = || Malformed(format!("{} is not an atomic type", excerpt(value)));
    kind.map(|(_, kind)| *kind).ok_or_else(malformed)
}

/// The tables of a database with their columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// The columns of each table.
    pub tables: BTreeMap<String, BTreeMap<String, ColumnType>>,
}

impl Schema {
    /// Parses a `<database-schema>`.
    ///
    /// # Errors
    /// The value is not a schema.
    pub fn from_json(value: &Value) -> Result<Self, Malformed> {
        let tables = object(value, "tables")?;
        let table = |(name, table): (&String, &Value)| {
            let columns = object(table, "columns").and_then(|columns| {
                let column = |(name, column): (&String, &Value)| {
                    let of = column.get("type");
                    let of = of.ok_or_else(|| Malformed::new("column without a type"));
                    let of = of.and_then(ColumnType::from_json);
                    Ok((name.clone(), of.map_err(|error| error.within(name))?))
                };
                columns.iter().map(column).collect()
            });
            let columns = columns.map_err(|error: Malformed| error.within(name))?;
            Ok((name.clone(), columns))
        };
        let tables: Result<_, Malformed> = tables.iter().map(table).collect();
        Ok(Self { tables: tables? })
    }

    /// Returns the type of a column.
    #[must_use]
    pub fn column(&self, table: &str, column: &str) -> Option<&ColumnType> {
        self.tables.get(table)?.get(column)
    }
}

fn object<'a>(
    value: &'a Value,
    member: &str,
) -> Result<&'a serde_json::Map<String, Value>, Malformed> {
    let found = value.get(member).and_then(Value::as_object);
    found.ok_or_else(|| Malformed(format!("no object '{member}' in {}", excerpt(value))))
}
