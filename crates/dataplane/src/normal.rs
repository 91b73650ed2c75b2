//! `NORMAL`: the forwarding of a VLAN-aware learning switch (OF 1.3.5, 5.1; IEEE 802.1D, 7.7).
//! Ports without a configuration carry every VLAN with unchanged tags; `vlans` decides about the
//! others.
//!
//! Decisions only: the worker moves the frame, and the control thread learns.

use base::{Instant, PortNo};
use packet::{Link, Multicast};
use pipeline::{Pipeline, PortView};

use super::bonds::EgressFrame;
use super::mirrors::Mirrors;
use super::switching::SwitchingView;
use super::vlans::{ArrivalTags, FrameVlans, TagRewrite, admit, carries, leave};
use l2::fdb::{FdbKey, FdbView};
use l2::multicast_snooping::{MulticastClass, MulticastGroup, MulticastView};

/// The destination of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormalTarget {
    /// One port.
    Port(PortNo),
    /// All ports that take part in flooding, except the ingress port.
    Flood,
    /// The ports of a multicast group's members, except the ingress port.
    Group(MulticastClass),
    /// None: the frame is reserved for bridges, or its destination is behind the ingress port.
    Nowhere,
    /// None: the ingress port does not carry the frame's VLAN.
    Refused,
    /// None: the ingress member of a bond does not accept such frames.
    Surplus,
    /// None: a frame of a local source returned by a bond.
    Looped,
}

/// The inputs of a decision besides the frame.
#[derive(Clone, Copy)]
pub struct NormalContext<'a> {
    /// The forwarding database.
    pub fdb: &'a FdbView,
    /// The members of multicast groups; none if all groups are flooded.
    pub multicast: Option<&'a MulticastView>,
    /// Settings of `NORMAL` for the ports; none if all have defaults.
    pub switching: Option<&'a SwitchingView>,
    /// The mirrors, whose output ports take no part; none if there are none.
    pub mirrors: Option<&'a Mirrors>,
}

/// The decision about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormalDecision {
    /// The destination.
    pub forward: NormalTarget,
    /// The source address to learn on the ingress port, if the forwarding database lacks it.
    pub learn: Option<FdbKey>,
    /// The VLANs of the frame.
    pub within: FrameVlans,
    /// True if multicast snooping needs the frame.
    pub is_membership: bool,
}

impl NormalContext<'_> {
    /// Returns the VLANs of a frame that was received on `from`; none if the port refuses it.
    fn vlans(&self, (link, bytes): (&Link, &[u8]), from: PortNo) -> Option<FrameVlans> {
        match self.switching {
            None => admit(None, ArrivalTags::outermost(link)),
            Some(switching) => {
                let ingress_tags = ArrivalTags::of(link, bytes, switching.config().vlan_limit);
                admit(switching.port(from), ingress_tags)
            }
        }
    }

    /// Returns whether addresses of a VLAN are learned.
    fn learns_in(&self, vid: u16) -> bool {
        self.switching
            .is_none_or(|switching| !switching.config().flood_vlans.has(vid))
    }

    /// Returns whether a frame is reserved for bridges and not forwarded.
    fn is_reserved(&self, link: &Link) -> bool {
        let passes = || {
            self.switching
                .is_some_and(|switching| switching.config().forward_bpdu)
        };
        link.dst.is_bridge_reserved() && !passes()
    }

    /// Returns the source address of a frame, unless the forwarding database has it on `from`.
    pub fn address_to_learn(
        &self,
        (link, bytes): (&Link, &[u8]),
        from: PortNo,
        now: Option<Instant>,
    ) -> Option<FdbKey> {
        let vid = self.vlans((link, bytes), from)?.vid;
        match self.is_reserved(link) || self.ingress_drop((link, bytes), from, vid, now).is_some() {
            true => None,
            false => self.decide_to_learn(link, from, vid, None),
        }
    }

    /// Returns whether a frame that was received on `from` has the address of a static entry of
    /// another port.
    pub fn is_static_elsewhere(&self, (link, bytes): (&Link, &[u8]), from: PortNo) -> bool {
        let Some(FrameVlans { vid, .. }) = self.vlans((link, bytes), from) else {
            return false;
        };
        let station = self.fdb.find(FdbKey { vid, mac: link.src });
        station.is_some_and(|station| {
            station.is_static() && station.port() != self.fdb_port(from) && from.is_assignable()
        })
    }

    fn decide_to_learn(
        &self,
        link: &Link,
        from: PortNo,
        vid: u16,
        now: Option<Instant>,
    ) -> Option<FdbKey> {
        let sender = FdbKey { vid, mac: link.src };
        match self.fdb.find(sender) {
            _ if link.src.is_multicast() || !from.is_assignable() => None,
            Some(station) if station.is_static() => {
                if now.is_some() && station.port() != self.fdb_port(from) {
                    self.fdb.count_static_move();
                }
                None
            }
            Some(station) if station.port() == self.fdb_port(from) => {
                now.into_iter().for_each(|now| station.mark_seen(now));
                None
            }
            _ => self.learns_in(vid).then_some(sender),
        }
    }

    /// Decides about a frame that was received on `from`, and refreshes the entry of its source.
    pub fn decide(
        &self,
        (link, bytes): (&Link, &[u8]),
        from: PortNo,
        now: Instant,
    ) -> NormalDecision {
        let Some(within) = self.vlans((link, bytes), from) else {
            return NormalDecision {
                forward: NormalTarget::Refused,
                learn: None,
                within: FrameVlans::default(),
                is_membership: false,
            };
        };
        let vid = within.vid;
        if let Some(forward) = self.ingress_drop((link, bytes), from, vid, Some(now)) {
            return NormalDecision {
                forward,
                learn: None,
                within,
                is_membership: false,
            };
        }
        let learn = match self.is_reserved(link) {
            true => None,
            false => self.decide_to_learn(link, from, vid, Some(now)),
        };
        if let Some(station) = learn {
            self.record_source(station, from, now);
        }
        self.record_announcement((link, bytes), from, vid, now);
        let (forward, is_membership) = self.forward_in((link, bytes), from, vid);
        NormalDecision {
            forward,
            learn,
            within,
            is_membership,
        }
    }

    /// Returns the destination and the VLANs of a frame that was received on `from`, without side
    /// effects.
    pub fn forward(
        &self,
        (link, bytes): (&Link, &[u8]),
        from: PortNo,
    ) -> (NormalTarget, FrameVlans) {
        match self.vlans((link, bytes), from) {
            None => (NormalTarget::Refused, FrameVlans::default()),
            Some(within) => {
                let vid = within.vid;
                let barred = self.ingress_drop((link, bytes), from, vid, None);
                let forward = barred.unwrap_or_else(|| self.forward_in((link, bytes), from, vid).0);
                (forward, within)
            }
        }
    }

    /// Returns the destination of a frame, and whether multicast snooping needs it.
    fn forward_in(
        &self,
        (link, bytes): (&Link, &[u8]),
        from: PortNo,
        vid: u16,
    ) -> (NormalTarget, bool) {
        if self.is_reserved(link) {
            return (NormalTarget::Nowhere, false);
        }
        if link.dst.is_multicast() {
            let heard = self.multicast.filter(|_| !link.dst.is_broadcast());
            return heard.map_or((NormalTarget::Flood, false), |view| {
                among(view, (link, bytes), vid)
            });
        }
        if !self.learns_in(vid) {
            return (NormalTarget::Flood, false);
        }
        let forward = match self.fdb.find(FdbKey { vid, mac: link.dst }) {
            Some(station) if station.port() == self.fdb_port(from) => NormalTarget::Nowhere,
            Some(station) => NormalTarget::Port(station.port()),
            None => NormalTarget::Flood,
        };
        (forward, false)
    }

    /// Returns whether the settings of the ports let a frame in these VLANs pass from `from` to
    /// `to`.
    pub fn may_pass(&self, from: PortNo, to: PortNo, within: &FrameVlans) -> bool {
        let is_protected = |port| {
            let port = self.switching.and_then(|switching| switching.port(port));
            port.is_some_and(|port| port.is_protected)
        };
        self.may_leave(to, within) && !(is_protected(from) && is_protected(to))
    }

    /// Returns whether frames in these VLANs may leave by `to`, independently of the ingress port.
    pub fn may_leave(&self, to: PortNo, within: &FrameVlans) -> bool {
        let is_mirror_output = self.mirrors.is_some_and(|mirrors| mirrors.is_output(to));
        let carries = |switching: &SwitchingView| carries(switching.port(to), within);
        !is_mirror_output && self.switching.is_none_or(carries)
    }

    /// Returns the change of the tags of a frame in these VLANs that leaves by `to`.
    pub fn retag(&self, to: PortNo, within: &FrameVlans) -> TagRewrite {
        let port = self.switching.and_then(|switching| switching.port(to));
        leave(port, within)
    }

    /// Returns the egress ports of a frame, each with the change of its tags.
    pub fn exits(
        &self,
        pipeline: &Pipeline,
        leaving: EgressFrame<'_>,
        from: PortNo,
        forward: NormalTarget,
    ) -> Vec<(PortNo, TagRewrite)> {
        let EgressFrame { within, .. } = leaving;
        let exit = |port| (port, self.retag(port, &within));
        match forward {
            NormalTarget::Port(port) if self.may_pass(from, port, &within) => {
                let port = self.exit(port, &leaving);
                let port = port.filter(|port| forwards(pipeline, *port));
                port.map(exit).into_iter().collect()
            }
            NormalTarget::Flood => self.flood(pipeline, from, leaving).map(exit).collect(),
            NormalTarget::Group(class) => {
                let ports = self.among(pipeline, from, class, leaving);
                ports.map(exit).collect()
            }
            NormalTarget::Port(_)
            | NormalTarget::Nowhere
            | NormalTarget::Refused
            | NormalTarget::Surplus
            | NormalTarget::Looped => Vec::new(),
        }
    }

    /// Returns the egress ports to the members of a multicast group, except the ingress port.
    pub(crate) fn among(
        &self,
        pipeline: &Pipeline,
        from: PortNo,
        class: MulticastClass,
        leaving: EgressFrame<'_>,
    ) -> impl Iterator<Item = PortNo> {
        let (fdb_port, vid) = (self.fdb_port(from), leaving.within.vid);
        let ports = self.multicast.into_iter();
        let ports = ports.flat_map(move |view| view.ports(class, vid));
        ports
            .filter(move |port| self.fdb_port(*port) == *port && *port != fdb_port)
            .filter(move |port| self.may_pass(from, *port, &leaving.within))
            .filter_map(move |port| self.exit(port, &leaving))
            .filter(|port| forwards(pipeline, *port))
    }

    /// Returns the egress ports of a flooded frame, except the ingress port.
    pub(crate) fn flood(
        &self,
        pipeline: &Pipeline,
        from: PortNo,
        leaving: EgressFrame<'_>,
    ) -> impl Iterator<Item = PortNo> {
        flood(pipeline, from)
            .filter(move |port| self.may_pass(from, *port, &leaving.within))
            .filter(self.one_per_bond(from, leaving))
    }
}

/// Returns the destination of a multicast frame, and whether snooping needs it (RFC 4541, 2.1 and
/// 3).
fn among(view: &MulticastView, (link, bytes): (&Link, &[u8]), vid: u16) -> (NormalTarget, bool) {
    match Multicast::classify(bytes, link) {
        Some(Multicast::Query) => (NormalTarget::Flood, true),
        Some(Multicast::Report) => (NormalTarget::Group(MulticastClass::Reports), true),
        Some(Multicast::To(address)) => {
            let class = view.classify(MulticastGroup { vid, address });
            (
                class.map_or(NormalTarget::Flood, NormalTarget::Group),
                false,
            )
        }
        Some(Multicast::Local) | None => (NormalTarget::Flood, false),
    }
}

/// Returns whether `port` exists and may send.
pub fn forwards(pipeline: &Pipeline, port: PortNo) -> bool {
    pipeline.port(port).is_some_and(|view| view.forwards())
}

/// Returns the ports that take part in flooding, except the ingress port.
fn flood(pipeline: &Pipeline, from: PortNo) -> impl Iterator<Item = PortNo> {
    let floods = move |(port, view): &(PortNo, PortView)| *port != from && view.floods();
    pipeline.ports().filter(floods).map(|(port, _)| port)
}

#[cfg(test)]
mod tests {
    use packet::MacAddr;

    use super::*;
    use config::AGEING_TIME;
    use l2::fdb::ForwardingDatabase;

    const A: [u8; 6] = [2, 0, 0, 0, 0, 0xa];
    const B: [u8; 6] = [2, 0, 0, 0, 0, 0xb];

    fn table() -> FdbView {
        let mut table = ForwardingDatabase::new(8, AGEING_TIME);
        for (vid, mac, port) in [(0, A, 1), (0, B, 2), (10, B, 3)] {
            table.learn(
                FdbKey {
                    vid,
                    mac: MacAddr(mac),
                },
                PortNo(port),
                Instant::START,
            );
        }
        table.view()
    }

    fn check(dst: [u8; 6], src: [u8; 6], tag: &[u8], from: u32) -> NormalDecision {
        let bytes = [&dst[..], &src[..], tag, &[0x08, 0x06], &[0; 46]].concat();
        let link = Link::parse(&bytes).expect("well formed");
        let normal_context = NormalContext {
            fdb: &table(),
            multicast: None,
            switching: None,
            mirrors: None,
        };
        normal_context.decide((&link, &bytes), PortNo(from), Instant::from_secs(1))
    }

    #[test]
    fn known_address_is_forwarded_to_its_port_in_its_vlan() {
        assert_eq!(
            check(B, A, &[], 1),
            NormalDecision {
                forward: NormalTarget::Port(PortNo(2)),
                learn: None,
                within: FrameVlans::of_vlan(0),
                is_membership: false,
            }
        );
        let tagged = check(B, A, &[0x81, 0, 0, 10], 1);
        assert_eq!(tagged.forward, NormalTarget::Port(PortNo(3)));
        assert_eq!(
            tagged.learn,
            Some(FdbKey {
                vid: 10,
                mac: MacAddr(A)
            })
        );
    }

    #[test]
    fn unknown_and_broadcast_addresses_are_flooded_and_moves_learned() {
        assert_eq!(check([2; 6], A, &[], 1).forward, NormalTarget::Flood);
        assert_eq!(check([0xff; 6], A, &[], 1).forward, NormalTarget::Flood);
        assert_eq!(check(A, B, &[], 1).forward, NormalTarget::Nowhere);
        assert_eq!(
            check([0xff; 6], B, &[], 1).learn,
            Some(FdbKey {
                vid: 0,
                mac: MacAddr(B)
            })
        );
    }

    #[test]
    fn static_address_from_another_port_is_counted() {
        let mut table = ForwardingDatabase::new(8, AGEING_TIME);
        let station = FdbKey {
            vid: 0,
            mac: MacAddr(A),
        };
        let added = table.add_static(station, PortNo(1), Instant::START);
        assert!(added.is_ok());
        let view = table.view();
        let normal_context = NormalContext {
            fdb: &view,
            multicast: None,
            switching: None,
            mirrors: None,
        };
        let bytes = [&B[..], &A[..], &[0x08, 0x06], &[0; 46]].concat();
        let link = Link::parse(&bytes).expect("well formed");
        for (from, moves) in [(1, 0), (2, 1), (3, 2)] {
            let now = Instant::from_secs(1);
            let decision = normal_context.decide((&link, &bytes), PortNo(from), now);
            assert_eq!(decision.learn, None);
            let is_elsewhere = normal_context.is_static_elsewhere((&link, &bytes), PortNo(from));
            assert_eq!(is_elsewhere, from != 1);
            assert_eq!(table.view().static_moves(), moves);
        }
    }

    #[test]
    fn reserved_addresses_are_filtered_and_group_sources_are_not_learned() {
        for dst in [[1, 0x80, 0xc2, 0, 0, 0], [1, 0, 0x0c, 0xcc, 0xcc, 0xcd]] {
            assert_eq!(check(dst, A, &[], 1).forward, NormalTarget::Nowhere);
        }
        assert_eq!(check(B, [3, 0, 0, 0, 0, 1], &[], 1).learn, None);
    }
}
