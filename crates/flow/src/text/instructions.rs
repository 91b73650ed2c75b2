//! Reader of the text after `actions=`: actions and instructions.
//!
//! Actions outside of `write_actions(..)` form the apply-actions instruction. Instructions must be
//! in the order of execution (OF 1.3.5, 5.9).

use base::MeterId;

use super::action_read;
use super::error::ParseError;
use super::lexer::{KeyValue, KeyValues, Token};
use super::name_map;
use super::number::number;
use crate::action::{Action, Instructions, MetadataWrite};

/// Named instructions in the order of execution; `None` represents the actions.
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
            return Err(drop_error(drop));
        }
        if name == "drop" {
            item.reject_value()?;
            if read != Instructions::default() {
                return Err(drop_error(item.key));
            }
            drop = Some(item.key);
            continue;
        }
        // A meter after the first action, or a second meter, is an action (OF 1.5.1, 5.8).
        let is_action = name == "meter" && last != (0, "");
        let named = STEPS.iter().position(|step| *step == Some(name));
        let named = named.filter(|_| !is_action);
        let step = named.unwrap_or(1);
        if step < last.0 {
            let after = last.1;
            return Err(item.key.error(format!(
                "must be before `{after}`, in the order of execution"
            )));
        }
        if named == Some(last.0) && name == last.1 {
            return Err(item.key.error("duplicate instruction"));
        }
        last = (step, name);
        take(&mut read, item)?;
    }
    Ok(read)
}

/// The term_error that `drop` has company.
fn drop_error(drop: Token<'_>) -> ParseError {
    drop.error("`drop` must be the only action")
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
                None => return Err(item.key.error("missing actions: write_actions(..)")),
            };
        }
        "write_metadata" => read.metadata = Some(metadata(item.required_value()?)?),
        "goto_table" => read.goto = Some(name_map::table(item.required_value()?)?),
        "apply_actions" => {
            return Err(item
                .key
                .error("apply-actions is the default: write the actions without it"));
        }
        _ => read.apply.push(action_read::action(item)?),
    }
    Ok(())
}

/// Parses actions where instructions are not permitted; `drop` or an empty text is the empty list.
pub(super) fn action_list(text: Token<'_>) -> Result<Vec<Action>, ParseError> {
    let mut actions = Vec::new();
    let mut items = KeyValues::new(text);
    while let Some(item) = items.next_pair()? {
        let name = item.key.text;
        if name == "apply_actions" || STEPS[1..].contains(&Some(name)) {
            return Err(item
                .key
                .error("unexpected instruction: only actions are permitted"));
        }
        if name == "drop" && actions.is_empty() && items.clone().next_pair()?.is_none() {
            item.reject_value()?;
            break;
        }
        if name == "drop" {
            return Err(drop_error(item.key));
        }
        actions.push(action_read::action(item)?);
    }
    Ok(actions)
}

/// Parses `value` or `value/mask`; the value keeps its bits outside the mask.
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
