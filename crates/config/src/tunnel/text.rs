//! Tunnels as text: in the notation of the database, and of the command line.

use std::fmt;

use packet::tunnel::{TunnelProtocol, VxlanExtension};

use super::{ErspanOption, OuterField, TTL_DEFAULT, TunnelConfig, TunnelEndpoint, TunnelKey};

/// An option and its value; none if it has the default.
type OptionText = (&'static str, Option<String>);

fn key(key: TunnelKey) -> Option<String> {
    match key {
        TunnelKey::Given(key) => Some(key.to_string()),
        TunnelKey::Flow => Some("flow".to_owned()),
        TunnelKey::None => None,
    }
}

fn endpoint(endpoint: TunnelEndpoint) -> Option<String> {
    match endpoint {
        TunnelEndpoint::Given(address) => Some(address.to_string()),
        TunnelEndpoint::Flow => Some("flow".to_owned()),
        TunnelEndpoint::Any => None,
    }
}

fn inherited(value: OuterField, default: u8, text: impl Fn(u8) -> String) -> Option<String> {
    match value {
        OuterField::Given(value) if value == default => None,
        OuterField::Given(value) => Some(text(value)),
        OuterField::Inherit(_) => Some("inherit".to_owned()),
    }
}

fn yes(is_so: bool) -> Option<String> {
    is_so.then(|| "true".to_owned())
}

impl TunnelConfig {
    /// Returns the options that differ from their defaults, in the notation of the database, as
    /// `dpif/show` of Open vSwitch prints them: without extensions of VXLAN.
    #[must_use]
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let is_one = self.in_key == self.out_key;
        let mut words = vec![
            ("in_key", key(self.in_key).filter(|_| !is_one)),
            ("key", key(self.in_key).filter(|_| is_one)),
            ("local_ip", endpoint(self.local)),
            ("out_key", key(self.out_key).filter(|_| !is_one)),
            ("remote_ip", endpoint(self.remote)),
            ("tos", inherited(self.tos, 0, |tos| format!("{tos:#x}"))),
        ];
        words.extend(self.common_options());
        if self.kind.is_erspan() {
            words.extend(self.erspan_options());
        }
        words.sort_unstable_by_key(|(word, _)| *word);
        let words = words.into_iter();
        words
            .filter_map(|(word, value)| Some((word, value?)))
            .collect()
    }

    /// Returns the options that have the same names in the database and on the command line.
    fn common_options(&self) -> Vec<OptionText> {
        let default = Self::default_packet_type(self.kind, self.protocol);
        let port = (self.port != self.kind.default_port()).then(|| self.port.to_string());
        vec![
            ("dst_port", port),
            (
                "ttl",
                inherited(self.ttl, TTL_DEFAULT, |ttl| ttl.to_string()),
            ),
            (
                "df_default",
                (!self.dont_fragment).then(|| "false".to_owned()),
            ),
            ("csum", yes(self.checksum)),
            ("seq", yes(self.sequenced)),
            (
                "packet_type",
                (self.packet_type != default).then(|| self.packet_type.name().to_owned()),
            ),
            (
                "egress_pkt_mark",
                self.egress_mark.map(|mark| mark.to_string()),
            ),
        ]
    }

    /// Returns the options of the ERSPAN header that the version has.
    fn erspan_options(&self) -> Vec<OptionText> {
        let hex = |value| match value {
            ErspanOption::Given(value) => Some(format!("{value:#x}")),
            ErspanOption::Flow => Some("flow".to_owned()),
        };
        let decimal = |value| match value {
            ErspanOption::Given(value) => Some(value.to_string()),
            ErspanOption::Flow => Some("flow".to_owned()),
        };
        let erspan = &self.erspan;
        let version = ("erspan_ver", decimal(erspan.version));
        let index = ("erspan_idx", hex(erspan.index));
        let direction = ("erspan_dir", decimal(erspan.direction));
        let hardware = ("erspan_hwid", hex(erspan.hardware));
        match erspan.version {
            ErspanOption::Given(1) => vec![version, index],
            ErspanOption::Given(_) => vec![version, direction, hardware],
            ErspanOption::Flow => vec![version, index, direction, hardware],
        }
    }
}

impl fmt::Display for TunnelConfig {
    /// Formats the words that `from_words` parses, which follow the name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extension = match self.protocol {
            TunnelProtocol::Vxlan(VxlanExtension::Gbp) => Some("gbp".to_owned()),
            TunnelProtocol::Vxlan(VxlanExtension::Gpe) => Some("gpe".to_owned()),
            _ => None,
        };
        let mut words = vec![
            ("remote", endpoint(self.remote)),
            ("local", endpoint(self.local)),
            ("in_key", key(self.in_key)),
            ("out_key", key(self.out_key)),
            ("exts", extension),
            ("tos", inherited(self.tos, 0, |tos| tos.to_string())),
        ];
        words.extend(self.common_options());
        if self.kind.is_erspan() {
            words.extend(self.erspan_options());
        }
        let words = words
            .into_iter()
            .filter_map(|(word, value)| Some((word, value?)));
        for (word, value) in words {
            let word = if word == "dst_port" { "port" } else { word };
            write!(f, ",{word}={value}")?;
        }
        Ok(())
    }
}
