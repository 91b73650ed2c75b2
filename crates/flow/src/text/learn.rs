//! Reader and writer of `learn(..)`.

use std::fmt;

use base::Cookie;

use super::error::ParseError;
use super::lexer::{KeyValue, KeyValues, Token};
use super::match_write::write_set_value;
use super::name_map::{self, NameMap, WithNames};
use super::number::{number, unsigned};
use super::subfield::{field, subfield};
use super::{match_read, names, options};
use crate::extension::{Learn, LearnFlags, LearnSource, LearnSpec, Subfield};
use crate::field::Field;
use crate::wide::Wide;

/// Reads the arguments of `learn`.
pub(super) fn read(item: KeyValue<'_>) -> Result<Learn, ParseError> {
    let mut learn = Learn {
        table: Learn::TABLE,
        priority: Learn::PRIORITY,
        cookie: Cookie(0),
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        fin_idle_timeout_s: 0,
        fin_hard_timeout_s: 0,
        flags: LearnFlags::default(),
        limit: 0,
        result: None,
        specs: Vec::new(),
    };
    if let Some(arguments) = item.value {
        let mut items = KeyValues::new(arguments);
        while let Some(item) = items.next_pair()? {
            take(&mut learn, item)?;
        }
    }
    Ok(learn)
}

/// Takes one argument.
fn take(learn: &mut Learn, item: KeyValue<'_>) -> Result<(), ParseError> {
    let flag = |flags: LearnFlags, flag: LearnFlags| {
        item.reject_value().map(|()| LearnFlags(flags.0 | flag.0))
    };
    match item.key.text {
        "table" => learn.table = name_map::table(item.required_value()?)?,
        "priority" => learn.priority = number(item.required_value()?)?,
        "cookie" => learn.cookie = Cookie(number(item.required_value()?)?),
        "idle_timeout" => learn.idle_timeout_s = number(item.required_value()?)?,
        "hard_timeout" => learn.hard_timeout_s = number(item.required_value()?)?,
        "fin_idle_timeout" => learn.fin_idle_timeout_s = number(item.required_value()?)?,
        "fin_hard_timeout" => learn.fin_hard_timeout_s = number(item.required_value()?)?,
        "limit" => learn.limit = number(item.required_value()?)?,
        "send_flow_rem" => learn.flags = flag(learn.flags, LearnFlags::SEND_FLOW_REMOVED)?,
        "delete_learned" => learn.flags = flag(learn.flags, LearnFlags::DELETE_LEARNED)?,
        "result_dst" => {
            let token = item.required_value()?;
            let bit = subfield(token)?;
            if bit.bits() != 1 {
                return Err(token.error("expected one bit"));
            }
            learn.result = Some(bit);
        }
        "load" => learn.specs.push(load(item.required_value()?)?),
        "output" => {
            let from = subfield(item.required_value()?)?;
            learn.specs.push(LearnSpec::Output(from));
        }
        _ => learn.specs.push(matching(item)?),
    }
    Ok(())
}

/// Reads `value->part` or `part->part`.
fn load(token: Token<'_>) -> Result<LearnSpec, ParseError> {
    let Some((from, to)) = token.split_once("->") else {
        return Err(token.error("expected a source and a field: load:SOURCE->FIELD[]"));
    };
    let to = subfield(to.trim())?;
    let from = from.trim();
    let from = if from.text.starts_with(|c: char| c.is_ascii_digit()) {
        LearnSource::Value(number_for(to, from)?)
    } else {
        LearnSource::Subfield(same_width(from, to)?)
    };
    Ok(LearnSpec::Load { to, from })
}

/// Parses `field=value`, `subfield=subfield`, or `subfield`, which equals itself.
fn matching(item: KeyValue<'_>) -> Result<LearnSpec, ParseError> {
    let to = subfield(item.key)?;
    let from = match item.value {
        None => LearnSource::Subfield(to),
        Some(value) if super::subfield::is_subfield(value.text) => {
            LearnSource::Subfield(same_width(value, to)?)
        }
        Some(value) if to.is_whole() && !to.is_tunnel_option() => {
            let (number, mask) = match_read::value(field_of(item.key)?, value)?;
            // `ip_frag` has more bits in masks than as a field.
            if mask & to.ones() != to.ones() || number & !to.ones() != 0 {
                return Err(value.error("expected a value without a mask"));
            }
            LearnSource::Value(number.into())
        }
        Some(value) => LearnSource::Value(number_for(to, value)?),
    };
    Ok(LearnSpec::Match { to, from })
}

/// Reads a number for the bits of `to`.
fn number_for(to: Subfield, token: Token<'_>) -> Result<Wide, ParseError> {
    match to.is_tunnel_option() {
        true => options::number_of(to, token),
        false => unsigned(token, to.ones()).map(Wide::from),
    }
}

/// The field of a part, by its name.
fn field_of(key: Token<'_>) -> Result<Field, ParseError> {
    field(key.split_once("[").map_or(key, |(name, _)| name))
}

fn same_width(from: Token<'_>, to: Subfield) -> Result<Subfield, ParseError> {
    let read = subfield(from)?;
    if read.bits() != to.bits() {
        let (from_bits, to) = (read.bits(), to.bits());
        return Err(from.error(format!("{from_bits} bits do not fit {to} bits")));
    }
    Ok(read)
}

/// Writes `learn(..)` without default values.
pub(super) fn write(f: &mut fmt::Formatter<'_>, learn: &Learn, names: &NameMap) -> fmt::Result {
    write!(f, "learn(table={}", WithNames(&learn.table, names))?;
    let numbers = [
        ("idle_timeout", learn.idle_timeout_s, 0),
        ("hard_timeout", learn.hard_timeout_s, 0),
        ("fin_idle_timeout", learn.fin_idle_timeout_s, 0),
        ("fin_hard_timeout", learn.fin_hard_timeout_s, 0),
        ("priority", learn.priority, Learn::PRIORITY),
    ];
    for (name, number, default) in numbers {
        if number != default {
            write!(f, ",{name}={number}")?;
        }
    }
    if learn.flags.contains(LearnFlags::SEND_FLOW_REMOVED) {
        f.write_str(",send_flow_rem")?;
    }
    if learn.flags.contains(LearnFlags::DELETE_LEARNED) {
        f.write_str(",delete_learned")?;
    }
    if learn.cookie.0 != 0 {
        write!(f, ",cookie=0x{:x}", learn.cookie.0)?;
    }
    if learn.limit != 0 {
        write!(f, ",limit={}", learn.limit)?;
    }
    if let Some(result) = learn.result {
        write!(f, ",result_dst={result}")?;
    }
    for spec in &learn.specs {
        f.write_str(",")?;
        write_spec(f, spec, names)?;
    }
    f.write_str(")")
}

fn write_spec(f: &mut fmt::Formatter<'_>, spec: &LearnSpec, roster: &NameMap) -> fmt::Result {
    match spec {
        LearnSpec::Match {
            to,
            from: LearnSource::Value(value),
        } if to.is_whole() => {
            write!(f, "{}=", names::learn_name(to.field()))?;
            match to.is_tunnel_option() {
                true => write!(f, "{value:#x}"),
                false => write_set_value(f, to.field(), (value.low(), to.ones()), roster),
            }
        }
        LearnSpec::Match {
            to,
            from: LearnSource::Value(value),
        } => write!(f, "{to}={value:#x}"),
        LearnSpec::Match {
            to,
            from: LearnSource::Subfield(from),
        } if from == to => write!(f, "{to}"),
        LearnSpec::Match {
            to,
            from: LearnSource::Subfield(from),
        } => write!(f, "{to}={from}"),
        LearnSpec::Load {
            to,
            from: LearnSource::Value(value),
        } => write!(f, "load:{value:#x}->{to}"),
        LearnSpec::Load {
            to,
            from: LearnSource::Subfield(from),
        } => write!(f, "load:{from}->{to}"),
        LearnSpec::Output(from) => write!(f, "output:{from}"),
    }
}
