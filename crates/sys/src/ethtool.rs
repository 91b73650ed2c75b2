//! What `ethtool` says of an interface: its speed and its driver, by ioctl
//! (`SIOCETHTOOL`, linux/ethtool.h).
//!
//! Only what a port's status needs; everything else is the ethtool netlink family's.

use std::io;

use crate::interface::{self, InterfaceName, Interfaces};

/// `ETHTOOL_GDRVINFO`.
const GET_DRIVER_INFO: u32 = 0x3;
/// `ETHTOOL_GLINKSETTINGS`.
const GET_LINK_SETTINGS: u32 = 0x4c;
/// `ETHTOOL_GCHANNELS`.
const GET_CHANNELS: u32 = 0x3c;
/// `ETHTOOL_GRINGPARAM`.
const GET_RING_PARAMETERS: u32 = 0x10;
/// `ETHTOOL_GFLAGS`, and the flags that say that tags are taken out of received frames, and
/// that these are merged.
const GET_FLAGS: u32 = 0x25;
const RX_VLAN_OFFLOAD: u32 = 1 << 8;
const LRO: u32 = 1 << 15;
/// Words of each of the three link-mode masks: the kernel states its number in a signed byte.
const MASK_WORDS_MAX: usize = 127;

/// `DUPLEX_HALF` and `DUPLEX_FULL`.
const DUPLEX_HALF: u8 = 0;
const DUPLEX_FULL: u8 = 1;

/// How an interface's link is; nothing, of what it does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkMode {
    /// Its speed in Mbit/s.
    pub speed_mbps: Option<u32>,
    /// Whether both ends may send at once.
    pub full_duplex: Option<bool>,
}

/// `struct ethtool_link_settings` with room for the longest masks.
#[repr(C)]
struct LinkSettings {
    command: u32,
    speed: u32,
    duplex: u8,
    port: u8,
    phy_address: u8,
    autonegotiation: u8,
    mdio: u8,
    crossover: u8,
    crossover_control: u8,
    mask_words: i8,
    others: [u8; 4],
    reserved: [u32; 7],
    masks: [u32; 3 * MASK_WORDS_MAX],
}

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [libc::c_char; 32],
    texts: [[u8; 32]; 4],
    reserved: [u8; 12],
    parameters: [u32; 5],
}

/// `struct ethtool_channels`: first the most of each kind, then how many there are.
#[repr(C)]
struct Channels {
    command: u32,
    maxima: [u32; 4],
    receive: u32,
    transmit: u32,
    other: u32,
    combined: u32,
}

/// `struct ethtool_ringparam`: how many frames each ring may have, and how many it has.
#[repr(C)]
struct RingParameters {
    command: u32,
    receive_max: u32,
    others_max: [u32; 3],
    receive: u32,
    others: [u32; 3],
}

/// How many frames a receive ring holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSizes {
    /// Now.
    pub receive: u32,
    /// At most.
    pub receive_max: u32,
}

/// `struct ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    value: u32,
}

impl Interfaces {
    /// How many receive queues the interface has.
    ///
    /// # Errors
    /// `ENODEV`: there is no interface of this name. `EOPNOTSUPP`: its driver does not
    /// say, so it has one.
    pub fn receive_queues(&self, name: &InterfaceName) -> io::Result<u32> {
        let mut channels = Channels {
            command: GET_CHANNELS,
            maxima: [0; 4],
            receive: 0,
            transmit: 0,
            other: 0,
            combined: 0,
        };
        self.ethtool(name, &mut channels)?;
        Ok(channels.receive.saturating_add(channels.combined).max(1))
    }

    /// Whether the interface takes the outermost tag out of the frames that it receives.
    ///
    /// # Errors
    /// Those of `SIOCETHTOOL`.
    pub fn has_rx_vlan_offload(&self, name: &InterfaceName) -> io::Result<bool> {
        Ok(self.device_flags(name)? & RX_VLAN_OFFLOAD != 0)
    }

    /// Whether the interface merges the frames that it receives into longer ones (LRO).
    ///
    /// # Errors
    /// Those of `SIOCETHTOOL`.
    pub fn has_lro(&self, name: &InterfaceName) -> io::Result<bool> {
        Ok(self.device_flags(name)? & LRO != 0)
    }

    fn device_flags(&self, name: &InterfaceName) -> io::Result<u32> {
        let mut flags = EthtoolValue {
            command: GET_FLAGS,
            value: 0,
        };
        self.ethtool(name, &mut flags)?;
        Ok(flags.value)
    }

    /// How many frames the interface's receive rings hold.
    ///
    /// # Errors
    /// `EOPNOTSUPP`: it has none, or its driver does not say.
    pub fn ring_sizes(&self, name: &InterfaceName) -> io::Result<RingSizes> {
        let mut parameters = RingParameters {
            command: GET_RING_PARAMETERS,
            receive_max: 0,
            others_max: [0; 3],
            receive: 0,
            others: [0; 3],
        };
        self.ethtool(name, &mut parameters)?;
        Ok(RingSizes {
            receive: parameters.receive,
            receive_max: parameters.receive_max,
        })
    }

    /// The interface's speed in Mbit/s; none if it does not know.
    ///
    /// # Errors
    /// `ENODEV`: there is no interface of this name. `EOPNOTSUPP`: it has no speed.
    pub fn speed_mbps(&self, name: &InterfaceName) -> io::Result<Option<u32>> {
        Ok(self.link_mode(name)?.speed_mbps)
    }

    /// How fast the interface is, and whether both ends may send at once.
    ///
    /// # Errors
    /// `ENODEV`: there is no interface of this name. `EOPNOTSUPP`: it has no speed.
    pub fn link_mode(&self, name: &InterfaceName) -> io::Result<LinkMode> {
        let mut settings = LinkSettings {
            command: GET_LINK_SETTINGS,
            speed: 0,
            duplex: 0,
            port: 0,
            phy_address: 0,
            autonegotiation: 0,
            mdio: 0,
            crossover: 0,
            crossover_control: 0,
            mask_words: 0,
            others: [0; 4],
            reserved: [0; 7],
            masks: [0; 3 * MASK_WORDS_MAX],
        };
        // First the kernel says, negated, how many words its masks have; asked
        // with that number it answers.
        self.ethtool(name, &mut settings)?;
        settings.command = GET_LINK_SETTINGS;
        settings.mask_words = settings.mask_words.saturating_neg();
        self.ethtool(name, &mut settings)?;
        let unknown = settings.speed == 0 || settings.speed == u32::MAX;
        Ok(LinkMode {
            speed_mbps: (!unknown).then_some(settings.speed),
            full_duplex: match settings.duplex {
                DUPLEX_HALF => Some(false),
                DUPLEX_FULL => Some(true),
                _ => None,
            },
        })
    }

    /// The name of the interface's driver.
    ///
    /// # Errors
    /// `ENODEV`: there is no interface of this name. `EOPNOTSUPP`: its driver does not say.
    pub fn driver(&self, name: &InterfaceName) -> io::Result<String> {
        let mut info = DriverInfo {
            command: GET_DRIVER_INFO,
            driver: [0; 32],
            texts: [[0; 32]; 4],
            reserved: [0; 12],
            parameters: [0; 5],
        };
        self.ethtool(name, &mut info)?;
        Ok(interface::text(&info.driver))
    }

    /// Asks by `command`, one of the structures above.
    fn ethtool<T>(&self, name: &InterfaceName, command: &mut T) -> io::Result<()> {
        let mut request = interface::ifreq(name);
        request.ifr_ifru.ifru_data = std::ptr::from_mut(command).cast();
        // SAFETY: the request points to a command whose first word names it, and the
        // kernel writes no more than that command's structure (`T` has all of it, and
        // room for the longest masks).
        unsafe { interface::ioctl(self.socket(), libc::SIOCETHTOOL, &mut request) }
    }
}
