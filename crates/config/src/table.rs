//! What the operator says of a flow table (ovs-vswitchd.conf.db(5), the table `Flow_Table`).

use std::fmt;

/// One flow table. The default is what a table is that nobody speaks of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableConfig {
    /// Its name; none, if empty.
    pub name: String,
    /// The most rules, if fewer than any table may have.
    pub limit: Option<usize>,
    /// Whether a full table makes room for a new rule by taking one with a timeout out.
    pub eviction: bool,
}

impl fmt::Display for TableConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", self.name)?;
        if let Some(limit) = self.limit {
            write!(f, ", {limit} rules at most")?;
        }
        f.write_str(if self.eviction { ", evicts" } else { "" })
    }
}
