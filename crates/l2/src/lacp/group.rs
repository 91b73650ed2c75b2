//! The ports of a bond together: who of them belongs to the one aggregator (the selection
//! logic, 802.1AX-2014, 6.4.14).

use std::collections::BTreeMap;

use base::{Instant, PortNo};
use packet::wire::slow::{LacpState, LacpSystem, Lacpdu, SlowPdu};

use super::LacpSettings;
use super::port::{LacpPort, LacpPortSettings, ReceiveState};

/// What has come of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LacpStatus {
    /// LACP is not spoken.
    #[default]
    Off,
    /// No port has a partner.
    Configured,
    /// There is a partner.
    Negotiated,
}

impl LacpStatus {
    /// The word of `bond/show`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Configured => "configured",
            Self::Negotiated => "negotiated",
        }
    }
}

/// Whom frames are exchanged with: a system, a key of it, and a key of ours.
type Partner = (LacpSystem, u16, u16);

/// The ports of a bond.
#[derive(Debug)]
pub struct LacpGroup {
    settings: LacpSettings,
    ports: BTreeMap<PortNo, LacpPort>,
    partner: Option<Partner>,
}

impl LacpGroup {
    /// A group without ports.
    pub const fn new(settings: LacpSettings) -> Self {
        Self {
            settings,
            ports: BTreeMap::new(),
            partner: None,
        }
    }

    /// Goes on with these settings and these ports; those that stay keep what they know.
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
                port.need_to_tell();
            }
        }
        self.select();
    }

    /// How it speaks.
    pub const fn settings(&self) -> &LacpSettings {
        &self.settings
    }

    /// Its ports.
    pub fn ports(&self) -> impl Iterator<Item = (PortNo, &LacpPort)> {
        self.ports.iter().map(|(number, port)| (*number, port))
    }

    /// One of them.
    pub fn port(&self, number: PortNo) -> Option<&LacpPort> {
        self.ports.get(&number)
    }

    /// What has come of it.
    pub const fn status(&self) -> LacpStatus {
        match self.partner {
            Some(_) => LacpStatus::Negotiated,
            None => LacpStatus::Configured,
        }
    }

    /// Whether frames may come and go by this port.
    pub fn may_enable(&self, number: PortNo) -> bool {
        let Some(port) = self.ports.get(&number) else {
            return false;
        };
        let lacp_fallback = self.settings.lacp_fallback && self.partner.is_none();
        port.is_distributing() || (lacp_fallback && port.receive() == ReceiveState::Defaulted)
    }

    /// The carrier of a port came or went.
    pub fn handle_carrier(&mut self, number: PortNo, up: bool, now: Instant) {
        if let Some(port) = self.ports.get_mut(&number) {
            port.handle_carrier(up, now);
            self.select();
        }
    }

    /// A message has come by a port. What there is to be sent back at once is returned.
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
            // Nobody here asks with markers.
            Ok(SlowPdu::Marker(_)) => {}
            Ok(SlowPdu::Other(_)) | Err(_) => port.counters.bad += 1,
        }
        None
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        for port in self.ports.values_mut() {
            port.handle_timeout(now);
        }
        self.select();
    }

    /// What a port is to send now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<(PortNo, Lacpdu)> {
        let settings = &self.settings;
        self.ports
            .iter_mut()
            .find_map(|(number, port)| Some((*number, port.poll(settings, now)?)))
    }

    /// When there is something to do or to send.
    pub fn next_timeout(&self) -> Option<Instant> {
        let ports = self.ports.values();
        let due =
            ports.flat_map(|port| [port.next_timeout(), port.next_transmission(&self.settings)]);
        due.flatten().min()
    }

    /// Chooses the partner, and attaches the ports that have it.
    ///
    /// Who was chosen stays as long as any port has it: a cable that is plugged in wrongly does
    /// not take the others away. Of several the one at the port comes first whose priority
    /// is best, as the better one of both systems sees it.
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

    /// Whom a port has to do with, if it may be aggregated: not with itself. One that is alone
    /// need not be.
    fn partner_of(&self, port: &LacpPort) -> Option<Partner> {
        let partner = port.partner();
        let fits = port.receive() == ReceiveState::Current
            && (partner.state.has(LacpState::AGGREGATION) || !self.settings.aggregates)
            && partner.system.address != self.settings.system.address;
        fits.then_some((partner.system, partner.key, port.settings.key))
    }
}
