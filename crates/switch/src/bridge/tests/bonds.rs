//! Tests of bonds: the active member, and the frames to the other end.

use std::time::Duration;

use packet::wire::slow::{LacpState, SlowPdu};

use super::*;
use crate::link::Link;
use config::{
    BondConfig, BondMemberConfig, BondMode, LacpActivity, LacpConfig, LacpMemberConfig,
    LogicalPort, SwitchingConfig,
};
use dataplane::punt::PuntedProtocols;

const MEMBERS: [PortNo; 2] = [PortNo(2), PortNo(3)];
const STATION: FdbKey = FdbKey {
    vid: 0,
    mac: MacAddr([2, 0, 0, 0, 0, 0x10]),
};

fn switching(mode: BondMode, lacp: Option<LacpConfig>) -> SwitchingConfig {
    let member = |port: PortNo| BondMemberConfig {
        port,
        name: format!("eth{}", port.0),
        lacp: LacpMemberConfig::default(),
    };
    let bond = BondConfig {
        mode,
        lacp,
        members: MEMBERS.map(member).to_vec(),
        ..BondConfig::default()
    };
    SwitchingConfig {
        ports: vec![LogicalPort {
            name: "bond0".to_owned(),
            members: MEMBERS.to_vec(),
            bond: Some(bond),
            ..LogicalPort::default()
        }],
        ..SwitchingConfig::default()
    }
}

/// Returns a bridge whose ports 2 and 3 are a bond.
fn bonded(mode: BondMode, lacp: Option<LacpConfig>) -> Rig {
    let mut rig = Rig::new(FailMode::Standalone, false);
    rig.bridge.set_switching(&switching(mode, lacp), rig.now);
    rig
}

impl Rig {
    fn look(&mut self) -> Vec<Effect> {
        self.effects(|bridge, now, effects| bridge.run_protocols(now, effects))
    }

    fn set_carrier(&mut self, port: PortNo, carrier: bool) {
        let link = Link {
            index: 0,
            name: format!("eth{}", port.0),
            up: true,
            carrier,
            hw_addr: None,
        };
        self.effects(|bridge, _, effects| bridge.handle_port_link(port, &link, effects));
    }
}

/// Returns the sent frames and their ports.
fn sent(effects: &[Effect]) -> Vec<(PortNo, &[u8])> {
    let mut sent = Vec::new();
    for effect in effects {
        if let Effect::Transmit(port, frame, None) = effect {
            sent.push((*port, frame.bytes()));
        }
    }
    sent
}

#[test]
fn bond_failover_sends_learning_packets() {
    let mut rig = bonded(BondMode::ActiveBackup, None);
    rig.look();
    let behind = FdbKey {
        mac: MacAddr([2, 0, 0, 0, 0, 0x20]),
        ..STATION
    };
    rig.bridge.handle_address(STATION, PortNo(1), rig.now);
    // An address received on any member is learned on the bond.
    rig.bridge.handle_address(behind, PortNo(3), rig.now);
    let place = |rig: &Rig| {
        let view = rig.bridge.fdb().view();
        view.find(behind).map(|station| station.port())
    };
    assert_eq!(place(&rig), Some(PortNo(2)));
    assert!(rig.bridge.poll_bonds() && !rig.bridge.poll_bonds());
    rig.set_carrier(PortNo(2), false);
    let effects = rig.look();
    let [(port, frame)] = sent(&effects)[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(port, PortNo(3));
    assert_eq!(frame[..6], [0xff; 6]);
    assert_eq!(frame[6..12], STATION.mac.0);
    assert_eq!(frame[12..14], [0x80, 0x35]);
    assert_eq!(place(&rig), Some(PortNo(2)), "it is still behind the bond");
    assert!(rig.bridge.poll_bonds());
    assert_eq!(rig.bridge.active_members()["bond0"], MacAddr::from_u64(3));
    rig.set_carrier(PortNo(3), false);
    rig.look();
    assert_eq!(place(&rig), None);
    assert!(rig.bridge.active_members().is_empty());
    // The removal of the bond removes its state.
    rig.bridge
        .set_switching(&SwitchingConfig::default(), rig.now);
    assert_eq!(rig.bridge.bonds().count(), 0);
}

#[test]
fn bond_restores_active_member_after_restart() {
    let mut rig = Rig::new(FailMode::Standalone, false);
    let mut config = switching(BondMode::ActiveBackup, None);
    let bond = config.ports[0].bond.as_mut().expect("a bond");
    bond.last_active = Some(MacAddr::from_u64(3));
    rig.bridge.set_switching(&config, rig.now);
    rig.look();
    assert_eq!(rig.bridge.active_members()["bond0"], MacAddr::from_u64(3));
    // Another member has become active since: it remains active.
    rig.set_carrier(PortNo(3), false);
    rig.look();
    rig.set_carrier(PortNo(3), true);
    rig.look();
    assert_eq!(rig.bridge.active_members()["bond0"], MacAddr::from_u64(2));
    for port in MEMBERS {
        rig.set_carrier(port, false);
        rig.look();
    }
    for port in MEMBERS {
        rig.set_carrier(port, true);
    }
    rig.look();
    assert_eq!(rig.bridge.active_members()["bond0"], MacAddr::from_u64(3));
}

#[test]
fn single_interface_with_lacp_is_an_ordinary_port() {
    let lacp = LacpConfig {
        activity: LacpActivity::Active,
        is_fast: true,
        system: None,
        priority: 7,
    };
    let mut config = switching(BondMode::ActiveBackup, Some(lacp));
    config.ports[0].members.truncate(1);
    let bond = config.ports[0].bond.as_mut().expect("a bond");
    bond.members.truncate(1);
    bond.is_single_member = true;
    let mut rig = Rig::new(FailMode::Standalone, false);
    rig.bridge.set_switching(&config, rig.now);
    let effects = rig.look();
    assert_eq!(sent(&effects).len(), 1, "it runs LACP");
    assert_eq!(rig.bridge.is_lacp_current(PortNo(2)), Some(false));
    assert_eq!(rig.bridge.lacp_ports().count(), 1);
    assert_eq!(rig.bridge.bonds().count(), 0);
    assert!(rig.bridge.active_members().is_empty() && rig.bridge.bond_mut("bond0").is_none());
    let view = rig.bridge.switching().expect("it is no plain port");
    assert!(view.bond(PortNo(2)).is_none());
}

#[test]
fn lacp_runs_on_members_only() {
    let lacp = LacpConfig {
        activity: LacpActivity::Active,
        is_fast: true,
        system: None,
        priority: 7,
    };
    let mut rig = bonded(BondMode::BalanceTcp, Some(lacp));
    let punts = rig.bridge.punts().expect("members take messages");
    let slow = PuntedProtocols {
        slow: true,
        ..PuntedProtocols::default()
    };
    assert_eq!(punts.of(PortNo(1)), None);
    assert_eq!(punts.of(PortNo(3)), Some(slow));
    let effects = rig.look();
    let summary = sent(&effects);
    assert_eq!(
        summary.iter().map(|(port, _)| *port).collect::<Vec<_>>(),
        MEMBERS
    );
    let Ok(SlowPdu::Lacp(mut pdu)) = SlowPdu::parse(summary[1].1) else {
        panic!("{summary:?}");
    };
    assert_eq!(
        (pdu.actor.system.priority, pdu.actor.port, pdu.actor.key),
        (7, 3, 2)
    );
    // The partner agrees.
    std::mem::swap(&mut pdu.actor, &mut pdu.partner);
    pdu.actor.state = LacpState::default()
        .with(LacpState::AGGREGATION, true)
        .with(LacpState::SYNCHRONIZATION, true);
    pdu.actor.system.address = MacAddr::from_u64(99);
    let frame = pdu.emit(MacAddr::from_u64(98));
    rig.effects(|bridge, now, effects| {
        bridge.handle_punted(PortNo(3), &frame, now, effects);
    });
    rig.look();
    assert_eq!(
        MEMBERS.map(|port| rig.bridge.is_lacp_current(port)),
        [Some(false), Some(true)]
    );
    assert_eq!(rig.bridge.active_members()["bond0"], MacAddr::from_u64(3));
    // The partner's information has expired.
    assert!(
        rig.bridge
            .next_timeout()
            .is_some_and(|due| due <= rig.now + Duration::from_secs(3))
    );
    for _ in 0..4 {
        rig.now += Duration::from_secs(1);
        rig.look();
    }
    assert_eq!(rig.bridge.is_lacp_current(PortNo(3)), Some(false));
    assert!(rig.bridge.active_members().is_empty());
}
