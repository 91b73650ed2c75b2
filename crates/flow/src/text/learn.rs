//! `learn(..)`: reading and writing it.

use std::fmt;

use base::Cookie;

use super::error::ParseError;
use super::match_write::write_set_value;
use super::number::{number, unsigned};
use super::part::{field, part};
use super::piece::{Item, Items, Piece};
use super::roster::{self, Named, Roster};
use super::{match_read, names, options};
use crate::extension::{Learn, LearnFlags, LearnSource, LearnSpec, Part};
use crate::field::Field;
use crate::wide::Wide;

/// Reads the arguments of `learn`.
pub(super) fn read(item: Item<'_>) -> Result<Learn, ParseError> {
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
        let mut items = Items::new(arguments);
        while let Some(item) = items.next_item()? {
            take(&mut learn, item)?;
        }
    }
    Ok(learn)
}

/// Takes one argument.
fn take(learn: &mut Learn, item: Item<'_>) -> Result<(), ParseError> {
    let flag =
        |flags: LearnFlags, flag: LearnFlags| item.bare().map(|()| LearnFlags(flags.0 | flag.0));
    match item.key.text {
        "table" => learn.table = roster::table(item.required()?)?,
        "priority" => learn.priority = number(item.required()?)?,
        "cookie" => learn.cookie = Cookie(number(item.required()?)?),
        "idle_timeout" => learn.idle_timeout_s = number(item.required()?)?,
        "hard_timeout" => learn.hard_timeout_s = number(item.required()?)?,
        "fin_idle_timeout" => learn.fin_idle_timeout_s = number(item.required()?)?,
        "fin_hard_timeout" => learn.fin_hard_timeout_s = number(item.required()?)?,
        "limit" => learn.limit = number(item.required()?)?,
        "send_flow_rem" => learn.flags = flag(learn.flags, LearnFlags::SEND_FLOW_REMOVED)?,
        "delete_learned" => learn.flags = flag(learn.flags, LearnFlags::DELETE_LEARNED)?,
        "result_dst" => {
            let piece = item.required()?;
            let bit = part(piece)?;
            if bit.bits() != 1 {
                return Err(piece.wrong("one bit is wanted"));
            }
            learn.result = Some(bit);
        }
        "load" => learn.specs.push(load(item.required()?)?),
        "output" => {
            let from = part(item.required()?)?;
            learn.specs.push(LearnSpec::Output(from));
        }
        _ => learn.specs.push(matching(item)?),
    }
    Ok(())
}

/// Reads `value->part` or `part->part`.
fn load(piece: Piece<'_>) -> Result<LearnSpec, ParseError> {
    let Some((from, to)) = piece.split_once("->") else {
        return Err(piece.wrong("a source and a field are wanted: load:SOURCE->FIELD[]"));
    };
    let to = part(to.trim())?;
    let from = from.trim();
    let from = if from.text.starts_with(|c: char| c.is_ascii_digit()) {
        LearnSource::Value(number_for(to, from)?)
    } else {
        LearnSource::Part(same_width(from, to)?)
    };
    Ok(LearnSpec::Load { to, from })
}

/// Reads `field=value`, `part=part`, or `part`, which is like itself.
fn matching(item: Item<'_>) -> Result<LearnSpec, ParseError> {
    let to = part(item.key)?;
    let from = match item.value {
        None => LearnSource::Part(to),
        Some(value) if super::part::is_part(value.text) => {
            LearnSource::Part(same_width(value, to)?)
        }
        Some(value) if to.is_whole() && !to.is_of_option() => {
            let (number, mask) = match_read::value(field_of(item.key)?, value)?;
            // A kind of fragment has more bits where masks are wanted.
            if mask & to.ones() != to.ones() || number & !to.ones() != 0 {
                return Err(value.wrong("a value without a mask is wanted"));
            }
            LearnSource::Value(number.into())
        }
        Some(value) => LearnSource::Value(number_for(to, value)?),
    };
    Ok(LearnSpec::Match { to, from })
}

/// Reads a number for the bits of `to`.
fn number_for(to: Part, piece: Piece<'_>) -> Result<Wide, ParseError> {
    match to.is_of_option() {
        true => options::number_of(to, piece),
        false => unsigned(piece, to.ones()).map(Wide::from),
    }
}

/// The field of a part, by its name.
fn field_of(key: Piece<'_>) -> Result<Field, ParseError> {
    field(key.split_once("[").map_or(key, |(name, _)| name))
}

fn same_width(from: Piece<'_>, to: Part) -> Result<Part, ParseError> {
    let read = part(from)?;
    if read.bits() != to.bits() {
        let (from_bits, to) = (read.bits(), to.bits());
        return Err(from.wrong(format!("{from_bits} bits do not fit {to} bits")));
    }
    Ok(read)
}

/// Writes `learn(..)`: what is as it is by default is not mentioned.
pub(super) fn write(f: &mut fmt::Formatter<'_>, learn: &Learn, names: &Roster) -> fmt::Result {
    write!(f, "learn(table={}", Named(&learn.table, names))?;
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

fn write_spec(f: &mut fmt::Formatter<'_>, spec: &LearnSpec, roster: &Roster) -> fmt::Result {
    match spec {
        LearnSpec::Match {
            to,
            from: LearnSource::Value(value),
        } if to.is_whole() => {
            write!(f, "{}=", names::learn_name(to.field()))?;
            match to.is_of_option() {
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
            from: LearnSource::Part(from),
        } if from == to => write!(f, "{to}"),
        LearnSpec::Match {
            to,
            from: LearnSource::Part(from),
        } => write!(f, "{to}={from}"),
        LearnSpec::Load {
            to,
            from: LearnSource::Value(value),
        } => write!(f, "load:{value:#x}->{to}"),
        LearnSpec::Load {
            to,
            from: LearnSource::Part(from),
        } => write!(f, "load:{from}->{to}"),
        LearnSpec::Output(from) => write!(f, "output:{from}"),
    }
}
