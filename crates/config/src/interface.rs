//! What an interface is given beside its place at a bridge: an address, a length of frames, a
//! limit to what comes by it. It is set while the port stays.

use std::fmt;

use packet::MacAddr;
use ports::shaping::{Qdisc, QosConfig};

/// What an interface is given. The default leaves it as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceConfig {
    /// Its Ethernet address.
    pub address: Option<MacAddr>,
    /// The longest payload of its frames, in bytes.
    pub mtu: Option<u32>,
    /// How much is taken from it.
    pub ingress: IngressLimit,
    /// How much leaves by it; all, if absent.
    pub egress: Option<EgressLimit>,
    /// In which queues it leaves; as the interface has them, if absent.
    pub shape: Option<QosConfig>,
}

/// How much leaves by a port (ovs-vswitchd.conf.db(5), "Configuration for egress-policer QoS").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EgressLimit {
    /// Bytes a second (`cir`).
    pub rate: u64,
    /// Bytes at once, after a pause (`cbs`).
    pub burst: u64,
}

/// How much is taken from a port; all there is, where a rate is zero
/// (ovs-vswitchd.conf.db(5), "Ingress Policing").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngressLimit {
    /// Thousands of bits.
    pub kilobits: PolicerRate,
    /// Thousands of frames.
    pub kilopackets: PolicerRate,
}

/// So many thousands of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicerRate {
    /// A second.
    pub rate: u32,
    /// At once, after a pause.
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
                words.push(format!("ingress {rate} {unit}/s, {burst} {unit} at once"));
            }
        }
        if let Some(EgressLimit { rate, burst }) = self.egress {
            words.push(format!("egress {rate} bytes/s, {burst} bytes at once"));
        }
        if let Some(shape) = &self.shape {
            let kind = qdisc_name(shape.qdisc);
            words.push(format!("{kind} of {} queues", shape.queues.len()));
        }
        match words.is_empty() {
            true => f.write_str("as it is"),
            false => f.write_str(&words.join(", ")),
        }
    }
}

/// What Open vSwitch calls a discipline (ovs-vswitchd.conf.db(5), `QoS`).
#[must_use]
pub const fn qdisc_name(discipline: Qdisc) -> &'static str {
    match discipline {
        Qdisc::Htb => "linux-htb",
        Qdisc::Hfsc => "linux-hfsc",
    }
}
