//! The ports of a bond, and their attachment to its one aggregator (the selection logic,
//! 802.1AX-2014, 6.4.14).

use std::collections::BTreeMap;

use base::{Instant, PortNo};
use packet::wire::slow::{LacpState, LacpSystem, Lacpdu, SlowPdu};

use super::LacpSettings;
use super::port::{LacpPort, LacpPortSettings, ReceiveState};

/// The result of the negotiation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LacpStatus {
    /// LACP is disabled.
    #[default]
    Off,
    /// No port has a partner.
    Configured,
    /// The group has a partner.
    Negotiated,
}

impl LacpStatus {
    /// Returns the word that `bond/show` prints.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Configured => "configured",
            Self::Negotiated => "negotiated",
        }
    }
}

/// The other end of an aggregate: a system, its key, and our key.
type Partner = (LacpSystem, u16, u16);

/// The ports of a bond.
#[derive(Debug)]
pub struct LacpGroup {
    settings: LacpSettings,
    ports: BTreeMap<PortNo, LacpPort>,
    partner: Option<Partner>,
}

impl LacpGroup {
    /// Returns a group without ports.
    pub const fn new(settings: LacpSettings) -> Self {
        Self {
            settings,
            ports: BTreeMap::new(),
            partner: None,
        }
    }

    /// Replaces settings and ports; remaining ports keep their state.
    pub fn configure(
        &mut self,
        settings: LacpSettings,
        ports: &BTreeMap<PortNo, LacpPortSettings>,
    ) {
        let changed = self.settings != settings;
        self.settings = settings;
        self.ports.retain(|number, _| ports.contains_key(number));
        for (number, settings) in ports {
            let port = self.ports.entry(*number);
            let port = port.or_insert_with(|| LacpPort::new(*settings));
            if changed || port.settings != *settings {
                port.settings = *settings;
                port.request_transmission();
            }
        }
        self.select();
    }

    /// Returns the settings.
    pub const fn settings(&self) -> &LacpSettings {
        &self.settings
    }

    /// Returns the ports.
    pub fn ports(&self) -> impl Iterator<Item = (PortNo, &LacpPort)> {
        self.ports.iter().map(|(number, port)| (*number, port))
    }

    /// Returns one port.
    pub fn port(&self, number: PortNo) -> Option<&LacpPort> {
        self.ports.get(&number)
    }

    /// Returns the result of the negotiation.
    pub const fn status(&self) -> LacpStatus {
        match self.partner {
            Some(_) => LacpStatus::Negotiated,
            None => LacpStatus::Configured,
        }
    }

    /// Returns whether the port may carry frames.
    pub fn may_enable(&self, number: PortNo) -> bool {
        let Some(port) = self.ports.get(&number) else {
            return false;
        };
        let lacp_fallback = self.settings.lacp_fallback && self.partner.is_none();
        port.is_distributing() || (lacp_fallback && port.receive() == ReceiveState::Defaulted)
    }

    /// Sets the carrier state of a port.
    pub fn handle_carrier(&mut self, number: PortNo, up: bool, now: Instant) {
        if let Some(port) = self.ports.get_mut(&number) {
            port.handle_carrier(up, now);
            self.select();
        }
    }

    /// Processes a received slow-protocols frame. Returns the response to send at once, if any.
    pub fn handle_frame(&mut self, number: PortNo, frame: &[u8], now: Instant) -> Option<SlowPdu> {
        let port = self.ports.get_mut(&number)?;
        match SlowPdu::parse(frame) {
            Ok(SlowPdu::Lacp(pdu)) => {
                port.handle_pdu(&self.settings, &pdu, now);
                self.select();
            }
            Ok(SlowPdu::Marker(mut marker)) if !marker.is_response => {
                port.counters.markers += 1;
                marker.is_response = true;
                return Some(SlowPdu::Marker(marker));
            }
            // This system sends no markers, so a response has no request.
            Ok(SlowPdu::Marker(_)) => {}
            Ok(SlowPdu::Other(_)) | Err(_) => port.counters.malformed += 1,
        }
        None
    }

    /// Executes expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        for port in self.ports.values_mut() {
            port.handle_timeout(now);
        }
        self.select();
    }

    /// Returns the next LACPDU that is due, with its port.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<(PortNo, Lacpdu)> {
        let settings = &self.settings;
        self.ports
            .iter_mut()
            .find_map(|(number, port)| Some((*number, port.poll(settings, now)?)))
    }

    /// Returns the time of the next timer or transmission.
    pub fn next_timeout(&self) -> Option<Instant> {
        let ports = self.ports.values();
        let due =
            ports.flat_map(|port| [port.next_timeout(), port.next_transmission(&self.settings)]);
        due.flatten().min()
    }

    /// Selects the partner, and attaches the ports that have it.
    ///
    /// The current partner stays as long as any port has it, so a wrongly cabled link does not
    /// detach the others. Among several candidates the port with the best priority decides, in the
    /// view of the better of the two systems.
    fn select(&mut self) {
        let candidates = self
            .ports
            .iter()
            .filter_map(|(number, port)| Some((*number, port, self.partner_of(port)?)));
        let candidates: Vec<_> = candidates.collect();
        let stays = |partner: &Partner| candidates.iter().any(|(_, _, other)| other == partner);
        self.partner = self.partner.filter(stays).or_else(|| {
            let best = candidates.iter().min_by_key(|(_, port, (system, ..))| {
                let theirs = (port.partner().port_priority, port.partner().port);
                let ours = (port.settings.priority, port.settings.number);
                if *system < self.settings.system {
                    theirs
                } else {
                    ours
                }
            });
            best.map(|(_, _, partner)| *partner)
        });
        let attached: Vec<_> = candidates
            .iter()
            .filter(|(_, _, partner)| Some(*partner) == self.partner)
            .map(|(number, _, _)| *number)
            .collect();
        for (number, port) in &mut self.ports {
            port.attach(attached.contains(number));
        }
    }

    /// Returns the partner of a port that may be aggregated, unless the partner is this system. An
    /// individual port accepts a partner that does not aggregate.
    fn partner_of(&self, port: &LacpPort) -> Option<Partner> {
        let partner = port.partner();
        let fits = port.receive() == ReceiveState::Current
            && (partner.state.has(LacpState::AGGREGATION) || !self.settings.aggregates)
            && partner.system.address != self.settings.system.address;
        fits.then_some((partner.system, partner.key, port.settings.key))
    }
}
