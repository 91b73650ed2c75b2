//! Commands of routing rules, which select the table of a route: `ovs/route/rule/*` of Open vSwitch
//! 3.7. Tunnels are routed by the kernel's tables `local` and `main`, so the rules are those that a
//! kernel has by default, and further ones are refused.

use serde_json::{Value, json};

use super::Answer::Immediate;
use super::Command;
use super::routes::{TABLE_LOCAL, TABLE_MAIN};
use crate::control::Control;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 3] = [
    Command { name: "ovs/route/rule/add",  usage: "[-6] [not] from=all|ip/plen [prio=num] table=local|main|default|id", least: 2, most: 5, answer: Immediate(refuse) },
    Command { name: "ovs/route/rule/del",  usage: "[-6] [not] from=all|ip/plen [prio=num] table=local|main|default|id", least: 2, most: 5, answer: Immediate(refuse) },
    Command { name: "ovs/route/rule/show", usage: "[-6]", least: 0, most: 1, answer: Immediate(show) },
];

/// A rule: its priority, and the number and the name of the table that it selects.
type RoutingRule = (u32, u32, &'static str);

/// The default rules of the kernel (ip-rule(8)).
const RULES: [RoutingRule; 3] = [
    (0, TABLE_LOCAL, "local"),
    (0x7ffe, TABLE_MAIN, "main"),
    (0x7fff, TABLE_DEFAULT, "default"),
];

/// The kernel's number of its last table, which has IPv4 routes only.
const TABLE_DEFAULT: u32 = 253;

/// Returns true if the arguments select the rules of IPv6.
fn is_v6(arguments: &[String]) -> bool {
    arguments.first().is_some_and(|word| word == "-6")
}

/// Returns the rules of a family of addresses.
fn rules(is_v6: bool) -> impl Iterator<Item = RoutingRule> {
    let rules = RULES.into_iter();
    rules.filter(move |(_, table, _)| !is_v6 || *table != TABLE_DEFAULT)
}

fn refuse(_: &mut Control, _: &[String]) -> Result<String, String> {
    let problem = "routing rules are not supported: tunnels use the tables local and main";
    Err(problem.to_owned())
}

fn show(_: &mut Control, arguments: &[String]) -> Result<String, String> {
    let lines = rules(is_v6(arguments))
        .map(|(priority, _, name)| format!("Cached: {priority}: from all lookup {name}\n"));
    Ok(lines.collect())
}

/// Does the same in JSON.
pub(super) fn show_json(_: &mut Control, arguments: &[String]) -> Result<Value, String> {
    Ok(rules_json(is_v6(arguments)))
}

fn rules_json(is_v6: bool) -> Value {
    let rules = rules(is_v6).map(|(priority, table, _)| {
        json!({
            "priority": priority,
            "user": false,
            "invert": false,
            "ipv4": !is_v6,
            "src-prefix": 0,
            "lookup": table,
            "from": "all",
        })
    });
    rules.collect::<Vec<_>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routing_rules_are_those_of_a_family() {
        assert_eq!(rules(true).count(), 2);
        let tables: Vec<_> = rules(false).map(|(_, table, _)| table).collect();
        assert_eq!(tables, [255, 254, 253]);
        let listed = rules_json(true);
        assert_eq!(listed[1]["lookup"], json!(254));
        assert_eq!(listed[1]["ipv4"], json!(false));
    }
}
