//! Tests of the spanning tree: a cable joins two ports of the bridge, of which one must block.

use flow::PortState;

use super::*;
use config::{SpanningTreeConfig, SpanningTreePort, SpanningTreeProtocol};
use dataplane::stp_filter::BlockedPort;

/// The ports at the ends of the cable.
const CABLE: [PortNo; 2] = [PortNo(1), PortNo(2)];

fn tree(protocol: SpanningTreeProtocol, ports: &[u16]) -> SpanningTreeConfig {
    let port = |number: &u16| {
        let settings = SpanningTreePort::new(format!("eth{number}"), *number);
        (PortNo((*number).into()), settings)
    };
    SpanningTreeConfig {
        ports: ports.iter().map(port).collect(),
        ..SpanningTreeConfig::new(protocol)
    }
}

impl Rig {
    fn span(&mut self, config: Option<&SpanningTreeConfig>) {
        let address = MacAddr([2, 0, 0, 0, 0, 0x77]);
        self.bridge.set_spanning(config, address, self.now);
    }

    /// Advances the clock by seconds, and carries BPDUs between the ends of the cable.
    fn exchange_bpdus(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += std::time::Duration::from_secs(1);
            loop {
                let by_action = self.effects(Bridge::run_protocols);
                if by_action.is_empty() {
                    break;
                }
                for effect in by_action {
                    let Effect::Transmit(port, frame, None) = effect else {
                        panic!("{effect:?} is no BPDU");
                    };
                    let other = CABLE.iter().find(|end| **end != port);
                    if let Some(other) = other.filter(|_| CABLE.contains(&port)) {
                        self.effects(|bridge, now, effects| {
                            bridge.handle_punted(*other, frame.bytes(), now, effects);
                        });
                    }
                }
            }
        }
    }

    fn state(&self, port: u32) -> PortState {
        self.bridge.ports[&PortNo(port)].desc.state
    }

    fn blocked(&self, port: u32) -> Option<BlockedPort> {
        self.bridge.stp_filter()?.of(PortNo(port))
    }

    fn is_shut(&self, port: u32) -> bool {
        let view = self.bridge.tables.pipeline.port(PortNo(port));
        view.is_some_and(|view| view.is_stp_blocked && !view.forwards())
    }
}

#[test]
fn spanning_tree_blocks_one_end_of_a_cable_and_reports_port_status() {
    let mut rig = Rig::controlled();
    rig.span(Some(&tree(SpanningTreeProtocol::Stp, &[1, 2])));
    assert!(rig.is_shut(1) && rig.is_shut(2) && !rig.is_shut(3));
    assert_eq!(rig.blocked(1), Some(BlockedPort::DropAll));
    assert_eq!(rig.blocked(3), None, "it is not in the tree");
    let punts = rig.bridge.punts().expect("BPDUs are the bridge's");
    assert!(
        punts.of(PortNo(3)).is_some_and(|of| of.spanning),
        "no port passes them on"
    );
    assert_eq!(
        summary(&rig.pass()).len(),
        4,
        "each controller of two ports"
    );
    rig.exchange_bpdus(20);
    assert_eq!(rig.blocked(1), Some(BlockedPort::LearnOnly));
    assert!(rig.is_shut(1), "it learns only");
    let bits = rig.state(1).0 & PortState::STP_MASK.0;
    assert_eq!(PortState(bits), PortState::STP_LEARN);
    rig.exchange_bpdus(20);
    assert_eq!(rig.blocked(1), None);
    assert!(!rig.is_shut(1) && rig.is_shut(2));
    let summary = [1, 2, 3].map(|port| rig.state(port));
    let live = PortState::LIVE.0;
    let blocked = PortState::BLOCKED.0 | PortState::STP_BLOCK.0;
    let wanted = [live | PortState::STP_FORWARD.0, live | blocked, live].map(PortState);
    assert_eq!(summary, wanted);
}

#[test]
fn port_with_no_stp_stays_outside_the_tree() {
    let mut rig = Rig::controlled();
    rig.span(Some(&tree(SpanningTreeProtocol::Rstp, &[1, 2])));
    rig.exchange_bpdus(40);
    assert!(!rig.is_shut(1) && rig.is_shut(2));
    let port_mod = |config| {
        Message::PortMod(PortMod {
            port: PortNo(2),
            hw_addr: MacAddr::from_u64(2),
            config,
            mask: PortConfig::NO_STP,
            advertise: 0,
        })
    };
    rig.send(OLD, port_mod(PortConfig::NO_STP));
    assert!(!rig.is_shut(2) && rig.blocked(2).is_none());
    assert_eq!(rig.state(2), PortState::LIVE);
    rig.send(OLD, port_mod(PortConfig::default()));
    assert!(rig.is_shut(2), "it begins anew");
    rig.span(None);
    assert!(!rig.is_shut(2) && rig.bridge.stp_filter().is_none());
    assert!(rig.bridge.punts().is_none());
}

#[test]
fn port_with_no_recv_stp_ignores_bpdus_and_link_changes_reach_the_tree() {
    let mut rig = Rig::controlled();
    let deaf = |port: u32| {
        Message::PortMod(PortMod {
            port: PortNo(port),
            hw_addr: MacAddr::from_u64(port.into()),
            config: PortConfig::NO_RECV_STP,
            mask: PortConfig::NO_RECV_STP,
            advertise: 0,
        })
    };
    rig.span(Some(&tree(SpanningTreeProtocol::Stp, &[1, 2])));
    rig.send(OLD, deaf(2));
    rig.exchange_bpdus(40);
    assert!(!rig.is_shut(1) && !rig.is_shut(2), "it knows no other path");
    let link = crate::link::Link {
        index: 1,
        name: "eth1".to_owned(),
        up: true,
        carrier: false,
        hw_addr: None,
    };
    rig.effects(|bridge, _, effects| bridge.handle_port_link(PortNo(1), &link, effects));
    assert!(rig.is_shut(1));
    assert_eq!(rig.state(1), PortState::LINK_DOWN);
    rig.effects(|bridge, _, effects| bridge.handle_port_removed(PortNo(1), effects));
    assert!(
        rig.bridge
            .spanning()
            .is_some_and(|of| of.tree().port(PortNo(1)).is_none())
    );
}

#[test]
fn addresses_are_flushed_on_ports_that_do_not_learn() {
    let mut rig = Rig::controlled();
    let station = FdbKey {
        vid: 0,
        mac: MacAddr::from_u64(9),
    };
    rig.bridge.handle_address(station, PortNo(1), rig.now);
    assert_eq!(rig.bridge.fdb().view().iter().count(), 1);
    rig.span(Some(&tree(SpanningTreeProtocol::Stp, &[1])));
    assert_eq!(rig.bridge.fdb().view().iter().count(), 0);
}

#[test]
fn port_path_cost_follows_the_speed() {
    let cost = |protocol, mbps: u32, asked| {
        let mut rig = Rig::new(FailMode::Secure, false);
        let entry = rig.bridge.ports.get_mut(&PortNo(1)).expect("it is there");
        entry.desc.speed_kbps = mbps * 1000;
        let mut config = tree(protocol, &[1]);
        config
            .ports
            .get_mut(&PortNo(1))
            .expect("it is there")
            .path_cost = asked;
        rig.span(Some(&config));
        let info = rig
            .bridge
            .spanning()
            .and_then(|of| of.tree().port(PortNo(1)));
        info.expect("it is there").settings.path_cost
    };
    let (stp, rstp) = (SpanningTreeProtocol::Stp, SpanningTreeProtocol::Rstp);
    let costs = [0, 10, 100, 1_000, 10_000, 100_000];
    assert_eq!(
        costs.map(|mbps| cost(stp, mbps, None)),
        [2, 100, 19, 4, 2, 2]
    );
    assert_eq!(
        costs.map(|mbps| cost(rstp, mbps, None)),
        [2_000, 2_000_000, 200_000, 20_000, 2_000, 200]
    );
    assert_eq!(cost(rstp, 10, Some(7)), 7);
}

#[test]
fn bpdu_guard_shuts_a_port_and_admin_down_and_up_opens_it() {
    let mut rig = Rig::controlled();
    let mut config = tree(SpanningTreeProtocol::Rstp, &[1, 2]);
    config.ports.get_mut(&PortNo(2)).expect("there").guards.bpdu = true;
    rig.span(Some(&config));
    rig.exchange_bpdus(5);
    assert_eq!(rig.blocked(2), Some(BlockedPort::DropAll));
    assert!(rig.is_shut(2) && rig.bridge.tree_guarded() == 1);
    let wanted = PortState(PortState::LIVE.0 | PortState::BLOCKED.0);
    assert_eq!(rig.state(2), wanted, "controllers see that it is shut");
    rig.exchange_bpdus(60);
    assert!(rig.is_shut(2) && !rig.is_shut(1));
    for config in [PortConfig::DOWN, PortConfig::default()] {
        rig.send(
            OLD,
            Message::PortMod(PortMod {
                port: PortNo(2),
                hw_addr: MacAddr::from_u64(2),
                config,
                mask: PortConfig::DOWN,
                advertise: 0,
            }),
        );
    }
    let guard = |rig: &Rig| {
        let tree = rig.bridge.spanning().expect("it is enabled").tree();
        tree.port(PortNo(2)).expect("it is a member").guard
    };
    assert_eq!(guard(&rig), None);
    rig.exchange_bpdus(5);
    assert_eq!(guard(&rig), Some(l2::spanning_tree::TreeGuard::Bpdu));
    assert_eq!(rig.bridge.tree_guarded(), 2);
}
