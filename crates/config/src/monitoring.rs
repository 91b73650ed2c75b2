//! Connectivity monitoring of an interface: BFD, CFM and LLDP (ovs-vswitchd.conf.db(5), the table
//! `Interface`, "Bidirectional Forwarding Detection (BFD)", "Connectivity Fault Management" and
//! "Auto Attach Configuration").

use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

use packet::MacAddr;

/// The monitoring of an interface; the default is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MonitoringConfig {
    /// Bidirectional forwarding detection.
    pub bfd: Option<BfdConfig>,
    /// Connectivity fault management.
    pub cfm: Option<CfmConfig>,
    /// The link layer discovery protocol.
    pub lldp: Option<LldpConfig>,
}

/// The configuration of a BFD session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BfdConfig {
    /// The shortest interval at which the session transmits.
    pub min_tx: Duration,
    /// The shortest interval at which the session is able to receive.
    pub min_rx: Duration,
    /// The receive interval of an idle interface.
    pub decay_min_rx: Option<Duration>,
    /// Received frames of any kind prove that the interface forwards.
    pub forwarding_if_rx: bool,
    /// The path behind this interface is down.
    pub cpath_down: bool,
    /// Accepts only control packets with tunnel key zero.
    pub check_tunnel_key: bool,
    /// The Ethernet source of control packets; the interface's address if absent.
    pub eth_src: Option<MacAddr>,
    /// The Ethernet destination of control packets.
    pub eth_dst: MacAddr,
    /// The Ethernet destination that received control packets must have; any if absent.
    pub remote_eth_dst: Option<MacAddr>,
    /// The IPv4 source of control packets, and the destination that received ones must have if it
    /// is not the default.
    pub ip_src: Ipv4Addr,
    /// The IPv4 destination of control packets.
    pub ip_dst: Ipv4Addr,
    /// Sets the OAM flag of tunnels.
    pub oam: bool,
    /// The number of missing packets after which the session is down.
    pub multiplier: u8,
}

impl BfdConfig {
    /// The default interval of transmission.
    pub const MIN_TX: Duration = Duration::from_millis(100);
    /// The default interval of reception.
    pub const MIN_RX: Duration = Duration::from_millis(1000);
    /// The default multiplier.
    pub const MULTIPLIER: u8 = 3;
    /// The default Ethernet destination, an address of Nicira.
    pub const ETH_DST: MacAddr = MacAddr([0x00, 0x23, 0x20, 0x00, 0x00, 0x01]);
    /// The default addresses.
    pub const IP_SRC: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 1);
    /// The default destination.
    pub const IP_DST: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 0);
}

impl Default for BfdConfig {
    fn default() -> Self {
        Self {
            min_tx: Self::MIN_TX,
            min_rx: Self::MIN_RX,
            decay_min_rx: None,
            forwarding_if_rx: false,
            cpath_down: false,
            check_tunnel_key: false,
            eth_src: None,
            eth_dst: Self::ETH_DST,
            remote_eth_dst: None,
            ip_src: Self::IP_SRC,
            ip_dst: Self::IP_DST,
            oam: false,
            multiplier: Self::MULTIPLIER,
        }
    }
}

/// The VLAN of continuity check messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CcmVlan {
    /// No tag.
    #[default]
    None,
    /// This VLAN.
    Vid(u16),
    /// A VLAN that is chosen at random for each message.
    Random,
}

/// The configuration of connectivity fault management.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CfmConfig {
    /// The identifier of this end in its maintenance association: 1 to 8191, or any but zero in
    /// extended mode.
    pub mpid: u64,
    /// The transmission interval.
    pub interval: Duration,
    /// Extended mode: 64-bit identifiers, any interval, and the operational state.
    pub is_extended: bool,
    /// Received frames of any kind replace messages; requires extended mode.
    pub is_demand: bool,
    /// This end is operationally up.
    pub is_up: bool,
    /// The VLAN of messages.
    pub vlan: CcmVlan,
    /// The priority of messages.
    pub pcp: u8,
    /// Accepts only messages with tunnel key zero.
    pub check_tunnel_key: bool,
}

impl CfmConfig {
    /// The default transmission interval.
    pub const INTERVAL: Duration = Duration::from_secs(1);
    /// The largest identifier of the standard (802.1ag, 21.6.3).
    pub const MPID_MAX: u64 = 8191;
}

impl Default for CfmConfig {
    fn default() -> Self {
        Self {
            mpid: 1,
            interval: Self::INTERVAL,
            is_extended: false,
            is_demand: false,
            is_up: true,
            vlan: CcmVlan::None,
            pcp: 0,
            check_tunnel_key: false,
        }
    }
}

/// The configuration of the link layer discovery protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LldpConfig {
    /// The name of the system; not sent if absent.
    pub system_name: Option<String>,
    /// The description of the system.
    pub system_description: String,
    /// The auto-attach mappings: services (I-SID) and their VLANs.
    pub mappings: Vec<(u32, u16)>,
}

impl MonitoringConfig {
    /// Returns true if nothing is monitored.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.bfd.is_none() && self.cfm.is_none() && self.lldp.is_none()
    }
}

impl fmt::Display for MonitoringConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        if let Some(bfd) = &self.bfd {
            let (tx, rx) = (bfd.min_tx.as_millis(), bfd.min_rx.as_millis());
            words.push(format!("BFD tx {tx} ms, rx {rx} ms"));
        }
        if let Some(cfm) = &self.cfm {
            let interval = cfm.interval.as_millis();
            words.push(format!("CFM mpid {}, interval {interval} ms", cfm.mpid));
        }
        if self.lldp.is_some() {
            words.push("LLDP".to_owned());
        }
        f.write_str(&words.join(", "))
    }
}
