//! Yasuda's userspace switch in a 48-port box: VLAN interfaces for ports, several switches in a
//! row, a controller that learns, and what the switch tells of its flows.

pub(super) mod chain;
pub(super) mod learning;
pub(super) mod vlan_ports;
