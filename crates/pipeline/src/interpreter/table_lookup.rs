//! The lookup of a packet in a table: by the engine, or by a search where the engine knows only some
//! rules or none.

use std::net::{Ipv4Addr, Ipv6Addr};

use base::TableId;
use flow::{ConnectionFields, Field};
use packet::wire::IpProto;
use packet::wire::icmpv4::Icmpv4;
use packet::wire::icmpv6::Icmpv6;
use packet::wire::sctp::Sctp;
use packet::wire::tcp::Tcp;
use packet::wire::udp::Udp;
use packet::{Headers, Network, Packet, Transport};

use super::{Execution, conjunction};
use crate::lookup::LookupResult;
use crate::pipeline::TableMiss;
use crate::rules::Rule;

impl<'a> Execution<'a> {
    /// Looks the packet up in the current table, and after a miss in the next ones, if the tables
    /// are configured so. A resubmission looks up in its table only, as in Open vSwitch.
    pub(crate) fn look_up_onward(&mut self, packet: &Packet<'_>) -> Option<&'a Rule> {
        let mut found = self.look_up(packet);
        while found.is_none()
            && self.pipeline.any_table_continues()
            && self.pipeline.table_miss(self.table) == TableMiss::Continue
            && self.table < TableId::LAST
        {
            self.table = TableId(self.table.0 + 1);
            found = self.look_up(packet);
        }
        found
    }

    /// Returns the rule of the current table that the packet matches.
    pub(crate) fn look_up(&mut self, packet: &Packet<'_>) -> Option<&'a Rule> {
        let hidden = packet.headers().for_lookup(self.pipeline.fragment_ports());
        self.look_up_by(packet, hidden)
    }

    /// Returns the rule of the current table that the packet matches with the addresses, ports and
    /// protocol of its connection's original direction, which has its own meanwhile.
    pub(crate) fn look_up_connection(&mut self, packet: &Packet<'_>) -> Option<&'a Rule> {
        let connection = self.registers.connection.clone();
        let mut swapped = connection.as_deref().copied().unwrap_or_default();
        let headers = swap_tuple(packet.headers(), &mut swapped);
        if connection.is_some() {
            self.registers.connection = Some(Box::new(swapped));
        }
        self.key_is_stale = true;
        let found = self.look_up_by(packet, Some(headers));
        self.registers.connection = connection;
        self.key_is_stale = true;
        found
    }

    /// Returns the rule of the current table that the packet matches with the headers of a lookup,
    /// where they differ from its own.
    fn look_up_by(&mut self, packet: &Packet<'_>, hidden: Option<Headers>) -> Option<&'a Rule> {
        self.clear_conjunction();
        self.sync_registers();
        let lookup = self.lookup;
        let headers = hidden.as_ref().unwrap_or_else(|| packet.headers());
        // Engines look up Ethernet frames only.
        let found = match self.registers.need_interpreter() {
            true => LookupResult::Unknown,
            false => lookup.look_up(self.table, headers, &self.registers),
        };
        let found = match found {
            LookupResult::Rule(found) => found,
            LookupResult::Conjunction(rule, id) => {
                self.set_conjunction(id);
                Some(rule)
            }
            LookupResult::Partial {
                compiled,
                uncompiled,
            } => {
                self.fill_search_key(packet, hidden.as_ref());
                let mut before = uncompiled
                    .iter()
                    .take_while(|rule| compiled.is_none_or(|compiled| rule.precedes(compiled)));
                let found = before.find(|rule| rule.matching().accepts(self.key));
                found.map(AsRef::as_ref).or(compiled)
            }
            LookupResult::Unknown => self.search(packet, hidden.as_ref()),
        };
        let (looked_up, matched) = self.pipeline.table_counters(self.table);
        looked_up.add(self.writer, self.weight, self.now);
        if let Some(rule) = found {
            matched.add(self.writer, self.weight, self.now);
            rule.counters.add(self.writer, self.weight, self.now);
        }
        self.trace.on_lookup(self.table, found);
        found
    }

    /// Searches the table in priority order, by the headers of a lookup where they differ from
    /// those of the packet.
    fn search(&mut self, packet: &Packet<'_>, hidden: Option<&Headers>) -> Option<&'a Rule> {
        self.fill_search_key(packet, hidden);
        let table = self.pipeline.table(self.table)?;
        let found = if table.has_clauses() {
            let (found, conjunction) = conjunction::look_up(table, self.key);
            self.set_conjunction(conjunction);
            found
        } else {
            table.lookup(self.key)
        };
        found.map(AsRef::as_ref)
    }

    /// Fills the key with the headers of a lookup.
    fn fill_search_key(&mut self, packet: &Packet<'_>, hidden: Option<&Headers>) {
        self.refresh(packet);
        if let Some(headers) = hidden {
            self.key.fill(headers, &self.registers);
            self.key_is_stale = true;
        }
        self.trace.on_search(self.table, self.key);
    }

    fn set_conjunction(&mut self, id: u32) {
        self.registers.conjunction = id;
        self.key.set(Field::ConjId, id.into());
    }

    /// Clears the conjunction of the previous lookup.
    fn clear_conjunction(&mut self) {
        if self.registers.conjunction != 0 {
            self.set_conjunction(0);
        }
    }
}

/// Exchanges addresses, ports and protocol of an IP packet with those of its connection, and returns
/// the headers.
fn swap_tuple(headers: &Headers, connection: &mut ConnectionFields) -> Headers {
    let mut headers = *headers;
    let ports = ports_of(&headers.transport);
    let protocol = IpProto(connection.protocol);
    match &mut headers.network {
        Network::Ipv4(ip) => {
            let [src, dst] = connection.v4.map(Ipv4Addr::from_bits);
            connection.v4 = [ip.src, ip.dst].map(Ipv4Addr::to_bits);
            connection.protocol = ip.protocol.0;
            (ip.src, ip.dst, ip.protocol) = (src, dst, protocol);
        }
        Network::Ipv6(ip) => {
            let [src, dst] = connection.v6.map(Ipv6Addr::from_bits);
            connection.v6 = [ip.src, ip.dst].map(Ipv6Addr::to_bits);
            connection.protocol = ip.protocol.0;
            (ip.src, ip.dst, ip.protocol) = (src, dst, protocol);
        }
        _ => return headers,
    }
    let [src, dst] = std::mem::replace(&mut connection.ports, ports);
    // Type and code of ICMP are in the place of the ports.
    let ([_, kind], [_, code]) = (src.to_be_bytes(), dst.to_be_bytes());
    headers.transport = match (protocol, headers.transport) {
        (IpProto::TCP, Transport::Tcp(tcp)) => Transport::Tcp(Tcp { src, dst, ..tcp }),
        (IpProto::TCP, _) => Transport::Tcp(Tcp { src, dst, flags: 0 }),
        (IpProto::UDP, _) => Transport::Udp(Udp { src, dst }),
        (IpProto::SCTP, _) => Transport::Sctp(Sctp { src, dst }),
        (IpProto::ICMPV4, _) => Transport::Icmpv4(Icmpv4 { kind, code }),
        (IpProto::ICMPV6, of_packet) => {
            let nd = match of_packet {
                Transport::Icmpv6(icmp) => icmp.nd,
                _ => None,
            };
            Transport::Icmpv6(Icmpv6 { kind, code, nd })
        }
        _ => Transport::None,
    };
    headers
}

/// Returns the ports, or type and code of ICMP; zero without a transport header.
fn ports_of(transport: &Transport) -> [u16; 2] {
    match transport {
        Transport::None => [0; 2],
        Transport::Tcp(tcp) => [tcp.src, tcp.dst],
        Transport::Udp(udp) => [udp.src, udp.dst],
        Transport::Sctp(sctp) => [sctp.src, sctp.dst],
        Transport::Icmpv4(icmp) => [icmp.kind.into(), icmp.code.into()],
        Transport::Icmpv6(icmp) => [icmp.kind.into(), icmp.code.into()],
    }
}
