//! Real frames over a real pair of interfaces.

use std::time::Duration;

use super::*;
use crate::Interrupt;
use crate::instrument::template::{Encapsulation, FlowField, Flows, Party, Protocol, Tag, Tunnel};
use crate::instrument::{EndNo, Length, Mix, Pace, Rate, Request, Stream, Template, measure};

const MTU: u32 = 9_100;

/// Two namespaces with a cable between them, which is up.
struct Cable {
    near: Namespace,
    far: Namespace,
    clock: Clock,
}

impl Cable {
    fn lay() -> Self {
        let (near, far) = (Namespace::new().unwrap(), Namespace::new().unwrap());
        near.join("eth0", &far, "eth0").unwrap();
        let clock = Clock::start();
        for side in [&near, &far] {
            side.set_mtu("eth0", MTU).unwrap();
            side.set_up("eth0").unwrap();
        }
        let carries = || Ok(far.carries("eth0")?.then_some(()));
        clock
            .wait_for("a cable", Duration::from_secs(10), carries)
            .unwrap();
        Self { near, far, clock }
    }

    fn ends(&self) -> [End; 2] {
        [&self.near, &self.far].map(|side| End::packet(side, "eth0", 9_000, self.clock).unwrap())
    }
}

fn short(streams: Vec<Stream>) -> Request {
    Request {
        drain: Duration::from_millis(500),
        ..Request::new(streams, Length::Frames(2_000))
    }
}

#[test]
fn frames_of_all_shapes_cross_a_cable_unchanged() {
    let cable = Cable::lay();
    let tag = |vid| Tag { vid, pcp: 3 };
    let tunnel = Tunnel {
        source: Party::numbered(11),
        destination: Party::numbered(12),
        vni: 77,
    };
    let shapes = [
        (Protocol::Udp, Encapsulation::Plain),
        (Protocol::Udp, Encapsulation::Vlan(tag(7))),
        (
            Protocol::Icmp,
            Encapsulation::QinQ {
                outer: tag(100),
                inner: tag(200),
            },
        ),
        (Protocol::Tcp, Encapsulation::Gre(tunnel)),
        (Protocol::Udp6, Encapsulation::Vxlan(tunnel)),
    ];
    let pace = Pace::Constant(Rate::Frames(20_000));
    for (protocol, encapsulation) in shapes {
        let mut template = Template {
            protocol,
            encapsulation,
            flows: Flows::random(1_000, 5, &[FlowField::SourceAddress]),
            ..Template::udp(64)
        };
        for frame_bytes in [template.least_bytes(), 1_518, 9_000] {
            template.frame_bytes = frame_bytes;
            let stream = |from, to| Stream::new(template.clone(), pace, EndNo(from), EndNo(to));
            let request = short(vec![stream(0, 1), stream(1, 0)]);
            let never = Interrupt::never();
            let mut ends = cable.ends();
            let measured = measure(&mut ends, &request, &cable.clock, &never).unwrap();
            for stream in &measured.streams {
                let counts = (
                    stream.received,
                    stream.lost,
                    stream.duplicated,
                    stream.reordered,
                );
                assert_eq!(counts, (2_000, 0, 0, 0), "{template:?}");
                assert_eq!((stream.changed, stream.damaged), (0, 0), "{template:?}");
                assert_eq!(stream.achieved.frames, 2_000);
                assert_eq!(stream.negative_delays, 0);
                assert_eq!(stream.delay_from_sent.len(), 2_000);
            }
            assert!(matches!(measured.ends[0].stamps, Stamps::Kernel { .. }));
        }
    }
}

#[test]
fn a_mix_and_two_threads_lose_nothing_on_a_cable() {
    let cable = Cable::lay();
    let mix = Mix::imix(&Template::udp(64)).unwrap();
    let stream = Stream::new(
        mix,
        Pace::Constant(Rate::Frames(10_000)),
        EndNo(0),
        EndNo(1),
    );
    let request = Request {
        threads: crate::instrument::Threads::Pair {
            send: 0,
            receive: 0,
        },
        ..short(vec![stream])
    };
    let mut ends = cable.ends();
    let measured = measure(&mut ends, &request, &cable.clock, &Interrupt::never()).unwrap();
    let stream = &measured.streams[0];
    assert_eq!(
        (stream.received, stream.lost, stream.changed),
        (2_000, 0, 0)
    );
    assert_eq!(measured.ends[1].dropped, 0);
}

#[test]
fn an_interface_that_goes_away_is_an_error() {
    let cable = Cable::lay();
    let mut ends = cable.ends();
    cable.near.remove("eth0").unwrap();
    let stream = Stream::new(Template::udp(64), Pace::FlatOut, EndNo(0), EndNo(1));
    let outcome = measure(
        &mut ends,
        &short(vec![stream]),
        &cable.clock,
        &Interrupt::never(),
    );
    assert!(matches!(
        outcome,
        Err(crate::instrument::MeasureError::End { .. })
    ));
}
