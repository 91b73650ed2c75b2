//! Link mode, driver, queues and rings of an interface, by ioctl (`SIOCETHTOOL`, linux/ethtool.h).
//!
//! Only the values that a port's status and the host checks read; the ethtool netlink family has
//! the rest.

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
/// `ETHTOOL_GFLAGS`, with the flags of VLAN stripping on receive (`ETH_FLAG_RXVLAN`) and of large
/// receive offload (`ETH_FLAG_LRO`).
const GET_FLAGS: u32 = 0x25;
const RX_VLAN_OFFLOAD: u32 = 1 << 8;
const LRO: u32 = 1 << 15;
/// Maximum words of each of the three link-mode masks: the kernel reports the number in a signed
/// byte.
const MASK_WORDS_MAX: usize = 127;

/// `DUPLEX_HALF` and `DUPLEX_FULL`.
const DUPLEX_HALF: u8 = 0;
const DUPLEX_FULL: u8 = 1;

/// Speed and duplex of a link; `None` where the driver does not report a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkMode {
    /// Speed in Mbit/s.
    pub speed_mbps: Option<u32>,
    /// True for full duplex.
    pub full_duplex: Option<bool>,
}

/// `struct ethtool_link_settings` with space for masks of the maximum length.
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

/// `struct ethtool_channels`: the maximum of each kind, then the current number.
#[repr(C)]
struct Channels {
    command: u32,
    maxima: [u32; 4],
    receive: u32,
    transmit: u32,
    other: u32,
    combined: u32,
}

/// `struct ethtool_ringparam`: maximum and current number of descriptors.
#[repr(C)]
struct RingParameters {
    command: u32,
    receive_max: u32,
    others_max: [u32; 3],
    receive: u32,
    others: [u32; 3],
}

/// Sizes of a receive ring, in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSizes {
    /// Current size.
    pub receive: u32,
    /// Maximum size.
    pub receive_max: u32,
}

/// `struct ethtool_value`.
#[repr(C)]
pub(crate) struct EthtoolValue {
    pub(crate) command: u32,
    pub(crate) value: u32,
}

impl Interfaces {
    /// Returns the number of receive queues.
    ///
    /// # Errors
    /// `ENODEV`: no interface has this name. `EOPNOTSUPP`: the driver does not report a number; the
    /// interface then has one queue.
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

    /// True if the interface strips the outermost VLAN tag of received frames.
    ///
    /// # Errors
    /// Those of `SIOCETHTOOL`.
    pub fn has_rx_vlan_offload(&self, name: &InterfaceName) -> io::Result<bool> {
        Ok(self.device_flags(name)? & RX_VLAN_OFFLOAD != 0)
    }

    /// True if the interface merges received frames into longer ones (LRO).
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

    /// Returns the sizes of the interface's receive rings.
    ///
    /// # Errors
    /// `EOPNOTSUPP`: the interface has no rings, or its driver does not report them.
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

    /// Returns the speed in Mbit/s, or `None` if the driver does not report it.
    ///
    /// # Errors
    /// `ENODEV`: no interface has this name. `EOPNOTSUPP`: the interface has no speed.
    pub fn speed_mbps(&self, name: &InterfaceName) -> io::Result<Option<u32>> {
        Ok(self.link_mode(name)?.speed_mbps)
    }

    /// Returns speed and duplex of the link.
    ///
    /// # Errors
    /// `ENODEV`: no interface has this name. `EOPNOTSUPP`: the interface has no speed.
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
        // The first call returns the negated number of mask words; the second, with that number,
        // returns the settings.
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

    /// Returns the name of the driver.
    ///
    /// # Errors
    /// `ENODEV`: no interface has this name. `EOPNOTSUPP`: the driver does not report its name.
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

    /// Executes `command`, one of the structures above.
    fn ethtool<T>(&self, name: &InterfaceName, command: &mut T) -> io::Result<()> {
        let mut request = interface::ifreq(name);
        request.ifr_ifru.ifru_data = std::ptr::from_mut(command).cast();
        // SAFETY: the request points to a command whose first word identifies it, and the kernel
        // writes no more than that command's structure (`T` is the whole structure, with space for
        // masks of the maximum length).
        unsafe { interface::ioctl(self.socket(), libc::SIOCETHTOOL, &mut request) }
    }
}
