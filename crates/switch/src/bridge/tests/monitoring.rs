//! Tests of connectivity monitoring: the frames of monitors, and the ports that are live.

use packet::wire::bfd::BfdDatagram;

use super::*;
use config::{BfdConfig, CfmConfig, LldpConfig, MonitoringConfig};
use dataplane::punt::PuntedProtocol;
use flow::PortState;
use l2::bfd::{BfdIdentity, BfdSession};

const PORT: PortNo = PortNo(2);

fn bfd() -> MonitoringConfig {
    MonitoringConfig {
        bfd: Some(BfdConfig::default()),
        ..MonitoringConfig::default()
    }
}

/// A bridge whose port 2 has a BFD session, and the session at the other end.
struct BfdRig {
    rig: Rig,
    peer: BfdSession,
}

impl BfdRig {
    fn new() -> Self {
        let mut rig = Rig::controlled();
        rig.now = Instant::from_secs(1);
        let now = rig.now;
        rig.bridge.set_monitoring(PORT, "eth2", &bfd(), now);
        let identity = BfdIdentity {
            discriminator: 7,
            udp_src: 50_000,
            seed: 1,
        };
        let peer = BfdSession::new(&BfdConfig::default(), identity, 0, now);
        Self { rig, peer }
    }

    /// Exchanges frames for some seconds.
    fn run(&mut self, seconds: u64) {
        let until = self.rig.now + std::time::Duration::from_secs(seconds);
        while self.rig.now < until {
            self.rig.now += std::time::Duration::from_millis(50);
            let now = self.rig.now;
            let address = MacAddr::from_u64(9);
            if let Some(frame) = self.peer.poll_transmit(address, now) {
                let effects = self.rig.effects(|bridge, now, effects| {
                    bridge.handle_punted(PORT, frame.bytes(), now, effects);
                });
                self.receive(&effects);
            }
            let effects = self
                .rig
                .effects(|bridge, now, effects| bridge.run_protocols(now, effects));
            self.receive(&effects);
            self.peer.handle_timeout(0, now);
        }
    }

    fn receive(&mut self, effects: &[Effect]) {
        for effect in effects {
            if let Effect::Transmit(PORT, frame, None) = effect
                && let Some(datagram) = BfdDatagram::find(frame.bytes())
            {
                let packet = (datagram.payload, datagram.ttl);
                let handled = self.peer.handle_packet(packet, 0, self.rig.now);
                assert_eq!(handled, Ok(()));
            }
        }
    }

    fn is_live(&self) -> bool {
        let mut ports = self.rig.bridge.ports();
        let port = ports.find(|(number, _)| *number == PORT);
        port.is_some_and(|(_, entry)| entry.desc.state.contains(PortState::LIVE))
    }
}

#[test]
fn port_with_bfd_is_live_while_the_session_is_up() {
    let mut both = BfdRig::new();
    let punts = both.rig.bridge.punts().expect("the port punts");
    assert!(punts.of(PORT).is_some_and(|punted| punted.bfd.is_some()));
    assert!(!both.is_live());
    both.rig.pass();
    both.run(3);
    assert!(both.is_live());
    assert!(both.rig.bridge.poll_monitors() && !both.rig.bridge.poll_monitors());
    let notified = summary(&both.rig.pass());
    assert_eq!(notified, ["13 told PortStatus"], "1.0 does not show it");
    let status = both
        .rig
        .bridge
        .port_monitor(PORT)
        .and_then(PortMonitor::bfd_status);
    assert!(status.is_some_and(|status| status.is_forwarding && status.flaps == 1));
    // The other end is silent.
    both.rig.now += std::time::Duration::from_secs(10);
    both.rig
        .effects(|bridge, now, effects| bridge.run_protocols(now, effects));
    assert!(!both.is_live());
    let now = both.rig.now;
    let nothing = MonitoringConfig::default();
    both.rig.bridge.set_monitoring(PORT, "eth2", &nothing, now);
    assert!(both.is_live() && both.rig.bridge.punts().is_none());
}

#[test]
fn port_that_another_monitor_confirms_is_live() {
    let mut rig = Rig::new(FailMode::Secure, false);
    let both = MonitoringConfig {
        cfm: Some(CfmConfig::default()),
        ..bfd()
    };
    let now = rig.now;
    rig.bridge.set_monitoring(PORT, "eth2", &both, now);
    let is_live = |rig: &Rig| {
        let mut ports = rig.bridge.ports();
        let port = ports.find(|(number, _)| *number == PORT);
        port.is_some_and(|(_, entry)| entry.desc.state.contains(PortState::LIVE))
    };
    // A point has no fault before its first check.
    assert!(is_live(&rig));
    rig.now = Instant::from_secs(5);
    rig.effects(|bridge, now, effects| bridge.run_protocols(now, effects));
    assert!(!is_live(&rig));
    for monitor in rig.bridge.port_monitors_mut() {
        let cfm = monitor.cfm_mut().expect("it is configured");
        cfm.override_fault(Some(false));
    }
    rig.bridge.handle_operator();
    assert!(is_live(&rig));
}

#[test]
fn lldp_frames_are_sent_and_stored() {
    let mut rig = Rig::new(FailMode::Secure, false);
    let lldp = MonitoringConfig {
        lldp: Some(LldpConfig::default()),
        ..MonitoringConfig::default()
    };
    let now = rig.now;
    rig.bridge.set_monitoring(PORT, "eth2", &lldp, now);
    rig.now = Instant::from_secs(5);
    let effects = rig.effects(|bridge, now, effects| bridge.run_protocols(now, effects));
    let [Effect::Transmit(PORT, frame, None)] = &effects[..] else {
        panic!("{effects:?}");
    };
    let punted = rig.bridge.punts().and_then(|punts| punts.of(PORT));
    let punted = punted.and_then(|punted| punted.protocol(frame.bytes(), 0));
    assert_eq!(punted, Some(PuntedProtocol::Lldp));
    rig.effects(|bridge, now, effects| {
        bridge.handle_punted(PORT, frame.bytes(), now, effects);
    });
    let agent = rig.bridge.port_monitor(PORT).and_then(PortMonitor::lldp);
    assert_eq!(agent.map(|agent| agent.neighbors().count()), Some(1));
}
