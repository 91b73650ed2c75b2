//! The parser of datapath flows.

use base::PortNo;
use flow::{Field, Match, MatchBuilder};

use super::value::OdpFormat;
use super::{ECN_BITS, KEYS, TYPE_VLAN};

/// Groups of metadata that no frame has on arrival: only zero is accepted.
const EMPTY: [&str; 8] = [
    "skb_priority",
    "skb_mark",
    "recirc_id",
    "dp_hash",
    "ct_state",
    "ct_zone",
    "ct_mark",
    "ct_label",
];

/// The maximum nesting of `encap()`: a frame has at most two tags.
const DEPTH_MAX: usize = 3;

/// Parses a flow. `port` finds the port with this datapath number or name.
///
/// # Errors
/// The text is malformed; the error is a message for a person.
pub fn parse(text: &str, port: impl Fn(&str) -> Option<PortNo>) -> Result<Match, String> {
    let mut reader = OdpParser {
        found: Vec::new(),
        in_port: None,
    };
    reader.read(text, &port, 0)?;
    reader.found.sort_by_key(|(place, ..)| *place);
    let mut builder = MatchBuilder::default();
    let mut add = |field: Field, value, mask| {
        let added = builder.add(field, value, mask);
        added.map_err(|_| {
            format!(
                "{text}: {} contradicts the other fields or lacks a prerequisite",
                field.info().ofctl
            )
        })
    };
    if let Some(PortNo(port)) = reader.in_port {
        add(Field::InPort, port.into(), u32::MAX.into())?;
    }
    for (place, value, mask) in reader.found {
        add(KEYS[place].field, value, mask)?;
    }
    Ok(builder.build())
}

struct OdpParser {
    /// The parsed terms: an index into [`KEYS`], a value and a mask.
    found: Vec<(usize, u128, u128)>,
    in_port: Option<PortNo>,
}

impl OdpParser {
    fn read(
        &mut self,
        text: &str,
        port: &impl Fn(&str) -> Option<PortNo>,
        depth: usize,
    ) -> Result<(), String> {
        let items = split(text).ok_or_else(|| format!("syntax error at {text}"))?;
        let tagged = items.iter().any(|(name, _)| *name == "vlan");
        for (name, inner) in items {
            match name {
                "in_port" => {
                    let found = port(inner);
                    let found = found.ok_or_else(|| format!("in_port({inner}): no such port"))?;
                    self.in_port = Some(found);
                }
                "packet_type" => {}
                "encap" if depth < DEPTH_MAX => self.read(inner, port, depth + 1)?,
                // The type that matters is the one inside the tag.
                "eth_type" if tagged && is_vlan(inner) => {}
                name if EMPTY.contains(&name) => check_empty(name, inner)?,
                name => self.read_group(name, inner)?,
            }
        }
        Ok(())
    }

    fn read_group(&mut self, name: &str, inner: &str) -> Result<(), String> {
        let wrong = || format!("syntax error at {name}({inner})");
        if !KEYS.iter().any(|key| key.group == name) {
            return Err(wrong());
        }
        for item in inner.split(',').filter(|item| !item.is_empty()) {
            let (attribute, value) = item.split_once('=').unwrap_or(("", item));
            let mut keys = KEYS.iter().enumerate();
            let found = keys.find(|(_, key)| key.group == name && key.attribute == attribute);
            let Some((place, key)) = found else {
                // Open vSwitch always writes the CFI of a tag.
                if (name, attribute) == ("vlan", "cfi") {
                    continue;
                }
                return Err(wrong());
            };
            if matches!(attribute, "tos" | "tclass") {
                self.read_tos(place, value).ok_or_else(wrong)?;
                continue;
            }
            let (value, mask) = key.form.read(value, key.field).ok_or_else(wrong)?;
            self.add(place, value, mask);
        }
        Ok(())
    }

    /// Parses the byte that holds DSCP and ECN.
    fn read_tos(&mut self, place: usize, text: &str) -> Option<()> {
        let (value, mask) = OdpFormat::Hex.read(text, Field::IpTtl)?;
        self.add(place, value >> ECN_BITS, mask >> ECN_BITS);
        let low = (1 << ECN_BITS) - 1;
        // The ECN is the next row of the table.
        self.add(place + 1, value & low, mask & low);
        Some(())
    }

    fn add(&mut self, place: usize, value: u128, mask: u128) {
        if mask != 0 {
            self.found.push((place, value, mask));
        }
    }
}

fn is_vlan(text: &str) -> bool {
    OdpFormat::Hex
        .read(text, Field::EthType)
        .is_some_and(|(value, _)| value == TYPE_VLAN)
}

fn check_empty(name: &str, inner: &str) -> Result<(), String> {
    let (value, mask) = inner.split_once('/').unwrap_or((inner, "1"));
    let zero = |text: &str| {
        text.trim_start_matches("0x")
            .bytes()
            .all(|byte| byte == b'0')
    };
    match zero(value) || zero(mask) {
        true => Ok(()),
        false => Err(format!("{name}({inner}): received frames do not have this")),
    }
}

/// Splits a text into groups and the contents of their parentheses.
fn split(text: &str) -> Option<Vec<(&str, &str)>> {
    let mut items = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, behind) = rest.split_once('(')?;
        let mut depth = 1_usize;
        let end = behind.bytes().position(|byte| {
            match byte {
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            depth == 0
        })?;
        items.push((name.trim(), &behind[..end]));
        rest = behind[end + 1..].trim_start_matches([',', ' ']);
    }
    Some(items)
}
