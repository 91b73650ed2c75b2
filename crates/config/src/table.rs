//! The configuration of a flow table (ovs-vswitchd.conf.db(5), the table `Flow_Table`).

use std::fmt;

use flow::Subfield;

/// A flow table. The default is an unconfigured table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableConfig {
    /// The name; none if empty.
    pub name: String,
    /// The maximum number of rules, if it is below the general maximum.
    pub limit: Option<usize>,
    /// A full table evicts a rule with a timeout for a new one.
    pub eviction: bool,
    /// The names of the fields whose prefixes a lookup distinguishes in the flows that are listed;
    /// `None` for the default.
    pub prefixes: Option<Vec<String>>,
    /// The subfields that divide the rules into groups: the largest group loses a rule. Without
    /// them there is one group.
    pub groups: Vec<Subfield>,
}

impl fmt::Display for TableConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", self.name)?;
        if let Some(limit) = self.limit {
            write!(f, ", {limit} rules at most")?;
        }
        f.write_str(if self.eviction { ", evicts" } else { "" })?;
        if let Some(fields) = &self.prefixes {
            write!(f, ", prefixes of {}", fields.join(","))?;
        }
        self.groups
            .iter()
            .try_for_each(|field| write!(f, ", by {field}"))
    }
}
