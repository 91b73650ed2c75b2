//! TCP, UDP, SCTP, ICMP and ICMPv6.

use std::net::Ipv6Addr;

use super::Packet;
use super::checksum_update::Coverage;
use crate::MacAddr;
use crate::headers::Transport;
use crate::wire::icmpv6::{LinkLayerOption, Nd};
use crate::wire::{icmpv4, icmpv6, tcp};

impl Packet<'_> {
    /// Sets the source port of TCP, UDP or SCTP.
    pub fn set_port_src(&mut self, port: u16) {
        let src = match &mut self.headers.transport {
            Transport::Tcp(header) => &mut header.src,
            Transport::Udp(header) => &mut header.src,
            Transport::Sctp(header) => &mut header.src,
            Transport::None | Transport::Icmpv4(_) | Transport::Icmpv6(_) => return,
        };
        *src = port;
        // The three have their ports in the same places.
        self.write_transport(tcp::SRC, port.to_be_bytes());
    }

    /// Sets the destination port of TCP, UDP or SCTP.
    pub fn set_port_dst(&mut self, port: u16) {
        let dst = match &mut self.headers.transport {
            Transport::Tcp(header) => &mut header.dst,
            Transport::Udp(header) => &mut header.dst,
            Transport::Sctp(header) => &mut header.dst,
            Transport::None | Transport::Icmpv4(_) | Transport::Icmpv6(_) => return,
        };
        *dst = port;
        self.write_transport(tcp::DST, port.to_be_bytes());
    }

    /// Sets the type of ICMP.
    pub fn set_icmpv4_type(&mut self, kind: u8) {
        if let Transport::Icmpv4(header) = &mut self.headers.transport {
            header.kind = kind;
            self.write_transport(icmpv4::TYPE, [kind]);
        }
    }

    /// Sets the code of ICMP.
    pub fn set_icmpv4_code(&mut self, code: u8) {
        if let Transport::Icmpv4(header) = &mut self.headers.transport {
            header.code = code;
            self.write_transport(icmpv4::CODE, [code]);
        }
    }

    /// Sets the type of ICMPv6. If the message is then neighbour discovery but malformed, its
    /// fields count as absent: a controller may set any type.
    pub fn set_icmpv6_type(&mut self, kind: u8) {
        if let Transport::Icmpv6(header) = self.headers.transport {
            self.write_transport(icmpv6::TYPE, [kind]);
            if self.headers.read_transport(self.frame.bytes()).is_err() {
                self.headers.transport = Transport::Icmpv6(icmpv6::Icmpv6 {
                    kind,
                    nd: None,
                    ..header
                });
            }
        }
    }

    /// Sets the four bytes before the target of a neighbour solicitation or advertisement.
    pub fn set_nd_reserved(&mut self, reserved: u32) {
        if let Some(nd) = self.nd() {
            nd.reserved = reserved;
            self.write_transport(icmpv6::RESERVED, reserved.to_be_bytes());
        }
    }

    /// Sets the type of the first option with an Ethernet address: the source's or the target's.
    pub fn set_nd_option_type(&mut self, kind: u8) {
        if let Some(option) = self.nd().and_then(|nd| nd.option) {
            self.write_transport(option.at, [kind]);
            // The type of an option cannot make the message malformed.
            let _ = self.headers.read_transport(self.frame.bytes());
        }
    }

    /// Sets the code of ICMPv6.
    pub fn set_icmpv6_code(&mut self, code: u8) {
        if let Transport::Icmpv6(header) = &mut self.headers.transport {
            header.code = code;
            self.write_transport(icmpv6::CODE, [code]);
        }
    }

    /// Sets the target of a neighbour solicitation or advertisement.
    pub fn set_nd_target(&mut self, address: Ipv6Addr) {
        if let Some(nd) = self.nd() {
            nd.target = address;
            self.write_transport(icmpv6::TARGET, address.octets());
        }
    }

    /// Sets the source link-layer address of a neighbour solicitation.
    pub fn set_nd_sll(&mut self, address: MacAddr) {
        self.set_link_layer(address, |nd| nd.sll.as_mut());
    }

    /// Sets the target link-layer address of a neighbour advertisement.
    pub fn set_nd_tll(&mut self, address: MacAddr) {
        self.set_link_layer(address, |nd| nd.tll.as_mut());
    }

    fn set_link_layer(
        &mut self,
        address: MacAddr,
        option: impl FnOnce(&mut Nd) -> Option<&mut LinkLayerOption>,
    ) {
        if let Some(option) = self.nd().and_then(option) {
            option.address = address;
            let at = option.at;
            self.write_transport(at, address.0);
        }
    }

    fn nd(&mut self) -> Option<&mut Nd> {
        match &mut self.headers.transport {
            Transport::Icmpv6(header) => header.nd.as_mut(),
            _ => None,
        }
    }

    pub(super) fn write_transport<const N: usize>(&mut self, offset: usize, new: [u8; N]) {
        if let Some(upper) = self.headers.upper {
            self.write(upper.at + offset, new, Coverage::Transport);
        }
    }
}
