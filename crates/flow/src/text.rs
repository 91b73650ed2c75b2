//! Text form of flows, groups and meters, as `ovs-ofctl` 3.1 reads and prints it.
//!
//! ```text
//! flow    = [command] key {"," key} "actions=" action {"," action}
//! command = "add" | "modify" | "modify_strict" | "delete" | "delete_strict"
//! key     = name | name "=" value ["/" mask]
//! action  = name | name ":" argument | name "(" arguments ")"
//! ```
//!
//! # Structure
//!
//! 1. The lexer (`lexer`) splits a line into tokens and key-value pairs. It recognises commas, white space (equivalent to a comma), `=`, `:`, parentheses, quotes and `->`, but no key. Each token keeps its column, so that an error names the exact position ([`ParseError`]).
//! 2. The readers (`match_read`, `action_read`, `extension_read`, `flow_read`, `groups`, `meters` ...) interpret keys by tables of names (`names`). Keys may have any order: names that depend on the protocol, such as `tp_dst`, and prerequisites are resolved after the last key.
//! 3. The writers print in the order and the form of `ovs-ofctl`, so that a printed line reads as the same value.
//!
//! Ports and tables may have names ([`NameMap`], `--names` of `ovs-ofctl(8)`).
//!
//! The readers check syntax only. A match is valid because [`Match`] cannot be otherwise; crate
//! `pipeline` checks whether actions fit it and whether tables, ports and groups exist.
//!
//! # Differences
//! from `ovs-ofctl`
//!
//! Stricter where the tool would silently do something else: a field without its prerequisites (the
//! tool drops it), the same key with two values (the last one wins there), arguments of actions
//! that have none, numbers with a leading zero (octal there), the lower bits of `nw_tos`.
//!
//! Wider where the tool lacks syntax for OpenFlow: `copy_ttl_in`, `copy_ttl_out`, `in_phy_port=`,
//! `ipv6_exthdr=`, and ports of 32 bits.
//!
//! ```
//! use flow::text::{parse_flow, parse_flow_line};
//! use flow::FlowModCommand;
//!
//! let flow = parse_flow_line("table=1,priority=10,tcp,tp_dst=80 actions=dec_ttl,output:2").unwrap();
//! assert_eq!(flow.to_string(), "add table=1,priority=10,tcp,tp_dst=80 actions=dec_ttl,output:2");
//!
//! let error = parse_flow(FlowModCommand::Delete, "tp_dst=80").unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "column 1, `tp_dst`: requires `tcp`, `udp` or `sctp`, or their IPv6 variants"
//! );
//! ```

mod action_read;
mod action_write;
mod address;
mod conntrack;
mod encap;
mod error;
mod extension_read;
mod extension_write;
mod flow_read;
mod flow_write;
mod groups;
mod instructions;
mod learn;
mod lexer;
mod match_read;
mod match_write;
mod meters;
mod name_map;
mod names;
mod nearest;
mod number;
mod options;
mod sample;
mod selection;
mod special;
mod subfield;

use std::str::FromStr;

use crate::action::{Action, Instructions};
use crate::command::{FlowMod, FlowModCommand};
use crate::extension::Subfield;
use crate::group::GroupMod;
use crate::matching::Match;
use crate::meter::MeterMod;
use crate::statistics::FlowStatsRequest;

pub use address::Ipv6Text;
pub use error::ParseError;
pub use flow_write::{DEFAULT_PRIORITY, FlowWithoutStats};
pub use name_map::{NameMap, WithNames};

/// Longest accepted line, in bytes. The length of a flow-mod has 16 bits on the wire, and no
/// action's text is four times as long as its encoding.
pub const MAX_LINE: usize = 1 << 18;

/// Parses a flow of `ovs-ofctl add-flow`, `mod-flows` or `del-flows` (with `--strict` or without).
///
/// The permitted keys depend on the command: timeouts and flags where rules are added or modified,
/// `out_port` and `out_group` in deletions, `priority` except in loose deletions. The default table
/// is the first, or in a deletion all. A cookie with a mask selects rules; one without a mask
/// becomes their cookie, in a modification as in OpenFlow 1.0 ([`FlowMod::cookie_if_added`]).
///
/// # Errors
/// The position of the error, and the expected syntax.
pub fn parse_flow(command: FlowModCommand, line: &str) -> Result<FlowMod, ParseError> {
    flow_read::flow_mod(command, lexer::line(line)?)
}

/// Parses a line of a flow file: like [`parse_flow`], with an optional command at the front, by
/// default `add`.
///
/// # Errors
/// As for [`parse_flow`].
pub fn parse_flow_line(line: &str) -> Result<FlowMod, ParseError> {
    let (command, rest) = flow_read::command(lexer::line(line)?);
    flow_read::flow_mod(command, rest)
}

/// Parses a filter of `ovs-ofctl dump-flows`; an empty one selects all rules.
///
/// # Errors
/// As for [`parse_flow`].
pub fn parse_flow_stats_request(line: &str) -> Result<FlowStatsRequest, ParseError> {
    flow_read::flow_stats_request(lexer::line(line)?)
}

/// Parses a list of actions without instructions, for packet-outs and buckets.
///
/// # Errors
/// As for [`parse_flow`].
pub fn parse_actions(text: &str) -> Result<Vec<Action>, ParseError> {
    instructions::action_list(lexer::line(text)?)
}

/// Parses a subfield: `NXM_OF_IN_PORT[]`, `reg0[4..11]`.
///
/// # Errors
/// As for [`parse_flow`].
///
/// # Examples
/// ```
/// use flow::{Field, Subfield, text};
///
/// let subfield = text::parse_subfield("NXM_NX_REG0[4..11]").unwrap();
/// assert_eq!(Some(subfield), Subfield::new(Field::Reg0, 4, 8));
/// assert!(text::parse_subfield("NXM_NX_REG0[30..33]").is_err());
/// ```
pub fn parse_subfield(text: &str) -> Result<Subfield, ParseError> {
    subfield::subfield(lexer::line(text)?)
}

/// Parses a line of a group file, like `ovs-ofctl add-group`, with an optional command at the
/// front, by default `add`. A deletion without a group deletes all.
///
/// # Errors
/// As for [`parse_flow`].
pub fn parse_group_line(line: &str) -> Result<GroupMod, ParseError> {
    let (command, rest) = groups::command(lexer::line(line)?);
    groups::group_mod(command, rest)
}

/// Parses a meter, like `ovs-ofctl add-meter`, or as `dump-meters` prints it, with an optional
/// command at the front, by default `add`. A deletion without a meter deletes all.
///
/// # Errors
/// As for [`parse_flow`].
pub fn parse_meter_line(line: &str) -> Result<MeterMod, ParseError> {
    let (command, rest) = meters::command(lexer::line(line)?);
    meters::meter_mod(command, rest)
}

impl FromStr for FlowMod {
    type Err = ParseError;

    /// Like [`parse_flow_line`].
    fn from_str(line: &str) -> Result<Self, ParseError> {
        parse_flow_line(line)
    }
}

impl FromStr for Match {
    type Err = ParseError;

    /// Parses fields only, without table, priority or actions.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        match_read::whole(lexer::line(text)?)
    }
}

impl FromStr for Instructions {
    type Err = ParseError;

    /// Parses the text after `actions=`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        instructions::read(lexer::line(text)?)
    }
}

#[cfg(test)]
pub(crate) mod tests;
