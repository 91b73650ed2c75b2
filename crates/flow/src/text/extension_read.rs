//! Reader of extension actions, except for `learn` and `sample`.

use std::sync::Arc;

use base::{PortNo, TableId};

use super::error::ParseError;
use super::lexer::{KeyValue, KeyValues, Token};
use super::names::settable;
use super::number::{BoundedInt, number, unsigned};
use super::subfield::subfield;
use super::{address, conntrack, encap, instructions, learn, name_map, sample};
use crate::action::{Action, MaxLen};
use crate::event::PacketInReason;
use crate::extension::{
    BundleAction, BundleAlgorithm, ControllerAction, Extension, HashFields, Multipath,
    MultipathAlgorithm, NESTING_MAX,
};
use crate::field::Field;

/// Reads the argument of one action.
type ExtensionReader = fn(KeyValue<'_>) -> Result<Extension, ParseError>;

/// Every action by its name.
#[rustfmt::skip]
const ACTIONS: &[(&str, ExtensionReader)] = &[
    ("resubmit",         resubmit),
    ("load",             load),
    ("reg_load",         load),
    ("move",             move_bits),
    ("push",             |item| subfield(item.required_value()?).map(Extension::Push)),
    ("pop",              |item| subfield(item.required_value()?).map(Extension::Pop)),
    ("pop_queue",        |item| item.reject_value().map(|()| Extension::PopQueue)),
    ("note",             note),
    ("exit",             |item| item.reject_value().map(|()| Extension::Exit)),
    ("clone",            clone),
    ("learn",            |item| learn::read(item).map(|learn| Extension::Learn(Arc::new(learn)))),
    ("fin_timeout",      fin_timeout),
    ("multipath",        multipath),
    ("bundle",           |item| bundle(item, false)),
    ("bundle_load",      |item| bundle(item, true)),
    ("conjunction",      conjunction),
    ("check_pkt_larger", check_packet_larger),
    ("sample",           sample::read),
    ("encap",            encap::encap),
    ("decap",            encap::decap),
    ("delete_field",     delete_field),
    ("dec_nsh_ttl",      |item| item.reject_value().map(|()| Extension::DecNshTtl)),
    ("ct",               conntrack::read),
    ("nat",              conntrack::read_nat),
    ("ct_clear",         |item| item.reject_value().map(|()| Extension::ConntrackClear)),
    ("debug_slow",       |item| item.reject_value().map(|()| Extension::DebugSlow)),
    ("debug_recirc",     |item| item.reject_value().map(|()| Extension::DebugRecirc)),
];

/// The names of Nicira's actions.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    ACTIONS.iter().map(|(name, _)| *name)
}

/// Parses `item` if it is an extension action.
pub(super) fn action(item: KeyValue<'_>) -> Option<Result<Action, ParseError>> {
    let (_, read) = ACTIONS.iter().find(|(name, _)| *name == item.key.text)?;
    Some(read(item).map(Action::Extended))
}

/// Reads the name of a field.
fn delete_field(item: KeyValue<'_>) -> Result<Extension, ParseError> {
    let name = item.required_value()?;
    let field = settable(name.text).or_else(|| Field::from_nxm_name(name.text));
    let wrong = || name.error("expected a field, such as tun_metadata0");
    field.map(Extension::DeleteField).ok_or_else(wrong)
}

/// Reads `port`, `(port,table)` or `(,table)`; `,ct` may follow the table.
fn resubmit(item: KeyValue<'_>) -> Result<Extension, ParseError> {
    let whole = item.required_value()?;
    let (port, table) = match whole.split_once(",") {
        Some((port, table)) => (port.trim(), Some(table.trim())),
        None => (whole, None),
    };
    let named = |token: Token<'_>| !token.text.is_empty();
    let port = match port {
        port if named(port) => address::port(port)?,
        _ => PortNo::IN_PORT,
    };
    let (table, by_connection) = match table.and_then(|table| table.split_once(",")) {
        Some((table, word)) if word.text.trim() == "ct" => (Some(table.trim()), true),
        Some((table, word)) if word.text.trim().is_empty() => (Some(table.trim()), false),
        Some((_, word)) => return Err(word.error("expected \"ct\" after the table")),
        None => (table, false),
    };
    let table = match table.filter(|table| named(*table)) {
        Some(table) => Some(name_map::table(table)?).filter(|table| *table != TableId::ALL),
        None => None,
    };
    if port == PortNo::IN_PORT && table.is_none() {
        return Err(whole.error("expected a port or a table: resubmit(PORT,TABLE)"));
    }
    Ok(match by_connection {
        true => Extension::ResubmitConnection { port, table },
        false => Extension::Resubmit { port, table },
    })
}

/// Returns the tokens before and after an arrow.
fn arrow<'a>(token: Token<'a>, expected: &str) -> Result<(Token<'a>, Token<'a>), ParseError> {
    let sides = token.split_once("->");
    let (left, right) = sides.ok_or_else(|| token.error(expected))?;
    Ok((left.trim(), right.trim()))
}

/// Reads `value->part`.
fn load(item: KeyValue<'_>) -> Result<Extension, ParseError> {
    let expected = "expected a value and a field: load:VALUE->FIELD[]";
    let (value, to) = arrow(item.required_value()?, expected)?;
    let to = subfield(to)?;
    if to.bits() > 64 {
        return Err(value.error("at most 64 bits can be loaded"));
    }
    let value = unsigned(value, to.ones())?;
    let value = u64::try_from(value).expect("at most 64 bits");
    Ok(Extension::Load { to, value })
}

/// Reads `part->part`.
fn move_bits(item: KeyValue<'_>) -> Result<Extension, ParseError> {
    let whole = item.required_value()?;
    let (from, to) = arrow(whole, "expected two fields: move:FIELD[]->FIELD[]")?;
    let (from, to) = (subfield(from)?, subfield(to)?);
    if from.bits() != to.bits() {
        let (from, to) = (from.bits(), to.bits());
        return Err(whole.error(format!("{from} bits do not fit {to} bits")));
    }
    Ok(Extension::Move { from, to })
}

/// Parses bytes in hexadecimal, with optional dots between them.
pub(super) fn bytes(token: Token<'_>) -> Result<Vec<u8>, ParseError> {
    let digits: Vec<u8> = token.text.bytes().filter(|byte| *byte != b'.').collect();
    let value = |digit: u8| char::from(digit).to_digit(16);
    let pairs = digits.chunks(2).map(|pair| match *pair {
        [high, low] => Some(value(high)? << 4 | value(low)?),
        _ => None,
    });
    let bytes: Option<Vec<u8>> = pairs
        .map(|byte| byte.and_then(|byte| u8::try_from(byte).ok()))
        .collect();
    bytes.ok_or_else(|| token.error("expected pairs of hexadecimal digits: 01.0a.ff"))
}

/// Parses a note, padded with zeros to the length of an action.
fn note(item: KeyValue<'_>) -> Result<Extension, ParseError> {
    let mut bytes = match item.value {
        Some(value) => bytes(value)?,
        None => Vec::new(),
    };
    // The action's header has ten bytes, and its length is a multiple of eight.
    bytes.resize((bytes.len() + 10).next_multiple_of(8) - 10, 0);
    Ok(Extension::Note(bytes.into()))
}

/// Reads `clone(action, ...)`.
fn clone(item: KeyValue<'_>) -> Result<Extension, ParseError> {
    let Some(inside) = item.value else {
        return Err(item.key.error("missing actions: clone(..)"));
    };
    if depth(inside.text) > NESTING_MAX {
        return Err(inside.error(format!("nested deeper than {NESTING_MAX} levels")));
    }
    Ok(Extension::Clone(instructions::action_list(inside)?.into()))
}

/// Returns the nesting depth of parentheses in `text`.
pub(super) fn depth(text: &str) -> usize {
    let (mut open, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' => open += 1,
            b')' => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest
}

/// Parses `idle_timeout=N,hard_timeout=N`, both optional.
fn fin_timeout(item: KeyValue<'_>) -> Result<Extension, ParseError> {
    let (mut idle_s, mut hard_s) = (0, 0);
    options(item, |option| {
        match option.key.text {
            "idle_timeout" => idle_s = number(option.required_value()?)?,
            "hard_timeout" => hard_s = number(option.required_value()?)?,
            _ => return Err(option.key.error("expected idle_timeout or hard_timeout")),
        }
        Ok(())
    })?;
    Ok(Extension::FinTimeout { idle_s, hard_s })
}

/// Calls `take` for each option of `item`.
pub(super) fn options<'a>(
    item: KeyValue<'a>,
    mut take: impl FnMut(KeyValue<'a>) -> Result<(), ParseError>,
) -> Result<(), ParseError> {
    let Some(value) = item.value else {
        return Ok(());
    };
    let mut options = KeyValues::new(value);
    while let Some(option) = options.next_pair()? {
        take(option)?;
    }
    Ok(())
}

/// Positional arguments.
struct PositionalArgs<'a> {
    whole: Token<'a>,
    rest: Option<Token<'a>>,
}

impl<'a> PositionalArgs<'a> {
    fn of(item: KeyValue<'a>) -> Result<Self, ParseError> {
        let whole = item.required_value()?;
        let rest = Some(whole);
        Ok(Self { whole, rest })
    }

    /// The next argument, which is `what`.
    fn next(&mut self, what: &str) -> Result<Token<'a>, ParseError> {
        let missing = format!("missing: {what}");
        let Some(rest) = self.rest else {
            return Err(self.whole.error(missing));
        };
        let (next, rest) = match rest.split_once(",") {
            Some((next, rest)) => (next, Some(rest)),
            None => (rest, None),
        };
        self.rest = rest;
        match next.trim() {
            next if next.text.is_empty() => Err(next.error(missing)),
            next => Ok(next),
        }
    }

    fn number<T: BoundedInt>(&mut self, what: &str) -> Result<T, ParseError> {
        number(self.next(what)?)
    }

    fn named<T: Copy>(&mut self, names: &[(T, &str)], what: &str) -> Result<T, ParseError> {
        let token = self.next(what)?;
        let known = names.iter().find(|(_, name)| *name == token.text);
        known.map(|(value, _)| *value).ok_or_else(|| {
            let names: Vec<_> = names.iter().map(|(_, name)| *name).collect();
            token.error(format!("{what} must be one of {}", names.join(", ")))
        })
    }

    fn end(self) -> Result<(), ParseError> {
        self.rest
            .map_or(Ok(()), |rest| Err(rest.error("too many arguments")))
    }
}

/// Reads `fields,basis,algorithm,links,argument,part`.
fn multipath(item: KeyValue<'_>) -> Result<Extension, ParseError> {
    let mut places = PositionalArgs::of(item)?;
    let fields = places.named(&HashFields::ALL, "fields to hash")?;
    let basis = places.number("basis")?;
    let algorithm = places.named(&MultipathAlgorithm::ALL, "algorithm")?;
    let token = places.next("number of links")?;
    let links = unsigned(token, 1 << 16)?;
    let link_max = links.checked_sub(1).and_then(|max| u16::try_from(max).ok());
    let link_max = link_max.ok_or_else(|| token.error("expected from 1 to 65536 links"))?;
    let argument = places.number("argument")?;
    let to = places.next("destination")?;
    places.end()?;
    let to_subfield = subfield(to)?;
    if u128::from(link_max) > to_subfield.ones() {
        return Err(to.error("too narrow for the number of links"));
    }
    Ok(Extension::Multipath(Multipath {
        fields,
        basis,
        algorithm,
        link_max,
        argument,
        to: to_subfield,
    }))
}

/// Reads `fields,basis,algorithm,ofport,[part,]members:port,...`.
fn bundle(item: KeyValue<'_>, loads: bool) -> Result<Extension, ParseError> {
    let mut places = PositionalArgs::of(item)?;
    let fields = places.named(&HashFields::ALL, "fields to hash")?;
    let basis = places.number("basis")?;
    let algorithm = places.named(&BundleAlgorithm::ALL, "algorithm")?;
    places.named(&[((), "ofport")], "kind of members")?;
    let to = match loads {
        true => Some(subfield(places.next("destination")?)?),
        false => None,
    };
    let first = places.next("members:PORT,...")?;
    let Some((word, first)) = first.split_once(":") else {
        return Err(first.error("expected members:PORT,..."));
    };
    // Open vSwitch's older word is read by it too.
    if !matches!(word.text, "members" | "slaves") {
        return Err(word.error("expected members:PORT,..."));
    }
    let mut members = Vec::new();
    if !first.text.is_empty() {
        members.push(address::port(first)?);
    }
    while places.rest.is_some() {
        members.push(address::port(places.next("port")?)?);
    }
    if members.len() > BundleAction::MEMBERS_MAX {
        let most = BundleAction::MEMBERS_MAX;
        return Err(item
            .key
            .error(format!("a bundle has at most {most} members")));
    }
    Ok(Extension::Bundle(Arc::new(BundleAction {
        fields,
        basis,
        algorithm,
        to,
        members,
    })))
}

/// Reads `id,clause/clauses`; the first clause is 1.
fn conjunction(item: KeyValue<'_>) -> Result<Extension, ParseError> {
    let mut places = PositionalArgs::of(item)?;
    let id = places.number("conjunction id")?;
    let token = places.next("CLAUSE/CLAUSES")?;
    places.end()?;
    let Some((clause, clauses)) = token.split_once("/") else {
        return Err(token.error("expected CLAUSE/CLAUSES, such as 1/2"));
    };
    let (clause, clauses) = (number::<u8>(clause)?, number::<u8>(clauses)?);
    match clause.checked_sub(1) {
        Some(clause) if clause < clauses => Ok(Extension::Conjunction {
            id,
            clause,
            clauses,
        }),
        _ => Err(token.error("expected a clause from 1 to the number of clauses")),
    }
}

/// Reads `(bytes)->bit`.
fn check_packet_larger(item: KeyValue<'_>) -> Result<Extension, ParseError> {
    let expected = "expected check_pkt_larger(BYTES)->FIELD[BIT]";
    let target = item.target.ok_or_else(|| item.key.error(expected))?;
    let to = subfield(target)?;
    if to.bits() != 1 {
        return Err(target.error("expected one bit"));
    }
    Ok(Extension::CheckPacketLarger {
        bytes: number(item.required_value()?)?,
        to,
    })
}

/// Parses the argument of `output` if only Nicira's action supports it.
pub(super) fn output(token: Token<'_>) -> Option<Result<Action, ParseError>> {
    if token.text.contains('=') {
        return Some(truncated(token).map(Action::Extended));
    }
    if !super::subfield::is_subfield(token.text) || address::port(token).is_ok() {
        return None;
    }
    Some(subfield(token).map(|from| {
        Action::Extended(Extension::OutputReg {
            from,
            max_len: MaxLen::WHOLE,
        })
    }))
}

/// Reads `port=PORT,max_len=BYTES`.
fn truncated(token: Token<'_>) -> Result<Extension, ParseError> {
    let (mut port, mut max_len) = (None, None);
    let mut options = KeyValues::new(token);
    while let Some(option) = options.next_pair()? {
        match option.key.text {
            "port" => port = Some(address::port(option.required_value()?)?),
            "max_len" => max_len = Some(number(option.required_value()?)?),
            _ => return Err(option.key.error("expected port or max_len")),
        }
    }
    match (port, max_len) {
        (Some(port), Some(max_len)) => Ok(Extension::OutputTruncated { port, max_len }),
        _ => Err(token.error("expected output(port=PORT,max_len=BYTES)")),
    }
}

/// Parses the options of `controller`. Those that OpenFlow's own output supports become that
/// action.
pub(super) fn controller(options: Token<'_>) -> Result<Action, ParseError> {
    let mut told = ControllerAction::default();
    let mut items = KeyValues::new(options);
    while let Some(option) = items.next_pair()? {
        match option.key.text {
            "max_len" => told.max_len = MaxLen(number(option.required_value()?)?),
            "id" => told.controller = number(option.required_value()?)?,
            "reason" => told.reason = reason(option.required_value()?)?,
            "userdata" => told.userdata = option.value.map_or(Ok(Vec::new()), bytes)?,
            "meter_id" => {
                let meter = number(option.required_value()?)?;
                told.meter = (meter != 0).then_some(base::MeterId(meter));
            }
            "pause" => {
                option.reject_value()?;
                told.pause = true;
            }
            _ => return Err(option.key.error("unknown option of `controller`")),
        }
    }
    let max_len = told.max_len;
    let plain = ControllerAction {
        max_len,
        ..ControllerAction::default()
    };
    Ok(match told == plain {
        true => Action::Output {
            port: PortNo::CONTROLLER,
            max_len,
        },
        false => Action::Extended(Extension::Controller(Arc::new(told))),
    })
}

/// Names of the packet-in reasons.
pub(super) const REASONS: [(PacketInReason, &str); 6] = [
    (PacketInReason::Action, "action"),
    (PacketInReason::NoMatch, "no_match"),
    (PacketInReason::InvalidTtl, "invalid_ttl"),
    (PacketInReason::ActionSet, "action_set"),
    (PacketInReason::Group, "group"),
    (PacketInReason::PacketOut, "packet_out"),
];

fn reason(token: Token<'_>) -> Result<PacketInReason, ParseError> {
    let known = REASONS.iter().find(|(_, name)| *name == token.text);
    known
        .map(|(reason, _)| *reason)
        .ok_or_else(|| token.error("expected a reason, such as action, no_match or invalid_ttl"))
}

/// Parses the ids of controllers to notify when the TTL expires.
pub(super) fn dec_ttl(ids: Token<'_>) -> Result<Action, ParseError> {
    let mut read = Vec::new();
    let mut items = KeyValues::new(ids);
    while let Some(item) = items.next_pair()? {
        item.reject_value()?;
        read.push(number(item.key)?);
    }
    Ok(match read.is_empty() {
        true => Action::DecIpTtl,
        false => Action::Extended(Extension::DecTtl(read.into())),
    })
}
