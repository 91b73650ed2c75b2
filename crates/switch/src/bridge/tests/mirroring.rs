//! Tests of mirrors on the control thread.

use flow::{Continuation, ContinuationStep, Resume};

use super::*;
use config::{MirrorConfig, MirrorOutput};
use openflow::continuation;

/// Returns the message that resumes a packet before its output to port 2.
fn resume(mirrors: u32) -> Message {
    let step = ContinuationStep {
        table: TableId::FIRST,
        cookie: Cookie::NONE,
        rest: Instructions::apply(vec![Action::output(PortNo(2))]),
    };
    let paused = Continuation {
        steps: vec![step],
        mirrors,
        ..Continuation::default()
    };
    let mut data = vec![2; 60];
    data[12..14].copy_from_slice(&[0x88, 0xb5]);
    Message::Resume(Resume {
        registers: PipelineFields::new(PortNo(1)),
        data,
        continuation: continuation::encode(&paused, DatapathId(1)).expect("it is short"),
    })
}

#[test]
fn resumed_packet_is_not_mirrored_again() {
    let mut rig = Rig::controlled();
    rig.bridge.set_mirrors(&[MirrorConfig {
        key: "m".to_owned(),
        all: false,
        ingress_ports: Vec::new(),
        egress_ports: vec![PortNo(2)],
        vlans: None,
        output: MirrorOutput::Port(vec![PortNo(3)]),
        snaplen: None,
    }]);
    let both = ["out of 3: 60 bytes", "out of 2: 60 bytes"];
    assert_eq!(summary(&rig.send(NEW, resume(0))), both);
    assert_eq!(summary(&rig.send(NEW, resume(1))), ["out of 2: 60 bytes"]);
}
