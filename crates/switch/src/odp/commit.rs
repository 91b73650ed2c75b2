//! Differences between two states of a frame as datapath actions: `set(ipv4(ttl=63))`,
//! `push_mpls(...)`. As in Open vSwitch, headers are changed only before an output, in one order:
//! Ethernet, removed labels, network service header, IP or ARP, ports, ICMP, other labels, tags,
//! queue, mark.

use std::collections::BTreeMap;

use flow::{Field, FlowKey, PipelineFields};
use packet::wire::ethernet::{self, EtherType};
use packet::wire::vlan::{self, VlanTag};
use packet::{Depth, Frame, Link, MacAddr};

use super::value::OdpFormat;
use super::{ECN_BITS, KEYS, OdpGroup, OdpKey, TYPE_IPV6, add_part};

/// The tag protocol identifier that need not be written.
const CUSTOMER: u16 = 0x8100;

/// Length of an MPLS label stack entry, in bytes.
const LABEL_LEN: usize = 4;

/// The bit of a label stack entry that marks the last one.
const BOTTOM_OF_STACK: u32 = 1 << 8;

/// The actions that Open vSwitch executes itself.
const SLOW_SETS: [&str; 4] = ["set(arp(", "set(icmp", "set(nd(", "set(nd_ext("];

/// Bits of fields that rules have matched or actions have written. A changed field that is absent
/// is written whole.
pub type ExaminedBits = BTreeMap<Field, u128>;

/// The headers of a frame as a datapath sees them.
#[derive(Clone)]
pub struct OdpHeaders {
    /// The fields outside labels.
    outer: FlowKey,
    /// The fields below the labels.
    inner: FlowKey,
    /// VLAN tags, the outermost first.
    tags: Vec<VlanTag>,
    /// MPLS label stack entries, the outermost first.
    labels: Vec<u32>,
    /// The EtherType after all tags.
    eth_type: EtherType,
    /// True if the frame has an Ethernet header.
    is_ethernet: bool,
    mark: u32,
    /// The queue; zero for none.
    queue: u32,
}

impl OdpHeaders {
    /// Returns the headers of a frame with these pipeline fields; none if it is no frame.
    #[must_use]
    pub fn read(frame: &Frame, registers: &PipelineFields) -> Option<Self> {
        let outer = key_of(frame, registers)?;
        let link = Link::parse(frame.bytes()).ok()?;
        let labels = match link.eth_type.is_mpls() {
            true => labels_of(frame.bytes().get(link.payload_at()..).unwrap_or_default()),
            false => Vec::new(),
        };
        let below = match labels.is_empty() {
            true => None,
            false => below_labels(frame.bytes(), &link, labels.len()),
        };
        let inner = below.and_then(|frame| key_of(&frame, registers));
        Some(Self {
            inner: inner.unwrap_or_else(|| outer.clone()),
            outer,
            tags: tags_of(frame),
            labels,
            eth_type: link.eth_type,
            is_ethernet: registers.packet_type.is_ethernet(),
            mark: registers.mark,
            queue: frame.priority.queue().map_or(0, |queue| queue.0),
        })
    }

    /// Takes the packet mark of `before`: an output without pipeline fields has not changed it.
    pub(crate) const fn keep_mark(&mut self, before: &Self) {
        self.mark = before.mark;
    }

    /// Appends the actions that change these headers to `after`. Returns true if Open vSwitch's own
    /// datapaths lack one of them: they set neither ARP, nor ICMP, nor neighbour discovery.
    pub fn commit(&self, after: &Self, examined: &ExaminedBits, actions: &mut Vec<String>) -> bool {
        let first = actions.len();
        match (self.is_ethernet, after.is_ethernet) {
            (true, false) => actions.push("pop_eth".to_owned()),
            (false, true) => actions.push(after.push_eth()),
            _ => {}
        }
        if self.is_ethernet && after.is_ethernet {
            self.set_groups(after, examined, &["eth"], actions);
        }
        let pops_all = !self.labels.is_empty() && after.labels.is_empty();
        if pops_all {
            self.commit_labels(after, actions);
        }
        self.set_nsh(after, examined, actions);
        if self.labels.is_empty() || pops_all {
            self.set_network(after, examined, actions);
        }
        if !pops_all {
            self.commit_labels(after, actions);
        }
        actions.extend(tag_changes(&self.tags, &after.tags));
        if self.queue != after.queue {
            // The queue number, as in Open vSwitch's userspace datapath.
            actions.push(match after.queue {
                0 => "set(skb_priority(0))".to_owned(),
                queue => format!("set(skb_priority({queue:#x}))"),
            });
        }
        if self.mark != after.mark {
            actions.push(match after.mark {
                0 => "set(skb_mark(0))".to_owned(),
                mark => format!("set(skb_mark({mark:#x}))"),
            });
        }
        let mut added = actions.iter().skip(first);
        added.any(|action| SLOW_SETS.iter().any(|set| action.starts_with(set)))
    }

    fn push_eth(&self) -> String {
        let address = |field| {
            let bits = self.outer.get(field).unwrap_or_default();
            MacAddr::from_u64(u64::try_from(bits).unwrap_or_default())
        };
        let (src, dst) = (address(Field::EthSrc), address(Field::EthDst));
        format!("push_eth(src={src},dst={dst})")
    }

    fn set_network(&self, after: &Self, examined: &ExaminedBits, actions: &mut Vec<String>) {
        let op = after.inner.get(Field::ArpOp);
        let has_network = |field| after.inner.get(field).is_some_and(|number| number != 0);
        if op.is_some_and(|op| op != 0) {
            self.set_whole(after, "arp", actions);
        } else if has_network(Field::IpProto) {
            let ipv6 = after.inner.get(Field::EthType) == Some(TYPE_IPV6);
            let network = if ipv6 { "ipv6" } else { "ipv4" };
            self.set_groups(after, examined, &[network, "nd_ext", "nd"], actions);
        }
        self.set_groups(after, examined, &["tcp", "udp", "sctp"], actions);
        self.set_whole(after, "icmp", actions);
        self.set_whole(after, "icmpv6", actions);
    }

    /// Sets the changed fields of these groups; other fields keep their values.
    fn set_groups(
        &self,
        after: &Self,
        examined: &ExaminedBits,
        names: &[&str],
        actions: &mut Vec<String>,
    ) {
        for name in names {
            let mut groups: Vec<OdpGroup> = Vec::new();
            for key in KEYS.iter().filter(|key| key.group == *name) {
                if let Some(attribute) = self.changed(after, key, examined) {
                    add_part(&mut groups, key, attribute);
                }
            }
            actions.extend(groups.iter().map(|group| format!("set({})", group.text())));
        }
    }

    /// Returns the values of a field before and after.
    fn values(&self, after: &Self, field: Field) -> Option<(u128, u128)> {
        let keys = match field {
            Field::EthSrc | Field::EthDst => (&self.outer, &after.outer),
            _ => (&self.inner, &after.inner),
        };
        Some((keys.0.get(field)?, keys.1.get(field)?))
    }

    fn differs(&self, after: &Self, field: Field) -> bool {
        let values = self.values(after, field);
        values.is_some_and(|(old, new)| old != new)
    }

    /// Returns the text of a field's new value if it has changed.
    fn changed(&self, after: &Self, key: &OdpKey, examined: &ExaminedBits) -> Option<String> {
        match key.field {
            Field::IpEcn | Field::IpFrag | Field::IpProto => return None,
            Field::IpDscp => return self.changed_tos(after, examined),
            _ => {}
        }
        let (old, new) = self.values(after, key.field)?;
        if old == new {
            return None;
        }
        let full = u128::MAX >> (u128::BITS - u32::from(key.field.info().bits));
        let known = examined.get(&key.field).copied().unwrap_or(full);
        let mask = (known | (old ^ new)) & full;
        Some(key.form.write(new & mask, (mask != full).then_some(mask)))
    }

    /// Returns the text of the octet of DSCP and ECN if it has changed.
    fn changed_tos(&self, after: &Self, examined: &ExaminedBits) -> Option<String> {
        let octet = |field, shift: u32| {
            let (_, new) = self.values(after, field)?;
            Some(new << shift)
        };
        let known = |field, all: u128| match self.differs(after, field) {
            true => all,
            false => examined.get(&field).copied().unwrap_or_default(),
        };
        let mask = known(Field::IpDscp, 0x3f) << ECN_BITS | known(Field::IpEcn, 3);
        if !self.differs(after, Field::IpDscp) && !self.differs(after, Field::IpEcn) {
            return None;
        }
        let value = octet(Field::IpDscp, ECN_BITS)? | octet(Field::IpEcn, 0)?;
        Some(OdpFormat::Hex.write(value & mask, (mask != 0xff).then_some(mask)))
    }

    /// Sets all fields of a group if one has changed: a datapath cannot set them one by one.
    fn set_whole(&self, after: &Self, name: &str, actions: &mut Vec<String>) {
        let keys = || KEYS.iter().filter(|key| key.group == name);
        if !keys().any(|key| self.differs(after, key.field)) {
            return;
        }
        let mut groups: Vec<OdpGroup> = Vec::new();
        for key in keys() {
            if let Some(value) = after.inner.get(key.field) {
                add_part(&mut groups, key, key.form.write(value, None));
            }
        }
        actions.extend(groups.iter().map(|group| format!("set({})", group.text())));
    }

    /// Sets the network service header: with the changed fields, those that rules have matched.
    fn set_nsh(&self, after: &Self, examined: &ExaminedBits, actions: &mut Vec<String>) {
        let keys = || KEYS.iter().filter(|key| key.group == "nsh");
        if !keys().any(|key| self.differs(after, key.field)) {
            return;
        }
        let mut groups: Vec<OdpGroup> = Vec::new();
        let fixed = [Field::NshMdtype, Field::NshNp];
        for key in keys().filter(|key| !fixed.contains(&key.field)) {
            let mask = examined.get(&key.field).copied().unwrap_or_default();
            let value = after.inner.get(key.field);
            let value = value.filter(|_| mask != 0 || self.differs(after, key.field));
            if let Some(value) = value {
                add_part(&mut groups, key, key.form.write(value, None));
            }
        }
        actions.extend(groups.iter().map(|group| format!("set({})", group.text())));
    }

    /// Appends the actions between two label stacks. The outermost label that both may share is
    /// set; others are removed and added.
    fn commit_labels(&self, after: &Self, actions: &mut Vec<String>) {
        let (before, wanted) = (&self.labels, &after.labels);
        let pairs = before.iter().rev().zip(wanted.iter().rev());
        let mut common = pairs
            .take_while(|(before, wanted)| before == wanted)
            .count();
        let mut count = before.len();
        while count > common {
            if count - 1 == common && wanted.len() > common {
                let entry = wanted[wanted.len() - count];
                actions.push(format!("set(mpls({}))", label_text(entry)));
                common += 1;
            } else {
                let eth_type = match !after.eth_type.is_mpls() && count > 1 {
                    true => EtherType::MPLS,
                    false => after.eth_type,
                };
                actions.push(format!("pop_mpls(eth_type={:#x})", eth_type.0));
                count -= 1;
            }
        }
        while count < wanted.len() {
            let entry = label_text(wanted[wanted.len() - count - 1]);
            let eth_type = after.eth_type.0;
            actions.push(format!("push_mpls({entry},eth_type={eth_type:#x})"));
            count += 1;
        }
    }
}

/// Returns the flow key of a frame, down to the last readable header. The EtherType of a flow that
/// names none is zero.
pub(crate) fn key_of(frame: &Frame, registers: &PipelineFields) -> Option<FlowKey> {
    let mut key = FlowKey::new();
    let is_read = key.read(frame, Depth::Transport, registers);
    let link = Link::parse(frame.bytes()).ok().filter(|_| is_read)?;
    if link.payload_at() == frame.len() && frame.bytes().ends_with(&[0, 0]) {
        key.set(Field::EthType, 0);
    }
    Some(key)
}

/// Returns all tags of a frame, outermost first.
fn tags_of(frame: &Frame) -> Vec<VlanTag> {
    let tags = Link::parse(frame.bytes()).map_or(0, |link| link.tags());
    let bytes = frame.bytes().get(ethernet::TYPE..).unwrap_or_default();
    let tags = bytes.chunks_exact(vlan::LEN).take(tags);
    let tags = tags.filter_map(|bytes| bytes.first_chunk());
    tags.map(|bytes| VlanTag::parse(*bytes)).collect()
}

/// Returns the label stack entries up to the last.
fn labels_of(packet: &[u8]) -> Vec<u32> {
    let mut labels = Vec::new();
    for entry in packet.chunks_exact(LABEL_LEN) {
        let entry = u32::from_be_bytes([entry[0], entry[1], entry[2], entry[3]]);
        labels.push(entry);
        if entry & BOTTOM_OF_STACK != 0 {
            break;
        }
    }
    labels
}

/// Returns the frame without tags and labels, if its payload is IP.
fn below_labels(bytes: &[u8], link: &Link, labels: usize) -> Option<Frame> {
    let packet = bytes.get(link.payload_at() + labels * LABEL_LEN..)?;
    let eth_type = match packet.first()? >> 4 {
        4 => EtherType::IPV4,
        6 => EtherType::IPV6,
        _ => return None,
    };
    let header = bytes.get(..ethernet::TYPE)?;
    let frame = [header, &eth_type.0.to_be_bytes(), packet].concat();
    Some(Frame::from_bytes(&frame))
}

fn label_text(entry: u32) -> String {
    let (label, tc) = (entry >> 12, entry >> 9 & 7);
    let (ttl, bos) = (entry & 0xff, entry >> 8 & 1);
    format!("label={label},tc={tc},ttl={ttl},bos={bos}")
}

/// Returns the actions between two lists of tags, outermost first.
fn tag_changes(before: &[VlanTag], after: &[VlanTag]) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use base::PortNo;
    use flow::{HeaderFields, Match};

    use super::*;

    fn headers(text: &str) -> OdpHeaders {
        let matching: Match = text.parse().expect(text);
        let registers = PipelineFields::from_match(&matching);
        let frame = HeaderFields::of_match(&matching).frame(0);
        OdpHeaders::read(&frame, &registers).expect("a frame")
    }

    fn between(before: &str, after: &str) -> String {
        let mut actions = Vec::new();
        headers(before).commit(&headers(after), &ExaminedBits::new(), &mut actions);
        actions.join(",")
    }

    #[test]
    fn changed_fields_are_set_alone() {
        let tcp = "tcp,nw_src=10.0.0.1,nw_ttl=64,tp_dst=80";
        assert_eq!(between(tcp, tcp), "");
        assert_eq!(
            between(
                tcp,
                "tcp,nw_src=10.0.0.1,nw_ttl=63,tp_dst=81,dl_dst=02:00:00:00:00:01"
            ),
            "set(eth(dst=02:00:00:00:00:01)),set(ipv4(ttl=63)),set(tcp(dst=81))"
        );
        assert_eq!(
            between("tcp,nw_tos=16", "tcp,nw_tos=16,nw_ecn=3,dl_vlan=5"),
            "set(ipv4(tos=0x3/0x3)),push_vlan(vid=5,pcp=0)"
        );
        assert_eq!(
            between("arp,arp_op=1", "arp,arp_op=2"),
            "set(arp(sip=0.0.0.0,tip=0.0.0.0,op=2,sha=00:00:00:00:00:00,tha=00:00:00:00:00:00))"
        );
        assert_eq!(
            between("in_port=1", "in_port=1,pkt_mark=2"),
            "set(skb_mark(0x2))"
        );
    }

    #[test]
    fn partly_written_field_has_a_mask() {
        let examined = ExaminedBits::from([(Field::Ipv4Dst, 0xff)]);
        let mut actions = Vec::new();
        let before = headers("tcp,nw_dst=10.0.0.1");
        before.commit(&headers("tcp,nw_dst=10.0.0.2"), &examined, &mut actions);
        assert_eq!(actions, ["set(ipv4(dst=0.0.0.2/0.0.0.255))"]);
    }

    #[test]
    fn labels_are_set_pushed_and_popped() {
        let one = "dl_type=0x8847,mpls_label=20,mpls_ttl=64,mpls_bos=1";
        assert_eq!(
            between("dl_type=0x8847,mpls_label=10,mpls_ttl=64,mpls_bos=1", one),
            "set(mpls(label=20,tc=0,ttl=64,bos=1))"
        );
        assert_eq!(
            between("dl_type=0x1234", one),
            "push_mpls(label=20,tc=0,ttl=64,bos=1,eth_type=0x8847)"
        );
        assert_eq!(between(one, "dl_type=0x0800"), "pop_mpls(eth_type=0x800)");
    }

    #[test]
    fn network_header_is_set_before_labels_are_pushed() {
        let matching: Match = "tcp,nw_ttl=64".parse().expect("a match");
        let registers = PipelineFields::new(PortNo(1));
        let frame = HeaderFields::of_match(&matching).frame(0);
        let before = OdpHeaders::read(&frame, &registers).expect("a frame");
        let matching: Match = "tcp,nw_ttl=63".parse().expect("a match");
        let mut bytes = HeaderFields::of_match(&matching).frame(0).bytes().to_vec();
        bytes[12..14].copy_from_slice(&[0x88, 0x47]);
        bytes.splice(14..14, [0, 0, 1, 63]);
        let after = OdpHeaders::read(&Frame::from_bytes(&bytes), &registers).expect("a frame");
        let (mut there, mut back) = (Vec::new(), Vec::new());
        before.commit(&after, &ExaminedBits::new(), &mut there);
        after.commit(&before, &ExaminedBits::new(), &mut back);
        assert_eq!(
            there,
            [
                "set(ipv4(ttl=63))",
                "push_mpls(label=0,tc=0,ttl=63,bos=1,eth_type=0x8847)"
            ]
        );
        assert_eq!(back, ["pop_mpls(eth_type=0x800)", "set(ipv4(ttl=64))"]);
    }
}
