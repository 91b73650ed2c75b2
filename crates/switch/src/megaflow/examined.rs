//! The bits of a packet that its processing examines: by lookups, by actions that read or write
//! them, and by `NORMAL`, groups and ports.

mod headers;
mod punt;
mod tunnel;

use flow::field::Prerequisite;
use flow::{Action, Extension, Field, FlowKey, HashFields, LearnSource, LearnSpec, Subfield};
use packet::Frame;

use super::key::{KeyBits, KeyField, is_arp, is_ip, is_mpls};
use super::staged_classifier::{ClassifiedPacket, StagedClassifier};
pub(crate) use tunnel::OuterHeader;
pub(super) use tunnel::is_tunneled;

/// The presence bit and the id of a tag.
const VID_BITS: u128 = 0x1fff;

/// The presence bit and the priority of a tag.
const PCP_BITS: u128 = 0xf000;

/// The presence bit of a tag.
const TAG_PRESENT: u128 = 0x1000;

/// The bottom-of-stack bit of an MPLS entry.
const BOTTOM: u128 = 1 << 8;

/// The TTL of an MPLS entry.
const MPLS_TTL: u128 = 0xff;

/// The DSCP in a ToS byte.
const DSCP: u128 = 0xfc;

/// The ECN in a ToS byte.
const ECN: u128 = 3;

const TCP: u128 = 6;
const UDP: u128 = 17;
const SCTP: u128 = 132;
const ICMP: u128 = 1;
const IGMP: u128 = 2;
const ICMPV6: u128 = 58;

/// The positions of MPLS entries, outermost first.
const LABELS: [KeyField; 3] = [KeyField::MPLS_1, KeyField::MPLS_2, KeyField::MPLS_3];

/// The bits of a packet that were examined so far.
#[derive(Clone, Debug)]
pub struct MegaflowBuilder {
    /// The packet on arrival at its first bridge.
    first: KeyBits,
    /// The packet as it is now.
    current: KeyBits,
    mask: KeyBits,
    /// The number of values on the stack of `push` and `pop`.
    stacked: usize,
}

/// The settings of a bridge that `NORMAL` examines packets for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NormalChecks {
    /// The bridge snoops multicast memberships.
    pub(crate) snoops: bool,
}

impl MegaflowBuilder {
    /// Returns the bits that are always examined: port, packet type, EtherType, recirculation, and
    /// the kind of fragment of an IP packet.
    pub(crate) fn new(key: &FlowKey, frame: &Frame) -> Self {
        let mut first = KeyBits::of_key(key);
        first.add_inner_headers(frame);
        let mut mask = KeyBits::ZERO;
        mask.set(KeyField::PACKET_TYPE, u128::from(u32::MAX));
        mask.set(KeyField::IN_PORT, u128::from(u32::MAX));
        mask.set(KeyField::ETH_TYPE, 0xffff);
        mask.set(KeyField::RECIRC_ID, u128::from(u32::MAX));
        if is_ip(first.get(KeyField::ETH_TYPE)) {
            mask.set(KeyField::NW_FRAG, 3);
        }
        let mut examined = Self {
            current: first.clone(),
            first,
            mask,
            stacked: 0,
        };
        examined.select_tunnel();
        examined
    }

    /// Follows the packet to another bridge, where it arrives as `frame`.
    pub(crate) fn enter(&mut self, key: &FlowKey, frame: &Frame) {
        self.current = KeyBits::of_key(key);
        self.current.add_inner_headers(frame);
        self.stacked = 0;
    }

    /// Records the lookup of the packet with these fields.
    pub(super) fn look_up(&mut self, key: &FlowKey, classifier: &StagedClassifier) {
        let inner = [
            KeyField::VLAN_TPID,
            KeyField::VLAN_TCI_2,
            KeyField::VLAN_TPID_2,
            KeyField::MPLS_2,
            KeyField::MPLS_3,
        ];
        let inner = inner.map(|at| (at, self.current.get(at)));
        self.current = KeyBits::of_key(key);
        for (at, value) in inner {
            self.current.set(at, value);
        }
        let mut packet = ClassifiedPacket {
            bits: &mut self.current,
            options: key.options(),
        };
        classifier.look_up(&mut packet, &mut self.mask);
    }

    /// Records an action.
    pub(crate) fn execute(&mut self, action: &Action) {
        let eth_type = self.current.get(KeyField::ETH_TYPE);
        match action {
            Action::Enqueue { .. }
            | Action::SetQueue(_)
            | Action::Extended(Extension::PopQueue) => {
                self.examine(KeyField::SKB_PRIORITY, u128::from(u32::MAX));
            }
            Action::SetField { field, mask, .. } => self.set_field(*field, *mask),
            Action::SetVlanVid(_) => self.examine(KeyField::VLAN_TCI, VID_BITS),
            Action::SetVlanPcp(_) => self.examine(KeyField::VLAN_TCI, PCP_BITS),
            Action::SetNwSrc(_) if eth_type == 0x0800 => self.set_ip(KeyField::NW_SRC, u128::MAX),
            Action::SetNwDst(_) if eth_type == 0x0800 => self.set_ip(KeyField::NW_DST, u128::MAX),
            Action::SetNwTos(_) if is_ip(eth_type) => self.set_ip(KeyField::NW_TOS, DSCP),
            Action::SetIpTtl(_) if is_ip(eth_type) => self.set_ip(KeyField::NW_TTL, u128::MAX),
            Action::DecIpTtl | Action::Extended(Extension::DecTtl(_)) => {
                self.set_ip(KeyField::NW_TTL, u128::MAX);
            }
            Action::SetTpSrc(_) if self.has_ports() => self.set_ip(KeyField::TP_SRC, u128::MAX),
            Action::SetTpDst(_) if self.has_ports() => self.set_ip(KeyField::TP_DST, u128::MAX),
            Action::PushVlan(tpid) => self.push_vlan(*tpid),
            Action::PopVlan => self.pop_vlan(),
            Action::PushMpls(eth_type) => self.push_mpls(*eth_type),
            Action::PopMpls(eth_type) => self.pop_mpls(*eth_type),
            Action::SetMplsTtl(_) | Action::DecMplsTtl if is_mpls(eth_type) => {
                self.examine(KeyField::MPLS_1, MPLS_TTL);
            }
            Action::CopyTtlOut | Action::CopyTtlIn => {
                self.examine(KeyField::MPLS_1, MPLS_TTL);
                self.examine(KeyField::MPLS_2, MPLS_TTL);
                self.examine(KeyField::NW_TTL, u128::MAX);
            }
            Action::Extended(extension) => self.extend(extension),
            _ => {}
        }
    }

    fn extend(&mut self, extension: &Extension) {
        match extension {
            Extension::Load { to, .. } if to.is_tunnel_option() => self.examine_option(*to),
            Extension::SetOption(term) => self.mask.add_option(term.field, term.mask),
            Extension::Load { to, .. } => self.set_field(to.field(), to.mask()),
            Extension::Move { from, to }
                if self.has_prerequisite(to.field()) && self.has_prerequisite(from.field()) =>
            {
                self.examine_bits(*from);
                self.examine_bits(*to);
            }
            Extension::Push(from) => {
                self.examine_bits(*from);
                self.stacked += 1;
            }
            Extension::OutputReg { from, .. } => self.examine_bits(*from),
            Extension::Sample(sample) => sample.sources().for_each(|part| self.examine_bits(part)),
            Extension::Pop(to) if self.stacked > 0 => {
                self.stacked -= 1;
                if self.has_prerequisite(to.field()) {
                    self.examine_bits(*to);
                }
            }
            Extension::Learn(learn) => {
                for spec in &learn.specs {
                    match spec {
                        LearnSpec::Match {
                            from: LearnSource::Subfield(from),
                            ..
                        }
                        | LearnSpec::Load {
                            from: LearnSource::Subfield(from),
                            ..
                        }
                        | LearnSpec::Output(from) => self.examine_bits(*from),
                        LearnSpec::Match { .. } | LearnSpec::Load { .. } => {}
                    }
                }
            }
            Extension::FinTimeout { .. } => self.examine(KeyField::NW_PROTO, u128::MAX),
            Extension::Multipath(multipath) => self.hash(multipath.fields),
            Extension::Bundle(bundle) => self.hash(bundle.fields),
            Extension::DecNshTtl => self.examine(KeyField::NSH_TTL, u128::MAX),
            Extension::Decap { .. } if is_mpls(self.current.get(KeyField::ETH_TYPE)) => {
                self.pop_mpls(0);
            }
            _ => {}
        }
    }

    /// Records the selection of a group's bucket: by these fields, or by the default hash.
    pub(crate) fn select_bucket(&mut self, fields: &[(Field, u128)]) {
        if fields.is_empty() {
            return self.hash(HashFields::SymmetricL4);
        }
        for (field, mask) in fields {
            if self.has_prerequisite(*field) {
                self.examine_field(*field, *mask);
            }
        }
    }

    /// Records `NORMAL`, for a packet that the ingress port accepts if `is_accepted`.
    pub(crate) fn forward_normally(&mut self, checks: NormalChecks, is_accepted: bool) {
        self.examine(KeyField::ETH_SRC, u128::MAX);
        self.examine(KeyField::ETH_DST, u128::MAX);
        self.examine(KeyField::VLAN_TCI, VID_BITS);
        if !is_accepted {
            return;
        }
        let (eth_type, dst) = (
            self.current.get(KeyField::ETH_TYPE),
            self.current.get(KeyField::ETH_DST),
        );
        let is_broadcast = dst == 0xffff_ffff_ffff;
        if eth_type == 0x0806 && is_broadcast {
            self.examine(KeyField::NW_PROTO, u128::MAX);
            if self.current.get(KeyField::NW_PROTO) == 1 {
                self.examine(KeyField::NW_SRC, u128::MAX);
                self.examine(KeyField::NW_DST, u128::MAX);
            }
        }
        let is_multicast = dst >> 40 & 1 == 1;
        if checks.snoops && is_multicast && !is_broadcast && is_ip(eth_type) {
            self.snoop(eth_type);
        }
    }

    /// Records the checks of a multicast packet in a bridge that snoops.
    fn snoop(&mut self, eth_type: u128) {
        self.examine(KeyField::NW_PROTO, u128::MAX);
        let protocol = self.current.get(KeyField::NW_PROTO);
        match (eth_type, protocol) {
            (0x0800, IGMP) => self.examine(KeyField::TP_SRC, 0xffff),
            (0x0800, _) => self.examine(KeyField::NW_DST, u128::MAX),
            (_, ICMPV6) => self.examine(KeyField::TP_SRC, 0xffff),
            _ => self.examine(KeyField::IPV6_DST, u128::MAX),
        }
    }

    /// Records a mirror that selects VLANs.
    pub(crate) fn select_by_vlan(&mut self) {
        self.examine(KeyField::VLAN_TCI, VID_BITS);
    }

    /// Records the check for messages of a spanning tree.
    pub(crate) fn check_for_bpdu(&mut self) {
        self.examine(KeyField::ETH_DST, u128::MAX);
    }

    /// Returns the packet on arrival, and the examined bits of its headers: registers do not count,
    /// nor headers that the packet did not have.
    pub(super) fn finish(&self) -> (KeyBits, KeyBits) {
        let (first, mut mask) = (self.first.clone(), self.mask.clone());
        for field in KeyField::registers() {
            mask.set(field, 0);
        }
        for field in [
            KeyField::METADATA,
            KeyField::CONJ_ID,
            KeyField::ACTSET_OUTPUT,
            KeyField::IPV6_EXTENSIONS,
        ] {
            mask.set(field, 0);
        }
        if first.get(KeyField::PACKET_TYPE) != 0 {
            mask.set(KeyField::ETH_DST, 0);
            mask.set(KeyField::ETH_SRC, 0);
        }
        let (eth_type, protocol) = (first.get(KeyField::ETH_TYPE), first.get(KeyField::NW_PROTO));
        let is_icmp =
            (eth_type, protocol) == (0x0800, ICMP) || (eth_type, protocol) == (0x86dd, ICMPV6);
        let is_later = first.get(KeyField::NW_FRAG) & 2 != 0;
        for field in [KeyField::TP_SRC, KeyField::TP_DST] {
            match (is_icmp, is_later) {
                (_, true) => mask.set(field, 0),
                (true, _) => mask.set(field, mask.get(field) & 0xff),
                _ => {}
            }
        }
        if !is_mpls(eth_type) {
            LABELS.into_iter().for_each(|field| mask.set(field, 0));
        }
        for (tci, tpid) in [
            (KeyField::VLAN_TCI, KeyField::VLAN_TPID),
            (KeyField::VLAN_TCI_2, KeyField::VLAN_TPID_2),
        ] {
            if first.get(tci) == 0 {
                mask.set(tci, 0);
                mask.set(tpid, 0);
            } else if mask.get(tci) != 0 {
                mask.add(tci, TAG_PRESENT);
            }
        }
        if !is_tunneled(&first) {
            for field in KeyField::tunnel() {
                mask.set(field, 0);
            }
            mask.clear_options();
        }
        (first, mask)
    }

    /// Adds bits to the mask, at most all of the field.
    fn examine(&mut self, at: KeyField, bits: u128) {
        self.mask.add(at, bits & width_mask(at));
    }

    fn set_ip(&mut self, at: KeyField, bits: u128) {
        self.examine(at, bits);
        self.examine(KeyField::NW_PROTO, u128::MAX);
    }

    fn examine_bits(&mut self, bits: Subfield) {
        if bits.is_tunnel_option() {
            return self.examine_option(bits);
        }
        self.examine_field(bits.field(), bits.mask());
    }

    fn examine_field(&mut self, field: Field, mask: u128) {
        match (field, KeyField::of(field)) {
            (Field::VlanTci, _) => self.examine(KeyField::VLAN_TCI, mask),
            (Field::IpTos, _) => self.examine(KeyField::NW_TOS, mask),
            (_, Some((at, shift))) => self.examine(at, mask << shift),
            // A view, which repeats another field.
            (_, None) => {}
        }
    }

    /// Records a write of these bits, if the packet has the field.
    fn set_field(&mut self, field: Field, mask: u128) {
        if !self.has_prerequisite(field) {
            return;
        }
        let eth_type = self.current.get(KeyField::ETH_TYPE);
        let is_of_ip = matches!(
            field,
            Field::Ipv4Src
                | Field::Ipv4Dst
                | Field::Ipv6Src
                | Field::Ipv6Dst
                | Field::Ipv6Flabel
                | Field::IpDscp
                | Field::IpTos
                | Field::IpEcn
                | Field::IpTtl
        );
        let is_of_arp = matches!(
            field,
            Field::ArpOp | Field::ArpSha | Field::ArpTha | Field::ArpSpa | Field::ArpTpa
        );
        if is_of_ip && is_ip(eth_type) || is_of_arp && is_arp(eth_type) {
            self.examine(KeyField::NW_PROTO, u128::MAX);
        }
        self.examine_field(field, mask);
    }

    fn has_ports(&self) -> bool {
        let is_later = self.current.get(KeyField::NW_FRAG) & 2 != 0;
        is_ip(self.current.get(KeyField::ETH_TYPE)) && !is_later
    }

    /// Returns true if the packet has the headers of the field, and records the check.
    fn has_prerequisite(&mut self, field: Field) -> bool {
        let eth_type = self.current.get(KeyField::ETH_TYPE);
        let prerequisite = field.info().prerequisite;
        let transport = match prerequisite {
            Prerequisite::Tcp => TCP,
            Prerequisite::Udp => UDP,
            Prerequisite::Sctp => SCTP,
            Prerequisite::Icmpv4 => ICMP,
            Prerequisite::Icmpv6
            | Prerequisite::Nd
            | Prerequisite::NdSolicitation
            | Prerequisite::NdAdvertisement => ICMPV6,
            Prerequisite::Ipv4 => return eth_type == 0x0800,
            Prerequisite::Ipv6 => return eth_type == 0x86dd,
            Prerequisite::Ip => return is_ip(eth_type),
            Prerequisite::Arp => return is_arp(eth_type),
            Prerequisite::Mpls => return is_mpls(eth_type),
            Prerequisite::VlanTag => {
                self.examine(KeyField::VLAN_TCI, TAG_PRESENT);
                return self.current.get(KeyField::VLAN_TCI) & TAG_PRESENT != 0;
            }
            Prerequisite::None | Prerequisite::InPort | Prerequisite::Pbb | Prerequisite::Nsh => {
                return true;
            }
        };
        let has_version = match transport {
            ICMP => eth_type == 0x0800,
            ICMPV6 => eth_type == 0x86dd,
            _ => is_ip(eth_type),
        };
        if !has_version {
            return false;
        }
        self.examine(KeyField::NW_PROTO, u128::MAX);
        let is_later = self.current.get(KeyField::NW_FRAG) & 2 != 0;
        let is_transport = self.current.get(KeyField::NW_PROTO) == transport && !is_later;
        let is_discovery = matches!(
            prerequisite,
            Prerequisite::Nd | Prerequisite::NdSolicitation | Prerequisite::NdAdvertisement
        );
        if is_transport && is_discovery {
            self.examine(KeyField::TP_DST, 0xffff);
            self.examine(KeyField::TP_SRC, 0xffff);
        }
        is_transport
    }
}

/// Returns all bits of a position.
pub(super) fn width_mask(at: KeyField) -> u128 {
    u128::MAX >> (u128::BITS - at.bits())
}
