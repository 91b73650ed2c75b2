//! What `ethtool` says of an interface: its speed and its driver, by ioctl
//! (`SIOCETHTOOL`, linux/ethtool.h).
//!
//! Only what a port's status needs; everything else is the ethtool netlink family's.

use std::io;

use crate::interface::{self, InterfaceName, Interfaces};

/// `ETHTOOL_GDRVINFO`.
const DRIVER: u32 = 0x3;
/// `ETHTOOL_GLINKSETTINGS`.
const LINK: u32 = 0x4c;
/// `ETHTOOL_GCHANNELS`.
const CHANNELS: u32 = 0x3c;
/// `ETHTOOL_GRINGPARAM`.
const RINGS: u32 = 0x10;
/// `ETHTOOL_GFLAGS`, and the flags that say that tags are taken out of received frames, and
/// that these are merged.
const FLAGS: u32 = 0x25;
const TAKES_TAGS_OUT: u32 = 1 << 8;
const MERGES_FRAMES: u32 = 1 << 15;
/// Words of each of the three link-mode masks: the kernel states its number in a signed byte.
const MASK_WORDS_MAX: usize = 127;

/// `DUPLEX_HALF` and `DUPLEX_FULL`.
const HALF: u8 = 0;
const FULL: u8 = 1;

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
    numbers: [u32; 5],
}

/// `struct ethtool_channels`: first the most of each kind, then how many there are.
#[repr(C)]
struct Channels {
    command: u32,
    most: [u32; 4],
    receiving: u32,
    sending: u32,
    other: u32,
    combined: u32,
}

/// `struct ethtool_ringparam`: how many frames each ring may have, and how many it has.
#[repr(C)]
struct RingNumbers {
    command: u32,
    receive_max: u32,
    others_max: [u32; 3],
    receive: u32,
    others: [u32; 3],
}

/// How many frames a receive ring holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rings {
    /// Now.
    pub receive: u32,
    /// At most.
    pub receive_max: u32,
}

/// `struct ethtool_value`.
#[repr(C)]
struct Word {
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
            command: CHANNELS,
            most: [0; 4],
            receiving: 0,
            sending: 0,
            other: 0,
            combined: 0,
        };
        self.ethtool(name, &mut channels)?;
        Ok(channels.receiving.saturating_add(channels.combined).max(1))
    }

    /// Whether the interface takes the outermost tag out of the frames that it receives.
    ///
    /// # Errors
    /// Those of `SIOCETHTOOL`.
    pub fn takes_tags_out(&self, name: &InterfaceName) -> io::Result<bool> {
        Ok(self.flags_of_driver(name)? & TAKES_TAGS_OUT != 0)
    }

    /// Whether the interface merges the frames that it receives into longer ones (LRO).
    ///
    /// # Errors
    /// Those of `SIOCETHTOOL`.
    pub fn merges_frames(&self, name: &InterfaceName) -> io::Result<bool> {
        Ok(self.flags_of_driver(name)? & MERGES_FRAMES != 0)
    }

    fn flags_of_driver(&self, name: &InterfaceName) -> io::Result<u32> {
        let mut flags = Word {
            command: FLAGS,
            value: 0,
        };
        self.ethtool(name, &mut flags)?;
        Ok(flags.value)
    }

    /// How many frames the interface's receive rings hold.
    ///
    /// # Errors
    /// `EOPNOTSUPP`: it has none, or its driver does not say.
    pub fn rings(&self, name: &InterfaceName) -> io::Result<Rings> {
        let mut numbers = RingNumbers {
            command: RINGS,
            receive_max: 0,
            others_max: [0; 3],
            receive: 0,
            others: [0; 3],
        };
        self.ethtool(name, &mut numbers)?;
        Ok(Rings {
            receive: numbers.receive,
            receive_max: numbers.receive_max,
        })
    }

    /// The interface's speed in Mbit/s; none if it does not know.
    ///
    /// # Errors
    /// `ENODEV`: there is no interface of this name. `EOPNOTSUPP`: it has no speed.
    pub fn speed_mbps(&self, name: &InterfaceName) -> io::Result<Option<u32>> {
        Ok(self.mode(name)?.speed_mbps)
    }

    /// How fast the interface is, and whether both ends may send at once.
    ///
    /// # Errors
    /// `ENODEV`: there is no interface of this name. `EOPNOTSUPP`: it has no speed.
    pub fn mode(&self, name: &InterfaceName) -> io::Result<LinkMode> {
        let mut settings = LinkSettings {
            command: LINK,
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
        settings.command = LINK;
        settings.mask_words = settings.mask_words.saturating_neg();
        self.ethtool(name, &mut settings)?;
        let unknown = settings.speed == 0 || settings.speed == u32::MAX;
        Ok(LinkMode {
            speed_mbps: (!unknown).then_some(settings.speed),
            full_duplex: match settings.duplex {
                HALF => Some(false),
                FULL => Some(true),
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
            command: DRIVER,
            driver: [0; 32],
            texts: [[0; 32]; 4],
            reserved: [0; 12],
            numbers: [0; 5],
        };
        self.ethtool(name, &mut info)?;
        Ok(interface::text(&info.driver))
    }

    /// Asks by `command`, one of the structures above.
    fn ethtool<T>(&self, name: &InterfaceName, command: &mut T) -> io::Result<()> {
        let mut request = interface::request(name);
        request.ifr_ifru.ifru_data = std::ptr::from_mut(command).cast();
        // SAFETY: the request points to a command whose first word names it, and the
        // kernel writes no more than that command's structure (`T` has all of it, and
        // room for the longest masks).
        unsafe { interface::control(self.socket(), libc::SIOCETHTOOL, &mut request) }
    }
}
