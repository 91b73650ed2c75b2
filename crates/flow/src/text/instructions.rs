//! Reading what stands behind `actions=`: actions, and the instructions among them.
//!
//! Actions outside of `write_actions(..)` make up the apply-actions instruction.
//! The order is that of execution (OF 1.3.5, 5.9), so that a line reads as it runs.

use base::MeterId;

use super::action_read;
use super::error::ParseError;
use super::lexer::{KeyValue, KeyValues, Token};
use super::name_map;
use super::number::number;
use crate::action::{Action, Instructions, MetadataWrite};

/// The instructions that have a name, in the order of execution; `None` stands for
/// the actions themselves.
const STEPS: [Option<&str>; 6] = [
    Some("meter"),
    None,
    Some("clear_actions"),
    Some("write_actions"),
    Some("write_metadata"),
    Some("goto_table"),
];

/// Reads actions and instructions.
pub(super) fn read(text: Token<'_>) -> Result<Instructions, ParseError> {
    let mut read = Instructions::default();
    let mut drop = None;
    let mut last = (0, "");
    let mut items = KeyValues::new(text);
    while let Some(item) = items.next_pair()? {
        let name = item.key.text;
        if let Some(drop) = drop {
            return Err(alone(drop));
        }
        if name == "drop" {
            item.reject_value()?;
            if read != Instructions::default() {
                return Err(alone(item.key));
            }
            drop = Some(item.key);
            continue;
        }
        // A meter behind the first action, or another meter, is an action (OF 1.5.1, 5.8).
        let is_action = name == "meter" && last != (0, "");
        let named = STEPS.iter().position(|step| *step == Some(name));
        let named = named.filter(|_| !is_action);
        let step = named.unwrap_or(1);
        if step < last.0 {
            let after = last.1;
            return Err(item.key.error(format!(
                "must stand before `{after}`, as it is done before it"
            )));
        }
        if named == Some(last.0) && name == last.1 {
            return Err(item.key.error("an instruction is given once"));
        }
        last = (step, name);
        take(&mut read, item)?;
    }
    Ok(read)
}

/// The complaint that `drop` has company.
fn alone(drop: Token<'_>) -> ParseError {
    drop.error("`drop` stands alone: it says that there are no actions")
}

/// Adds one item to the instructions.
fn take(read: &mut Instructions, item: KeyValue<'_>) -> Result<(), ParseError> {
    match item.key.text {
        "meter" if read.meter.is_none() && read.apply.is_empty() => {
            read.meter = Some(MeterId(number(item.required_value()?)?));
        }
        "clear_actions" => {
            item.reject_value()?;
            read.clear = true;
        }
        "write_actions" => {
            read.write = match item.value {
                Some(actions) => action_list(actions)?,
                None => return Err(item.key.error("actions are missing: write_actions(..)")),
            };
        }
        "write_metadata" => read.metadata = Some(metadata(item.required_value()?)?),
        "goto_table" => read.goto = Some(name_map::table(item.required_value()?)?),
        "apply_actions" => {
            return Err(item
                .key
                .error("to apply is the default: write the actions alone"));
        }
        _ => read.apply.push(action_read::action(item)?),
    }
    Ok(())
}

/// Reads actions where instructions have no place; `drop` or nothing is no actions.
pub(super) fn action_list(text: Token<'_>) -> Result<Vec<Action>, ParseError> {
    let mut actions = Vec::new();
    let mut items = KeyValues::new(text);
    while let Some(item) = items.next_pair()? {
        let name = item.key.text;
        if name == "apply_actions" || STEPS[1..].contains(&Some(name)) {
            return Err(item
                .key
                .error("an instruction, where only actions can stand"));
        }
        if name == "drop" && actions.is_empty() && items.clone().next_pair()?.is_none() {
            item.reject_value()?;
            break;
        }
        if name == "drop" {
            return Err(alone(item.key));
        }
        actions.push(action_read::action(item)?);
    }
    Ok(actions)
}

/// Reads `value` or `value/mask`; the value keeps its bits outside the mask.
fn metadata(token: Token<'_>) -> Result<MetadataWrite, ParseError> {
    let (value, mask) = match token.split_once("/") {
        Some((value, mask)) => (value, number(mask)?),
        None => (token, u64::MAX),
    };
    Ok(MetadataWrite {
        value: number(value)?,
        mask,
    })
}
