//! Flow key: the values of all fields of one packet, from its parsed headers and its pipeline
//! fields. Open vSwitch calls it `struct flow`.
//!
//! A field of a header that the frame lacks is absent from the key, and no rule on that field
//! matches (OF 1.0.1, 5.2.3: a fragment has no ports). So is a field of a header that was not
//! parsed because no rule matches it.
//!
//! The interpreter reads flow keys. The fast path packs the same values into 64-bit words
//! (`fastpath`, packed keys).
//!
//! ```
//! use flow::{Field, FlowKey, PipelineFields};
//! use packet::{Depth, Headers, build::Stack};
//!
//! let stack: Stack = "eth / ipv4(dst=10.0.0.1) / udp(dst=53)".parse().unwrap();
//! let headers = Headers::parse(&stack.build(), Depth::Network).unwrap();
//!
//! let mut key = FlowKey::new();
//! key.fill(&headers, &PipelineFields::new(base::PortNo(3)));
//! assert_eq!(key.get(Field::InPort), Some(3));
//! assert_eq!(key.get(Field::Ipv4Dst), Some(0x0a00_0001));
//! assert_eq!(key.get(Field::UdpDst), None, "the transport header was not parsed");
//! ```

use packet::wire::icmpv6::{Icmpv6, LinkLayerOption};
use packet::wire::nsh::Nsh;
use packet::wire::{Fragment, IpProto};
use packet::{Depth, Frame, Headers, Link, Network, Transport};

use crate::connection_fields::ConnectionFields;
use crate::field::{Field, REGISTERS, VID_PRESENT, frag};
use crate::options::TunnelOptions;
use crate::pipeline_fields::PipelineFields;

/// The value of every field that the frame has.
#[derive(Clone, Debug)]
pub struct FlowKey {
    present: u128,
    values: [u128; FIELDS],
    options: TunnelOptions,
}

/// Number of ordinary fields, whose values are stored; tunnel options and views are not among them.
const FIELDS: usize = Field::FIRST_TUNNEL_OPTION as usize;

const _: () = assert!(
    FIELDS <= u128::BITS as usize,
    "a bit says that one is there"
);

impl FlowKey {
    /// The key of a frame without any field.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            present: 0,
            values: [0; FIELDS],
            options: TunnelOptions::new(),
        }
    }

    /// Returns the value of `field`, or `None` if the frame lacks the header. Of a tunnel option,
    /// the lowest bits; zero if it is absent.
    #[inline]
    #[must_use]
    pub fn get(&self, field: Field) -> Option<u128> {
        let number = field as usize;
        if number < FIELDS {
            return (self.present >> number & 1 == 1).then(|| self.values[number]);
        }
        self.made_of_others(field)
    }

    /// Returns the value of a tunnel option or a view, the last fields in order.
    fn made_of_others(&self, field: Field) -> Option<u128> {
        if field.option().is_some() {
            return Some(self.options.value(field).unwrap_or_default().low());
        }
        field.view()?.read(|part| self.get(part))
    }

    /// The options of the tunnel.
    #[must_use]
    pub const fn options(&self) -> &TunnelOptions {
        &self.options
    }

    /// Gives the frame these options of a tunnel.
    #[inline]
    pub fn set_options(&mut self, options: &TunnelOptions) {
        if !(self.options.is_empty() && options.is_empty()) {
            self.options.clone_from(options);
        }
    }

    /// Appends the fields and their values. Two keys append the same words only if they are equal.
    pub fn append_words(&self, words: &mut Vec<u64>) {
        append_halves(self.present, words);
        let mut left = self.present;
        while left != 0 {
            let number = left.trailing_zeros();
            left &= left - 1;
            let value = self.values[number as usize];
            if value != 0 {
                words.push(number.into());
                append_halves(value, words);
            }
        }
        for (field, value) in self.options.iter() {
            words.push(field as u64);
            for word in value.to_be_bytes().chunks_exact(8) {
                let bytes = word.iter().map(|byte| u64::from(*byte));
                words.push(bytes.fold(0, |sum, byte| sum << 8 | byte));
            }
        }
    }

    /// True for an Ethernet frame, false for a bare packet.
    #[must_use]
    pub fn is_ethernet(&self) -> bool {
        self.get(Field::PacketType).is_none_or(|kind| kind == 0)
    }

    /// Sets `field`, which must be neither a view nor a tunnel option.
    ///
    /// # Panics
    /// If it is one of these, or the value exceeds the field.
    pub fn set(&mut self, field: Field, value: u128) {
        assert!(
            value & !field.full_mask() == 0,
            "{field} has {} bits",
            field.info().bits
        );
        self.present |= 1 << field as u8;
        self.values[field as usize] = value;
    }

    /// Replaces the key by that of a frame, parsed as deep as it is well formed, but at most to
    /// `deepest`. Returns false if the frame is malformed at every depth.
    pub fn read(&mut self, frame: &Frame, deepest: Depth, registers: &PipelineFields) -> bool {
        let depths = Depth::ALL.into_iter().rev();
        let mut depths = depths.filter(|depth| *depth <= deepest);
        let headers = depths.find_map(|depth| Headers::parse(frame, depth).ok());
        if let Some(headers) = &headers {
            self.fill(headers, registers);
        }
        headers.is_some()
    }

    /// Replaces the key by that of a frame.
    #[inline]
    pub fn fill(&mut self, headers: &Headers, registers: &PipelineFields) {
        // Old tunnel options are overwritten below.
        self.present = 0;
        let port = u128::from(registers.in_port.0);
        self.put(Field::InPort, port);
        self.put(Field::InPhyPort, port);
        self.put(Field::PacketType, u128::from(registers.packet_type.0));
        self.registers(registers);
        if registers.packet_type.is_ethernet() {
            self.link(&headers.link);
        }
        self.network(&headers.network);
        self.transport(&headers.transport);
    }

    fn registers(&mut self, registers: &PipelineFields) {
        self.put(Field::Metadata, u128::from(registers.metadata));
        self.put(Field::TunnelId, u128::from(registers.tunnel_id));
        self.put(Field::TunSrc, u128::from(registers.tunnel_v4[0]));
        self.put(Field::TunDst, u128::from(registers.tunnel_v4[1]));
        self.put(Field::TunIpv6Src, registers.tunnel_v6[0]);
        self.put(Field::TunIpv6Dst, registers.tunnel_v6[1]);
        self.put(Field::TunGbpId, u128::from(registers.gbp_id));
        self.put(Field::TunGbpFlags, u128::from(registers.gbp_flags));
        self.put(Field::TunFlags, u128::from(registers.tunnel_flags));
        self.put(Field::TunErspanVer, u128::from(registers.erspan.version));
        self.put(Field::TunErspanIdx, u128::from(registers.erspan.index));
        self.put(Field::TunErspanDir, u128::from(registers.erspan.direction));
        self.put(Field::TunErspanHwid, u128::from(registers.erspan.hardware));
        self.put(Field::TunGtpuFlags, u128::from(registers.gtpu.flags));
        self.put(Field::TunGtpuMsgtype, u128::from(registers.gtpu.message));
        // Fields of Open vSwitch's data path, which does not exist here.
        for field in [Field::DpHash, Field::RecircId] {
            self.put(field, 0);
        }
        match registers.connection.as_deref() {
            Some(fields) => self.connection(fields),
            None => self.untracked(),
        }
        self.set_options(&registers.options);
        self.put(Field::PktMark, u128::from(registers.mark));
        self.put(Field::ConjId, u128::from(registers.conjunction));
        self.put(Field::ActsetOutput, u128::from(registers.set_output.0));
        let first = Field::Reg0 as usize;
        self.present |= ((1 << REGISTERS) - 1) << first;
        let places = &mut self.values[first..first + REGISTERS];
        for (place, register) in places.iter_mut().zip(registers.general) {
            *place = u128::from(register);
        }
    }

    fn connection(&mut self, fields: &ConnectionFields) {
        for field in ConnectionFields::ALL {
            self.put(field, fields.value(field).unwrap_or(0));
        }
    }

    /// Sets the fields of a connection for a packet that is not tracked.
    fn untracked(&mut self) {
        const FIRST: usize = Field::CtState as usize;
        const COUNT: usize = Field::CtTpDst as usize + 1 - FIRST;
        self.present |= ((1 << COUNT) - 1) << FIRST;
        self.values[FIRST..FIRST + COUNT].fill(0);
    }

    fn link(&mut self, link: &Link) {
        self.put(Field::EthDst, u128::from(link.dst.to_u64()));
        self.put(Field::EthSrc, u128::from(link.src.to_u64()));
        self.put(Field::EthType, u128::from(link.eth_type.0));
        // The VLAN id of an untagged frame is `OFPVID_NONE`.
        let vid = link.tag.map_or(0, |tag| tag.vid | VID_PRESENT);
        self.put(Field::VlanVid, u128::from(vid));
        if let Some(tag) = link.tag {
            self.put(Field::VlanPcp, u128::from(tag.pcp));
        }
    }

    fn network(&mut self, network: &Network) {
        match network {
            Network::None => {}
            Network::Mpls(entry) => {
                self.put(Field::MplsLabel, u128::from(entry.label));
                self.put(Field::MplsTc, u128::from(entry.tc));
                self.put(Field::MplsBos, u128::from(entry.bottom));
                self.put(Field::MplsTtl, u128::from(entry.ttl));
            }
            Network::Pbb(tag) => {
                self.put(Field::PbbIsid, u128::from(tag.isid));
                self.put(Field::PbbUca, u128::from(tag.uca));
            }
            Network::Nsh(header) => self.nsh(header),
            Network::Arp(arp) => {
                self.put(Field::ArpOp, u128::from(arp.op));
                if let Some(addresses) = &arp.addresses {
                    self.put(Field::ArpSpa, u128::from(addresses.spa.to_bits()));
                    self.put(Field::ArpTpa, u128::from(addresses.tpa.to_bits()));
                    self.put(Field::ArpSha, u128::from(addresses.sha.to_u64()));
                    self.put(Field::ArpTha, u128::from(addresses.tha.to_u64()));
                }
            }
            Network::Ipv4(ip) => {
                self.ip(ip.tos, ip.protocol, ip.ttl, ip.fragment);
                self.put(Field::Ipv4Src, u128::from(ip.src.to_bits()));
                self.put(Field::Ipv4Dst, u128::from(ip.dst.to_bits()));
            }
            Network::Ipv6(ip) => {
                self.ip(ip.traffic_class, ip.protocol, ip.hop_limit, ip.fragment);
                self.put(Field::Ipv6Src, ip.src.to_bits());
                self.put(Field::Ipv6Dst, ip.dst.to_bits());
                self.put(Field::Ipv6Flabel, u128::from(ip.flow_label));
                self.put(Field::Ipv6Exthdr, u128::from(ip.extensions.0));
            }
        }
    }

    fn nsh(&mut self, header: &Nsh) {
        self.put(Field::NshFlags, u128::from(header.flags));
        self.put(Field::NshTtl, u128::from(header.ttl));
        self.put(Field::NshMdtype, u128::from(header.md_type));
        self.put(Field::NshNp, u128::from(header.next));
        self.put(Field::NshSpi, u128::from(header.path));
        self.put(Field::NshSi, u128::from(header.index));
        let fields = [Field::NshC1, Field::NshC2, Field::NshC3, Field::NshC4];
        for (field, word) in fields.into_iter().zip(header.context) {
            self.put(field, u128::from(word));
        }
    }

    fn ip(&mut self, tos: u8, protocol: IpProto, ttl: u8, fragment: Fragment) {
        self.put(Field::IpDscp, u128::from(tos >> 2));
        self.put(Field::IpEcn, u128::from(tos & 3));
        self.put(Field::IpProto, u128::from(protocol.0));
        self.put(Field::IpTtl, u128::from(ttl));
        let bits = match fragment {
            Fragment::No => 0,
            Fragment::First => frag::ANY,
            Fragment::Later => frag::ANY | frag::LATER,
        };
        self.put(Field::IpFrag, u128::from(bits));
    }

    fn transport(&mut self, transport: &Transport) {
        match transport {
            Transport::None => {}
            Transport::Tcp(tcp) => {
                self.put(Field::TcpSrc, u128::from(tcp.src));
                self.put(Field::TcpDst, u128::from(tcp.dst));
                self.put(Field::TcpFlags, u128::from(tcp.flags));
            }
            Transport::Udp(udp) => {
                self.put(Field::UdpSrc, u128::from(udp.src));
                self.put(Field::UdpDst, u128::from(udp.dst));
            }
            Transport::Sctp(sctp) => {
                self.put(Field::SctpSrc, u128::from(sctp.src));
                self.put(Field::SctpDst, u128::from(sctp.dst));
            }
            Transport::Icmpv4(icmp) => {
                self.put(Field::Icmpv4Type, u128::from(icmp.kind));
                self.put(Field::Icmpv4Code, u128::from(icmp.code));
            }
            Transport::Icmpv6(icmp) => self.icmpv6(icmp),
        }
    }

    fn icmpv6(&mut self, icmp: &Icmpv6) {
        self.put(Field::Icmpv6Type, u128::from(icmp.kind));
        self.put(Field::Icmpv6Code, u128::from(icmp.code));
        if let Some(nd) = &icmp.nd {
            let address = |option: LinkLayerOption| u128::from(option.address.to_u64());
            self.put(Field::Ipv6NdTarget, nd.target.to_bits());
            self.put(Field::NdReserved, u128::from(nd.reserved));
            let option = nd.option.map_or(0, |option| option.kind);
            self.put(Field::NdOptionsType, u128::from(option));
            if let Some(sll) = nd.sll {
                self.put(Field::Ipv6NdSll, address(sll));
            }
            if let Some(tll) = nd.tll {
                self.put(Field::Ipv6NdTll, address(tll));
            }
        }
    }

    #[inline]
    fn put(&mut self, field: Field, value: u128) {
        debug_assert_eq!(value & !field.full_mask(), 0, "{field} is too wide");
        self.present |= 1 << field as u8;
        self.values[field as usize] = value;
    }

    /// Removes all fields, so that the key can be reused.
    pub fn clear(&mut self) {
        self.present = 0;
        self.options = TunnelOptions::new();
    }
}

impl Default for FlowKey {
    fn default() -> Self {
        Self::new()
    }
}

/// Appends the lower and the upper half of a value.
fn append_halves(value: u128, words: &mut Vec<u64>) {
    const LOW: u128 = u64::MAX as u128;
    let halves = [value & LOW, value >> u64::BITS];
    words.extend(halves.map(|half| u64::try_from(half).expect("a half has 64 bits")));
}

#[cfg(test)]
mod tests {
    use base::PortNo;
    use packet::Depth;
    use packet::build::Stack;

    use super::*;

    fn key(text: &str, depth: Depth) -> FlowKey {
        let frame = text.parse::<Stack>().expect("a stack").build();
        let headers = Headers::parse(&frame, depth).expect("well formed");
        let mut key = FlowKey::new();
        key.set(Field::ArpOp, 7);
        let registers = PipelineFields {
            metadata: 9,
            ..PipelineFields::new(PortNo(3))
        };
        key.fill(&headers, &registers);
        key
    }

    /// Returns the fields of the key and their values, in hexadecimal.
    fn fields(text: &str, depth: Depth) -> String {
        let key = key(text, depth);
        let of_frame = Field::all().filter(|row| row.field <= Field::Ipv6NdTll);
        let known = of_frame.filter_map(|row| Some((row.name, key.get(row.field)?)));
        let parts = known
            .skip(5)
            .map(|(name, value)| format!("{name}={value:x}"));
        parts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn flow_key_contains_pipeline_fields() {
        let key = key("eth", Depth::Link);
        assert_eq!(key.get(Field::InPort), Some(3));
        assert_eq!(key.get(Field::InPhyPort), Some(3));
        assert_eq!(key.get(Field::Metadata), Some(9));
        assert_eq!(key.get(Field::TunnelId), Some(0));
        assert_eq!(key.get(Field::ArpOp), None);
    }

    #[test]
    fn flow_key_contains_only_parsed_fields() {
        let text = "eth / vlan(vid=5,pcp=3) / ipv4(tos=0xb9,ttl=9) / tcp(flags=S)";
        let link = "eth_dst=20000000002 eth_src=20000000001 eth_type=800 vlan_vid=1005 vlan_pcp=3";
        let network = " ip_dscp=2e ip_ecn=1 ip_proto=6 nw_ttl=9 ip_frag=0 \
                       ipv4_src=a000001 ipv4_dst=a000002";
        let transport = " tcp_src=3e8 tcp_dst=50 tcp_flags=2";
        assert_eq!(fields(text, Depth::Link), link);
        assert_eq!(fields(text, Depth::Network), [link, network].concat());
        assert_eq!(
            fields(text, Depth::Transport),
            [link, network, transport].concat()
        );
    }

    #[test]
    fn frames_exist_for_all_ordinary_fields() {
        let mut seen = FlowKey::new();
        for text in [
            "eth / vlan / arp",
            "eth / mpls",
            "eth / pbb / eth / ipv4 / tcp",
            "eth / nsh / eth / ipv4",
            "eth / ipv4 / tcp",
            "eth / ipv4 / udp",
            "eth / ipv6 / sctp",
            "eth / ipv4 / icmp",
            "eth / ipv6 / nd(sll=02:00:00:00:00:01)",
            "eth / ipv6 / nd(type=136,tll=02:00:00:00:00:01)",
        ] {
            seen.present |= key(text, Depth::Transport).present;
        }
        for row in Field::all() {
            let seen = seen.present.checked_shr(row.field as u32).unwrap_or(0) & 1 == 1;
            assert_eq!(seen, row.field < Field::FIRST_TUNNEL_OPTION, "{}", row.name);
        }
    }

    #[test]
    fn views_are_computed_from_their_fields() {
        let mut key = key("eth / vlan(vid=5,pcp=3) / ipv4(tos=0xb9)", Depth::Network);
        for (register, value) in [(4, 0x11), (5, 0x22), (7, 0x33)] {
            key.set(Field::from_register(register), value);
        }
        assert_eq!(key.get(Field::Xreg2), Some(0x11_0000_0022));
        assert_eq!(
            key.get(Field::Xxreg1),
            Some(0x11_0000_0022_0000_0000_0000_0033)
        );
        assert_eq!(key.get(Field::VlanTci), Some(0x7005));
        assert_eq!(key.get(Field::IpTos), Some(0xb8));
        assert_eq!(key.get(Field::NxInPort), Some(3));
    }

    #[test]
    fn first_fragment_has_ports_and_later_has_none() {
        let ports = |text| key(text, Depth::Transport).get(Field::UdpDst);
        let frag = |text| key(text, Depth::Transport).get(Field::IpFrag);
        let (first, later) = (
            "eth / ipv4(mf) / udp / data(8)",
            "eth / ipv4(offset=1,proto=17) / data(8)",
        );
        assert_eq!((frag(first), ports(first)), (Some(1), Some(2000)));
        assert_eq!((frag(later), ports(later)), (Some(3), None));
    }

    #[test]
    fn words_of_keys_differ_with_every_value() {
        let words = |text| {
            let mut words = Vec::new();
            key(text, Depth::Transport).append_words(&mut words);
            words
        };
        let texts = [
            "eth / ipv4 / udp(dst=53)",
            "eth / ipv4 / udp(dst=54)",
            "eth / ipv4(ttl=9) / udp(dst=53)",
            "eth / ipv6 / udp(dst=53)",
            "eth / ipv4 / tcp(dst=53)",
        ];
        for (place, text) in texts.iter().enumerate() {
            assert_eq!(words(text), words(text));
            for other in &texts[place + 1..] {
                assert_ne!(words(text), words(other), "{text} {other}");
            }
        }
        let (mut low, mut high) = (FlowKey::new(), FlowKey::new());
        low.set(Field::Ipv6Src, 7);
        high.set(Field::Ipv6Src, 7 << 64);
        let (mut one, mut two) = (Vec::new(), Vec::new());
        low.append_words(&mut one);
        high.append_words(&mut two);
        assert_ne!(one, two);
    }
}
