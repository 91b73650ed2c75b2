//! Reader of whole lines: flow-mods and statistics requests.

use base::{Cookie, GroupId, PortNo, TableId};

use super::error::ParseError;
use super::flow_write::{COMMANDS, DEFAULT_PRIORITY, FLAGS};
use super::lexer::{KeyValue, KeyValues, Token};
use super::match_read::MatchDraft;
use super::nearest::with_nearest;
use super::number::number;
use super::{address, instructions, name_map, names};
use crate::action::Instructions;
use crate::command::{FlowFlags, FlowMod, FlowModCommand};
use crate::matching::Match;
use crate::statistics::FlowStatsRequest;

/// Statistics of a printed rule, which are ignored when it is read again.
const COUNTS: [&str; 5] = ["duration", "n_packets", "n_bytes", "idle_age", "hard_age"];

/// Keys of a flow except for match fields and flags.
const KEYS: [&str; 9] = [
    "actions",
    "cookie",
    "hard_timeout",
    "idle_timeout",
    "importance",
    "out_group",
    "out_port",
    "priority",
    "table",
];

/// Kind of a line, which determines the permitted keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LinePurpose {
    Change(FlowModCommand),
    Request,
}

impl LinePurpose {
    /// True if the line adds or modifies rules, with actions, timeouts, flags and a cookie.
    fn creates_rules(self) -> bool {
        use FlowModCommand::{Add, Modify, ModifyStrict};
        matches!(self, Self::Change(Add | Modify | ModifyStrict))
    }

    /// True if a priority is permitted.
    fn has_priority(self) -> bool {
        self.creates_rules() || self == Self::Change(FlowModCommand::DeleteStrict)
    }

    /// Checks that the key `name` is permitted; the error states where it is.
    fn allows(self, name: &str) -> Result<(), &'static str> {
        match name {
            "out_port" | "out_group" if self.creates_rules() => {
                Err("only permitted in deletions and dumps")
            }
            "priority" if !self.has_priority() => Err(
                "a loose deletion or a dump selects rules of all priorities; only a strict deletion has a priority",
            ),
            "idle_timeout" | "hard_timeout" if !self.creates_rules() => {
                Err("only permitted when rules are added or modified")
            }
            _ if is_flag(name) && !self.creates_rules() => {
                Err("only permitted when rules are added or modified")
            }
            "actions" | "action" if !self.creates_rules() => {
                Err("actions are not permitted in deletions and dumps")
            }
            _ => Ok(()),
        }
    }
}

/// Splits the command from the front of a line.
pub(super) fn command(line: Token<'_>) -> (FlowModCommand, Token<'_>) {
    let (command, rest) = line.strip_keyword(&COMMANDS);
    (command.unwrap_or(FlowModCommand::Add), rest)
}

/// Parses a flow-mod after its command.
pub(super) fn flow_mod(command: FlowModCommand, line: Token<'_>) -> Result<FlowMod, ParseError> {
    let head = FlowLine::read(LinePurpose::Change(command), line)?;
    let mut flow = FlowMod::new(command, head.priority, head.matching, head.instructions);
    flow.table = head.table.unwrap_or(match command {
        FlowModCommand::Delete | FlowModCommand::DeleteStrict => TableId::ALL,
        FlowModCommand::Add | FlowModCommand::Modify | FlowModCommand::ModifyStrict => {
            TableId::FIRST
        }
    });
    (flow.cookie, flow.cookie_mask) = head.cookie_filter;
    match command {
        FlowModCommand::Add => flow.cookie = head.new_cookie.unwrap_or_default(),
        _ => flow.new_cookie = head.new_cookie,
    }
    flow.idle_timeout_s = head.idle_timeout_s;
    flow.hard_timeout_s = head.hard_timeout_s;
    flow.importance = head.importance;
    flow.out_port = head.out_port;
    flow.out_group = head.out_group;
    flow.flags = head.flags;
    Ok(flow)
}

/// Reads a request for statistics.
pub(super) fn flow_stats_request(line: Token<'_>) -> Result<FlowStatsRequest, ParseError> {
    let head = FlowLine::read(LinePurpose::Request, line)?;
    Ok(FlowStatsRequest {
        table: head.table.unwrap_or(TableId::ALL),
        out_port: head.out_port,
        out_group: head.out_group,
        cookie: head.cookie_filter.0,
        cookie_mask: head.cookie_filter.1,
        matching: head.matching,
    })
}

/// Contents of a line.
struct FlowLine {
    table: Option<TableId>,
    priority: u16,
    /// Cookie that selects rules, and its mask.
    cookie_filter: (Cookie, u64),
    /// New cookie of the rules.
    new_cookie: Option<Cookie>,
    idle_timeout_s: u16,
    hard_timeout_s: u16,
    importance: u16,
    out_port: PortNo,
    out_group: GroupId,
    flags: FlowFlags,
    matching: Match,
    instructions: Instructions,
}

impl FlowLine {
    /// Reads a line.
    fn read(purpose: LinePurpose, line: Token<'_>) -> Result<Self, ParseError> {
        let mut head = Self {
            table: None,
            priority: DEFAULT_PRIORITY,
            cookie_filter: (Cookie(0), 0),
            new_cookie: None,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            importance: 0,
            out_port: PortNo::ANY,
            out_group: GroupId::ANY,
            flags: FlowFlags::default(),
            matching: Match::any(),
            instructions: Instructions::default(),
        };
        let mut draft = MatchDraft::default();
        let mut seen: Vec<&str> = Vec::new();
        let (keys, actions) = split_actions(line)?;
        let mut items = KeyValues::new(keys);
        while let Some(item) = items.next_pair()? {
            let name = item.key.text;
            purpose
                .allows(name)
                .map_err(|reason| item.key.error(reason))?;
            if draft.take(item)? || COUNTS.contains(&name) {
                continue;
            }
            let kind = head.take(purpose, item)?;
            if seen.contains(&kind) {
                return Err(item.key.error("duplicate key"));
            }
            seen.push(kind);
        }
        head.matching = draft.finish()?;
        match actions {
            Some((key, actions)) => {
                purpose
                    .allows(key.text)
                    .map_err(|reason| key.error(reason))?;
                head.instructions = instructions::read(actions)?;
            }
            None if purpose.creates_rules() => {
                let end = line.split_at(line.text.len()).1;
                return Err(end.error("missing actions: `actions=`, or `actions=drop` for none"));
            }
            None => {}
        }
        Ok(head)
    }

    /// Takes a key other than a match field. Returns a name for the detection of duplicates: the
    /// key, but a cookie with a mask differs from one without.
    fn take<'a>(
        &mut self,
        purpose: LinePurpose,
        item: KeyValue<'a>,
    ) -> Result<&'a str, ParseError> {
        let name = item.key.text;
        if let Some((flag, _)) = FLAGS.iter().find(|(_, known)| *known == name) {
            item.reject_value()?;
            self.flags = self.flags.with(*flag);
            return Ok(name);
        }
        match name {
            "table" => self.table = Some(table(item.required_value()?)?),
            "priority" => self.priority = number(item.required_value()?)?,
            "idle_timeout" => self.idle_timeout_s = number(item.required_value()?)?,
            "hard_timeout" => self.hard_timeout_s = number(item.required_value()?)?,
            "out_port" => self.out_port = address::port(item.required_value()?)?,
            "out_group" => self.out_group = GroupId(number(item.required_value()?)?),
            "cookie" => return self.take_cookie(purpose, item),
            "importance" => self.importance = number(item.required_value()?)?,
            "actions" | "action" => return Err(item.key.error("expected `actions=`")),
            _ => {
                let unknown = "unknown key";
                let flags = FLAGS.iter().map(|(_, known)| *known);
                let known = names::match_names().chain(KEYS).chain(flags);
                return Err(item.key.error(with_nearest(unknown, name, known)));
            }
        }
        Ok(name)
    }

    /// Takes a cookie: with a mask it selects rules, without one it is assigned to them.
    fn take_cookie<'a>(
        &mut self,
        purpose: LinePurpose,
        item: KeyValue<'a>,
    ) -> Result<&'a str, ParseError> {
        let token = item.required_value()?;
        match token.split_once("/") {
            Some(_) if purpose == LinePurpose::Change(FlowModCommand::Add) => {
                Err(token.error("the cookie of an added flow has no mask"))
            }
            Some((cookie, mask)) => {
                let mask: u64 = number(mask)?;
                self.cookie_filter = (Cookie(number::<u64>(cookie)? & mask), mask);
                Ok("cookie/mask")
            }
            None if purpose.creates_rules() => {
                self.new_cookie = Some(Cookie(number(token)?));
                Ok("cookie")
            }
            None => {
                let value = token.text;
                Err(token.error(format!(
                    "selection by cookie requires a mask: cookie={value}/-1"
                )))
            }
        }
    }
}

/// True for the name of a flag.
fn is_flag(name: &str) -> bool {
    FLAGS.iter().any(|(_, known)| *known == name)
}

/// Reads a table's number or name, or `ALL`.
fn table(token: Token<'_>) -> Result<TableId, ParseError> {
    if token.text.eq_ignore_ascii_case("all") {
        return Ok(TableId::ALL);
    }
    name_map::table(token)
}

/// The name of a part, and the part.
type KeyAndActions<'a> = (Token<'a>, Token<'a>);

/// Splits the keys from the actions, which are the rest of the line after `actions=`.
fn split_actions(line: Token<'_>) -> Result<(Token<'_>, Option<KeyAndActions<'_>>), ParseError> {
    let mut items = KeyValues::new(line);
    loop {
        let before = items.rest();
        let Some(item) = items.next_pair()? else {
            return Ok((line, None));
        };
        if matches!(item.key.text, "actions" | "action") {
            let (_, behind) = line.split_at(item.key.at - line.at + item.key.text.len());
            if behind.text.starts_with('=') {
                let keys = line.split_at(before.at - line.at).0;
                return Ok((keys, Some((item.key, behind.split_at(1).1))));
            }
        }
    }
}
