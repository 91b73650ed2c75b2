//! Requests to flush tracked connections: `NXT_CT_FLUSH_ZONE` and `NXT_CT_FLUSH`, the same in every
//! version (`nicira-ext.h` of Open vSwitch 3.1).

use std::fmt;
use std::net::Ipv6Addr;

use flow::Refusal;
use flow::text::Ipv6Text;

use super::{WireFormat, property};
use crate::codec::{EncodeError, Malformed, Reader, Writer};

/// `NXT_CT_*`: the tuples of both directions, and the zone.
const ORIGINAL: u16 = 0;
const REPLY: u16 = 1;
const ZONE: u16 = 2;

/// `NXT_CT_TUPLE_*`: the parts of a tuple.
const SRC: u16 = 0;
const DST: u16 = 1;
const SRC_PORT: u16 = 2;
const DST_PORT: u16 = 3;
const ICMP_ID: u16 = 4;
const ICMP_TYPE: u16 = 5;
const ICMP_CODE: u16 = 6;

/// Protocols with ICMP's parts in place of ports.
const ICMP: [u8; 2] = [1, 58];

/// The connections to flush: those that have all parts that are not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConntrackFlush {
    /// IP protocol; zero for any.
    pub protocol: u8,
    /// Zone, if only one.
    pub zone: Option<u16>,
    /// The connection in its original direction.
    pub original: ConntrackTuple,
    /// The connection in the direction of replies.
    pub reply: ConntrackTuple,
}

/// One direction of connections; zero parts match any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConntrackTuple {
    /// Source; an IPv4 address is mapped to IPv6.
    pub src: Ipv6Addr,
    /// Destination; an IPv4 address is mapped to IPv6.
    pub dst: Ipv6Addr,
    /// Source port, or the id of ICMP.
    pub src_port: u16,
    /// Destination port, or the code and the type of ICMP.
    pub dst_port: u16,
}

/// The parts of ICMP are in the bytes of the destination port as in Open vSwitch (`ofp-ct.h`), so
/// that a request with these parts and another protocol selects the same port.
impl ConntrackTuple {
    /// Type of ICMP: the lower byte of the destination port.
    #[must_use]
    pub const fn icmp_type(&self) -> u8 {
        let [_, kind] = self.dst_port.to_be_bytes();
        kind
    }

    /// Code of ICMP: the upper byte of the destination port.
    #[must_use]
    pub const fn icmp_code(&self) -> u8 {
        let [code, _] = self.dst_port.to_be_bytes();
        code
    }

    /// Sets the type of ICMP.
    pub const fn set_icmp_type(&mut self, kind: u8) {
        self.dst_port = u16::from_be_bytes([self.icmp_code(), kind]);
    }

    /// Sets the code of ICMP.
    pub const fn set_icmp_code(&mut self, code: u8) {
        self.dst_port = u16::from_be_bytes([code, self.icmp_type()]);
    }
}

impl Default for ConntrackTuple {
    fn default() -> Self {
        Self {
            src: Ipv6Addr::UNSPECIFIED,
            dst: Ipv6Addr::UNSPECIFIED,
            src_port: 0,
            dst_port: 0,
        }
    }
}

/// Decodes the zone of `NXT_CT_FLUSH_ZONE`.
pub(crate) fn decode_zone(r: &mut Reader<'_>) -> Result<u16, Malformed> {
    r.zeros(6, Refusal::RequestMustBeZero)?;
    r.u16()
}

/// Appends the body of `NXT_CT_FLUSH_ZONE`.
pub(crate) fn encode_zone(zone: u16, w: &mut Writer<'_>) {
    w.zeros(6);
    w.u16(zone);
}

impl WireFormat for ConntrackFlush {
    /// Decodes all properties. Unknown ones are skipped, as by Open vSwitch.
    fn decode(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut flush = Self {
            protocol: r.u8()?,
            ..Self::default()
        };
        r.zeros(7, Refusal::RequestMustBeZero)?;
        let mut is_v4 = None;
        while !r.is_empty() {
            let mut property = property::next(r)?;
            let value = &mut property.value;
            match property.kind {
                ORIGINAL => decode_tuple(value, &mut flush.original, &mut is_v4)?,
                REPLY => decode_tuple(value, &mut flush.reply, &mut is_v4)?,
                ZONE => flush.zone = Some(value_of(value, |r| r.u16())?),
                _ => property.check_skipped()?,
            }
        }
        Ok(flush)
    }

    fn encode(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.u8(self.protocol);
        w.zeros(7);
        for (kind, tuple) in [(ORIGINAL, &self.original), (REPLY, &self.reply)] {
            if *tuple != ConntrackTuple::default() {
                property::put(kind, w, |w| encode_tuple(tuple, self.protocol, w))?;
            }
        }
        if let Some(zone) = self.zone {
            property::put(ZONE, w, |w| {
                w.u16(zone);
                Ok(())
            })?;
        }
        Ok(())
    }
}

fn is_mapped(address: Ipv6Addr) -> bool {
    address.to_ipv4_mapped().is_some()
}

/// Reads the value at the start of a property; as by Open vSwitch, the property may be longer.
fn value_of<T>(
    r: &Reader<'_>,
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<T, Malformed> {
    let mut value = r.clone().on_short(Refusal::PropertyBadLength);
    read(&mut value)
}

/// Decodes the properties of a tuple, which follow padding. `is_v4` is the family of the addresses
/// so far: all have the same, including those that a later property replaces.
fn decode_tuple(
    r: &mut Reader<'_>,
    tuple: &mut ConntrackTuple,
    is_v4: &mut Option<bool>,
) -> Result<(), Malformed> {
    value_of(r, |r| r.skip(4))?;
    r.skip(4)?;
    let mut address = |r: &Reader<'_>| {
        let address = Ipv6Addr::from_bits(value_of(r, |r| r.number(16))?);
        let family = is_mapped(address);
        if !address.is_unspecified() && *is_v4.get_or_insert(family) != family {
            return Err(r.fail(Refusal::PropertyBadValue));
        }
        Ok(address)
    };
    while !r.is_empty() {
        let property = property::next(r)?;
        let value = &property.value;
        match property.kind {
            SRC => tuple.src = address(value)?,
            DST => tuple.dst = address(value)?,
            SRC_PORT | ICMP_ID => tuple.src_port = value_of(value, |r| r.u16())?,
            DST_PORT => tuple.dst_port = value_of(value, |r| r.u16())?,
            ICMP_TYPE => tuple.set_icmp_type(value_of(value, |r| r.u8())?),
            ICMP_CODE => tuple.set_icmp_code(value_of(value, |r| r.u8())?),
            _ => property.check_skipped()?,
        }
    }
    Ok(())
}

fn encode_tuple(
    tuple: &ConntrackTuple,
    protocol: u8,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    w.zeros(4);
    let mut put = |kind: u16, value: &[u8]| {
        property::put(kind, w, |w| {
            w.bytes(value);
            Ok(())
        })
    };
    for (kind, address) in [(SRC, tuple.src), (DST, tuple.dst)] {
        if !address.is_unspecified() {
            put(kind, &address.octets())?;
        }
    }
    if ICMP.contains(&protocol) {
        put(ICMP_ID, &tuple.src_port.to_be_bytes())?;
        put(ICMP_TYPE, &[tuple.icmp_type()])?;
        return put(ICMP_CODE, &[tuple.icmp_code()]);
    }
    for (kind, port) in [(SRC_PORT, tuple.src_port), (DST_PORT, tuple.dst_port)] {
        if port != 0 {
            put(kind, &port.to_be_bytes())?;
        }
    }
    Ok(())
}

impl fmt::Display for ConntrackFlush {
    /// Writes both directions like Open vSwitch: `'TUPLE,ct_nw_proto=N' 'TUPLE'`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            protocol,
            original,
            reply,
            ..
        } = self;
        let is_v4 = [original.src, original.dst, reply.src, reply.dst]
            .into_iter()
            .any(is_mapped);
        f.write_str("'")?;
        write_tuple(f, original, *protocol, is_v4)?;
        write!(f, ",ct_nw_proto={protocol}' '")?;
        write_tuple(f, reply, *protocol, is_v4)?;
        f.write_str("'")
    }
}

fn write_tuple(
    f: &mut fmt::Formatter<'_>,
    tuple: &ConntrackTuple,
    protocol: u8,
    is_v4: bool,
) -> fmt::Result {
    let family = if is_v4 { "nw" } else { "ipv6" };
    for (side, address) in [("src", tuple.src), ("dst", tuple.dst)] {
        let comma = if side == "dst" { "," } else { "" };
        write!(f, "{comma}ct_{family}_{side}=")?;
        match address.to_ipv4_mapped() {
            Some(address) => write!(f, "{address}")?,
            None => write!(f, "{}", Ipv6Text(address))?,
        }
    }
    let (src, dst) = (tuple.src_port, tuple.dst_port);
    if ICMP.contains(&protocol) {
        let (kind, code) = (tuple.icmp_type(), tuple.icmp_code());
        return write!(f, ",icmp_id={src},icmp_type={kind},icmp_code={code}");
    }
    write!(f, ",ct_tp_src={src},ct_tp_dst={dst}")
}
