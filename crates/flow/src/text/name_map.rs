//! Names of the switch's ports and tables in the text form (`ovs-ofctl(8)`, `--names`).
//!
//! A name that two ports share is not used. (OpenFlow transmits at most 15 bytes of a name.)

use std::collections::BTreeMap;
use std::fmt;

use base::{PortNo, TableId};

use super::error::ParseError;
use super::lexer::Token;
use super::number::number;
use super::{flow_read, groups, lexer};
use crate::command::FlowMod;
use crate::group::GroupMod;
use crate::statistics::FlowStatsRequest;

/// The names of ports and tables.
#[derive(Clone, Debug, Default)]
pub struct NameMap {
    ports: NumberNames,
    tables: NumberNames,
}

/// Names, by numbers and the other way.
#[derive(Clone, Debug, Default)]
struct NumberNames {
    by_number: BTreeMap<u32, String>,
    /// `None` if several numbers share the name.
    by_name: BTreeMap<String, Option<u32>>,
}

/// Map without names.
static EMPTY: NameMap = NameMap {
    ports: NumberNames::new(),
    tables: NumberNames::new(),
};

impl NumberNames {
    const fn new() -> Self {
        Self {
            by_number: BTreeMap::new(),
            by_name: BTreeMap::new(),
        }
    }

    fn add(&mut self, number: u32, name: &str) {
        if name.is_empty() {
            return;
        }
        self.by_number.insert(number, name.to_owned());
        self.by_name
            .entry(name.to_owned())
            .and_modify(|known| *known = known.filter(|known| *known == number))
            .or_insert(Some(number));
    }

    /// The name, if it is this number's alone.
    fn name(&self, number: u32) -> Option<&str> {
        let name = self.by_number.get(&number)?;
        self.number(name).map(|_| name.as_str())
    }

    fn number(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied().flatten()
    }
}

impl NameMap {
    /// Returns the map without names.
    #[must_use]
    pub fn empty() -> &'static Self {
        &EMPTY
    }

    /// Gives a port its name. Reserved ports have theirs.
    pub fn add_port(&mut self, port: PortNo, name: &str) {
        if port.reserved_name().is_none() {
            self.ports.add(port.0, name);
        }
    }

    /// Gives a table its name.
    pub fn add_table(&mut self, table: TableId, name: &str) {
        self.tables.add(table.0.into(), name);
    }

    /// The port of this name.
    pub(super) fn port(&self, name: &str) -> Option<PortNo> {
        self.ports.number(name).map(PortNo)
    }

    /// Like [`parse_flow_line`](super::parse_flow_line), with names of ports and tables.
    ///
    /// # Errors
    /// As for that function.
    pub fn parse_flow_line(&self, line: &str) -> Result<FlowMod, ParseError> {
        let (command, rest) = flow_read::command(lexer::line(line)?.with_names(self));
        flow_read::flow_mod(command, rest)
    }

    /// Like [`parse_flow_stats_request`](super::parse_flow_stats_request), with names of ports and
    /// tables.
    ///
    /// # Errors
    /// As for that function.
    pub fn parse_flow_stats_request(&self, line: &str) -> Result<FlowStatsRequest, ParseError> {
        flow_read::flow_stats_request(lexer::line(line)?.with_names(self))
    }

    /// Like [`parse_group_line`](super::parse_group_line), with names of ports and tables.
    ///
    /// # Errors
    /// As for that function.
    pub fn parse_group_line(&self, line: &str) -> Result<GroupMod, ParseError> {
        let (command, rest) = groups::command(lexer::line(line)?.with_names(self));
        groups::group_mod(command, rest)
    }
}

/// Value that is formatted with names from a map; without this wrapper it is formatted with
/// numbers.
///
/// ```
/// use base::PortNo;
/// use flow::text::{NameMap, WithNames};
///
/// let mut names = NameMap::default();
/// names.add_port(PortNo(3), "p3");
/// let flow = names.parse_flow_line("in_port=p3 actions=drop").unwrap();
/// assert_eq!(WithNames(&flow.matching, &names).to_string(), "in_port=p3");
/// assert_eq!(flow.matching.to_string(), "in_port=3");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct WithNames<'a, T>(pub &'a T, pub &'a NameMap);

impl fmt::Display for WithNames<'_, PortNo> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1.ports.name(self.0.0) {
            Some(name) => write_name(f, name),
            None => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Display for WithNames<'_, TableId> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1.tables.name(self.0.0.into()) {
            Some(name) => write_name(f, name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// Writes a name, in quotes unless it is a letter followed by letters and digits.
fn write_name(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric());
    if plain {
        return f.write_str(name);
    }
    f.write_str("\"")?;
    for letter in name.chars() {
        match letter {
            '"' | '\\' => write!(f, "\\{letter}")?,
            control if control.is_control() => write!(f, "\\u{:04x}", u32::from(control))?,
            letter => write!(f, "{letter}")?,
        }
    }
    f.write_str("\"")
}

/// Removes the quotes of a name. Returns `None` if an escape sequence is invalid.
pub(super) fn unquoted(text: &str) -> Option<String> {
    let Some(inside) = text.strip_prefix('"') else {
        return Some(text.to_owned());
    };
    let inside = inside.strip_suffix('"')?;
    let mut name = String::new();
    let mut letters = inside.chars();
    while let Some(letter) = letters.next() {
        name.push(match letter {
            '\\' => escaped(&mut letters)?,
            '"' => return None,
            letter => letter,
        });
    }
    Some(name)
}

/// Returns the character of an escape sequence (RFC 7159, 7).
fn escaped(letters: &mut std::str::Chars<'_>) -> Option<char> {
    Some(match letters.next()? {
        letter @ ('"' | '\\' | '/') => letter,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => {
            let digits = letters.as_str().get(..4)?;
            *letters = letters.as_str()[4..].chars();
            char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
        }
        _ => return None,
    })
}

/// Reads a table: its number, or its name.
pub(super) fn table(token: Token<'_>) -> Result<TableId, ParseError> {
    if token.text.starts_with(|c: char| c.is_ascii_digit()) {
        return number(token).map(TableId);
    }
    let tables = &token.names.tables;
    let named = unquoted(token.text).and_then(|name| tables.number(&name));
    match named.and_then(|number| u8::try_from(number).ok()) {
        Some(table) => Ok(TableId(table)),
        // Reports the error of a number.
        None => number(token).map(TableId),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::text::FlowWithoutStats;
    use crate::{FlowStats, GroupDesc};

    fn roster() -> NameMap {
        let mut roster = NameMap::default();
        for (number, name) in [
            (1, "p1"),
            (2, "p2.5"),
            (3, "two"),
            (4, "two"),
            (5, "5x"),
            (6, "in_port"),
            (7, "a\"b\\c"),
        ] {
            roster.add_port(PortNo(number), name);
        }
        roster.add_port(PortNo::LOCAL, "br0");
        roster.add_table(TableId(2), "acl");
        roster.add_table(TableId(3), "");
        roster
    }

    fn stats(flow: FlowMod) -> FlowStats {
        FlowStats {
            table: flow.table,
            priority: flow.priority,
            cookie: flow.cookie,
            matching: flow.matching,
            instructions: flow.instructions,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            importance: 0,
            flags: flow.flags,
            duration: Duration::ZERO,
            idle_age: Duration::ZERO,
            hard_age: Duration::ZERO,
            packets: 0,
            bytes: 0,
        }
    }

    /// Returns a rule printed with names and without.
    fn told(line: &str) -> Result<(String, String), ParseError> {
        let roster = roster();
        let flow = roster.parse_flow_line(line)?;
        let stats = stats(flow);
        let named = WithNames(&FlowWithoutStats(&stats), &roster).to_string();
        Ok((named, FlowWithoutStats(&stats).to_string()))
    }

    #[test]
    fn ports_are_read_and_written_by_their_names() {
        for (line, named, numbered) in [
            (
                "in_port=p1,actions=output:p2.5,p1,LOCAL",
                "in_port=p1 actions=output:\"p2.5\",output:p1,LOCAL",
                "in_port=1 actions=output:2,output:1,LOCAL",
            ),
            (
                "in_port=\"5x\",actions=enqueue:p1:3,resubmit(p1,2),resubmit:\"p2.5\"",
                "in_port=\"5x\" actions=enqueue:p1:3,resubmit(p1,acl),resubmit:\"p2.5\"",
                "in_port=5 actions=enqueue:1:3,resubmit(1,2),resubmit:2",
            ),
            (
                "actset_output=p1,actions=output(port=p1,max_len=64),clone(p1)",
                "actset_output=p1 actions=output(port=p1,max_len=64),clone(output:p1)",
                "actset_output=1 actions=output(port=1,max_len=64),clone(output:1)",
            ),
            (
                "actions=bundle(eth_src,0,hrw,ofport,members:p1,5x),write_actions(p1)",
                "actions=bundle(eth_src,0,hrw,ofport,members:p1,\"5x\"),write_actions(output:p1)",
                "actions=bundle(eth_src,0,hrw,ofport,members:1,5),write_actions(output:1)",
            ),
            (
                "actions=sample(probability=1,sampling_port=p1),set_field:p1->in_port",
                "actions=sample(probability=1,collector_set_id=0,obs_domain_id=0,obs_point_id=0,\
                 sampling_port=p1),set_field:p1->in_port",
                "actions=sample(probability=1,collector_set_id=0,obs_domain_id=0,obs_point_id=0,\
                 sampling_port=1),set_field:1->in_port",
            ),
            (
                "actions=\"a\\\"b\\\\c\"",
                "actions=output:\"a\\\"b\\\\c\"",
                "actions=output:7",
            ),
        ] {
            let told = told(line).expect(line);
            assert_eq!(told, (named.to_owned(), numbered.to_owned()), "{line}");
        }
    }

    #[test]
    fn tables_are_read_and_written_by_their_names() {
        let line = "table=acl,actions=learn(table=acl),resubmit(,acl)";
        let (named, numbered) = told(line).expect("it is one");
        assert_eq!(named, "table=acl, actions=learn(table=acl),resubmit(,acl)");
        assert_eq!(numbered, "table=2, actions=learn(table=2),resubmit(,2)");
        let (named, _) = told("actions=goto_table:\"acl\"").expect("it is one");
        assert_eq!(named, "actions=goto_table:acl");
        assert!(told("table=abc,actions=drop").is_err());
    }

    #[test]
    fn ambiguous_and_reserved_port_names_are_not_used() {
        assert!(told("actions=output:two").is_err());
        let (named, _) = told("actions=output:3,in_port,output:6").expect("numbers stay");
        assert_eq!(named, "actions=output:3,IN_PORT,output:\"in_port\"");
        let (_, numbered) = told("actions=output:\"in_port\"").expect("in quotes it is the port");
        assert_eq!(numbered, "actions=output:6");
        assert!(told("actions=output:br0").is_err(), "LOCAL is its name");
    }

    #[test]
    fn groups_name_ports_too() {
        let roster = roster();
        let line = "group_id=1,type=ff,bucket=watch_port:p1,actions=output:p1";
        let group = roster.parse_group_line(line).expect("it is one");
        let group = GroupDesc {
            kind: group.kind,
            group: group.group,
            selection: None,
            buckets: group.buckets,
        };
        assert_eq!(WithNames(&group, &roster).to_string(), line);
        let numbered = "group_id=1,type=ff,bucket=watch_port:1,actions=output:1";
        assert_eq!(group.to_string(), numbered);
    }
}
