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
    /// No port is attached.
    Configured,
    /// Ports are attached: they have a partner, or expect one.
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

/// The priority of a link, as the better of the two systems sees it; the lowest is the best.
type LinkPriority = (LacpSystem, u16, u16);

/// The ports of a bond.
#[derive(Debug)]
pub struct LacpGroup {
    settings: LacpSettings,
    ports: BTreeMap<PortNo, LacpPort>,
    /// The port with whose partner the others attach.
    lead: Option<PortNo>,
}

impl LacpGroup {
    /// Returns a group without ports.
    pub const fn new(settings: LacpSettings) -> Self {
        Self {
            settings,
            ports: BTreeMap::new(),
            lead: None,
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
        match self.lead {
            Some(_) => LacpStatus::Negotiated,
            None => LacpStatus::Configured,
        }
    }

    /// Returns whether the port may carry frames.
    pub fn may_enable(&self, number: PortNo) -> bool {
        let Some(port) = self.ports.get(&number) else {
            return false;
        };
        let lacp_fallback = self.settings.lacp_fallback && self.lead.is_none();
        port.is_distributing() || (lacp_fallback && port.receive() == ReceiveState::Defaulted)
    }

    /// Sets the carrier state of a port.
    pub fn handle_carrier(&mut self, number: PortNo, up: bool, now: Instant) {
        if let Some(port) = self.ports.get_mut(&number) {
            port.handle_carrier(&self.settings, up, now);
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

    /// Selects the leading port, and attaches the ports with the same partner, as Open vSwitch does.
    ///
    /// Attached ports with a current partner lead, so a wrongly cabled link does not detach the
    /// others. Otherwise, the port with the best priority leads, even if its partner is still
    /// unknown: ports are attached while they expect a partner.
    fn select(&mut self) {
        let is_current = |port: &LacpPort| port.receive() == ReceiveState::Current;
        let best = |fits: &dyn Fn(&LacpPort) -> bool| {
            let ports = self.ports.iter().filter(|(_, port)| fits(port));
            let best = ports.min_by_key(|(_, port)| self.priority_of(port));
            best.map(|(number, port)| (*number, port))
        };
        let current =
            best(&|port| is_current(port) && port.is_attached() && self.is_selectable(port));
        let lead = current.or_else(|| best(&|port| self.is_selectable(port)));
        let partner = |port: &LacpPort| {
            let partner = port.partner();
            (partner.system.address, partner.key, port.settings.key)
        };
        let shared = lead.map(|(_, port)| partner(port));
        let falls_back = |port: &LacpPort| {
            shared.is_none()
                && self.settings.lacp_fallback
                && port.receive() == ReceiveState::Defaulted
        };
        let attached: Vec<_> = self
            .ports
            .values()
            .map(|port| {
                let is_member = self.is_selectable(port) && Some(partner(port)) == shared;
                is_member || falls_back(port)
            })
            .collect();
        self.lead = lead.map(|(number, _)| number);
        for (port, attached) in self.ports.values_mut().zip(attached) {
            port.attach(attached, self.lead.is_some());
        }
    }

    /// Returns whether a port may be attached: its partner is not this system, and an aggregate has
    /// no member whose partner does not aggregate.
    fn is_selectable(&self, port: &LacpPort) -> bool {
        let partner = port.partner();
        let aggregates = partner.state.has(LacpState::AGGREGATION) || !self.settings.aggregates;
        partner.system.address != self.settings.system.address
            && match port.receive() {
                ReceiveState::Defaulted => false,
                ReceiveState::Expired => true,
                ReceiveState::Current => aggregates,
            }
    }

    fn priority_of(&self, port: &LacpPort) -> LinkPriority {
        let actor = port.actor(&self.settings);
        let partner = port.partner();
        let better = match actor.system < partner.system {
            true => &actor,
            false => partner,
        };
        (better.system, better.port_priority, better.port)
    }
}
