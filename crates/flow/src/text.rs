//! The text form of flows, as `ovs-ofctl` 3.1 reads and prints it.
//!
//! ```text
//! flow    = [command] key {"," key} "actions=" action {"," action}
//! command = "add" | "modify" | "modify_strict" | "delete" | "delete_strict"
//! key     = name | name "=" value ["/" mask]
//! action  = name | name ":" argument | name "(" arguments ")"
//! ```
//!
//! CommaList and white space separate alike. What is read is only *formed* here: a
//! match is legal, because [`Match`] cannot be otherwise, but whether actions fit it,
//! and whether tables, ports and groups exist, the pipeline judges.
//!
//! Stricter than the tool, where it would silently do something else than was
//! written: a field whose prerequisites are missing (the tool drops it), the
//! same key twice with two values (the last one wins there), arguments to
//! actions that take none, numbers with a leading zero (octal there), stray bits
//! in `nw_tos`. Wider than the tool, where it has no words for what OpenFlow can
//! say: `copy_ttl_in`, `copy_ttl_out`, `in_phy_port=`, `ipv6_exthdr=`, and ports
//! of 32 bits. Groups and meters have texts of their own (`groups`, `meters`). Not
//! here: frames.

mod action_read;
mod action_write;
mod address;
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
mod selection;
mod special;
mod subfield;

use std::str::FromStr;

use crate::action::{Action, Instructions};
use crate::command::{FlowMod, FlowModCommand};
use crate::group::GroupMod;
use crate::matching::Match;
use crate::meter::MeterMod;
use crate::statistics::FlowStatsRequest;

pub use error::ParseError;
pub use flow_write::{DEFAULT_PRIORITY, FlowWithoutStats};
pub use name_map::{NameMap, WithNames};

/// Longest line that is read, in bytes. A flow-mod's length has 16 bits on the
/// wire, and no action's text is four times as long as its bytes.
pub const MAX_LINE: usize = 1 << 18;

/// Reads what `ovs-ofctl add-flow`, `mod-flows` or `del-flows` (with `--strict`
/// or without) takes for a flow.
///
/// Which keys are allowed depends on the command: timeouts and flags where rules
/// are made, `out_port` and `out_group` in deletions, `priority` where it means
/// something. A table that is not named is the first, or in a deletion all.
/// A cookie with a mask chooses rules; one without is given to them, which in a
/// modification is OpenFlow 1.0's way ([`FlowMod::cookie_if_added`]).
///
/// # Errors
/// Where the line goes wrong, and what would be right there.
pub fn parse_flow(command: FlowModCommand, line: &str) -> Result<FlowMod, ParseError> {
    flow_read::flow_mod(command, lexer::line(line)?)
}

/// Reads a line of a flow file: as [`parse_flow`], and the line may begin with
/// the command; without it the flow is added.
///
/// # Errors
/// As for [`parse_flow`].
pub fn parse_flow_line(line: &str) -> Result<FlowMod, ParseError> {
    let (command, rest) = flow_read::command(lexer::line(line)?);
    flow_read::flow_mod(command, rest)
}

/// Reads what `ovs-ofctl dump-flows` takes as its filter; nothing asks for all rules.
///
/// # Errors
/// As for [`parse_flow`].
pub fn parse_flow_stats_request(line: &str) -> Result<FlowStatsRequest, ParseError> {
    flow_read::flow_stats_request(lexer::line(line)?)
}

/// Reads a list of actions, without instructions: what packet-out and buckets take.
///
/// # Errors
/// As for [`parse_flow`].
pub fn parse_actions(text: &str) -> Result<Vec<Action>, ParseError> {
    instructions::action_list(lexer::line(text)?)
}

/// Reads a line of a group file, as `ovs-ofctl add-group` takes it: it may begin
/// with `add`, `modify` or `delete`, and adds without it. A deletion that names no
/// group means all.
///
/// # Errors
/// As for [`parse_flow`].
pub fn parse_group_line(line: &str) -> Result<GroupMod, ParseError> {
    let (command, rest) = groups::command(lexer::line(line)?);
    groups::group_mod(command, rest)
}

/// Reads a meter, as `ovs-ofctl add-meter` takes it or `dump-meters` prints it: it
/// may begin with `add`, `modify` or `delete`, and adds without it. A deletion that
/// names no meter means all.
///
/// # Errors
/// As for [`parse_flow`].
pub fn parse_meter_line(line: &str) -> Result<MeterMod, ParseError> {
    let (command, rest) = meters::command(lexer::line(line)?);
    meters::meter_mod(command, rest)
}

impl FromStr for FlowMod {
    type Err = ParseError;

    /// As [`parse_flow_line`].
    fn from_str(line: &str) -> Result<Self, ParseError> {
        parse_flow_line(line)
    }
}

impl FromStr for Match {
    type Err = ParseError;

    /// Reads fields alone: no table, priority or actions.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        match_read::whole(lexer::line(text)?)
    }
}

impl FromStr for Instructions {
    type Err = ParseError;

    /// Reads what stands behind `actions=`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        instructions::read(lexer::line(text)?)
    }
}

#[cfg(test)]
pub(crate) mod tests;
