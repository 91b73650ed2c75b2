//! Commands of the connection tracker and of the reassembly of fragments: `dpctl/ct-*`,
//! `dpctl/ipf-*`, `dpctl/dump-conntrack` and `dpctl/flush-conntrack` (ovs-dpctl(8), "Connection
//! Tracking Table").
//!
//! No rule tracks connections here, so the tracker is empty. Its settings are kept and reported.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Answer::Immediate;
use super::Command;
use super::dpctl::{failure, is_datapath};
use crate::control::Control;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 18] = [
    Command { name: "dpctl/ct-bkts", usage: "[dp] [gt=N]", least: 0, most: 2, answer: Immediate(buckets) },
    Command { name: "dpctl/ct-del-limits", usage: "[dp] zone=N1[,N2]...", least: 1, most: 2, answer: Immediate(delete_limits) },
    Command { name: "dpctl/ct-disable-tcp-seq-chk", usage: "[dp]", least: 0, most: 1, answer: Immediate(disable_sequence_check) },
    Command { name: "dpctl/ct-enable-tcp-seq-chk", usage: "[dp]", least: 0, most: 1, answer: Immediate(enable_sequence_check) },
    Command { name: "dpctl/ct-get-limits", usage: "[dp] [zone=N1[,N2]...]", least: 0, most: 2, answer: Immediate(limits) },
    Command { name: "dpctl/ct-get-maxconns", usage: "[dp]", least: 0, most: 1, answer: Immediate(max_connections) },
    Command { name: "dpctl/ct-get-nconns", usage: "[dp]", least: 0, most: 1, answer: Immediate(connections) },
    Command { name: "dpctl/ct-get-tcp-seq-chk", usage: "[dp]", least: 0, most: 1, answer: Immediate(sequence_check) },
    Command { name: "dpctl/ct-set-limits", usage: "[dp] [default=L] [zone=N,limit=L]...", least: 1, most: super::MANY, answer: Immediate(set_limits) },
    Command { name: "dpctl/ct-set-maxconns", usage: "[dp] maxconns", least: 1, most: 2, answer: Immediate(set_max_connections) },
    Command { name: "dpctl/ct-stats-show", usage: "[dp] [zone=N]", least: 0, most: 3, answer: Immediate(statistics) },
    Command { name: "dpctl/dump-conntrack", usage: "[-m] [-s] [dp] [zone=N]", least: 0, most: 4, answer: Immediate(dump) },
    Command { name: "dpctl/flush-conntrack", usage: "[dp] [zone=N] [ct-orig-tuple] [ct-reply-tuple]", least: 0, most: 4, answer: Immediate(flush) },
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

/// The settings of the tracker; the defaults are those of Open vSwitch.
#[derive(Clone, Debug)]
pub(in crate::control) struct TrackerSettings {
    max_connections: u32,
    checks_sequence: bool,
    default_limit: u32,
    /// The limits of zones.
    zones: BTreeMap<u16, u32>,
    v4: FragmentSettings,
    v6: FragmentSettings,
    max_fragments: u32,
}

impl Default for TrackerSettings {
    fn default() -> Self {
        Self {
            max_connections: 3_000_000,
            checks_sequence: true,
            default_limit: 0,
            zones: BTreeMap::new(),
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

impl TrackerSettings {
    /// Sets limits: `default=LIMIT` first, if at all, then `zone=ZONE,limit=LIMIT`.
    fn set_limits(&mut self, words: &[&str]) -> Result<(), &'static str> {
        let (default, zones) = match words {
            [first, zones @ ..] if first.starts_with("default=") => {
                let limit = number(first, "default=").ok_or("invalid default limit")?;
                (Some(limit), zones)
            }
            zones => (None, zones),
        };
        let zone = |word: &&str| {
            let (zone, limit) = word.split_once(',')?;
            Some((number(zone, "zone=")?, number(limit, "limit=")?))
        };
        let zones: Option<Vec<(u16, u32)>> = zones.iter().map(zone).collect();
        self.zones
            .extend(zones.ok_or("failed to parse zone limit")?);
        self.default_limit = default.unwrap_or(self.default_limit);
        Ok(())
    }

    /// Formats the limits of these zones, or of all with a limit of their own.
    fn format_limits(&self, zones: Option<&[u16]>) -> String {
        let mut text = format!("default limit={}", self.default_limit);
        let own: Vec<_> = self.zones.keys().copied().collect();
        for zone in zones.unwrap_or(&own) {
            let limit = self.zones.get(zone).unwrap_or(&self.default_limit);
            write!(text, "\nzone={zone},limit={limit},count=0").expect("a string has room");
        }
        text + "\n"
    }

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

/// Parses a number after `prefix`.
fn number<T: std::str::FromStr>(word: &str, prefix: &str) -> Option<T> {
    word.strip_prefix(prefix)?.parse().ok()
}

/// Parses `zone=N1[,N2]...`.
fn zones(word: &str) -> Option<Vec<u16>> {
    let list = word.strip_prefix("zone=")?.split(',');
    list.map(|zone| zone.parse().ok()).collect()
}

/// Returns the arguments behind the datapath's name, which may be missing, and without options.
fn arguments<'a>(control: &Control, words: &'a [String]) -> Result<Vec<&'a str>, String> {
    let (_, mut rest) = super::options(words);
    if rest.first().is_some_and(|name| is_datapath(control, name)) {
        rest.remove(0);
    } else if control.datapaths().len() != 1 {
        return Err(failure("datapath not found", "Invalid argument"));
    }
    Ok(rest)
}

/// Refuses arguments that remain, which Open vSwitch takes for a datapath.
fn none(rest: &[&str]) -> Result<(), String> {
    match rest.is_empty() {
        true => Ok(()),
        false => Err(failure("datapath not found", "Invalid argument")),
    }
}

/// Removes `zone=N` from the end of the arguments.
fn without_zone(rest: &mut Vec<&str>) {
    rest.pop_if(|word| number::<u16>(word, "zone=").is_some());
}

fn buckets(control: &mut Control, words: &[String]) -> Result<String, String> {
    let mut rest = arguments(control, words)?;
    rest.pop_if(|word| number::<u16>(word, "gt=").is_some());
    none(&rest)?;
    Ok("Total Buckets: 1\nCurrent Connections: 0\n\n".to_owned())
}

fn limits(control: &mut Control, words: &[String]) -> Result<String, String> {
    let rest = arguments(control, words)?;
    let tracker = &control.commands.tracker;
    match rest[..] {
        [] => Ok(tracker.format_limits(None)),
        [word] => {
            let zones = zones(word);
            let zones = zones.ok_or_else(|| failure("invalid zone", "Invalid argument"))?;
            Ok(tracker.format_limits(Some(&zones)))
        }
        _ => none(&rest).map(|()| String::new()),
    }
}

fn set_limits(control: &mut Control, words: &[String]) -> Result<String, String> {
    let rest = arguments(control, words)?;
    let set = control.commands.tracker.set_limits(&rest);
    set.map_err(|problem| failure(problem, "Invalid argument"))?;
    Ok(String::new())
}

fn delete_limits(control: &mut Control, words: &[String]) -> Result<String, String> {
    let rest = arguments(control, words)?;
    let zones = rest.first().and_then(|word| zones(word));
    let zones = zones.ok_or_else(|| failure("invalid zone", "Invalid argument"))?;
    for zone in zones {
        control.commands.tracker.zones.remove(&zone);
    }
    Ok(String::new())
}

fn max_connections(control: &mut Control, words: &[String]) -> Result<String, String> {
    none(&arguments(control, words)?)?;
    Ok(format!("{}\n", control.commands.tracker.max_connections))
}

fn set_max_connections(control: &mut Control, words: &[String]) -> Result<String, String> {
    let rest = arguments(control, words)?;
    let limit = rest.last().and_then(|word| word.parse().ok());
    let malformed = || failure("maxconns missing or malformed", "Invalid argument");
    control.commands.tracker.max_connections = limit.ok_or_else(malformed)?;
    Ok("setting maxconns successful".to_owned())
}

fn connections(control: &mut Control, words: &[String]) -> Result<String, String> {
    none(&arguments(control, words)?)?;
    Ok("0\n".to_owned())
}

fn sequence_check(control: &mut Control, words: &[String]) -> Result<String, String> {
    none(&arguments(control, words)?)?;
    let state = match control.commands.tracker.checks_sequence {
        true => "enabled",
        false => "disabled",
    };
    Ok(format!("TCP sequence checking: {state}\n"))
}

fn enable_sequence_check(control: &mut Control, words: &[String]) -> Result<String, String> {
    none(&arguments(control, words)?)?;
    control.commands.tracker.checks_sequence = true;
    Ok("enabling TCP sequence checking successful".to_owned())
}

fn disable_sequence_check(control: &mut Control, words: &[String]) -> Result<String, String> {
    none(&arguments(control, words)?)?;
    control.commands.tracker.checks_sequence = false;
    Ok("disabling TCP sequence checking successful".to_owned())
}

fn statistics(control: &mut Control, words: &[String]) -> Result<String, String> {
    let mut rest = arguments(control, words)?;
    rest.retain(|word| *word != "verbose");
    without_zone(&mut rest);
    none(&rest)?;
    Ok("Connections Stats:\n    Total: 0\n".to_owned())
}

fn dump(control: &mut Control, words: &[String]) -> Result<String, String> {
    let mut rest = arguments(control, words)?;
    without_zone(&mut rest);
    none(&rest)?;
    Ok(String::new())
}

/// Accepts a zone and tuples: there is nothing to remove.
fn flush(control: &mut Control, words: &[String]) -> Result<String, String> {
    let rest = arguments(control, words)?;
    let zone = rest.iter().find(|word| word.starts_with("zone="));
    match zone.is_none_or(|word| number::<u16>(word, "zone=").is_some()) {
        true => Ok(String::new()),
        false => Err(failure("failed to parse zone", "Invalid argument")),
    }
}

fn fragments(control: &mut Control, words: &[String]) -> Result<String, String> {
    none(&arguments(control, words)?)?;
    let (options, _) = super::options(words);
    let mut text = control.commands.tracker.format_fragments();
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
    let rest = arguments(control, words)?;
    let version = rest.last().copied().unwrap_or_default();
    let missing = "parameter missing: 'v4' for IPv4 or 'v6' for IPv6";
    let settings = control.commands.tracker.fragments_mut(version);
    let settings = settings.ok_or_else(|| failure(missing, "Invalid argument"))?;
    settings.enabled = enabled;
    let what = if enabled { "enabling" } else { "disabling" };
    Ok(format!("{what} fragmentation reassembly successful"))
}

fn set_max_fragments(control: &mut Control, words: &[String]) -> Result<String, String> {
    let rest = arguments(control, words)?;
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
    control.commands.tracker.max_fragments = limit;
    Ok("setting maximum fragments successful".to_owned())
}

fn set_min_fragment(control: &mut Control, words: &[String]) -> Result<String, String> {
    let rest = arguments(control, words)?;
    let (version, len) = match rest[..] {
        [version, len] => (version, len),
        _ => ("", ""),
    };
    let missing = "parameter missing: v4 for IPv4 or v6 for IPv6";
    let settings = control.commands.tracker.fragments_mut(version);
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
    fn limits_of_zones_are_set_and_listed() {
        let mut tracker = TrackerSettings::default();
        assert_eq!(tracker.format_limits(None), "default limit=0\n");
        let set = tracker.set_limits(&["default=3", "zone=1,limit=5", "zone=0,limit=2"]);
        assert_eq!(set, Ok(()));
        let expected = "default limit=3\nzone=0,limit=2,count=0\nzone=1,limit=5,count=0\n";
        assert_eq!(tracker.format_limits(None), expected);
        let expected = "default limit=3\nzone=7,limit=3,count=0\n";
        assert_eq!(tracker.format_limits(Some(&[7])), expected);
        let wrong = "failed to parse zone limit";
        for word in [
            "zone=1",
            "zone=70000,limit=1",
            "limit=1,zone=1x",
            "zone=1,limit=",
        ] {
            assert_eq!(tracker.set_limits(&[word]), Err(wrong), "{word}");
        }
        assert_eq!(
            tracker.set_limits(&["default="]),
            Err("invalid default limit")
        );
    }

    #[test]
    fn fragment_status_has_the_lines_of_open_vswitch() {
        let text = TrackerSettings::default().format_fragments();
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
