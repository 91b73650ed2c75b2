//! The features of a datapath: `dpif/show-dp-features` and `dpif/set-dp-features` of
//! ovs-vswitchd(8).
//!
//! A feature can be switched off, and on again if the datapath has it. Open vSwitch then translates
//! to other datapath actions. Here rules are executed as they are, so the setting changes the text
//! of traces only: without `tnl_push_pop`, outputs to tunnels are `set(tunnel(...))`.

use std::collections::BTreeMap;
use std::fmt;

use super::Answer::Immediate;
use super::{Command, named};
use crate::control::Control;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 2] = [
    Command { name: "dpif/set-dp-features", usage: "bridge", least: 1, most: 3, answer: Immediate(set) },
    Command { name: "dpif/show-dp-features", usage: "bridge", least: 1, most: 1, answer: Immediate(show) },
];

/// The value of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FeatureValue {
    /// The datapath has the feature or not.
    Flag(bool),
    /// A limit of the datapath.
    Limit(u32),
}

impl fmt::Display for FeatureValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Limit(limit) => write!(f, "{limit}"),
        }
    }
}

/// A feature: its name, its title, and the value of this datapath.
type FeatureRow = (&'static str, &'static str, FeatureValue);

#[rustfmt::skip]
const FEATURES: [FeatureRow; 26] = {
    use FeatureValue::{Flag, Limit};
    [
        ("masked_set_action",    "Masked set action",          Flag(true)),
        ("tnl_push_pop",         "Tunnel push pop",            Flag(true)),
        ("ufid",                 "Ufid",                       Flag(false)),
        ("trunc",                "Truncate action",            Flag(true)),
        ("clone",                "Clone action",               Flag(true)),
        ("sample_nesting",       "Sample nesting",             Limit(0)),
        ("ct_eventmask",         "Conntrack eventmask",        Flag(false)),
        ("ct_clear",             "Conntrack clear",            Flag(true)),
        ("max_hash_alg",         "Max dp_hash algorithm",      Limit(0)),
        ("check_pkt_len",        "Check pkt length action",    Flag(true)),
        ("ct_timeout",           "Conntrack timeout policy",   Flag(true)),
        ("explicit_drop_action", "Explicit Drop action",       Flag(false)),
        ("lb_output_action",     "Optimized Balance TCP mode", Flag(true)),
        ("ct_zero_snat",         "Conntrack all-zero IP SNAT", Flag(false)),
        ("add_mpls",             "MPLS Label add",             Flag(false)),
        ("max_vlan_headers",     "Max VLAN headers",           Limit(2)),
        ("max_mpls_depth",       "Max MPLS depth",             Limit(3)),
        ("recirc",               "Recirc",                     Flag(false)),
        ("ct_state",             "CT state",                   Flag(true)),
        ("ct_zone",              "CT zone",                    Flag(true)),
        ("ct_mark",              "CT mark",                    Flag(true)),
        ("ct_label",             "CT label",                   Flag(true)),
        ("ct_state_nat",         "CT state NAT",               Flag(true)),
        ("ct_orig_tuple",        "CT orig tuple",              Flag(true)),
        ("ct_orig_tuple6",       "CT orig tuple for IPv6",     Flag(true)),
        ("nd_ext",               "IPv6 ND Extension",          Flag(true)),
    ]
};

/// Returns the capabilities of each datapath, by name, as the database has them.
pub(in crate::control) fn capabilities() -> BTreeMap<String, String> {
    let features = FEATURES.iter();
    let features = features.map(|(name, _, value)| ((*name).to_owned(), value.to_string()));
    let flush = ("ct_flush".to_owned(), true.to_string());
    features.chain([flush]).collect()
}

/// The changed features of a datapath.
#[derive(Debug, Default)]
pub(in crate::control) struct DatapathFeatures(BTreeMap<&'static str, FeatureValue>);

impl DatapathFeatures {
    /// True if the feature with this name is on.
    pub(super) fn has(&self, name: &str) -> bool {
        let row = FEATURES.iter().find(|(known, ..)| *known == name);
        row.is_some_and(|row| self.value(row) != FeatureValue::Flag(false))
    }

    fn value(&self, (name, _, value): &FeatureRow) -> FeatureValue {
        self.0.get(name).copied().unwrap_or(*value)
    }

    /// Formats the value of a feature now and at the start.
    fn line(&self, row: &FeatureRow) -> String {
        let (name, title, first) = *row;
        let now = self.value(row);
        format!("{name} ({title}) : [run time]:{now}, [boot time]:{first}\n")
    }

    /// Sets a feature. Returns Open vSwitch's message if the value is not accepted.
    fn set(&mut self, row: &FeatureRow, text: &str) -> &'static str {
        let (name, _, first) = *row;
        let value = match first {
            FeatureValue::Flag(has) => match text.to_ascii_lowercase().as_str() {
                "true" if !has => return "Can not enable features not supported by the datapth",
                "true" => FeatureValue::Flag(true),
                "false" => FeatureValue::Flag(false),
                _ => return "Boolean value expected",
            },
            FeatureValue::Limit(most) => match text.parse::<i32>().map(u32::try_from) {
                Ok(Ok(limit)) if limit <= most => FeatureValue::Limit(limit),
                Ok(Ok(_)) => return "Can not set value beyond the datapath capability",
                Ok(Err(_)) => return "Negative number not expected",
                Err(_) => return "Integer number expected",
            },
        };
        self.0.insert(name, value);
        ""
    }
}

fn show(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    named(control, arguments)?;
    let lines = FEATURES.iter().map(|(_, title, value)| match value {
        FeatureValue::Flag(true) => format!("{title}: Yes\n"),
        FeatureValue::Flag(false) => format!("{title}: No\n"),
        FeatureValue::Limit(limit) => format!("{title}: {limit}\n"),
    });
    Ok(lines.collect())
}

/// Sets a feature, or shows one or all.
fn set(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let datapath = named(control, arguments)?.datapath();
    let features = control.commands.features.entry(datapath).or_default();
    let Some(name) = arguments.get(1) else {
        let lines = FEATURES.iter().map(|row| features.line(row));
        return Ok(lines.collect());
    };
    let Some(row) = FEATURES.iter().find(|(known, ..)| known == name) else {
        return Ok("Unexpected support field".to_owned());
    };
    Ok(match arguments.get(2) {
        Some(value) => features.set(row, value).to_owned(),
        None => features.line(row),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str) -> &'static FeatureRow {
        let row = FEATURES.iter().find(|(known, ..)| *known == name);
        row.expect("it is in the table")
    }

    #[test]
    fn capabilities_include_connection_tracking() {
        let capabilities = capabilities();
        let value = |name: &str| capabilities.get(name).map(String::as_str);
        assert_eq!(value("ct_state_nat"), Some("true"));
        assert_eq!(value("ct_timeout"), Some("true"));
        assert_eq!(value("ct_flush"), Some("true"));
        assert_eq!(value("max_vlan_headers"), Some("2"));
    }

    #[test]
    fn feature_is_set_within_what_the_datapath_has() {
        let mut features = DatapathFeatures::default();
        assert!(features.has("tnl_push_pop"));
        assert_eq!(features.set(row("tnl_push_pop"), "FALSE"), "");
        assert!(!features.has("tnl_push_pop"));
        assert_eq!(
            features.line(row("tnl_push_pop")),
            "tnl_push_pop (Tunnel push pop) : [run time]:false, [boot time]:true\n"
        );
        let refused = [
            (
                "ufid",
                "true",
                "Can not enable features not supported by the datapth",
            ),
            ("clone", "1", "Boolean value expected"),
            (
                "max_vlan_headers",
                "3",
                "Can not set value beyond the datapath capability",
            ),
            ("max_vlan_headers", "-1", "Negative number not expected"),
            ("max_vlan_headers", "two", "Integer number expected"),
        ];
        for (name, value, why) in refused {
            assert_eq!(features.set(row(name), value), why);
        }
        assert_eq!(features.set(row("max_vlan_headers"), "1"), "");
    }
}
