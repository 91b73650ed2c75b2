//! Commands of the reassembly of fragments: `dpctl/ipf-*` (ovs-dpctl(8), "Fragmentation
//! Handling").
//!
//! No fragment is reassembled here. The settings are kept and reported.

use std::fmt::Write;

use super::Answer::Immediate;
use super::Command;
use super::conntrack::{datapath_arguments, none};
use super::dpctl::failure;
use crate::control::Control;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 5] = [
    Command { name: "dpctl/ipf-get-status", usage: "[dp]", least: 0, most: 2, answer: Immediate(fragments) },
    Command { name: "dpctl/ipf-set-disabled", usage: "[dp] v4|v6", least: 1, most: 2, answer: Immediate(disable_fragments) },
    Command { name: "dpctl/ipf-set-enabled", usage: "[dp] v4|v6", least: 1, most: 2, answer: Immediate(enable_fragments) },
    Command { name: "dpctl/ipf-set-max-nfrags", usage: "[dp] maxfrags", least: 1, most: 2, answer: Immediate(set_max_fragments) },
    Command { name: "dpctl/ipf-set-min-frag", usage: "[dp] v4|v6 minfragment", least: 2, most: 3, answer: Immediate(set_min_fragment) },
];

/// The smallest value of the minimum fragment size, as in Open vSwitch.
const MIN_FRAGMENT: u32 = 400;

/// The largest value of the maximum number of fragments, as in Open vSwitch.
const MAX_FRAGMENTS: u32 = 5000;

/// The settings of fragments of one IP version.
#[derive(Clone, Copy, Debug)]
struct FragmentSettings {
    enabled: bool,
    min_len: u32,
}

/// The settings of both IP versions; the defaults are those of Open vSwitch.
#[derive(Clone, Debug)]
pub(in crate::control) struct ReassemblySettings {
    v4: FragmentSettings,
    v6: FragmentSettings,
    max_fragments: u32,
}

impl Default for ReassemblySettings {
    fn default() -> Self {
        Self {
            v4: FragmentSettings {
                enabled: true,
                min_len: 1200,
            },
            v6: FragmentSettings {
                enabled: true,
                min_len: 1280,
            },
            max_fragments: 1000,
        }
    }
}

impl ReassemblySettings {
    fn fragments_mut(&mut self, version: &str) -> Option<&mut FragmentSettings> {
        match version {
            "v4" => Some(&mut self.v4),
            "v6" => Some(&mut self.v6),
            _ => None,
        }
    }

    fn format_fragments(&self) -> String {
        let mut text = format!(
            "        Fragmentation Module Status\n        ---------------------------\n        \
             v4 enabled: {}\n        v6 enabled: {}\n        max num frags (v4/v6): {}\n        \
             num frag: 0\n",
            u8::from(self.v4.enabled),
            u8::from(self.v6.enabled),
            self.max_fragments
        );
        for (version, settings) in [("v4", self.v4), ("v6", self.v6)] {
            let min_len = settings.min_len;
            writeln!(text, "        min {version} frag size: {min_len}")
                .expect("a string has room");
            for count in FRAGMENT_COUNTS {
                writeln!(text, "        {version} frags {count}: 0").expect("a string has room");
            }
        }
        text
    }
}

/// The counters of fragments: none is reassembled.
const FRAGMENT_COUNTS: [&str; 6] = [
    "accepted",
    "completed",
    "expired",
    "too small",
    "overlapped",
    "purged",
];

fn fragments(control: &mut Control, words: &[String]) -> Result<String, String> {
    none(&datapath_arguments(control, words)?.1)?;
    let (options, _) = super::options(words);
    let mut text = control.commands.reassembly.format_fragments();
    if options.contains(&"-m") {
        text += "\n        Fragment Lists:\n\n";
    }
    Ok(text)
}

fn enable_fragments(control: &mut Control, words: &[String]) -> Result<String, String> {
    switch_fragments(control, words, true)
}

fn disable_fragments(control: &mut Control, words: &[String]) -> Result<String, String> {
    switch_fragments(control, words, false)
}

fn switch_fragments(
    control: &mut Control,
    words: &[String],
    enabled: bool,
) -> Result<String, String> {
    let rest = datapath_arguments(control, words)?.1;
    let version = rest.last().copied().unwrap_or_default();
    let missing = "parameter missing: 'v4' for IPv4 or 'v6' for IPv6";
    let settings = control.commands.reassembly.fragments_mut(version);
    let settings = settings.ok_or_else(|| failure(missing, "Invalid argument"))?;
    settings.enabled = enabled;
    let what = if enabled { "enabling" } else { "disabling" };
    Ok(format!("{what} fragmentation reassembly successful"))
}

fn set_max_fragments(control: &mut Control, words: &[String]) -> Result<String, String> {
    let rest = datapath_arguments(control, words)?.1;
    let limit: Option<u32> = rest.last().and_then(|word| word.parse().ok());
    let missing = || {
        failure(
            "parameter missing for maximum fragments",
            "Invalid argument",
        )
    };
    let limit = limit.ok_or_else(missing)?;
    if limit > MAX_FRAGMENTS {
        return Err(failure(
            "setting maximum fragments failed",
            "Invalid argument",
        ));
    }
    control.commands.reassembly.max_fragments = limit;
    Ok("setting maximum fragments successful".to_owned())
}

fn set_min_fragment(control: &mut Control, words: &[String]) -> Result<String, String> {
    let rest = datapath_arguments(control, words)?.1;
    let (version, len) = match rest[..] {
        [version, len] => (version, len),
        _ => ("", ""),
    };
    let missing = "parameter missing: v4 for IPv4 or v6 for IPv6";
    let settings = control.commands.reassembly.fragments_mut(version);
    let settings = settings.ok_or_else(|| failure(missing, "Invalid argument"))?;
    let missing = "parameter missing for minimum fragment size";
    let len = len.parse::<u32>();
    let len = len.map_err(|_| failure(missing, "Invalid argument"))?;
    if len < MIN_FRAGMENT {
        let problem = "requested minimum fragment size too small; see documentation";
        return Err(failure(problem, "Invalid argument"));
    }
    settings.min_len = len;
    Ok("setting minimum fragment size successful".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragment_status_has_the_lines_of_open_vswitch() {
        let text = ReassemblySettings::default().format_fragments();
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        assert_eq!(lines.len(), 20);
        assert_eq!(
            lines[2..6],
            [
                "v4 enabled: 1",
                "v6 enabled: 1",
                "max num frags (v4/v6): 1000",
                "num frag: 0"
            ]
        );
        assert_eq!(
            (lines[6], lines[13]),
            ("min v4 frag size: 1200", "min v6 frag size: 1280")
        );
        assert_eq!(lines[12], "v4 frags purged: 0");
    }
}
