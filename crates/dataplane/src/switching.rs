//! Settings of `NORMAL` for the ports, as workers read them: the logical port of each interface,
//! and its bond. Compiled once by the control thread.
//!
//! A bridge with default settings for all ports has none of it. `normal` decides about frames.

use std::sync::Arc;

use base::PortNo;

use super::bonds::BondState;
use config::{LogicalPort, SwitchingConfig};

/// Port numbers below this are looked up in an array; most ports are.
const NUMBERS: usize = 256;

/// The marker of an interface without a logical port.
const PLAIN: u16 = u16::MAX;

/// The compiled settings of a bridge.
#[derive(Clone, Debug)]
pub struct SwitchingView {
    /// The configuration.
    config: SwitchingConfig,
    /// The logical port of each port number below [`NUMBERS`].
    low: Vec<u16>,
    /// The logical ports of other numbers, sorted.
    high: Vec<(PortNo, u16)>,
    /// The states of bonds, by logical port; empty without bonds.
    bonds: Vec<Option<BondState>>,
}

impl SwitchingView {
    /// Compiles a configuration; none if all settings are defaults.
    pub fn compile(config: &SwitchingConfig) -> Option<Arc<Self>> {
        let is_plain = config.ports.iter().all(LogicalPort::is_plain)
            && config.flood_vlans.is_empty()
            && !config.forward_bpdu
            && config.snooping.is_none();
        if is_plain {
            return None;
        }
        let mut low = vec![PLAIN; NUMBERS];
        let mut high = Vec::new();
        for (port, place) in config.ports.iter().zip(0..PLAIN) {
            for member in &port.members {
                match low.get_mut(member.0 as usize) {
                    Some(noted) => *noted = place,
                    None => high.push((*member, place)),
                }
            }
        }
        high.sort_unstable();
        Some(Arc::new(Self {
            config: config.clone(),
            low,
            high,
            bonds: Vec::new(),
        }))
    }

    /// Returns a copy with these states of bonds, by the names of their ports.
    pub fn with_bonds(&self, bonds: impl Fn(&str) -> Option<BondState>) -> Arc<Self> {
        let ports = self.config.ports.iter();
        Arc::new(Self {
            bonds: ports.map(|port| bonds(&port.name)).collect(),
            ..self.clone()
        })
    }

    /// Returns all bonds.
    pub fn bonds(&self) -> impl Iterator<Item = &BondState> {
        self.bonds.iter().flatten()
    }

    /// Returns the bond of an interface.
    #[inline]
    pub fn bond(&self, number: PortNo) -> Option<&BondState> {
        if self.bonds.is_empty() {
            return None;
        }
        self.bonds.get(self.place(number)?)?.as_ref()
    }

    /// Returns the logical port of an interface; none if its settings are defaults.
    #[inline]
    pub fn port(&self, number: PortNo) -> Option<&LogicalPort> {
        self.config.ports.get(self.place(number)?)
    }

    #[inline]
    fn place(&self, number: PortNo) -> Option<usize> {
        let place = match self.low.get(number.0 as usize) {
            Some(place) => *place,
            None => {
                let found = self.high.binary_search_by_key(&number, |(port, _)| *port);
                self.high[found.ok()?].1
            }
        };
        Some(usize::from(place))
    }

    /// Returns the configuration.
    pub const fn config(&self) -> &SwitchingConfig {
        &self.config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(name: &str, members: &[u32]) -> LogicalPort {
        LogicalPort {
            name: name.to_owned(),
            members: members.iter().map(|number| PortNo(*number)).collect(),
            is_protected: true,
            ..LogicalPort::default()
        }
    }

    #[test]
    fn interface_maps_to_its_logical_port() {
        let config = SwitchingConfig {
            ports: vec![
                port("a", &[1]),
                port("b", &[2, 700]),
                port("c", &[0xffff_fffe]),
            ],
            ..SwitchingConfig::default()
        };
        let view = SwitchingView::compile(&config).expect("it is not plain");
        let name = |number| view.port(PortNo(number)).map(|port| port.name.as_str());
        let names = [1, 2, 700, PortNo::LOCAL.0, 3, 300].map(name);
        assert_eq!(
            names,
            [Some("a"), Some("b"), Some("b"), Some("c"), None, None]
        );
    }

    #[test]
    fn ports_with_defaults_compile_to_none() {
        let mut plain = port("a", &[1]);
        plain.is_protected = false;
        let mut config = SwitchingConfig {
            ports: vec![plain],
            ..SwitchingConfig::default()
        };
        assert!(SwitchingView::compile(&config).is_none());
        config.ports[0].members.push(PortNo(2));
        assert!(SwitchingView::compile(&config).is_some());
    }
}
