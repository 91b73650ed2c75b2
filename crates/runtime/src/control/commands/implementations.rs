//! Commands that choose among implementations of the datapath: `dpif-netdev/*-impl-*`,
//! `dpif-netdev/miniflow-parser-*`, `dpif-netdev/subtable-lookup-*` and `odp-execute/*` of
//! ovs-vswitchd(8).
//!
//! Here is one implementation of each, called `scalar` or `generic` as in Open vSwitch. Its
//! `autovalidator` and `study`, which compare several, are accepted and choose nothing.

use super::Answer::Immediate;
use super::Command;
use super::bonds::lb_outputs;
use crate::control::Control;
use l2::bond::BondEgress;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 11] = [
    Command { name: "dpif-netdev/bond-show", usage: "[dp]", least: 0, most: 1, answer: Immediate(bonds) },
    Command { name: "dpif-netdev/dpif-impl-get", usage: "", least: 0, most: 0, answer: Immediate(datapath) },
    Command { name: "dpif-netdev/dpif-impl-set", usage: "dpif_implementation_name", least: 1, most: 1, answer: Immediate(set_datapath) },
    Command { name: "dpif-netdev/miniflow-parser-get", usage: "", least: 0, most: 0, answer: Immediate(parsers) },
    Command { name: "dpif-netdev/miniflow-parser-set", usage: "[-pmd core] miniflow_implementation_name [study_pkt_cnt]", least: 1, most: 5, answer: Immediate(set_parser) },
    Command { name: "dpif-netdev/subtable-lookup-info-get", usage: "", least: 0, most: 0, answer: Immediate(lookups) },
    Command { name: "dpif-netdev/subtable-lookup-prio-get", usage: "", least: 0, most: 0, answer: Immediate(lookups) },
    Command { name: "dpif-netdev/subtable-lookup-prio-set", usage: "[lookup_func] [prio]", least: 2, most: 2, answer: Immediate(set_lookup) },
    Command { name: "dpif-netlink/dispatch-mode", usage: "[datapath]", least: 0, most: 1, answer: Immediate(dispatch) },
    Command { name: "odp-execute/action-impl-set", usage: "name", least: 1, most: 1, answer: Immediate(set_actions) },
    Command { name: "odp-execute/action-impl-show", usage: "", least: 0, most: 0, answer: Immediate(actions) },
];

/// Commands that Open vSwitch does not list.
pub(super) const UNLISTED: [&str; 1] = ["dpif-netdev/subtable-lookup-prio-get"];

/// The only implementation of the datapath.
const DATAPATH: &str = "dpif_scalar";

/// The implementations of the parser, of lookups and of actions, in Open vSwitch's order.
const PARSERS: [&str; 3] = ["autovalidator", "scalar", "study"];
const LOOKUPS: [&str; 2] = ["autovalidator", "generic"];
const ACTIONS: [&str; 2] = ["scalar", "autovalidator"];

/// The choices by command.
#[derive(Clone, Copy, Debug)]
pub(in crate::control) struct ImplementationChoices {
    /// The priorities of [`LOOKUPS`].
    priorities: [u8; LOOKUPS.len()],
    /// An index into [`ACTIONS`].
    actions: usize,
}

impl Default for ImplementationChoices {
    fn default() -> Self {
        Self {
            priorities: [0, 1],
            actions: 0,
        }
    }
}

impl ImplementationChoices {
    fn set_priority(&mut self, name: &str, priority: &str) -> Result<(), &'static str> {
        let number = priority.parse::<u8>();
        let number = number.map_err(|_| "error converting priority, use integer in range 0-255")?;
        let place = LOOKUPS.iter().position(|known| *known == name);
        let place = place.ok_or("error, subtable lookup function not found")?;
        self.priorities[place] = number;
        Ok(())
    }

    fn set_actions(&mut self, name: &str) -> Result<(), String> {
        let place = ACTIONS.iter().position(|known| *known == name);
        let unknown = || format!("Error: unknown action implementation, {name}, specified!");
        self.actions = place.ok_or_else(unknown)?;
        Ok(())
    }

    fn format_lookups(&self) -> String {
        let lines = LOOKUPS.iter().zip(self.priorities);
        let lines = lines
            .map(|(name, priority)| format!("  {name} (Use count: 0, Priority: {priority})\n"));
        std::iter::once("Available dpcls implementations:\n".to_owned())
            .chain(lines)
            .collect()
    }

    fn format_actions(&self) -> String {
        let lines = ACTIONS.iter().enumerate();
        let lines = lines.map(|(index, name)| {
            let active = if index == self.actions { "Yes" } else { "No" };
            format!("  {name} (available: Yes, active: {active})\n")
        });
        std::iter::once("Available Actions implementations:\n".to_owned())
            .chain(lines)
            .collect()
    }
}

/// Returns the cores of the PMD threads, as `0,1`; `none` without any.
fn cores(control: &Control) -> String {
    let cores = control.pmd_cores().into_iter();
    let cores: Vec<_> = cores.map(|core| core.to_string()).collect();
    match cores.is_empty() {
        true => "none".to_owned(),
        false => cores.join(","),
    }
}

/// Lists the buckets of the bonds whose outputs are shown as `lb_output`, with the numbers of their
/// members in the datapath.
fn bonds(control: &mut Control, _: &[String]) -> Result<String, String> {
    control.datapath_ports();
    let mut text = String::new();
    for (bridge, id, bonded) in lb_outputs(control) {
        let BondEgress::ByFlow(members) = bonded.bond().view().egress else {
            continue;
        };
        if text.is_empty() {
            text += "Bonds:\n";
        }
        text += &format!("  bond-id {id}:\n");
        for (bucket, member) in members.iter().enumerate() {
            let ports = &control.devices.datapath_ports;
            let number = member.and_then(|member| ports.number((bridge, member)));
            if let Some(number) = number {
                text += &format!("    bucket {bucket} - member {number}\n");
            }
        }
    }
    Ok(text)
}

/// Lists nothing: there is no datapath of the kernel.
fn dispatch(_: &mut Control, _: &[String]) -> Result<String, String> {
    Ok(String::new())
}

fn datapath(control: &mut Control, _: &[String]) -> Result<String, String> {
    let cores = cores(control);
    Ok(format!(
        "Available DPIF implementations:\n  {DATAPATH} (pmds: {cores})\n"
    ))
}

fn set_datapath(_: &mut Control, arguments: &[String]) -> Result<String, String> {
    let name = arguments.first().map_or("", String::as_str);
    match name == DATAPATH {
        true => Ok(format!("DPIF implementation set to {name}.\n")),
        false => {
            let unknown = "DPIF implementation not available: Unknown DPIF implementation";
            Err(format!("{unknown} {name}.\n"))
        }
    }
}

fn parsers(control: &mut Control, _: &[String]) -> Result<String, String> {
    let cores = cores(control);
    let lines = PARSERS.iter().map(|name| {
        let pmds = if *name == "scalar" { &cores } else { "none" };
        format!("  {name} (available: True pmds: {pmds})\n")
    });
    Ok(
        std::iter::once("Available MFEX implementations:\n".to_owned())
            .chain(lines)
            .collect(),
    )
}

fn set_parser(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let choice = parse_parser(arguments)?;
    if let Some(core) = choice.core
        && !control.pmd_cores().contains(&core)
    {
        return Err(format!(
            "Error: miniflow extract parser not changed, PMD thread {core} not in use, \
             pass a valid pmd thread ID.\n"
        ));
    }
    Ok(choice.to_text())
}

/// A parsed `miniflow-parser-set`.
#[derive(Debug, PartialEq, Eq)]
struct ParserChoice {
    name: &'static str,
    core: Option<usize>,
    study_count: Option<u32>,
}

/// The number of packets that `study` compares by default.
const STUDY_COUNT: u32 = 128;

fn parse_parser(arguments: &[String]) -> Result<ParserChoice, String> {
    let mut words = arguments.iter().map(String::as_str).peekable();
    let mut core = None;
    while words.next_if_eq(&"-pmd").is_some() {
        let missing = "Error: -pmd option requires a thread id argument.\n";
        let word = words.next().ok_or(missing)?;
        let number = word.parse();
        core = Some(number.map_err(|_| {
            format!(
                "Error: miniflow extract parser not changed, PMD thread passed is not valid: \
                 '{word}'. Pass a valid pmd thread ID.\n"
            )
        })?);
    }
    let missing = "Error: no miniflow extract name provided. Output of miniflow-parser-get shows \
                   implementation list.\n";
    let word = words.next().ok_or(missing)?;
    let mut study_count = (word == "study").then_some(STUDY_COUNT);
    for word in words {
        if study_count.is_none() {
            return Err(format!("Error: unknown argument {word}.\n"));
        }
        let count = word.parse().ok().filter(|count| *count > 0);
        let wrong = || format!("Error: invalid study_pkt_cnt value: {word}.\n");
        study_count = Some(count.ok_or_else(wrong)?);
    }
    let name = PARSERS.into_iter().find(|known| *known == word);
    let unknown = || format!("Error: unknown miniflow extract implementation {word}.");
    Ok(ParserChoice {
        name: name.ok_or_else(unknown)?,
        core,
        study_count,
    })
}

impl ParserChoice {
    fn to_text(&self) -> String {
        let core = self.core.map(|core| format!(", on pmd thread {core}"));
        let study = self
            .study_count
            .map(|count| format!(", studying {count} packets"));
        format!(
            "Miniflow extract implementation set to {}{}{}.\n",
            self.name,
            core.unwrap_or_default(),
            study.unwrap_or_default()
        )
    }
}

fn lookups(control: &mut Control, _: &[String]) -> Result<String, String> {
    Ok(control.commands.implementations.format_lookups())
}

fn set_lookup(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let (name, priority) = (&arguments[0], &arguments[1]);
    let choices = &mut control.commands.implementations;
    choices.set_priority(name, priority)?;
    Ok("Lookup priority change affected 0 dpcls ports and 0 subtables.\n".to_owned())
}

fn set_actions(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let name = arguments.first().map_or("", String::as_str);
    control.commands.implementations.set_actions(name)?;
    Ok(format!("Action implementation set to {name}."))
}

fn actions(control: &mut Control, _: &[String]) -> Result<String, String> {
    Ok(control.commands.implementations.format_actions())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookup_priorities_are_set_and_listed() {
        let mut choices = ImplementationChoices::default();
        assert_eq!(choices.set_priority("generic", "255"), Ok(()));
        let listed = choices.format_lookups();
        assert!(
            listed.contains("  generic (Use count: 0, Priority: 255)\n"),
            "{listed}"
        );
        for priority in ["-1", "300", "x"] {
            assert!(
                choices.set_priority("generic", priority).is_err(),
                "{priority}"
            );
        }
        assert!(choices.set_priority("avx512", "1").is_err());
    }

    #[test]
    fn active_action_implementation_is_listed() {
        let mut choices = ImplementationChoices::default();
        assert_eq!(choices.set_actions("autovalidator"), Ok(()));
        let listed = choices.format_actions();
        assert!(
            listed.contains("  scalar (available: Yes, active: No)\n"),
            "{listed}"
        );
        assert!(choices.set_actions("invalid").is_err());
    }

    #[test]
    fn parser_choice_is_confirmed_as_by_open_vswitch() {
        let set = |words: &str| {
            let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
            parse_parser(&words).map(|choice| choice.to_text())
        };
        let done = "Miniflow extract implementation set to study, on pmd thread 0, studying 512 packets.\n";
        assert_eq!(set("-pmd 0 study 512"), Ok(done.to_owned()));
        let done = "Miniflow extract implementation set to scalar.\n";
        assert_eq!(set("scalar"), Ok(done.to_owned()));
        for words in [
            "scalar 1",
            "-pmd",
            "-pmd x study",
            "study abcd",
            "superstudy",
            "-pmd 1",
        ] {
            assert!(set(words).is_err(), "{words}");
        }
    }
}
