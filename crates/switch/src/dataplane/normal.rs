//! `NORMAL`: what an ordinary, VLAN-aware learning switch would do with a frame
//! (OF 1.3.5, 5.1; IEEE 802.1D, 7.7). Ports of which nothing is said carry every VLAN, tags as
//! they come; of others `vlans` knows what they carry.
//!
//! Decisions only: the worker moves the frame, and the control thread learns.

use base::{Instant, PortNo};
use packet::Link;
use pipeline::{Pipeline, PortView};

use super::switching::SwitchingView;
use super::vlans::{Retag, admit, carries, leave};
use crate::config::LogicalPort;
use crate::mac::{Address, MacView};

/// Where the frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forward {
    /// Out of one port.
    To(PortNo),
    /// Out of all ports that take part in flooding, but not where it came from.
    Flood,
    /// Nowhere: it is for bridges only, or its destination is where it came from.
    Nowhere,
    /// Nowhere: the port it came in by is not in its VLAN.
    Refused,
}

/// What decides beside the frame.
#[derive(Clone, Copy)]
pub(crate) struct Knowledge<'a> {
    /// Who is behind which port.
    pub(crate) stations: &'a MacView,
    /// What the ports are to `NORMAL`; none if all are plain.
    pub(crate) switching: Option<&'a SwitchingView>,
}

/// What is to be done with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// Where it goes.
    pub(crate) forward: Forward,
    /// What it teaches, if that is news: its sender is behind the port it came in by.
    pub(crate) learn: Option<Address>,
    /// The VLAN it is in.
    pub(crate) vid: u16,
}

impl Knowledge<'_> {
    /// The VLAN of a frame that came in by `from`; none if it may not.
    fn vlan(&self, link: &Link, from: PortNo) -> Option<u16> {
        match self.switching {
            None => Some(link.tag.map_or(0, |tag| tag.vid)),
            Some(switching) => admit(switching.port(from), link.tag),
        }
    }

    /// Whether stations of a VLAN are learned.
    fn learns_in(&self, vid: u16) -> bool {
        self.switching
            .is_none_or(|switching| !switching.config().flood_vlans.has(vid))
    }

    /// Whether frames that are for bridges go on.
    fn passes_reserved(&self) -> bool {
        self.switching
            .is_some_and(|switching| switching.config().forward_bpdu)
    }

    /// Who a frame teaches, that is not known where it came in by `from`.
    pub(crate) fn news(&self, link: &Link, from: PortNo) -> Option<Address> {
        self.decide_to_learn(link, from, self.vlan(link, from)?, None)
    }

    fn decide_to_learn(
        &self,
        link: &Link,
        from: PortNo,
        vid: u16,
        now: Option<Instant>,
    ) -> Option<Address> {
        let sender = Address { vid, mac: link.src };
        match self.stations.find(sender) {
            _ if link.src.is_multicast() || !from.is_assignable() => None,
            Some(station) if station.port() == from => {
                now.into_iter().for_each(|now| station.mark_seen(now));
                None
            }
            _ => self.learns_in(vid).then_some(sender),
        }
    }

    /// Decides for a frame that came in by `from`, and notes that its sender is alive.
    pub(crate) fn decide(&self, link: &Link, from: PortNo, now: Instant) -> Decision {
        let Some(vid) = self.vlan(link, from) else {
            return Decision {
                forward: Forward::Refused,
                learn: None,
                vid: 0,
            };
        };
        Decision {
            forward: self.forward_in(link, from, vid),
            learn: self.decide_to_learn(link, from, vid, Some(now)),
            vid,
        }
    }

    /// Where a frame goes that came in by `from`, and in which VLAN.
    pub(crate) fn forward(&self, link: &Link, from: PortNo) -> (Forward, u16) {
        match self.vlan(link, from) {
            None => (Forward::Refused, 0),
            Some(vid) => (self.forward_in(link, from, vid), vid),
        }
    }

    fn forward_in(&self, link: &Link, from: PortNo, vid: u16) -> Forward {
        if link.dst.is_bridge_reserved() && !self.passes_reserved() {
            return Forward::Nowhere;
        }
        if link.dst.is_multicast() || !self.learns_in(vid) {
            return Forward::Flood;
        }
        match self.stations.find(Address { vid, mac: link.dst }) {
            Some(station) if station.port() == from => Forward::Nowhere,
            Some(station) => Forward::To(station.port()),
            None => Forward::Flood,
        }
    }

    /// Whether a frame of the VLAN `vid` that came in by `from` may leave by `to`, as far as
    /// their settings go.
    pub(crate) fn joins(&self, from: PortNo, to: PortNo, vid: u16) -> bool {
        self.switching.is_none_or(|switching| {
            let (from, to) = (switching.port(from), switching.port(to));
            let is_protected =
                |port: Option<&LogicalPort>| port.is_some_and(|port| port.is_protected);
            carries(to, vid) && !(is_protected(from) && is_protected(to))
        })
    }

    /// What becomes of the tag of a frame of the VLAN `vid` that leaves by `to`.
    pub(crate) fn retag(&self, link: &Link, to: PortNo, vid: u16) -> Retag {
        self.switching.map_or(Retag::Keep, |switching| {
            leave(switching.port(to), link.tag, vid)
        })
    }

    /// The ports by which a frame leaves, each with what becomes of its tag.
    pub(crate) fn exits(
        &self,
        pipeline: &Pipeline,
        link: &Link,
        from: PortNo,
        (forward, vid): (Forward, u16),
    ) -> Vec<(PortNo, Retag)> {
        let exit = |port| (port, self.retag(link, port, vid));
        match forward {
            Forward::To(port) if self.joins(from, port, vid) && forwards(pipeline, port) => {
                vec![exit(port)]
            }
            Forward::Flood => self.flood(pipeline, from, vid).map(exit).collect(),
            Forward::To(_) | Forward::Nowhere | Forward::Refused => Vec::new(),
        }
    }

    /// The ports that a flooded frame leaves by, but not where it came from.
    pub(crate) fn flood(
        &self,
        pipeline: &Pipeline,
        from: PortNo,
        vid: u16,
    ) -> impl Iterator<Item = PortNo> {
        flood(pipeline, from).filter(move |port| self.joins(from, *port, vid))
    }
}

/// Whether `port` is there and may send.
pub(crate) fn forwards(pipeline: &Pipeline, port: PortNo) -> bool {
    pipeline.port(port).is_some_and(|view| view.forwards())
}

/// The ports that take part in flooding, but not where a frame came from.
fn flood(pipeline: &Pipeline, from: PortNo) -> impl Iterator<Item = PortNo> {
    let floods = move |(port, view): &(PortNo, PortView)| *port != from && view.floods();
    pipeline.ports().filter(floods).map(|(port, _)| port)
}

#[cfg(test)]
mod tests {
    use packet::MacAddr;

    use super::*;
    use crate::config::AGEING;
    use crate::mac::MacTable;

    const A: [u8; 6] = [2, 0, 0, 0, 0, 0xa];
    const B: [u8; 6] = [2, 0, 0, 0, 0, 0xb];

    fn table() -> MacView {
        let mut table = MacTable::new(8, AGEING);
        for (vid, mac, port) in [(0, A, 1), (0, B, 2), (10, B, 3)] {
            table.learn(
                Address {
                    vid,
                    mac: MacAddr(mac),
                },
                PortNo(port),
                Instant::START,
            );
        }
        table.view()
    }

    fn check(dst: [u8; 6], src: [u8; 6], tag: &[u8], from: u32) -> Decision {
        let bytes = [&dst[..], &src[..], tag, &[0x08, 0x06], &[0; 46]].concat();
        let link = Link::parse(&bytes).expect("well formed");
        let knowledge = Knowledge {
            stations: &table(),
            switching: None,
        };
        knowledge.decide(&link, PortNo(from), Instant::from_secs(1))
    }

    #[test]
    fn a_known_station_is_met_at_its_port_in_its_vlan() {
        assert_eq!(
            check(B, A, &[], 1),
            Decision {
                forward: Forward::To(PortNo(2)),
                learn: None,
                vid: 0,
            }
        );
        let tagged = check(B, A, &[0x81, 0, 0, 10], 1);
        assert_eq!(tagged.forward, Forward::To(PortNo(3)));
        assert_eq!(
            tagged.learn,
            Some(Address {
                vid: 10,
                mac: MacAddr(A)
            })
        );
    }

    #[test]
    fn the_unknown_the_many_and_the_moved() {
        assert_eq!(check([2; 6], A, &[], 1).forward, Forward::Flood);
        assert_eq!(check([0xff; 6], A, &[], 1).forward, Forward::Flood);
        assert_eq!(check(A, B, &[], 1).forward, Forward::Nowhere);
        assert_eq!(
            check([0xff; 6], B, &[], 1).learn,
            Some(Address {
                vid: 0,
                mac: MacAddr(B)
            })
        );
    }

    #[test]
    fn bridges_keep_their_own_frames_and_groups_send_nothing() {
        assert_eq!(
            check([1, 0x80, 0xc2, 0, 0, 0], A, &[], 1).forward,
            Forward::Nowhere
        );
        assert_eq!(check(B, [3, 0, 0, 0, 0, 1], &[], 1).learn, None);
    }
}
