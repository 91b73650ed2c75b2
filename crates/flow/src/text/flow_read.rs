//! Reading whole lines: flow-mods, and requests for statistics.

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

/// Keys of a printed rule's statistics. A line that was printed is read again
/// without them.
const COUNTS: [&str; 5] = ["duration", "n_packets", "n_bytes", "idle_age", "hard_age"];

/// The keys of a flow that are neither match fields nor flags.
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

/// What a line is for, and so which keys it may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LinePurpose {
    Change(FlowModCommand),
    Request,
}

impl LinePurpose {
    /// Whether the line makes rules: with actions, timeouts, flags and a cookie.
    fn makes(self) -> bool {
        use FlowModCommand::{Add, Modify, ModifyStrict};
        matches!(self, Self::Change(Add | Modify | ModifyStrict))
    }

    /// Whether a priority has a meaning.
    fn has_priority(self) -> bool {
        self.makes() || self == Self::Change(FlowModCommand::DeleteStrict)
    }

    /// Whether the key `name` has a place in the line; if not, where it has one.
    fn allows(self, name: &str) -> Result<(), &'static str> {
        match name {
            "out_port" | "out_group" if self.makes() => Err("only for deletions and dumps"),
            "priority" if !self.has_priority() => Err(
                "a loose deletion or a dump takes rules of all priorities; only a strict deletion has one",
            ),
            "idle_timeout" | "hard_timeout" if !self.makes() => Err("only where rules are made"),
            _ if is_flag(name) && !self.makes() => Err("only where rules are made"),
            "actions" | "action" if !self.makes() => {
                Err("nothing is made here, so there are no actions")
            }
            _ => Ok(()),
        }
    }
}

/// The command word that the line begins with, and the rest of the line.
pub(super) fn command(line: Token<'_>) -> (FlowModCommand, Token<'_>) {
    let (command, rest) = line.strip_keyword(&COMMANDS);
    (command.unwrap_or(FlowModCommand::Add), rest)
}

/// Reads a flow-mod, behind its command word.
pub(super) fn flow_mod(command: FlowModCommand, line: Token<'_>) -> Result<FlowMod, ParseError> {
    let head = FlowLine::read(LinePurpose::Change(command), line)?;
    let mut flow = FlowMod::new(command, head.priority, head.matching, head.instructions);
    flow.table = head.table.unwrap_or(match command {
        FlowModCommand::Delete | FlowModCommand::DeleteStrict => TableId::ALL,
        FlowModCommand::Add | FlowModCommand::Modify | FlowModCommand::ModifyStrict => {
            TableId::FIRST
        }
    });
    (flow.cookie, flow.cookie_mask) = head.cookie_wanted;
    match command {
        FlowModCommand::Add => flow.cookie = head.cookie_given.unwrap_or_default(),
        _ => flow.new_cookie = head.cookie_given,
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
        cookie: head.cookie_wanted.0,
        cookie_mask: head.cookie_wanted.1,
        matching: head.matching,
    })
}

/// All that a line can say.
struct FlowLine {
    table: Option<TableId>,
    priority: u16,
    /// What rules must have, and the bits of it that count.
    cookie_wanted: (Cookie, u64),
    /// What rules get.
    cookie_given: Option<Cookie>,
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
            cookie_wanted: (Cookie(0), 0),
            cookie_given: None,
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
                .map_err(|where_it_fits| item.key.error(where_it_fits))?;
            if draft.take(item)? || COUNTS.contains(&name) {
                continue;
            }
            let kind = head.take(purpose, item)?;
            if seen.contains(&kind) {
                return Err(item.key.error("given before"));
            }
            seen.push(kind);
        }
        head.matching = draft.finish()?;
        match actions {
            Some((key, actions)) => {
                purpose
                    .allows(key.text)
                    .map_err(|where_it_fits| key.error(where_it_fits))?;
                head.instructions = instructions::read(actions)?;
            }
            None if purpose.makes() => {
                let end = line.split_at(line.text.len()).1;
                return Err(end.error("actions are missing: `actions=`, and `drop` for none"));
            }
            None => {}
        }
        Ok(head)
    }

    /// Takes a key that is no match field. Returns what may be given only once: the
    /// key, but a cookie with a mask is another than one without.
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
            "actions" | "action" => return Err(item.key.error("`actions=` is wanted")),
            _ => {
                let unknown = "unknown key: neither a match field nor a part of a flow";
                let flags = FLAGS.iter().map(|(_, known)| *known);
                let known = names::of_matches().chain(KEYS).chain(flags);
                return Err(item.key.error(with_nearest(unknown, name, known)));
            }
        }
        Ok(name)
    }

    /// Takes a cookie: with a mask it chooses rules, without one it is given to them.
    fn take_cookie<'a>(
        &mut self,
        purpose: LinePurpose,
        item: KeyValue<'a>,
    ) -> Result<&'a str, ParseError> {
        let token = item.required_value()?;
        match token.split_once("/") {
            Some(_) if purpose == LinePurpose::Change(FlowModCommand::Add) => {
                Err(token.error("an added flow is given a cookie, without a mask"))
            }
            Some((cookie, mask)) => {
                let mask: u64 = number(mask)?;
                self.cookie_wanted = (Cookie(number::<u64>(cookie)? & mask), mask);
                Ok("cookie/mask")
            }
            None if purpose.makes() => {
                self.cookie_given = Some(Cookie(number(token)?));
                Ok("cookie")
            }
            None => {
                let value = token.text;
                Err(token.error(format!(
                    "to choose by cookie, a mask is needed: cookie={value}/-1"
                )))
            }
        }
    }
}

/// Whether `name` is a rule's flag.
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

/// Parts the keys from the actions, which are the rest of the line behind `actions=`.
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
