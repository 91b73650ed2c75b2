//! Tests of bridges that patch ports join.

use std::num::NonZeroUsize;

use ports::Counter;
use ports::vport::VirtualPort;

use super::*;
use crate::virtual_links::{VirtualLink, VirtualLinks};

/// Bridges beside the first of a rig, each with its own ports.
struct BridgeChain {
    rig: WorkerRig,
    others: Vec<(BridgeId, Pipeline, Classifier)>,
    virtual_links: Vec<(PortKey, VirtualLink)>,
}

fn port(bridge: u32, port: u32) -> PortKey {
    PortKey {
        bridge: BridgeId(bridge),
        port: PortNo(port),
    }
}

impl BridgeChain {
    fn new(rules: &[(u128, &[Action])], bridges: u32) -> Self {
        let other = |id| {
            let pipeline = Pipeline::new(Limits::default(), 1);
            (BridgeId(id), pipeline, Classifier::new())
        };
        Self {
            rig: WorkerRig::new(rules),
            others: (1..bridges).map(other).collect(),
            virtual_links: Vec::new(),
        }
    }

    /// Joins two new ports.
    fn join(&mut self, one: (u32, u32), other: (u32, u32)) {
        for (here, there) in [(one, other), (other, one)] {
            let key = port(here.0, here.1);
            let mut inner = VirtualPort::new("patch", NonZeroUsize::MIN);
            let queue = inner.take_queues().pop().expect("one queue");
            let command = WorkerCommand::AddPort(key, queue, self.rig.policing.clone());
            assert!(self.rig.commands.push(command).is_ok(), "the ring has room");
            self.rig.worker.turn(Instant::START);
            let desc = PortDesc {
                state: PortState::LIVE,
                ..PortDesc::new(key.port)
            };
            self.pipeline(here.0).0.set_port(&desc);
            self.virtual_links
                .push((key, VirtualLink::Patch(port(there.0, there.1))));
        }
    }

    fn pipeline(&mut self, bridge: u32) -> (&mut Pipeline, &mut Classifier) {
        match bridge {
            0 => (&mut self.rig.pipeline, &mut self.rig.compiled),
            other => {
                let (_, pipeline, compiled) = &mut self.others[other as usize - 1];
                (pipeline, compiled)
            }
        }
    }

    /// Adds a rule with these actions for all frames of a bridge.
    fn rule(&mut self, bridge: u32, actions: &[Action]) {
        let instructions = Instructions::apply(actions.to_vec());
        let rule = FlowMod::new(FlowModCommand::Add, 0, Match::any(), instructions);
        let (pipeline, compiled) = self.pipeline(bridge);
        let changes = pipeline.flow_mod(&rule, Instant::START);
        compiled.queue_changes(&changes.expect("legal"));
    }

    fn publish(&mut self) {
        self.rig.publish();
        let newest = self.rig.publication.load_full();
        let mut program = (*newest).clone();
        let others = self.others.iter_mut();
        program
            .bridges
            .extend(others.map(|(id, pipeline, compiled)| BridgeProgram {
                id: *id,
                pipeline: pipeline.clone(),
                compiled: compiled.publish(pipeline),
                ..newest.bridges[0].clone()
            }));
        program.virtual_links = Arc::new(VirtualLinks::from_iter(self.virtual_links.clone()));
        self.rig.publication.swap(Arc::new(program));
    }

    fn counted(&mut self, key: PortKey) -> (u64, u64) {
        let slot = self.rig.worker.forwarder.slots.find(key).expect("a port");
        let counts = slot.queue.counters().read();
        (counts[Counter::RxPackets], counts[Counter::TxPackets])
    }
}

#[test]
fn frame_passes_ten_bridges_in_one_turn() {
    let mut chain = BridgeChain::new(&[(1, &[Action::output(PortNo(100))])], 10);
    for bridge in 0..9 {
        chain.join((bridge, 100), (bridge + 1, 101));
        chain.rule(bridge + 1, &[Action::output(PortNo(100))]);
    }
    // The frame returns to the first bridge by another port.
    chain.join((9, 100), (0, 102));
    chain.rule(0, &[Action::output(PortNo(3))]);
    chain.publish();
    assert_eq!(chain.rig.pass(1, 9), [3]);
    assert_eq!(chain.counted(port(0, 100)), (0, 1));
    assert_eq!(chain.counted(port(9, 101)), (1, 0));
    assert_eq!(chain.rig.drops(), [("", 0); 0]);
}

#[test]
fn packet_out_to_a_patch_port_is_recirculated() {
    let mut chain = BridgeChain::new(&[], 2);
    chain.join((0, 100), (1, 101));
    chain.rule(1, &[Action::output(PortNo::IN_PORT)]);
    chain.rule(0, &[Action::output(PortNo(2))]);
    chain.publish();
    chain.rig.worker.turn(Instant::START);
    let mut frame = chain.rig.worker.forwarder.pool.take().expect("a buffer");
    frame.copy_from(&frame_to(9, 8)).expect("room");
    let command = WorkerCommand::Transmit(key(100), frame, None);
    assert!(
        chain.rig.commands.push(command).is_ok(),
        "the ring has room"
    );
    assert_eq!(chain.rig.pass(1, 9), [2, 2]);
}

#[test]
fn recirculation_in_rings_is_limited() {
    for (rings, at_least) in [(1, 1), (2, 1000)] {
        let all: Vec<_> = (0..rings)
            .map(|ring| Action::output(PortNo(100 + ring)))
            .collect();
        let mut chain = BridgeChain::new(&[(1, &all)], 3);
        for ring in 0..rings {
            for bridge in 0..3 {
                chain.join((bridge, 100 + ring), ((bridge + 1) % 3, 110 + ring));
            }
        }
        (0..3).for_each(|bridge| chain.rule(bridge, &all));
        chain.publish();
        assert_eq!(chain.rig.pass(1, 9), [0; 0]);
        let drops = chain.rig.drops();
        let ended = drops.iter().find(|(name, _)| *name == "too_many_hops");
        assert!(
            ended.is_some_and(|(_, count)| *count >= at_least),
            "{drops:?}"
        );
    }
}

#[test]
fn patch_port_without_peer_drops_with_a_reason() {
    let mut chain = BridgeChain::new(&[(1, &[Action::output(PortNo(100))])], 2);
    chain.join((0, 100), (1, 101));
    chain.virtual_links.clear();
    chain.publish();
    assert_eq!(chain.rig.pass(1, 9), [0; 0]);
    assert_eq!(chain.rig.drops(), [("no_peer", 1)]);
}
