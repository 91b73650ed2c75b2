//! Parsing of ports: `eth1`, `eth2=7`, `tap:vm1=3`, `xdp:eth3,generic`, `dpdk:net_tap0=2,iface=t0`,
//! `replay:p1,trace.pcap`, `patch:p0,p1`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use base::PortNo;
use ports::dummy::DummyType;
use ports::xdp::{TransferChoice, XdpModeChoice, XdpOptions};
use serde::Deserialize;

use super::ConfigError;
use super::tunnel::{self, TunnelConfig, TunnelType};

/// The kind of a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortKind {
    /// An existing interface, by `AF_PACKET`.
    Interface,
    /// An existing interface, by `AF_XDP`.
    Xdp(XdpOptions),
    /// A DPDK device.
    Dpdk(Arc<dpdk::Arguments>),
    /// A TAP interface that the switch creates and removes.
    Tap,
    /// A port without a device that receives the frames of a capture file repeatedly and counts
    /// sent frames. Without a file it receives nothing.
    Replay(Option<Arc<Path>>),
    /// A patch port. Its peer is the port with this name, of this bridge or another, if that names
    /// this port as its peer.
    Patch(Arc<str>),
    /// A tunnel.
    Tunnel(Arc<TunnelConfig>),
    /// A dummy port: frames are injected by command, or received from another dummy. Its options are
    /// settings of the interface.
    Dummy(DummyType),
}

impl PortKind {
    /// Returns whether the interface exists independently of the switch, and may appear and
    /// disappear.
    #[must_use]
    pub const fn is_external(&self) -> bool {
        match self {
            Self::Interface | Self::Xdp(_) | Self::Dpdk(_) => true,
            Self::Tap | Self::Replay(_) | Self::Patch(_) | Self::Dummy(_) | Self::Tunnel(_) => {
                false
            }
        }
    }

    /// Checks that a port of this kind can have this name.
    pub fn check_name(&self, option: &str, name: &str) -> Result<(), ConfigError> {
        match self {
            // The name was parsed with the device arguments.
            Self::Dpdk(_) => Ok(()),
            Self::Patch(_) | Self::Dummy(_) | Self::Tunnel(_) => {
                super::check_inner_name(option, name)
            }
            Self::Interface | Self::Xdp(_) | Self::Tap | Self::Replay(_) => {
                super::check_name(option, name)
            }
        }
    }
}

/// A port of a bridge.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct PortSpec {
    /// The kind of the port.
    pub kind: PortKind,
    /// The name of the interface.
    pub name: String,
    /// The requested port number.
    pub number: Option<PortNo>,
}

/// The maximum port number: the highest that OpenFlow 1.0 can represent.
pub const PORT_NUMBER_MAX: u32 = PortNo::MAX_V10.0 - 1;

impl FromStr for PortSpec {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let (mut kind, rest) = match text.split_once(':') {
            None => (PortKind::Interface, text),
            Some(("dpdk", rest)) => return parse_dpdk(text, rest),
            Some(("tap", rest)) => (PortKind::Tap, rest),
            Some(("xdp", rest)) => (PortKind::Xdp(XdpOptions::default()), rest),
            Some(("replay", rest)) => (PortKind::Replay(None), rest),
            Some(("patch", rest)) => (PortKind::Patch("".into()), rest),
            Some((other, rest)) => {
                if let Some(kind) = TunnelType::named(other) {
                    return parse_tunnel(text, kind, rest);
                }
                let problem = format!(
                    "'{other}:' is not a kind of port: use INTERFACE[=NUMBER], \
                     xdp:INTERFACE[,MODE..][=NUMBER], dpdk:DEVICE[=NUMBER][,ARGUMENT..], \
                     tap:NAME[=NUMBER], patch:NAME,PEER[=NUMBER], replay:NAME[,FILE][=NUMBER], \
                     vxlan:NAME[=NUMBER],remote=ADDRESS[,key=KEY..], geneve:.., gre:.., ip6gre:.., \
                     erspan:.., ip6erspan:.., gtpu:.. or lisp:.."
                );
                return Err(ConfigError::new("--port", problem));
            }
        };
        let (mut name, number) = match rest.split_once('=') {
            None => (rest, None),
            Some((name, number)) => (name, Some(parse_number(text, number)?)),
        };
        match &mut kind {
            PortKind::Xdp(options) => {
                let mut words = name.split(',');
                name = words.next().unwrap_or_default();
                words.try_for_each(|word| set_mode(options, word, text))?;
            }
            PortKind::Replay(file) => {
                if let Some((first, path)) = name.split_once(',') {
                    name = first;
                    *file = Some(PathBuf::from(path).into());
                }
            }
            PortKind::Patch(peer) => {
                let (first, other) = name.split_once(',').unwrap_or((name, ""));
                *peer = parse_peer(first, other).map_err(|problem| {
                    ConfigError::new("--port", format!("'{text}': {problem}"))
                })?;
                name = first;
            }
            PortKind::Interface
            | PortKind::Dpdk(_)
            | PortKind::Tap
            | PortKind::Dummy(_)
            | PortKind::Tunnel(_) => {}
        }
        kind.check_name("--port", name)?;
        Ok(Self {
            kind,
            name: name.to_owned(),
            number,
        })
    }
}

/// Parses the name of the peer of the patch port `name`.
pub fn parse_peer(name: &str, peer: &str) -> Result<Arc<str>, String> {
    if peer.is_empty() {
        return Err("a patch port needs the name of its peer".to_owned());
    }
    super::check_inner_name("peer", peer).map_err(|error| error.problem)?;
    if name == peer {
        return Err("a patch port is not its own peer".to_owned());
    }
    Ok(peer.into())
}

/// Parses a tunnel after its type, such as `vxlan:`. The number follows the name, since options
/// contain the equals sign too.
fn parse_tunnel(text: &str, kind: TunnelType, rest: &str) -> Result<PortSpec, ConfigError> {
    let (head, words) = rest.split_once(',').unwrap_or((rest, ""));
    let (name, number) = match head.split_once('=') {
        None => (head, None),
        Some((name, number)) => (name, Some(parse_number(text, number)?)),
    };
    let wrong = |problem: String| ConfigError::new("--port", format!("'{text}': {problem}"));
    let tunnel = tunnel::from_words(kind, name, words).map_err(wrong)?;
    let kind = PortKind::Tunnel(Arc::new(tunnel));
    kind.check_name("--port", name)?;
    Ok(PortSpec {
        kind,
        name: name.to_owned(),
        number,
    })
}

/// Parses a device after `dpdk:`. The number follows the device name: driver arguments contain the
/// equals sign too.
fn parse_dpdk(text: &str, rest: &str) -> Result<PortSpec, ConfigError> {
    let (head, words) = match rest.split_once(',') {
        Some((head, words)) => (head, Some(words)),
        None => (rest, None),
    };
    let (device, number) = match head.split_once('=') {
        None => (head, None),
        Some((device, number)) => (device, Some(parse_number(text, number)?)),
    };
    let plain = match words {
        Some(words) => format!("{device},{words}"),
        None => device.to_owned(),
    };
    let arguments: dpdk::Arguments = plain
        .parse()
        .map_err(|error: dpdk::BadArguments| ConfigError::new("--port", error.to_string()))?;
    Ok(PortSpec {
        name: arguments.device().to_owned(),
        kind: PortKind::Dpdk(arguments.into()),
        number,
    })
}

/// The modes that may follow an `AF_XDP` interface.
const MODES: [&str; 5] = ["native", "generic", "copy", "zero-copy", "busy-poll"];

fn set_mode(options: &mut XdpOptions, word: &str, text: &str) -> Result<(), ConfigError> {
    let hook_free = options.mode == XdpModeChoice::Best;
    let transfer_free = options.transfer == TransferChoice::Best;
    // The generic path always copies.
    let direct = options.transfer == TransferChoice::ZeroCopy;
    let generic = options.mode == XdpModeChoice::Generic;
    match word {
        "native" if hook_free => options.mode = XdpModeChoice::Native,
        "generic" if hook_free && !direct => options.mode = XdpModeChoice::Generic,
        "copy" if transfer_free => options.transfer = TransferChoice::Copy,
        "zero-copy" if transfer_free && !generic => options.transfer = TransferChoice::ZeroCopy,
        "busy-poll" if !options.busy_poll => options.busy_poll = true,
        _ => {
            let problem = match MODES.contains(&word) {
                true => format!("'{text}': '{word}' contradicts or repeats an earlier mode"),
                false => format!("'{text}': '{word}' is not a mode: use {}", MODES.join(", ")),
            };
            return Err(ConfigError::new("--port", problem));
        }
    }
    Ok(())
}

/// Returns the mode words of these options.
fn modes(options: XdpOptions) -> impl Iterator<Item = &'static str> {
    let [native, generic, copy, zero_copy, busy_poll] = MODES;
    let hook = match options.mode {
        XdpModeChoice::Best => None,
        XdpModeChoice::Native => Some(native),
        XdpModeChoice::Generic => Some(generic),
    };
    let transfer = match options.transfer {
        TransferChoice::Best => None,
        TransferChoice::Copy => Some(copy),
        TransferChoice::ZeroCopy => Some(zero_copy),
    };
    let busy_poll = options.busy_poll.then_some(busy_poll);
    [hook, transfer, busy_poll].into_iter().flatten()
}

fn parse_number(text: &str, number: &str) -> Result<PortNo, ConfigError> {
    number
        .parse()
        .ok()
        .filter(|number| (1..=PORT_NUMBER_MAX).contains(number))
        .map(PortNo)
        .ok_or_else(|| {
            let problem = format!(
                "'{text}': '{number}' is not a port number: use 1 to {PORT_NUMBER_MAX}, as in eth1=7"
            );
            ConfigError::new("--port", problem)
        })
}

impl TryFrom<String> for PortSpec {
    type Error = ConfigError;

    fn try_from(text: String) -> Result<Self, ConfigError> {
        text.parse()
    }
}

impl fmt::Display for PortSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            PortKind::Interface => f.write_str(&self.name)?,
            PortKind::Tap => write!(f, "tap:{}", self.name)?,
            PortKind::Xdp(options) => {
                write!(f, "xdp:{}", self.name)?;
                modes(*options).try_for_each(|mode| write!(f, ",{mode}"))?;
            }
            PortKind::Tunnel(tunnel) => {
                write!(f, "{}:{}", tunnel.type_name(), self.name)?;
                if let Some(number) = self.number {
                    write!(f, "={number}")?;
                }
                return write!(f, "{tunnel}");
            }
            PortKind::Dummy(_) => write!(f, "dummy:{}", self.name)?,
            PortKind::Patch(peer) => write!(f, "patch:{},{peer}", self.name)?,
            PortKind::Dpdk(arguments) => {
                write!(f, "dpdk:{}", self.name)?;
                if let Some(number) = self.number {
                    write!(f, "={number}")?;
                }
                return f.write_str(&arguments.words());
            }
            PortKind::Replay(file) => {
                write!(f, "replay:{}", self.name)?;
                if let Some(file) = file {
                    write!(f, ",{}", file.display())?;
                }
            }
        }
        self.number.map_or(Ok(()), |number| write!(f, "={number}"))
    }
}

/// Assigns a number to every port: the requested one, or else the lowest unrequested number from 1,
/// in the user's order. The same list always gets the same numbers, so they survive a restart.
///
/// # Errors
/// A number is requested twice, or there are more ports than numbers.
pub fn number_ports(ports: &[PortSpec]) -> Result<Vec<PortNo>, ConfigError> {
    let mut requested = std::collections::BTreeSet::new();
    for number in ports.iter().filter_map(|port| port.number) {
        if !requested.insert(number) {
            let problem = format!("number {number} is requested twice: give each port its own");
            return Err(ConfigError::new("--port", problem));
        }
    }
    let mut free = (1..=PORT_NUMBER_MAX)
        .map(PortNo)
        .filter(|number| !requested.contains(number));
    ports
        .iter()
        .map(|port| port.number.or_else(|| free.next()))
        .collect::<Option<_>>()
        .ok_or_else(|| {
            ConfigError::new(
                "--port",
                format!("a bridge has {PORT_NUMBER_MAX} port numbers at most"),
            )
        })
}
