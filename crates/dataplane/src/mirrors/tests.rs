//! Tests of mirrors: selection and output of copies.

use flow::{PortDesc, PortState};
use pipeline::Limits;

use super::*;
use config::{PortVlans, SwitchingConfig, VlanMode};

/// The sent copies: port, VLAN of the tag, maximum length.
#[derive(Default)]
struct SentCopies(Vec<(u32, Option<u16>, Option<u16>)>);

impl MirrorSink for SentCopies {
    fn copy(&mut self, frame: &Frame) -> Option<Frame> {
        Some(frame.clone())
    }

    fn send(&mut self, port: PortNo, copy: Frame, snaplen: Option<u16>) {
        let link = Link::parse(copy.bytes()).expect("well formed");
        self.0.push((port.0, link.tag.map(|tag| tag.vid), snaplen));
    }

    fn release(&mut self, _: Frame) {
        panic!("there is room for a tag");
    }
}

fn mirror(key: &str, output: MirrorOutput) -> MirrorConfig {
    MirrorConfig {
        key: key.to_owned(),
        all: false,
        ingress_ports: Vec::new(),
        egress_ports: Vec::new(),
        vlans: None,
        output,
        snaplen: None,
    }
}

fn to(port: u32) -> MirrorOutput {
    MirrorOutput::Port(vec![PortNo(port)])
}

fn ports(numbers: &[u32]) -> Vec<PortNo> {
    numbers.iter().map(|number| PortNo(*number)).collect()
}

fn frame(dst: [u8; 6], tag: &[u8]) -> Frame {
    let src = [2, 0, 0, 0, 0, 1];
    Frame::from_bytes(&[&dst[..], &src, tag, &[0x88, 0xb5], &[0; 46]].concat())
}

const HOST: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// A bridge of five ports with defaults, except port 4, which is in VLAN 10.
struct MirroredBridge {
    pipeline: Pipeline,
    switching: Option<Arc<SwitchingView>>,
    mirrors: Arc<Mirrors>,
}

impl MirroredBridge {
    fn new(mirrors: &[MirrorConfig]) -> Self {
        let mut pipeline = Pipeline::new(Limits::default(), 1);
        for number in 1..=5 {
            pipeline.set_port(&PortDesc {
                state: PortState::LIVE,
                ..PortDesc::new(PortNo(number))
            });
        }
        let access = LogicalPort {
            members: vec![PortNo(4)],
            vlans: PortVlans {
                mode: VlanMode::Access { tag: 10 },
                ..PortVlans::default()
            },
            ..LogicalPort::default()
        };
        Self {
            pipeline,
            switching: SwitchingView::compile(&SwitchingConfig {
                ports: vec![access],
                ..SwitchingConfig::default()
            }),
            mirrors: Mirrors::compile(mirrors, None).expect("there are some"),
        }
    }

    /// Returns the copies of a frame that passes these ports in turn.
    fn sent(
        &self,
        frame: &Frame,
        way: &[(u32, MirrorDirection)],
    ) -> Vec<(u32, Option<u16>, Option<u16>)> {
        let from = PortNo(way[0].0);
        let (mut copied, mut sent) = (MirrorSet::default(), SentCopies::default());
        let context = MirrorContext {
            mirrors: &self.mirrors,
            pipeline: &self.pipeline,
            switching: self.switching.as_deref(),
            from,
        };
        for (port, passing) in way {
            context.mirror(frame, (PortNo(*port), *passing), &mut copied, &mut sent);
        }
        sent.0
    }
}

#[test]
fn mirror_copies_selected_ingress_and_egress() {
    let bridge = MirroredBridge::new(&[MirrorConfig {
        ingress_ports: ports(&[1]),
        egress_ports: ports(&[2]),
        snaplen: Some(64),
        ..mirror("m", to(3))
    }]);
    let frame = frame(HOST, &[]);
    let taken = vec![(3, None, Some(64))];
    assert_eq!(bridge.sent(&frame, &[(1, MirrorDirection::In)]), taken);
    assert_eq!(bridge.sent(&frame, &[(2, MirrorDirection::Out)]), taken);
    let others = [
        (1, MirrorDirection::Out),
        (2, MirrorDirection::In),
        (5, MirrorDirection::In),
    ];
    assert_eq!(bridge.sent(&frame, &others), []);
    // One copy, however many selections match.
    let both = [
        (1, MirrorDirection::In),
        (2, MirrorDirection::Out),
        (2, MirrorDirection::Out),
    ];
    assert_eq!(bridge.sent(&frame, &both), taken);
    let counted: Vec<_> = bridge.mirrors.counts().collect();
    assert_eq!(counted, [("m", (3, 180))]);
    // A new configuration keeps the counters.
    let again = Mirrors::compile(&[mirror("m", to(5))], Some(&bridge.mirrors));
    let again = again.expect("there is one");
    assert_eq!(again.counts().next(), Some(("m", (3, 180))));
    assert!(again.outputs().eq([PortNo(5)]) && !again.is_output(PortNo(3)));
}

#[test]
fn mirrors_with_one_output_copy_once_and_copies_can_be_mirrored() {
    let every = |key: &str, port| MirrorConfig {
        all: true,
        ..mirror(key, to(port))
    };
    let frame = frame(HOST, &[]);
    let twins = MirroredBridge::new(&[every("a", 3), every("b", 3)]);
    assert_eq!(
        twins.sent(&frame, &[(1, MirrorDirection::In)]),
        [(3, None, None)]
    );
    // The second mirror copies the output of the first.
    let chained = MirroredBridge::new(&[
        MirrorConfig {
            ingress_ports: ports(&[1]),
            ..mirror("a", to(3))
        },
        MirrorConfig {
            egress_ports: ports(&[3]),
            ..mirror("b", to(5))
        },
    ]);
    let mut sent = chained.sent(&frame, &[(1, MirrorDirection::In)]);
    sent.sort_unstable();
    assert_eq!(sent, [(3, None, None), (5, None, None)]);
    // Each mirror has one copy, and none of the other's.
    let mut sent = MirroredBridge::new(&[every("a", 3), every("b", 5)])
        .sent(&frame, &[(1, MirrorDirection::In)]);
    sent.sort_unstable();
    assert_eq!(sent, [(3, None, None), (5, None, None)]);
}

#[test]
fn mirror_selects_frames_by_vlan() {
    let bridge = MirroredBridge::new(&[MirrorConfig {
        all: true,
        vlans: Some([10].into_iter().collect()),
        ..mirror("m", to(3))
    }]);
    let tagged = frame(HOST, &[0x81, 0, 0, 10]);
    let plain = frame(HOST, &[]);
    let taken = [(3, Some(10), None)];
    assert_eq!(bridge.sent(&tagged, &[(1, MirrorDirection::In)]), taken);
    assert_eq!(bridge.sent(&plain, &[(1, MirrorDirection::In)]), []);
    // Port 4 is in the VLAN, and refuses tags.
    assert_eq!(bridge.sent(&plain, &[(4, MirrorDirection::In)]), taken);
    assert_eq!(bridge.sent(&tagged, &[(4, MirrorDirection::In)]), []);
}

#[test]
fn mirror_output_vlan_reaches_all_ports_of_the_vlan() {
    let into = |vid| {
        MirroredBridge::new(&[
            MirrorConfig {
                ingress_ports: ports(&[1]),
                ..mirror("m", MirrorOutput::Vlan(vid))
            },
            mirror("other", to(5)),
        ])
    };
    let plain = frame(HOST, &[]);
    let way = [(1, MirrorDirection::In)];
    let tagged = |vid| [1, 2, 3].map(|port| (port, Some(vid), None)).to_vec();
    assert_eq!(into(20).sent(&plain, &way), tagged(20));
    // Port 4 is in the VLAN, without tags.
    let mut with_four = tagged(10);
    with_four.push((4, None, None));
    assert_eq!(into(10).sent(&plain, &way), with_four);
    let in_it = frame(HOST, &[0x81, 0, 0, 20]);
    assert_eq!(into(20).sent(&in_it, &way), [], "it is there already");
    for dst in [
        [0x01, 0x80, 0xc2, 0, 0, 0x0e],
        [0x01, 0x00, 0x0c, 0xcc, 0xcc, 0xcd],
    ] {
        assert_eq!(into(20).sent(&frame(dst, &[]), &way), []);
    }
}
