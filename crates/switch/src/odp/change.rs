//! What turns a frame into another, as actions of a data path: `set(ipv4(ttl=63))`.

use flow::{Field, Key};

use super::value::Form;
use super::{ECN_BITS, Group, KEYS, TYPE_IPV6, add_part};

/// The actions that turn the one into the other.
pub(crate) fn changes(before: &Key, after: &Key) -> Vec<String> {
    let mut actions = Vec::new();
    let tag = |key: &Key| key.get(Field::VlanVid).filter(|vid| *vid != 0);
    let pcp = |key: &Key| key.get(Field::VlanPcp).unwrap_or_default();
    let (old, new) = (tag(before), tag(after));
    if (old, pcp(before)) != (new, pcp(after)) {
        if old.is_some() {
            actions.push("pop_vlan".to_owned());
        }
        if let Some(vid) = new {
            let vid = Form::Vid.write(vid, None);
            actions.push(format!("push_vlan(vid={vid},pcp={})", pcp(after)));
        }
    }
    let labels = |key: &Key| key.get(Field::MplsLabel);
    match (labels(before), labels(after)) {
        (None, Some(label)) => {
            let part = |field| after.get(field).unwrap_or_default();
            let eth_type = Form::Hex.write(part(Field::EthType), None);
            actions.push(format!(
                "push_mpls(label={label},tc={},ttl={},bos={},eth_type={eth_type})",
                part(Field::MplsTc),
                part(Field::MplsTtl),
                part(Field::MplsBos)
            ));
        }
        (Some(_), None) => {
            let eth_type = after.get(Field::EthType).unwrap_or_default();
            actions.push(format!("pop_mpls(eth_type={eth_type:#x})"));
        }
        _ => {}
    }
    actions.extend(sets(before, after));
    actions
}

/// Those that write fields of headers which both have.
fn sets(before: &Key, after: &Key) -> Vec<String> {
    let ipv6 = after.get(Field::EthType) == Some(TYPE_IPV6);
    let mut groups: Vec<Group> = Vec::new();
    for key in &KEYS {
        let strange = (key.group == "ipv4" && ipv6) || (key.group == "ipv6" && !ipv6);
        if strange
            || matches!(
                key.group,
                "vlan" | "eth_type" | "skb_mark" | "recirc_id" | "dp_hash"
            )
        {
            continue;
        }
        let values = |field| (before.get(field), after.get(field));
        let differs = |field| matches!(values(field), (Some(old), Some(new)) if old != new);
        let part = match key.field {
            Field::IpEcn => None,
            Field::IpDscp if differs(Field::IpDscp) || differs(Field::IpEcn) => {
                let high = after.get(Field::IpDscp).unwrap_or_default();
                let low = after.get(Field::IpEcn).unwrap_or_default();
                Some(Form::Hex.write(high << ECN_BITS | low, None))
            }
            Field::IpDscp => None,
            field if differs(field) => after.get(field).map(|new| key.form.write(new, None)),
            _ => None,
        };
        if let Some(part) = part {
            add_part(&mut groups, key, part);
        }
    }
    let sets = groups.iter().map(|group| format!("set({})", group.text()));
    sets.collect()
}
