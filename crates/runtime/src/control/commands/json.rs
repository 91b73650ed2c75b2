//! Answers in JSON, for `ovs-appctl --format json` of Open vSwitch 3.4 and later: the commands that
//! have a JSON form in 3.7, in that form. The text of other commands is wrapped in an object.

use serde_json::{Map, Value, json};

use super::{fdb, listed, routes, routing_rules};
use crate::control::Control;
use config::DummyMode;

/// The function that answers in JSON.
pub(super) type JsonAnswer = fn(&mut Control, &[String]) -> Result<Value, String>;

/// The commands with a JSON form.
const ANSWERS: [(&str, JsonAnswer); 4] = [
    ("fdb/show", fdb::show_json),
    ("list-commands", list_commands),
    ("ovs/route/rule/show", routing_rules::show_json),
    ("ovs/route/show", routes::routes_json),
];

/// Returns the function that answers a command in JSON, if it has a JSON form.
pub(super) fn answer(command: &str) -> Option<JsonAnswer> {
    let found = ANSWERS.iter().find(|(name, _)| *name == command);
    found.map(|(_, answer)| *answer)
}

fn list_commands(control: &mut Control, _: &[String]) -> Result<Value, String> {
    Ok(usages(control.tools.dummies))
}

/// Returns the arguments of each command.
fn usages(dummies: DummyMode) -> Value {
    let rows = listed(dummies).into_iter();
    let usages: Map<_, _> = rows
        .map(|row| (row.name.to_owned(), json!(row.usage)))
        .collect();
    usages.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_with_json_answers_exist() {
        let usages = usages(DummyMode::None);
        for (name, _) in ANSWERS {
            assert!(usages[name].is_string(), "{name}");
        }
        assert_eq!(usages["fdb/show"], json!("bridge"));
        assert!(answer("fdb/show").is_some() && answer("dpif/show").is_none());
    }
}
