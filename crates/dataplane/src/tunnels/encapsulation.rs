//! Encapsulation: the headers of the packets of a tunnel, and the port that sends them. Workers and
//! traces share it.

use std::net::IpAddr;

use base::Instant;
use flow::{PacketType, PipelineFields};
use packet::tunnel::{
    self, ErspanHeader, OuterHeaders, OuterTransport, TunnelError, TunnelHeader, TunnelPayload,
};
use packet::{Frame, Pool};
use pipeline::Pipeline;

use super::{InnerHeaders, endpoints, inner_headers, mark, outer, outer_tos_ttl, payload};
use super::{source_port, tunnel_header};
use crate::slots::PortKey;
use crate::underlay::{NextHop, Underlay};
use config::TunnelConfig;

/// The unit of ERSPAN timestamps, in nanoseconds.
const ERSPAN_UNIT: u64 = 100_000;

/// The reason why a tunnel sends no packet for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunnelRefusal {
    /// The tunnel has no remote address.
    NoRemote,
    /// The remote address belongs to this host.
    ToSelf,
    /// No bridge has a route to the remote address.
    NoRoute,
    /// The Ethernet address of this next hop on this port is not known.
    NoNeighbour(PortKey, IpAddr),
    /// Rules set a field that the header cannot express.
    Field,
    /// The tunnel does not carry this kind of frame.
    Payload,
    /// The packet would exceed the maximum IP length.
    TooLong,
}

/// The common headers of the packets of frames with the same pipeline fields.
#[derive(Clone, Debug)]
pub struct Encapsulation<'a> {
    tunnel: &'a TunnelConfig,
    /// The headers before the tunnel header.
    pub outer: OuterHeaders,
    /// The tunnel header.
    pub header: TunnelHeader,
    /// The port that sends the packets, as if the host had sent them.
    pub by: PortKey,
    /// The address of the next hop.
    pub next: IpAddr,
    packet_type: PacketType,
    egress_ports: (u16, u16),
}

impl<'a> Encapsulation<'a> {
    /// Returns the headers for frames with these pipeline fields.
    ///
    /// # Errors
    /// The tunnel sends no packet for them.
    pub fn new(
        underlay: &Underlay,
        pipeline: &Pipeline,
        tunnel: &'a TunnelConfig,
        fields: &PipelineFields,
    ) -> Result<Self, TunnelRefusal> {
        let ends = endpoints(tunnel, fields).ok_or(TunnelRefusal::NoRemote)?;
        let ports_of_host = underlay.ports_of_host.values();
        let mut own = ports_of_host.flat_map(|host_port| &host_port.addresses);
        if own.any(|address| *address == ends.remote) {
            return Err(TunnelRefusal::ToSelf);
        }
        let hop = underlay.hop(ends.remote, mark(tunnel, fields));
        let NextHop {
            by,
            mac,
            next,
            source,
        } = hop.ok_or(TunnelRefusal::NoRoute)?;
        let neighbour = underlay.neighbours.get(&(by, next));
        let neighbour = neighbour.ok_or(TunnelRefusal::NoNeighbour(by, next))?;
        let local: IpAddr = ends.local.unwrap_or(source);
        Ok(Self {
            tunnel,
            outer: outer(tunnel, (mac, *neighbour), (local, ends.remote)),
            header: tunnel_header(tunnel, fields, pipeline).ok_or(TunnelRefusal::Field)?,
            by,
            next,
            packet_type: fields.packet_type,
            egress_ports: underlay.egress_ports,
        })
    }

    /// True if packets have sequence numbers.
    #[must_use]
    pub const fn is_sequenced(&self) -> bool {
        self.tunnel.sequenced || self.header.erspan.is_some()
    }

    /// Sets the time of ERSPAN headers.
    pub(crate) fn set_time(&mut self, now: Instant) {
        if let Some(ErspanHeader::V2 { timestamp, .. }) = &mut self.header.erspan {
            let units = (now.as_nanos() / ERSPAN_UNIT) & u64::from(u32::MAX);
            *timestamp = u32::try_from(units).unwrap_or(0);
        }
    }

    /// Completes the headers for a frame, except for its UDP source port and its sequence number.
    /// Returns the number of leading bytes that the tunnel does not carry.
    ///
    /// # Errors
    /// The tunnel does not carry the frame.
    pub fn complete(&mut self, frame: &Frame) -> Result<u16, TunnelRefusal> {
        self.complete_from(&inner_headers(frame.bytes()))
            .ok_or(TunnelRefusal::Payload)
    }

    fn complete_from(&mut self, within: &InnerHeaders) -> Option<u16> {
        (self.outer.tos, self.outer.ttl) = outer_tos_ttl(self.tunnel, within);
        let payload_at = within.payload_at?;
        self.header.payload = payload(self.tunnel, within.eth_type, self.packet_type)?;
        match self.header.payload {
            TunnelPayload::Ethernet => Some(0),
            TunnelPayload::Packet(_) if within.tagged => None,
            TunnelPayload::Packet(_) => u16::try_from(payload_at).ok(),
        }
    }

    /// Encapsulates a frame, which must have no outstanding offload work. `number` is its sequence
    /// number.
    ///
    /// # Errors
    /// The tunnel does not carry the frame, or the packet would be too long.
    pub fn encapsulate(
        &mut self,
        frame: &mut Frame,
        number: Option<u32>,
        pool: &mut Pool,
    ) -> Result<(), TunnelRefusal> {
        let within = inner_headers(frame.bytes());
        let skip = self.complete_from(&within).ok_or(TunnelRefusal::Payload)?;
        if let OuterTransport::Udp { src, .. } = &mut self.outer.upper {
            *src = source_port(frame.bytes(), &within, self.egress_ports);
        }
        self.header.sequence = number;
        let done = tunnel::encapsulate(frame, skip, &self.outer, &self.header, pool);
        done.map_err(|_: TunnelError| TunnelRefusal::TooLong)
    }
}
