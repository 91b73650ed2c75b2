//! Queueing disciplines of interfaces and their classes (tc(8)), as far as Open vSwitch uses
//! them: a hierarchy of token buckets (tc-htb(8)) or of service curves (tc-hfsc(7)) at the root.
//!
//! Rates are of bytes a second. What they ought to be, others decide.

use std::fs;
use std::io;

use crate::interface::Ifindex;
use crate::netlink::{NetlinkRequest, RouteSocket, attribute};

/// Where the kernel tells how it measures time here (`read_psched` of Open vSwitch, `tc_core`).
const PSCHED: &str = "/proc/net/psched";

/// The numbers of messages, of flags beside those of each request, and of attributes
/// (`linux/rtnetlink.h`, `linux/gen_stats.h`, `linux/pkt_sched.h`).
mod number {
    pub(super) const NEW_QDISC: u16 = 36;
    pub(super) const DELETE_QDISC: u16 = 37;
    pub(super) const GET_QDISC: u16 = 38;
    pub(super) const NEW_CLASS: u16 = 40;
    pub(super) const DELETE_CLASS: u16 = 41;
    pub(super) const GET_CLASS: u16 = 42;

    pub(super) const ECHO: u16 = 0x8;
    pub(super) const EXCLUSIVE: u16 = 0x200;
    pub(super) const DUMP: u16 = 0x300;
    pub(super) const CREATE: u16 = 0x400;

    pub(super) const KIND: u16 = 1;
    pub(super) const OPTIONS: u16 = 2;
    pub(super) const STATISTICS: u16 = 7;
    pub(super) const STATISTICS_BASIC: u16 = 1;
    pub(super) const STATISTICS_QUEUE: u16 = 3;
    pub(super) const STATISTICS_PACKETS: u16 = 8;

    pub(super) const HTB_PARAMETERS: u16 = 1;
    pub(super) const HTB_INIT: u16 = 2;
    pub(super) const HTB_CEIL_TABLE: u16 = 3;
    pub(super) const HTB_RATE_TABLE: u16 = 4;
    pub(super) const HTB_RATE64: u16 = 6;
    pub(super) const HTB_CEIL64: u16 = 7;
    pub(super) const HFSC_REAL_TIME: u16 = 1;
    pub(super) const HFSC_LINK_SHARE: u16 = 2;
    pub(super) const HFSC_UPPER_LIMIT: u16 = 3;
}

/// The root of an interface's disciplines (`TC_H_ROOT`), and that of ours, `1:`.
const ROOT_PARENT: u32 = 0xffff_ffff;
const ROOT_HANDLE: u32 = 0x0001_0000;

/// Bytes of the header of messages about disciplines (`struct tcmsg`).
const HEADER: usize = 20;

/// What a root discipline is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Qdisc {
    /// A hierarchy of token buckets: `htb`.
    Htb,
    /// A hierarchy of fair service curves: `hfsc`.
    Hfsc,
}

impl Qdisc {
    const fn kind(self) -> &'static [u8] {
        match self {
            Self::Htb => b"htb\0",
            Self::Hfsc => b"hfsc\0",
        }
    }
}

/// A class of our root discipline, by its minor number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassMinor(pub u16);

impl ClassMinor {
    /// The class that all others are in.
    pub const ROOT: Self = Self(0xfffe);
    /// The class of frames that are for no other.
    pub const DEFAULT: Self = Self(1);

    const fn handle(self) -> u32 {
        ROOT_HANDLE | self.0 as u32
    }

    /// In what it is.
    const fn parent(self) -> u32 {
        match self {
            Self::ROOT => ROOT_HANDLE,
            _ => Self::ROOT.handle(),
        }
    }
}

/// What a class may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassRates {
    /// Bytes a second that it has in any case.
    pub min: u64,
    /// Bytes a second that it has at most.
    pub max: u64,
    /// Bytes at once; token buckets have a burst, service curves none.
    pub burst: u64,
    /// Who is served first of what is left: the lower. Token buckets only.
    pub priority: u32,
}

/// What a class has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounts {
    /// Bytes that left.
    pub bytes: u64,
    /// Frames that left.
    pub packets: u64,
    /// Frames that it dropped.
    pub drops: u64,
}

/// A handle on the disciplines of one network namespace.
pub struct TrafficControl {
    socket: RouteSocket,
    clock: PschedClock,
}

impl TrafficControl {
    /// Those of the calling thread's namespace.
    ///
    /// # Errors
    /// The process has no file descriptor left, or the kernel has no disciplines.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            socket: RouteSocket::open()?,
            clock: PschedClock::parse(&fs::read_to_string(PSCHED)?)
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, PSCHED))?,
        })
    }

    /// Whether the root of the interface's disciplines is ours and of this kind.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn has_root(&self, of: Ifindex, kind: Qdisc) -> io::Result<bool> {
        let header = header(of, 0, ROOT_PARENT)?;
        let request = NetlinkRequest::new(number::GET_QDISC, number::ECHO, &header);
        let found = match self.socket.transact(request) {
            // One that the kernel has put there by itself has no number to ask for.
            Err(error) if is_not_found(&error) => return Ok(false),
            found => found?,
        };
        Ok(found.iter().any(|body| {
            let at = |place: usize| body.get(place..).and_then(<[u8]>::first_chunk);
            let handle = at(8).map(|bytes| u32::from_ne_bytes(*bytes));
            let attributes = body.get(HEADER..).unwrap_or_default();
            handle == Some(ROOT_HANDLE) && attribute(attributes, number::KIND) == Some(kind.kind())
        }))
    }

    /// Takes the root discipline away, whoever has put it there: what is there then is what the
    /// interface had at first.
    ///
    /// # Errors
    /// The interface is gone, or the process may not (`CAP_NET_ADMIN`).
    pub fn remove_root(&self, of: Ifindex) -> io::Result<()> {
        let request = NetlinkRequest::new(number::DELETE_QDISC, 0, &header(of, 0, ROOT_PARENT)?);
        match self.socket.transact(request) {
            Err(error) if is_not_found(&error) => Ok(()),
            done => done.map(drop),
        }
    }

    /// Makes our root discipline, where there is none.
    ///
    /// # Errors
    /// The interface is gone, the kernel has no such discipline (`ENOENT`), or the process may
    /// not.
    pub fn add_root(&self, of: Ifindex, kind: Qdisc) -> io::Result<()> {
        let flags = number::EXCLUSIVE | number::CREATE;
        let mut request = NetlinkRequest::new(
            number::NEW_QDISC,
            flags,
            &header(of, ROOT_HANDLE, ROOT_PARENT)?,
        );
        request.put(number::KIND, kind.kind());
        match kind {
            Qdisc::Htb => {
                // `struct tc_htb_glob`: the version, how a quantum follows from a rate, the
                // default class; two that the kernel fills in.
                let words = [3, 10, u32::from(ClassMinor::DEFAULT.0), 0, 0];
                request.nest(number::OPTIONS, |options| {
                    options.put(number::HTB_INIT, &words.map(u32::to_ne_bytes).concat());
                });
            }
            Qdisc::Hfsc => {
                request.put(number::OPTIONS, &ClassMinor::DEFAULT.0.to_ne_bytes());
            }
        }
        self.socket.transact(request).map(drop)
    }

    /// Makes a class of our root discipline, or has it do another service. `mtu` is the longest
    /// payload of the interface's frames.
    ///
    /// # Errors
    /// The interface is gone or has no such discipline, or the process may not.
    pub fn set_class(
        &self,
        of: Ifindex,
        (kind, minor): (Qdisc, ClassMinor),
        service: ClassRates,
        mtu: u32,
    ) -> io::Result<()> {
        let header = header(of, minor.handle(), minor.parent())?;
        let mut request = NetlinkRequest::new(number::NEW_CLASS, number::CREATE, &header);
        request.put(number::KIND, kind.kind());
        request.nest(number::OPTIONS, |options| match kind {
            Qdisc::Htb => put_htb(options, service, mtu, self.clock),
            Qdisc::Hfsc => put_hfsc(options, service),
        });
        self.socket.transact(request).map(drop)
    }

    /// Takes a class away, if it is there.
    ///
    /// # Errors
    /// As of [`Self::set_class`].
    pub fn remove_class(&self, of: Ifindex, minor: ClassMinor) -> io::Result<()> {
        let header = header(of, minor.handle(), 0)?;
        match self
            .socket
            .transact(NetlinkRequest::new(number::DELETE_CLASS, 0, &header))
        {
            Err(error) if is_not_found(&error) => Ok(()),
            done => done.map(drop),
        }
    }

    /// The classes of our root discipline, and what each has done.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn classes(&self, of: Ifindex) -> io::Result<Vec<(ClassMinor, ClassCounts)>> {
        let request = NetlinkRequest::new(number::GET_CLASS, number::DUMP, &header(of, 0, 0)?);
        let found = self.socket.transact(request)?;
        Ok(found.iter().filter_map(|body| read_class(body)).collect())
    }
}

/// Whether the kernel says that what is to be taken away, or asked for, is not there.
fn is_not_found(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINVAL))
}

/// The header of a message about a discipline or class: `struct tcmsg`.
fn header(of: Ifindex, handle: u32, parent: u32) -> io::Result<[u8; HEADER]> {
    let index = i32::try_from(of.0).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
    let mut header = [0; HEADER];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&handle.to_ne_bytes());
    header[12..16].copy_from_slice(&parent.to_ne_bytes());
    Ok(header)
}

/// A class of ours that a message tells of.
fn read_class(body: &[u8]) -> Option<(ClassMinor, ClassCounts)> {
    let handle = u32::from_ne_bytes(*body.get(8..)?.first_chunk()?);
    let minor = ClassMinor(u16::try_from(handle & 0xffff).ok()?);
    if minor.handle() != handle {
        return None;
    }
    let statistics = attribute(body.get(HEADER..)?, number::STATISTICS).unwrap_or_default();
    let word = |bytes: &[u8], at: usize| {
        let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
        word.map_or(0, |word| u64::from(u32::from_ne_bytes(*word)))
    };
    let long = |bytes: &[u8]| bytes.first_chunk().map(|word| u64::from_ne_bytes(*word));
    let basic = attribute(statistics, number::STATISTICS_BASIC).unwrap_or_default();
    let queue = attribute(statistics, number::STATISTICS_QUEUE).unwrap_or_default();
    let packets = attribute(statistics, number::STATISTICS_PACKETS).and_then(long);
    Some((
        minor,
        ClassCounts {
            bytes: long(basic).unwrap_or_default(),
            packets: packets.unwrap_or_else(|| word(basic, 8)),
            drops: word(queue, 8),
        },
    ))
}

/// Writes what a class of token buckets does: `struct tc_htb_opt`, two tables of how long frames
/// take, and the rates that do not fit.
fn put_htb(options: &mut NetlinkRequest, service: ClassRates, mtu: u32, clock: PschedClock) {
    let ClassRates {
        min,
        max,
        burst,
        priority,
    } = service;
    let cell = cell_bits(mtu);
    // A quantum of one frame at least; zero lets the rate say.
    let quantum = if min / 10 < mtu.into() { mtu } else { 0 };
    let words = [
        clock.buffer(min, mtu, burst),
        clock.buffer(max, mtu, burst),
        quantum,
        0,
        priority,
    ];
    let mut parameters = rate(min, cell).to_vec();
    parameters.extend_from_slice(&rate(max, cell));
    parameters.extend_from_slice(&words.map(u32::to_ne_bytes).concat());
    for (kind, rate) in [(number::HTB_RATE64, min), (number::HTB_CEIL64, max)] {
        if rate > u32::MAX.into() {
            options.put(kind, &rate.to_ne_bytes());
        }
    }
    options.put(number::HTB_PARAMETERS, &parameters);
    for (kind, rate) in [(number::HTB_RATE_TABLE, min), (number::HTB_CEIL_TABLE, max)] {
        let table = (0..256).map(|slot: u64| {
            let bytes = ((slot + 1) << cell).max(FRAME_LEN_MIN);
            clock.ticks(rate, bytes).to_ne_bytes()
        });
        options.put(kind, &table.collect::<Vec<_>>().concat());
    }
}

/// What an Ethernet frame has on the wire at least, in bytes.
const FRAME_LEN_MIN: u64 = 64;

/// By how many bits lengths of frames are shifted to be one of 256: those of the longest
/// payload with an Ethernet header and a tag.
fn cell_bits(mtu: u32) -> u8 {
    let frame_len_max = mtu.saturating_add(14 + 4);
    u8::try_from(24_u32.saturating_sub(frame_len_max.leading_zeros())).unwrap_or(u8::MAX)
}

/// `struct tc_ratespec`.
fn rate(bytes: u64, cell: u8) -> [u8; 12] {
    let mut spec = [0; 12];
    spec[0] = cell;
    spec[6..8].copy_from_slice(&64_u16.to_ne_bytes());
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    spec[8..].copy_from_slice(&bytes.to_ne_bytes());
    spec
}

/// Writes what a class of service curves does: straight ones, `struct tc_service_curve`.
fn put_hfsc(options: &mut NetlinkRequest, service: ClassRates) {
    let curves = [
        (number::HFSC_REAL_TIME, service.min),
        (number::HFSC_LINK_SHARE, service.min),
        (number::HFSC_UPPER_LIMIT, service.max),
    ];
    for (kind, rate) in curves {
        let rate = u32::try_from(rate).unwrap_or(u32::MAX);
        options.put(kind, &[rate, 0, rate].map(u32::to_ne_bytes).concat());
    }
}

/// How the kernel's disciplines measure time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PschedClock {
    ticks_per_s: u64,
    /// How often timers may end.
    timer_ticks_per_s: u64,
}

impl PschedClock {
    /// Reads four hexadecimal numbers: nanoseconds are multiplied by the first and divided by the
    /// second; the third is how many of those make a second, the fourth how fine timers are.
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let mut word = || u64::from_str_radix(words.next()?, 16).ok();
        let (multiplier, divisor, units_per_s, timer_ticks_per_s) =
            (word()?, word()?, word()?, word()?);
        Some(Self {
            ticks_per_s: multiplier.checked_mul(units_per_s)?.checked_div(divisor)?,
            timer_ticks_per_s: timer_ticks_per_s,
        })
    }

    /// How long so many bytes take.
    fn ticks(self, rate: u64, bytes: u64) -> u32 {
        let ticks = u128::from(self.ticks_per_s) * u128::from(bytes);
        let ticks = ticks.checked_div(rate.into()).unwrap_or_default();
        u32::try_from(ticks).unwrap_or(u32::MAX)
    }

    /// How long a burst takes: as large a one as was asked for, and at least a frame and what the
    /// rate brings between two timers.
    fn buffer(self, rate: u64, mtu: u32, burst: u64) -> u32 {
        let per_timer_tick = rate.checked_div(self.timer_ticks_per_s).unwrap_or_default();
        self.ticks(rate, burst.max(per_timer_tick + u64::from(mtu)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn psched_clock_is_parsed_and_converts_bytes_to_ticks() {
        let clock =
            PschedClock::parse("000003e8 00000040 000f4240 3b9aca00\n").expect("four numbers");
        let expected = PschedClock {
            ticks_per_s: 15_625_000,
            timer_ticks_per_s: 1_000_000_000,
        };
        assert_eq!(clock, expected);
        // 1500 bytes at 1 Mbit/s are 12 ms.
        assert_eq!(clock.ticks(125_000, 1500), 187_500);
        assert_eq!(clock.ticks(0, 1500), 0);
        assert_eq!(clock.ticks(1, u64::MAX), u32::MAX);
        assert_eq!(clock.buffer(125_000, 1500, 100), 187_500);
        assert_eq!(clock.buffer(125_000, 1500, 3000), 375_000);
        assert_eq!(PschedClock::parse("1 0 1 1"), None);
        assert_eq!(PschedClock::parse("1 1"), None);
    }

    #[test]
    fn cell_bits_map_frame_lengths_to_256_cells() {
        // 1518 >> 3 is below 256, and >> 2 is not.
        assert_eq!(cell_bits(1500), 3);
        assert_eq!(cell_bits(9000), 6);
        assert_eq!(cell_bits(68), 0);
        assert_eq!(cell_bits(256 - 18), 1);
        assert_eq!(cell_bits(255 - 18), 0);
        assert_eq!(cell_bits(65_535), 9);
    }
}
