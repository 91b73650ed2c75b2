//! Yasuda's userspace switch in a 48-port box: TCP throughput, ports that are VLAN interfaces,
//! chains of switches, and a learning controller with its flow statistics.

pub(super) mod chain;
pub(super) mod learning;
pub(super) mod tcp_throughput;
pub(super) mod vlan_ports;
