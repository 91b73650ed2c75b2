//! Differences between two frames as datapath actions: `set(ipv4(ttl=63))`.

use flow::{Field, FlowKey};
use packet::wire::vlan::VlanTag;

use super::value::OdpFormat;
use super::{ECN_BITS, KEYS, OdpGroup, TYPE_IPV6, add_part};

/// The tag protocol identifier that need not be written.
const CUSTOMER: u16 = 0x8100;

/// Returns the actions between two lists of tags, outermost first.
pub(crate) fn tag_changes(before: &[VlanTag], after: &[VlanTag]) -> Vec<String> {
    let both = before.iter().rev().zip(after.iter().rev());
    let same = both.take_while(|(before, after)| before == after).count();
    let pops = vec!["pop_vlan".to_owned(); before.len() - same];
    let pushes = after[..after.len() - same].iter().rev().map(|tag| {
        let VlanTag { tpid, pcp, vid, .. } = tag;
        match *tpid {
            CUSTOMER => format!("push_vlan(vid={vid},pcp={pcp})"),
            _ => format!("push_vlan(tpid={tpid:#06x},vid={vid},pcp={pcp})"),
        }
    });
    pops.into_iter().chain(pushes).collect()
}

/// Returns the actions between two flow keys, without tags.
pub fn changes(before: &FlowKey, after: &FlowKey) -> Vec<String> {
    let mut actions = Vec::new();
    let labels = |key: &FlowKey| key.get(Field::MplsLabel);
    match (labels(before), labels(after)) {
        (None, Some(label)) => {
            let attribute = |field| after.get(field).unwrap_or_default();
            let eth_type = OdpFormat::Hex.write(attribute(Field::EthType), None);
            actions.push(format!(
                "push_mpls(label={label},tc={},ttl={},bos={},eth_type={eth_type})",
                attribute(Field::MplsTc),
                attribute(Field::MplsTtl),
                attribute(Field::MplsBos)
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

/// Returns the `set` actions for fields of headers that both keys have.
fn sets(before: &FlowKey, after: &FlowKey) -> Vec<String> {
    let ipv6 = after.get(Field::EthType) == Some(TYPE_IPV6);
    let mut groups: Vec<OdpGroup> = Vec::new();
    for key in &KEYS {
        let other_version = (key.group == "ipv4" && ipv6) || (key.group == "ipv6" && !ipv6);
        if other_version
            || matches!(
                key.group,
                "vlan" | "eth_type" | "skb_mark" | "recirc_id" | "dp_hash"
            )
        {
            continue;
        }
        let values = |field| (before.get(field), after.get(field));
        let differs = |field| matches!(values(field), (Some(old), Some(new)) if old != new);
        let attribute = match key.field {
            Field::IpEcn => None,
            Field::IpDscp if differs(Field::IpDscp) || differs(Field::IpEcn) => {
                let high = after.get(Field::IpDscp).unwrap_or_default();
                let low = after.get(Field::IpEcn).unwrap_or_default();
                Some(OdpFormat::Hex.write(high << ECN_BITS | low, None))
            }
            Field::IpDscp => None,
            field if differs(field) => after.get(field).map(|new| key.form.write(new, None)),
            _ => None,
        };
        if let Some(attribute) = attribute {
            add_part(&mut groups, key, attribute);
        }
    }
    let sets = groups.iter().map(|group| format!("set({})", group.text()));
    sets.collect()
}
