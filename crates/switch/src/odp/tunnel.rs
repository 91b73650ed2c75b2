//! The tunnel of a datapath flow: `tunnel(tun_id=0x1,src=1.1.1.1,dst=2.2.2.2,ttl=64,flags(key))`.

mod received;

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use config::{TunnelConfig, TunnelEndpoint, TunnelKey};
use flow::{Erspan, Gtpu};

use super::scan::{MaskedNumber, OdpScanner};
use super::value::OdpFormat;

/// The flags of a tunnel and their bits in Open vSwitch's flow.
pub(crate) const TUNNEL_FLAGS: [(&str, u32); 4] = [("oam", 1), ("df", 2), ("csum", 4), ("key", 8)];

/// The flag of packets of the tunnel endpoints themselves.
pub(crate) const OAM: u8 = 1;
/// The don't-fragment flag.
pub(crate) const DONT_FRAGMENT: u8 = 2;
/// The flag of tunnel packets with a checksum.
pub(crate) const CHECKSUM: u8 = 4;
/// The flag of tunnel packets with a key.
pub(crate) const KEY: u8 = 8;

/// The longest value of a Geneve option, in bytes.
const OPTION_MAX: usize = 124;

/// The limit of all options of a packet, in bytes (RFC 8926, 3.4).
const OPTIONS_MAX: usize = 252;

/// The limit of repeated attributes: a Netlink attribute holds 64 KiB.
const ATTRIBUTES_MAX: usize = 8191;

/// A Geneve option.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OdpGeneveOption {
    /// The class.
    pub class: u16,
    /// The type.
    pub kind: u8,
    /// The value.
    pub value: Vec<u8>,
}

/// A tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OdpTunnel {
    /// The key.
    pub id: MaskedNumber,
    /// The source address of IPv4.
    pub src: MaskedNumber,
    /// The destination address of IPv4.
    pub dst: MaskedNumber,
    /// The source address of IPv6.
    pub ipv6_src: MaskedNumber,
    /// The destination address of IPv6.
    pub ipv6_dst: MaskedNumber,
    /// DSCP and ECN.
    pub tos: MaskedNumber,
    /// The TTL.
    pub ttl: MaskedNumber,
    /// The source port.
    pub tp_src: MaskedNumber,
    /// The destination port.
    pub tp_dst: MaskedNumber,
    /// Flags of the group policy, and its id in the lower sixteen bits.
    pub gbp: MaskedNumber,
    /// The mirror header.
    pub erspan: Erspan,
    /// The GTP-U header.
    pub gtpu: Gtpu,
    /// Options.
    pub options: Vec<OdpGeneveOption>,
    /// Flags, in Open vSwitch's bits.
    pub flags: MaskedNumber,
    /// The number of attributes read.
    count: usize,
}

impl OdpTunnel {
    /// True if the attributes exceed a Netlink attribute.
    pub(super) const fn is_too_long(&self) -> bool {
        self.count > ATTRIBUTES_MAX
    }

    /// Reads the attributes up to the closing parenthesis.
    pub(super) fn read(&mut self, scanner: &mut OdpScanner<'_>) -> Option<()> {
        loop {
            self.count += 1;
            if let Some(attribute) = scanner.attribute() {
                self.attribute(attribute, scanner)?;
            } else if scanner.skip("geneve(") {
                self.geneve(scanner)?;
            } else if scanner.skip("vxlan(gbp(") {
                self.group_policy(scanner)?;
            } else if scanner.skip("erspan(") {
                self.erspan(scanner)?;
            } else if scanner.skip("gtpu(") {
                self.gtpu(scanner)?;
            } else if scanner.skip("flags(") {
                let flags = scanner.flags(&TUNNEL_FLAGS, 4)?;
                self.flags.value |= flags.value;
                self.flags.mask |= flags.mask;
                scanner.skip(")").then_some(())?;
            }
            if !scanner.skip(",") {
                return scanner.skip(")").then_some(());
            }
        }
    }

    fn attribute(&mut self, name: &str, scanner: &mut OdpScanner<'_>) -> Option<()> {
        let (number, bits) = match name {
            "src" => {
                self.src = scanner.masked(u32::MAX.into(), OdpScanner::ipv4)?;
                return Some(());
            }
            "dst" => {
                self.dst = scanner.masked(u32::MAX.into(), OdpScanner::ipv4)?;
                return Some(());
            }
            "ipv6_src" => {
                self.ipv6_src = scanner.masked(u128::MAX, OdpScanner::ipv6)?;
                return Some(());
            }
            "ipv6_dst" => {
                self.ipv6_dst = scanner.masked(u128::MAX, OdpScanner::ipv6)?;
                return Some(());
            }
            "tun_id" => (&mut self.id, 64),
            "tos" => (&mut self.tos, 8),
            "ttl" => (&mut self.ttl, 8),
            "tp_src" => (&mut self.tp_src, 16),
            "tp_dst" => (&mut self.tp_dst, 16),
            _ => return None,
        };
        *number = scanner.masked_number(bits)?;
        if name == "tun_id" {
            self.flags.value |= u128::from(KEY);
        }
        Some(())
    }

    /// Reads `{class=0xffff,type=0,len=4,0xa}`, any number of times.
    fn geneve(&mut self, scanner: &mut OdpScanner<'_>) -> Option<()> {
        let mut room = OPTIONS_MAX;
        while scanner.skip("{") {
            let mut option = OdpGeneveOption::default();
            let mut len = 0;
            while let Some(attribute) = scanner.attribute() {
                match attribute {
                    "class" => {
                        option.class = u16::try_from(scanner.masked_number(16)?.value).ok()?
                    }
                    "type" => option.kind = u8::try_from(scanner.masked_number(8)?.value).ok()?,
                    "len" => len = usize::try_from(scanner.masked_number(8)?.value).ok()?,
                    _ => return None,
                }
                if !scanner.skip(",") {
                    break;
                }
            }
            if len > OPTION_MAX || len % 4 != 0 {
                return None;
            }
            option.value = hex(scanner, len)?;
            if scanner.skip("/") {
                hex(scanner, len)?;
            }
            scanner.skip("}").then_some(())?;
            room = room.checked_sub(len + 4)?;
            self.options.push(option);
        }
        scanner.skip(")").then_some(())
    }

    fn group_policy(&mut self, scanner: &mut OdpScanner<'_>) -> Option<()> {
        let (mut id, mut flags) = (MaskedNumber::default(), MaskedNumber::default());
        while let Some(attribute) = scanner.attribute() {
            match attribute {
                "id" => id = scanner.masked_number(16)?,
                "flags" => flags = scanner.masked_number(8)?,
                _ => return None,
            }
            if !scanner.skip(",") {
                break;
            }
        }
        self.gbp = MaskedNumber {
            value: flags.value << 16 | id.value,
            mask: flags.mask << 16 | id.mask,
        };
        scanner.skip("))").then_some(())
    }

    fn erspan(&mut self, scanner: &mut OdpScanner<'_>) -> Option<()> {
        while let Some(attribute) = scanner.attribute() {
            let mut octet = |bits| u8::try_from(scanner.masked_number(bits)?.value).ok();
            match attribute {
                "ver" => self.erspan.version = octet(8)?,
                "dir" => self.erspan.direction = octet(8)?,
                "hwid" => self.erspan.hardware = octet(8)?,
                "idx" => {
                    self.erspan.index = u32::try_from(scanner.masked_number(32)?.value).ok()?;
                }
                _ => return None,
            }
            if !scanner.skip(",") {
                break;
            }
        }
        scanner.skip(")").then_some(())
    }

    fn gtpu(&mut self, scanner: &mut OdpScanner<'_>) -> Option<()> {
        while let Some(attribute) = scanner.attribute() {
            let octet = u8::try_from(scanner.masked_number(8)?.value).ok()?;
            match attribute {
                "flags" => self.gtpu.flags = octet,
                "msgtype" => self.gtpu.message = octet,
                _ => return None,
            }
            if !scanner.skip(",") {
                break;
            }
        }
        scanner.skip(")").then_some(())
    }

    /// True if the flow came by a tunnel: it has a destination.
    #[must_use]
    pub const fn is_set(&self) -> bool {
        self.dst.value != 0 || self.ipv6_dst.value != 0
    }

    /// Returns the rank of a tunnel port for received packets with these headers, from zero for the
    /// most specific; none if the port does not receive them.
    #[must_use]
    pub fn rank(&self, tunnel: &TunnelConfig) -> Option<u8> {
        let address = |v4: MaskedNumber, v6: MaskedNumber| match u32::try_from(v4.value) {
            Ok(v4) if v4 != 0 => IpAddr::V4(Ipv4Addr::from_bits(v4)),
            _ => IpAddr::V6(Ipv6Addr::from_bits(v6.value)),
        };
        let key = match tunnel.in_key {
            TunnelKey::None if self.id.value == 0 => 0,
            TunnelKey::Given(key) if self.id.value == u128::from(key) => 0,
            TunnelKey::Flow => 1,
            TunnelKey::None | TunnelKey::Given(_) => return None,
        };
        let remote = match tunnel.remote {
            TunnelEndpoint::Given(remote) if remote == address(self.src, self.ipv6_src) => 0,
            TunnelEndpoint::Flow | TunnelEndpoint::Any => 1,
            TunnelEndpoint::Given(_) => return None,
        };
        let local = match tunnel.local {
            TunnelEndpoint::Given(local) if local == address(self.dst, self.ipv6_dst) => 0,
            TunnelEndpoint::Any => 1,
            TunnelEndpoint::Flow => 2,
            TunnelEndpoint::Given(_) => return None,
        };
        Some(key * 6 + remote * 3 + local)
    }

    /// Writes the values of the tunnel as a datapath does in `set(tunnel(...))`. Attributes that
    /// are zero are left out, but for the TTL, and for the key if the tunnel has one.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        if self.id.value != 0 || self.flags.value & u128::from(KEY) != 0 {
            let _ = write!(text, "tun_id={:#x},", self.id.value);
        }
        for (name, address) in [("src", self.src), ("dst", self.dst)] {
            if address.value != 0 {
                let address = Ipv4Addr::from_bits(u32::try_from(address.value).unwrap_or(u32::MAX));
                let _ = write!(text, "{name}={address},");
            }
        }
        for (name, address) in [("ipv6_src", self.ipv6_src), ("ipv6_dst", self.ipv6_dst)] {
            if address.value != 0 {
                let _ = write!(text, "{name}={},", Ipv6Addr::from_bits(address.value));
            }
        }
        if self.tos.value != 0 {
            let _ = write!(text, "tos={:#x},", self.tos.value);
        }
        let _ = write!(text, "ttl={},", self.ttl.value);
        for (name, port) in [("tp_src", self.tp_src), ("tp_dst", self.tp_dst)] {
            if port.value != 0 {
                let _ = write!(text, "{name}={},", port.value);
            }
        }
        self.write_options(&mut text);
        let flags = TUNNEL_FLAGS.iter();
        let set = flags.filter(|(_, bit)| self.flags.value & u128::from(*bit) != 0);
        let names: Vec<_> = set.map(|(name, _)| *name).collect();
        let _ = write!(text, "flags({})", names.join("|"));
        text
    }

    /// Writes the examined attributes of a received packet's tunnel, with masks.
    pub(super) fn key_text(&self) -> String {
        let mut parts = Vec::new();
        let mut add = |name: &str, form: OdpFormat, number: MaskedNumber, bits: u32| {
            let full = u128::MAX >> (u128::BITS - bits);
            if number.mask & full != 0 {
                let mask = (number.mask & full != full).then_some(number.mask & full);
                parts.push(format!("{name}={}", form.write(number.value, mask)));
            }
        };
        add("tun_id", OdpFormat::PlainHex, self.id, 64);
        add("src", OdpFormat::Ipv4, self.src, 32);
        add("dst", OdpFormat::Ipv4, self.dst, 32);
        add("ipv6_src", OdpFormat::Ipv6, self.ipv6_src, 128);
        add("ipv6_dst", OdpFormat::Ipv6, self.ipv6_dst, 128);
        add("tos", OdpFormat::Hex, self.tos, 8);
        add("ttl", OdpFormat::Decimal, self.ttl, 8);
        add("tp_src", OdpFormat::Decimal, self.tp_src, 16);
        add("tp_dst", OdpFormat::Decimal, self.tp_dst, 16);
        let mut options = String::new();
        self.write_options(&mut options);
        parts.extend(options.strip_suffix(',').map(str::to_owned));
        let flags = TUNNEL_FLAGS.iter();
        let examined = flags.filter(|(_, bit)| self.flags.mask & u128::from(*bit) != 0);
        let flags: String = examined
            .map(|(name, bit)| match self.flags.value & u128::from(*bit) {
                0 => format!("-{name}"),
                _ => format!("+{name}"),
            })
            .collect();
        if !flags.is_empty() {
            parts.push(format!("flags({flags})"));
        }
        parts.join(",")
    }

    fn write_options(&self, text: &mut String) {
        if self.gbp.value != 0 {
            let (id, flags) = (self.gbp.value & 0xffff, self.gbp.value >> 16);
            let _ = write!(text, "vxlan(gbp(");
            let id = (id != 0).then(|| format!("id={id}"));
            let flags = (flags != 0).then(|| format!("flags={flags:#x}"));
            let parts: Vec<_> = id.into_iter().chain(flags).collect();
            let _ = write!(text, "{})),", parts.join(","));
        }
        if !self.options.is_empty() {
            let options = self.options.iter().map(OdpGeneveOption::text);
            let _ = write!(text, "geneve({}),", options.collect::<String>());
        }
        let erspan = &self.erspan;
        let _ = match erspan.version {
            1 => write!(text, "erspan(ver=1,idx={:#x}),", erspan.index),
            2 => write!(
                text,
                "erspan(ver=2,dir={},hwid={:#x}),",
                erspan.direction, erspan.hardware
            ),
            _ => Ok(()),
        };
        let Gtpu { flags, message } = self.gtpu;
        if self.gtpu != Gtpu::default() {
            let _ = write!(text, "gtpu(flags={flags:#x},msgtype={message}),");
        }
    }
}

impl OdpGeneveOption {
    pub(crate) fn text(&self) -> String {
        let hex = |number: u32| match number {
            0 => "0".to_owned(),
            number => format!("{number:#x}"),
        };
        let (class, kind) = (hex(self.class.into()), hex(self.kind.into()));
        let len = self.value.len();
        if len == 0 {
            return format!("{{class={class},type={kind},len=0}}");
        }
        let digits: String = self
            .value
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let value = match digits.trim_start_matches('0') {
            "" => "0".to_owned(),
            digits => format!("0x{digits}"),
        };
        format!("{{class={class},type={kind},len={len},{value}}}")
    }
}

/// Reads a number of `len` bytes in hexadecimal; nothing if `len` is zero.
fn hex(scanner: &mut OdpScanner<'_>, len: usize) -> Option<Vec<u8>> {
    if len == 0 {
        return Some(Vec::new());
    }
    scanner.skip("0x");
    let digits = scanner.word(|letter| letter.is_ascii_hexdigit());
    if digits.is_empty() || digits.len() > 2 * len {
        return None;
    }
    let padded = format!("{digits:0>width$}", width = 2 * len);
    let bytes = (0..padded.len()).step_by(2);
    bytes
        .map(|at| u8::from_str_radix(padded.get(at..at + 2)?, 16).ok())
        .collect()
}
