//! `NORMAL`: what an ordinary, VLAN-aware learning switch would do with a frame
//! (OF 1.3.5, 5.1; IEEE 802.1D, 7.7). Every port carries every VLAN, tags as they come.
//!
//! Decisions only: the worker moves the frame, and the control thread learns.

use base::{Instant, PortNo};
use packet::Link;
use pipeline::{Pipeline, PortView};

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
}

/// What is to be done with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// Where it goes.
    pub(crate) forward: Forward,
    /// What it teaches, if that is news: its sender is behind the port it came in by.
    pub(crate) learn: Option<Address>,
}

/// Decides for a frame that came in by `from`, and notes that its sender is alive.
pub(crate) fn decide(stations: &MacView, link: &Link, from: PortNo, now: Instant) -> Decision {
    let vid = link.tag.map_or(0, |tag| tag.vid);
    let sender = Address { vid, mac: link.src };
    let learn = match stations.find(sender) {
        _ if link.src.is_multicast() || !from.is_assignable() => None,
        Some(station) if station.port() == from => {
            station.mark_seen(now);
            None
        }
        _ => Some(sender),
    };
    let forward = forward(stations, link, from);
    Decision { forward, learn }
}

/// Where a frame goes that came in by `from`.
pub(crate) fn forward(stations: &MacView, link: &Link, from: PortNo) -> Forward {
    let vid = link.tag.map_or(0, |tag| tag.vid);
    if link.dst.is_bridge_reserved() {
        return Forward::Nowhere;
    }
    if link.dst.is_multicast() {
        return Forward::Flood;
    }
    match stations.find(Address { vid, mac: link.dst }) {
        Some(station) if station.port() == from => Forward::Nowhere,
        Some(station) => Forward::To(station.port()),
        None => Forward::Flood,
    }
}

/// Whether `port` is there and may send.
pub(crate) fn forwards(pipeline: &Pipeline, port: PortNo) -> bool {
    pipeline.port(port).is_some_and(|view| view.forwards())
}

/// The ports that a flooded frame leaves by, but not where it came from.
pub(crate) fn flood(pipeline: &Pipeline, from: PortNo) -> impl Iterator<Item = PortNo> {
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
        decide(&table(), &link, PortNo(from), Instant::from_secs(1))
    }

    #[test]
    fn a_known_station_is_met_at_its_port_in_its_vlan() {
        assert_eq!(
            check(B, A, &[], 1),
            Decision {
                forward: Forward::To(PortNo(2)),
                learn: None
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
