//! Settings of an interface: address, MTU and limits. They change while the port remains.

use std::fmt;

use super::pmd::RxqAffinity;
use packet::MacAddr;
use ports::dummy::DummyOptions;
use ports::shaping::{Qdisc, QosConfig};

use crate::MonitoringConfig;

/// The settings of an interface. The default leaves it unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceConfig {
    /// The Ethernet address.
    pub address: Option<MacAddr>,
    /// The MTU, in bytes.
    pub mtu: Option<u32>,
    /// The ingress policer.
    pub ingress: IngressLimit,
    /// The egress policer; no limit if absent.
    pub egress: Option<EgressLimit>,
    /// The queueing discipline; unchanged if absent.
    pub shape: Option<QosConfig>,
    /// The options of a dummy.
    pub dummy: DummyOptions,
    /// The pinned receive queues of a dummy.
    pub rxq_affinity: RxqAffinity,
    /// The connectivity monitoring.
    pub monitoring: MonitoringConfig,
}

/// An egress policer (ovs-vswitchd.conf.db(5), "Configuration for egress-policer QoS").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EgressLimit {
    /// The rate, in bytes per second (`cir`).
    pub rate: u64,
    /// The burst, in bytes (`cbs`).
    pub burst: u64,
}

/// An ingress policer; a rate of zero is no limit (ovs-vswitchd.conf.db(5), "Ingress Policing").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngressLimit {
    /// The limit in kbit.
    pub kilobits: PolicerRate,
    /// The limit in thousands of packets.
    pub kilopackets: PolicerRate,
}

/// A rate and a burst, in thousands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicerRate {
    /// The rate per second.
    pub rate: u32,
    /// The burst.
    pub burst: u32,
}

impl fmt::Display for InterfaceConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        words.extend(self.address.map(|address| format!("address {address}")));
        words.extend(self.mtu.map(|mtu| format!("mtu {mtu}")));
        for (allowance, unit) in [
            (self.ingress.kilobits, "kbit"),
            (self.ingress.kilopackets, "kpkt"),
        ] {
            let PolicerRate { rate, burst } = allowance;
            if rate > 0 {
                words.push(format!("ingress {rate} {unit}/s, burst {burst} {unit}"));
            }
        }
        if let Some(EgressLimit { rate, burst }) = self.egress {
            words.push(format!("egress {rate} bytes/s, burst {burst} bytes"));
        }
        if let Some(shape) = &self.shape {
            let kind = qdisc_name(shape.qdisc);
            words.push(format!("{kind} with {} queues", shape.queues.len()));
        }
        if self.dummy != DummyOptions::default() {
            words.push(format!(
                "{} receive queues, {} transmit queues",
                self.dummy.rx_queues, self.dummy.tx_queues
            ));
        }
        words.extend(self.dummy.connection.iter().map(ToString::to_string));
        if !self.monitoring.is_none() {
            words.push(self.monitoring.to_string());
        }
        match words.is_empty() {
            true => f.write_str("unchanged"),
            false => f.write_str(&words.join(", ")),
        }
    }
}

/// Returns the name of a queueing discipline in Open vSwitch (ovs-vswitchd.conf.db(5), `QoS`).
#[must_use]
pub const fn qdisc_name(discipline: Qdisc) -> &'static str {
    match discipline {
        Qdisc::Htb => "linux-htb",
        Qdisc::Hfsc => "linux-hfsc",
    }
}
