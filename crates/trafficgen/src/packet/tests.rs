//! Measurements over a real pair of interfaces.

use std::time::Duration;

use testbed::Interrupt;

use super::*;
use crate::template::{Encapsulation, FlowField, Flows, Party, Protocol, Tag, Tunnel};
use crate::{Length, Mix, Pace, Rate, Request, Stream, Template, TestPortNo, measure};

const MTU: u32 = 9_100;

/// Two namespaces with a veth cable between them, up.
pub(crate) struct TestCable {
    pub(crate) near: Namespace,
    pub(crate) far: Namespace,
    pub(crate) clock: Clock,
}

impl TestCable {
    pub(crate) fn create(mtu: u32) -> Self {
        let (near, far) = (Namespace::new().unwrap(), Namespace::new().unwrap());
        near.join("eth0", &far, "eth0").unwrap();
        let clock = Clock::start();
        for side in [&near, &far] {
            side.set_mtu("eth0", mtu).unwrap();
            side.set_up("eth0").unwrap();
        }
        let carries = || Ok(far.carries("eth0")?.then_some(()));
        clock
            .wait_for("a cable", Duration::from_secs(10), carries)
            .unwrap();
        Self { near, far, clock }
    }

    fn ends(&self, frame_bytes: u16) -> [TestPort; 2] {
        [&self.near, &self.far]
            .map(|side| TestPort::packet(side, "eth0", frame_bytes, self.clock).unwrap())
    }
}

pub(crate) fn short(streams: Vec<Stream>) -> Request {
    Request {
        drain: Duration::from_millis(500),
        ..Request::new(streams, Length::Frames(2_000))
    }
}

/// Templates of all kinds, each of its smallest size.
fn shapes() -> Vec<Template> {
    let tag = |vid| Tag { vid, pcp: 3 };
    let tunnel = Tunnel {
        source: Party::numbered(11),
        destination: Party::numbered(12),
        vni: 77,
    };
    let two = Encapsulation::QinQ {
        outer: tag(100),
        inner: tag(200),
    };
    let shapes = [
        (Protocol::Udp, Encapsulation::Plain),
        (Protocol::Udp, Encapsulation::Vlan(tag(7))),
        (Protocol::Icmp, two),
        (Protocol::Tcp, Encapsulation::Gre(tunnel)),
        (Protocol::Udp6, Encapsulation::Vxlan(tunnel)),
    ];
    let template = |(protocol, encapsulation)| {
        let template = Template {
            protocol,
            encapsulation,
            flows: Flows::random(1_000, 5, &[FlowField::SourceAddress]),
            ..Template::udp(64)
        };
        Template {
            frame_bytes: template.least_bytes(),
            ..template
        }
    };
    shapes.into_iter().map(template).collect()
}

#[test]
fn frames_of_all_kinds_arrive_unmodified() {
    let cable = TestCable::create(MTU);
    let mut ends = cable.ends(1_518);
    for template in shapes() {
        for frame_bytes in [template.frame_bytes, 1_518] {
            let template = Template {
                frame_bytes,
                ..template.clone()
            };
            // Frames up to a page are sent with AF_XDP.
            cross(&cable, &mut ends, &template, SendMethod::Xdp);
        }
    }
}

#[test]
fn longest_frames_arrive_unmodified() {
    let cable = TestCable::create(MTU);
    let mut ends = cable.ends(9_000);
    for template in shapes() {
        let template = Template {
            frame_bytes: 9_000,
            ..template
        };
        cross(&cable, &mut ends, &template, SendMethod::Packet);
    }
}

/// Sends frames in both directions and checks the results.
fn cross(cable: &TestCable, ends: &mut [TestPort; 2], template: &Template, method: SendMethod) {
    let pace = Pace::Constant(Rate::Frames(20_000));
    let stream = |from, to| Stream::new(template.clone(), pace, TestPortNo(from), TestPortNo(to));
    let request = short(vec![stream(0, 1), stream(1, 0)]);
    let measured = measure(ends, &request, &cable.clock, &Interrupt::never()).unwrap();
    for stream in &measured.streams {
        let counts = (
            stream.received,
            stream.lost,
            stream.duplicated,
            stream.reordered,
        );
        assert_eq!(counts, (2_000, 0, 0, 0), "{template:?}");
        assert_eq!((stream.modified, stream.corrupt), (0, 0), "{template:?}");
        assert_eq!(stream.achieved.frames, 2_000);
        assert_eq!(stream.delay_from_sent.len(), 2_000);
    }
    for end in &measured.ends {
        assert!(matches!(end.stamps, Stamps::Kernel { .. }));
        assert_eq!((end.send_method, end.dropped), (method, 0));
    }
}

#[test]
fn mix_with_two_threads_loses_nothing_on_a_cable() {
    let cable = TestCable::create(MTU);
    let mix = Mix::imix(&Template::udp(64)).unwrap();
    let stream = Stream::new(
        mix,
        Pace::Constant(Rate::Frames(10_000)),
        TestPortNo(0),
        TestPortNo(1),
    );
    let request = Request {
        threads: crate::Threads::Pair {
            send: 0,
            receive: 0,
        },
        ..short(vec![stream])
    };
    let mut ends = cable.ends(1_518);
    let measured = measure(&mut ends, &request, &cable.clock, &Interrupt::never()).unwrap();
    let stream = &measured.streams[0];
    assert_eq!(
        (stream.received, stream.lost, stream.modified),
        (2_000, 0, 0)
    );
    assert_eq!(measured.ends[1].dropped, 0);
}

#[test]
fn removed_interface_is_an_error() {
    let cable = TestCable::create(MTU);
    let mut ends = cable.ends(1_518);
    cable.near.remove("eth0").unwrap();
    let stream = Stream::new(
        Template::udp(64),
        Pace::FlatOut,
        TestPortNo(0),
        TestPortNo(1),
    );
    let outcome = measure(
        &mut ends,
        &short(vec![stream]),
        &cable.clock,
        &Interrupt::never(),
    );
    assert!(matches!(outcome, Err(crate::MeasureError::TestPort { .. })));
}
