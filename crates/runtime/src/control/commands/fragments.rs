//! Commands of the reassembly of fragments: `dpctl/ipf-*` (ovs-dpctl(8), "Fragmentation
//! Handling").
//!
//! The bridges of a datapath share its store of fragments, whose settings and numbers these are.

use std::fmt::Write;
use std::sync::Arc;

use conntrack::{AddressFamily, IpfFamilySettings, IpfSettings, IpfStatistics};
use pipeline::FragmentStore;

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

/// Reads a counter.
type Counter = fn(&IpfStatistics) -> u64;

/// Names of the counters of fragments, in the order of Open vSwitch.
const COUNTERS: [(&str, Counter); 6] = [
    ("accepted", |counts| counts.accepted),
    ("completed", |counts| counts.completed),
    ("expired", |counts| counts.expired),
    ("too small", |counts| counts.too_small),
    ("overlapped", |counts| counts.overlapped),
    ("purged", |counts| counts.purged),
];

/// The versions of IP by their names.
const FAMILIES: [(&str, AddressFamily); 2] = [("v4", AddressFamily::V4), ("v6", AddressFamily::V6)];

/// Returns the store of a command's datapath, and its other arguments.
fn store_of<'a>(
    control: &mut Control,
    words: &'a [String],
) -> Result<(Arc<FragmentStore>, Vec<&'a str>), String> {
    let (datapath, rest) = datapath_arguments(control, words)?;
    Ok((control.trackers.fragments_of_datapath(datapath), rest))
}

/// Returns the settings of a version of IP, by its name.
fn family_mut<'a>(
    settings: &'a mut IpfSettings,
    version: &str,
) -> Option<&'a mut IpfFamilySettings> {
    match version {
        "v4" => Some(&mut settings.v4),
        "v6" => Some(&mut settings.v6),
        _ => None,
    }
}

fn format_status(store: &FragmentStore) -> String {
    let settings = store.settings();
    let mut text = format!(
        "        Fragmentation Module Status\n        ---------------------------\n        \
         v4 enabled: {}\n        v6 enabled: {}\n        max num frags (v4/v6): {}\n        \
         num frag: {}\n",
        u8::from(settings.v4.is_enabled),
        u8::from(settings.v6.is_enabled),
        settings.fragments_max,
        store.held()
    );
    for (version, family) in FAMILIES {
        let len_min = settings.family(family).len_min;
        writeln!(text, "        min {version} frag size: {len_min}").expect("a string has room");
        let statistics = store.statistics(family);
        for (name, count) in COUNTERS {
            let count = count(&statistics);
            writeln!(text, "        {version} frags {name}: {count}").expect("a string has room");
        }
    }
    text
}

fn fragments(control: &mut Control, words: &[String]) -> Result<String, String> {
    let (store, rest) = store_of(control, words)?;
    none(&rest)?;
    let (options, _) = super::options(words);
    let mut text = format_status(&store);
    if options.contains(&"-m") || options.contains(&"--more") {
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
    let (store, rest) = store_of(control, words)?;
    let version = rest.last().copied().unwrap_or_default();
    let missing = "parameter missing: 'v4' for IPv4 or 'v6' for IPv6";
    let mut settings = store.settings();
    let family = family_mut(&mut settings, version);
    let family = family.ok_or_else(|| failure(missing, "Invalid argument"))?;
    family.is_enabled = enabled;
    let done = store.set_settings(settings);
    done.map_err(|_| {
        failure(
            "changing fragmentation reassembly failed",
            "Invalid argument",
        )
    })?;
    let what = if enabled { "enabling" } else { "disabling" };
    Ok(format!("{what} fragmentation reassembly successful"))
}

fn set_max_fragments(control: &mut Control, words: &[String]) -> Result<String, String> {
    let (store, rest) = store_of(control, words)?;
    let limit: Option<usize> = rest.last().and_then(|word| word.parse().ok());
    let missing = || {
        failure(
            "parameter missing for maximum fragments",
            "Invalid argument",
        )
    };
    let settings = IpfSettings {
        fragments_max: limit.ok_or_else(missing)?,
        ..store.settings()
    };
    let done = store.set_settings(settings);
    done.map_err(|_| failure("setting maximum fragments failed", "Invalid argument"))?;
    Ok("setting maximum fragments successful".to_owned())
}

fn set_min_fragment(control: &mut Control, words: &[String]) -> Result<String, String> {
    let (store, rest) = store_of(control, words)?;
    let (version, len) = match rest[..] {
        [version, len] => (version, len),
        _ => ("", ""),
    };
    let missing = "parameter missing: v4 for IPv4 or v6 for IPv6";
    let mut settings = store.settings();
    let family = family_mut(&mut settings, version);
    let family = family.ok_or_else(|| failure(missing, "Invalid argument"))?;
    let missing = "parameter missing for minimum fragment size";
    let len = len.parse::<u32>().ok();
    let len = len.and_then(|len| usize::try_from(len).ok());
    family.len_min = len.ok_or_else(|| failure(missing, "Invalid argument"))?;
    store.set_settings(settings).map_err(|_| {
        let problem = "requested minimum fragment size too small; see documentation";
        failure(problem, "Invalid argument")
    })?;
    Ok("setting minimum fragment size successful".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragment_status_has_the_lines_of_open_vswitch() {
        let text = format_status(&FragmentStore::new());
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
