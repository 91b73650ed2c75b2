//! Device arguments of DPDK (`devargs`): `net_tap0,iface=t0`, `0000:3b:00.0`, with two keys of this
//! switch, `buffers=N` and `mtu=N`.
//!
//! The driver's own arguments are passed to DPDK unchanged, which validates them.

use std::fmt;
use std::num::{NonZeroU16, NonZeroU32};
use std::str::FromStr;

/// The maximum number of buffers of a device: two gigabytes of memory.
pub const BUFFERS_MAX: u32 = 1_048_576;

/// The maximum length of a device name: that of an OpenFlow port name (OF 1.3.5, 7.2.1).
const NAME_LEN_MAX: usize = 15;

/// The maximum MTU: a whole frame fits one buffer, and buffer lengths are 16-bit numbers.
const MTU_MAX: u16 = 65_000;

/// The minimum MTU that every IPv4 host supports (RFC 791, 3.2).
const MTU_MIN: u16 = 68;

/// A DPDK device and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arguments {
    device: String,
    /// Arguments of the driver.
    driver_arguments: Vec<String>,
    /// The number of buffers in its memory pool.
    pub buffers: Option<NonZeroU32>,
    /// The maximum payload of a frame in bytes.
    pub mtu: Option<NonZeroU16>,
}

/// An invalid argument list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadArguments {
    /// The device name is missing.
    #[error("a DPDK device needs a name, such as net_tap0 or 0000:3b:00.0")]
    Nameless,
    /// The name is too long for OpenFlow.
    #[error(
        "'{0}' is longer than the {NAME_LEN_MAX} bytes that OpenFlow allows: many drivers have a \
         shorter alias, such as virtio_user0 for net_virtio_user0"
    )]
    LongName(String),
    /// The name contains characters that no device name has.
    #[error("'{0}' is not a device name: spaces, slashes and quotes are not allowed")]
    BadName(String),
    /// The value of `buffers` or `mtu` is not a number, or is out of range.
    #[error("'{word}': {name} takes a number from {least} to {most}")]
    BadNumber {
        /// The argument as written.
        word: String,
        /// The key.
        name: &'static str,
        /// The minimum.
        least: u32,
        /// The maximum.
        most: u32,
    },
}

impl Arguments {
    /// Returns the name of the device, which is also the name of the port.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Returns the argument string for DPDK: the device and the driver's arguments.
    #[must_use]
    pub fn for_dpdk(&self) -> String {
        let mut text = self.device.clone();
        for word in &self.driver_arguments {
            text.push(',');
            text.push_str(word);
        }
        text
    }

    /// Returns all arguments after the name, including `buffers` and `mtu`.
    #[must_use]
    pub fn words(&self) -> String {
        let mut words = self.driver_arguments.clone();
        words.extend(self.buffers.map(|buffers| format!("buffers={buffers}")));
        words.extend(self.mtu.map(|mtu| format!("mtu={mtu}")));
        words.iter().map(|word| format!(",{word}")).collect()
    }
}

impl FromStr for Arguments {
    type Err = BadArguments;

    fn from_str(text: &str) -> Result<Self, BadArguments> {
        let mut words = text.split(',');
        let device = check_name(words.next().unwrap_or_default())?;
        let mut arguments = Self {
            device,
            driver_arguments: Vec::new(),
            buffers: None,
            mtu: None,
        };
        for word in words {
            match word.split_once('=') {
                Some(("buffers", number)) => {
                    let number = read(word, "buffers", number, 1, BUFFERS_MAX)?;
                    arguments.buffers = NonZeroU32::new(number);
                }
                Some(("mtu", number)) => {
                    let number = read(word, "mtu", number, MTU_MIN.into(), MTU_MAX.into())?;
                    let number = u16::try_from(number).expect("the number is within its bounds");
                    arguments.mtu = NonZeroU16::new(number);
                }
                _ => arguments.driver_arguments.push(word.to_owned()),
            }
        }
        Ok(arguments)
    }
}

impl fmt::Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.device, self.words())
    }
}

fn check_name(name: &str) -> Result<String, BadArguments> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
    if name.is_empty() {
        Err(BadArguments::Nameless)
    } else if name.len() > NAME_LEN_MAX {
        Err(BadArguments::LongName(name.to_owned()))
    } else if !name.chars().all(legal) {
        Err(BadArguments::BadName(name.to_owned()))
    } else {
        Ok(name.to_owned())
    }
}

fn read(
    word: &str,
    name: &'static str,
    number: &str,
    least: u32,
    most: u32,
) -> Result<u32, BadArguments> {
    let read = number.parse().ok();
    read.filter(|number| (least..=most).contains(number))
        .ok_or_else(|| BadArguments::BadNumber {
            word: word.to_owned(),
            name,
            least,
            most,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_arguments_separate_switch_keys_from_driver_arguments() {
        let text = "net_pcap0,buffers=200000,rx_pcap=a=b.pcap,infinite_rx=1,mtu=9000";
        let arguments: Arguments = text.parse().unwrap();
        assert_eq!(arguments.device(), "net_pcap0");
        assert_eq!(
            arguments.for_dpdk(),
            "net_pcap0,rx_pcap=a=b.pcap,infinite_rx=1"
        );
        assert_eq!(arguments.buffers.map(NonZeroU32::get), Some(200_000));
        assert_eq!(arguments.mtu.map(NonZeroU16::get), Some(9000));
        assert_eq!(arguments.to_string().parse(), Ok(arguments));
        assert!("0000:3b:00.0".parse::<Arguments>().is_ok());
    }

    #[test]
    fn invalid_device_arguments_are_explained() {
        let refused = |text: &str| text.parse::<Arguments>().unwrap_err().to_string();
        assert!(refused("").contains("needs a name"));
        assert!(refused("net_virtio_user0").contains("virtio_user0 for"));
        assert!(refused("net null").contains("not a device name"));
        assert_eq!(
            refused("net_null0,buffers=0"),
            "'buffers=0': buffers takes a number from 1 to 1048576"
        );
        assert_eq!(
            refused("net_null0,mtu=67"),
            "'mtu=67': mtu takes a number from 68 to 65000"
        );
    }
}
