//! The text of a parsed datapath flow, in the order in which a datapath lists its keys.

use std::fmt::Write;

use flow::Field;

use super::parse::{OdpFlow, OdpTag};
use super::scan::MaskedNumber;
use super::value::OdpFormat;
use super::{ECN_BITS, KEYS, OdpGroup, add_part};

/// The names of connection fields, in the order of [`OdpFlow::connection`].
const CONNECTION: [&str; 4] = ["ct_state", "ct_zone", "ct_mark", "ct_label"];

/// The bits of a VLAN id and of a priority in a tag.
const VID: u16 = 0x0fff;
const PCP: u16 = 0x7;

impl OdpFlow {
    /// Writes the flow; a key that is not examined is left out.
    #[must_use]
    pub fn text(&self) -> String {
        let mut items = Vec::new();
        let single = |name: &str, number: MaskedNumber, bits: u32| {
            let full = u128::MAX >> (u128::BITS - bits);
            let mask = (number.mask != full).then_some(number.mask);
            (number.mask != 0)
                .then(|| format!("{name}({})", OdpFormat::Hex.write(number.value, mask)))
        };
        items.extend(single("skb_priority", self.skb_priority, 32));
        items.extend(
            self.tunnel
                .as_ref()
                .map(|tunnel| format!("tunnel({})", tunnel.key_text())),
        );
        items.extend(single("skb_mark", self.skb_mark, 32));
        for (name, number) in CONNECTION.iter().zip(self.connection) {
            items.extend(single(name, number, 128));
        }
        items.push(match self.recirc_id {
            0 => "recirc_id(0)".to_owned(),
            id => format!("recirc_id({id:#x})"),
        });
        let groups = self.groups();
        let texts = |wanted: fn(&str) -> bool| {
            let groups = groups.iter().filter(move |group| wanted(group.name));
            groups.map(OdpGroup::text)
        };
        items.extend(texts(|name| name == "dp_hash"));
        items.extend(self.in_port.map(|port| format!("in_port({})", port.value)));
        if let Some((space, id)) = self.packet_type {
            items.push(format!("packet_type(ns={space},id={id:#x})"));
        }
        match groups.iter().find(|group| group.name == "eth") {
            Some(group) => items.push(group.text()),
            None if self.has_ethernet => items.push("eth()".to_owned()),
            None => {}
        }
        let mut inner: Vec<_> = texts(|name| name == "eth_type").collect();
        inner.extend(self.labels_text());
        inner.extend(texts(|name| {
            !["dp_hash", "eth", "eth_type"].contains(&name)
        }));
        let mut nested = inner.join(",");
        for tag in self.tags.iter().rev() {
            let encap = if nested.is_empty() {
                String::new()
            } else {
                format!(",encap({nested})")
            };
            nested = format!(
                "eth_type({:#06x}),vlan({}){encap}",
                tag.tpid,
                tag_text(*tag)
            );
        }
        if !nested.is_empty() {
            items.push(nested);
        }
        items.join(",")
    }

    /// Returns the groups of header fields with the attributes that are examined.
    fn groups(&self) -> Vec<OdpGroup> {
        let mut groups = Vec::new();
        for (place, key) in KEYS.iter().enumerate() {
            let number = |place: usize| {
                let mut fields = self.fields.iter();
                fields
                    .find(|(of, _)| *of == place)
                    .map(|(_, number)| *number)
            };
            let Some(found) = number(place) else {
                continue;
            };
            let full = u128::MAX >> (u128::BITS - u32::from(key.field.info().bits));
            let attribute = match key.field {
                Field::IpEcn => continue,
                Field::IpDscp => {
                    let ecn = number(place + 1).unwrap_or_default();
                    let value = found.value << ECN_BITS | ecn.value;
                    let mask = found.mask << ECN_BITS | ecn.mask;
                    (mask != 0).then(|| OdpFormat::Hex.write(value, (mask != 0xff).then_some(mask)))
                }
                Field::EthType if found.mask != 0 => Some(format!("{:#06x}", found.value)),
                _ => {
                    let mask = (found.mask != full).then_some(found.mask);
                    (found.mask != 0).then(|| key.form.write(found.value, mask))
                }
            };
            if let Some(attribute) = attribute {
                add_part(&mut groups, key, attribute);
            }
        }
        groups
    }

    fn labels_text(&self) -> Option<String> {
        let entries = self.labels.iter().map(|(entry, mask)| {
            format!(
                "label={}/{:#x},tc={}/{:x},ttl={}/{:#x},bos={}/{:x}",
                entry >> 12,
                mask >> 12,
                entry >> 9 & 7,
                mask >> 9 & 7,
                entry & 0xff,
                mask & 0xff,
                entry >> 8 & 1,
                mask >> 8 & 1
            )
        });
        let entries: Vec<_> = entries.collect();
        (!entries.is_empty()).then(|| format!("mpls({})", entries.join(",")))
    }
}

fn tag_text(tag: OdpTag) -> String {
    let mut text = String::new();
    let parts = [
        ("vid", tag.tci & VID, tag.mask & VID, VID),
        ("pcp", tag.tci >> 13, tag.mask >> 13, PCP),
    ];
    for (name, value, mask, full) in parts {
        if mask == 0 {
            continue;
        }
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = match mask == full {
            true => write!(text, "{comma}{name}={value}"),
            false => write!(text, "{comma}{name}={value}/{mask:#x}"),
        };
    }
    text
}
