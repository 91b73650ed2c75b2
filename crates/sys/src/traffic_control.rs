//! Root queueing disciplines and their classes (tc(8)), as far as Open vSwitch configures them: a
//! hierarchy of token buckets (tc-htb(8)) or of service curves (tc-hfsc(7)).
//!
//! ```text
//!  interface
//!    root qdisc 1:            htb or hfsc; unclassified frames use class 1:1
//!      class 1:fffe           total rate of the interface
//!        class 1:1            the default class
//!        class 1:2            a frame selects its class by SO_PRIORITY = 1:minor
//!        ...
//!        class 1:f000
//! ```
//!
//! HTB computes with time, not with bytes: a class has a table of 256 transmission times, indexed
//! by the frame length shifted by `cell_log`, for its rate and another for its ceiling. Times are
//! in psched ticks, whose length the kernel reports in /proc/net/psched. Rates above 2^32 - 1
//! bytes/s have attributes of 64 bits (`TCA_HTB_RATE64`, `TCA_HTB_CEIL64`). HFSC receives its
//! curves as rates.
//!
//! All rates here are in bytes per second. Not here: the policy that chooses them.

use std::fs;
use std::io;

use crate::interface::Ifindex;
use crate::netlink::{NetlinkRequest, RouteSocket, attribute};

/// File in which the kernel reports its time units (`read_psched` of Open vSwitch, `tc_core`).
const PSCHED: &str = "/proc/net/psched";

/// Numbers of messages, request flags and attributes (`linux/rtnetlink.h`, `linux/gen_stats.h`,
/// `linux/pkt_sched.h`).
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

/// Parent of a root qdisc (`TC_H_ROOT`), and the handle of the qdisc that this module creates,
/// `1:`.
const ROOT_PARENT: u32 = 0xffff_ffff;
const ROOT_HANDLE: u32 = 0x0001_0000;

/// Length of `struct tcmsg`, in bytes.
const HEADER: usize = 20;

/// Kind of a root queueing discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Qdisc {
    /// Hierarchical token bucket: `htb`.
    Htb,
    /// Hierarchical fair service curve: `hfsc`.
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

/// Minor number of a class of qdisc `1:`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassMinor(pub u16);

impl ClassMinor {
    /// The root class, parent of all others.
    pub const ROOT: Self = Self(0xfffe);
    /// The class of unclassified frames.
    pub const DEFAULT: Self = Self(1);

    const fn handle(self) -> u32 {
        ROOT_HANDLE | self.0 as u32
    }

    /// Handle of the parent.
    const fn parent(self) -> u32 {
        match self {
            Self::ROOT => ROOT_HANDLE,
            _ => Self::ROOT.handle(),
        }
    }
}

/// Rates of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassRates {
    /// Guaranteed rate in bytes per second.
    pub min: u64,
    /// Maximum rate in bytes per second.
    pub max: u64,
    /// Burst in bytes; HTB only.
    pub burst: u64,
    /// Priority for excess bandwidth: the lowest value is served first. HTB only.
    pub priority: u32,
}

/// Counters of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounts {
    /// Bytes sent.
    pub bytes: u64,
    /// Frames sent.
    pub packets: u64,
    /// Frames dropped.
    pub drops: u64,
}

/// An rtnetlink socket for the queueing disciplines of one network namespace.
pub struct TrafficControl {
    socket: RouteSocket,
    clock: PschedClock,
}

impl TrafficControl {
    /// Opens a socket in the calling thread's namespace.
    ///
    /// # Errors
    /// The process has no file descriptor left, or the kernel has no queueing disciplines.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            socket: RouteSocket::open()?,
            clock: PschedClock::parse(&fs::read_to_string(PSCHED)?)
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, PSCHED))?,
        })
    }

    /// True if the interface's root qdisc has handle `1:` and this kind.
    ///
    /// # Errors
    /// The interface does not exist.
    pub fn has_root(&self, of: Ifindex, kind: Qdisc) -> io::Result<bool> {
        let header = header(of, 0, ROOT_PARENT)?;
        let request = NetlinkRequest::new(number::GET_QDISC, number::ECHO, &header);
        let found = match self.socket.transact(request) {
            // A default qdisc of the kernel has no handle, and the request fails.
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

    /// Deletes the root qdisc, whichever program created it; the kernel restores the default one.
    ///
    /// # Errors
    /// The interface does not exist, or `CAP_NET_ADMIN` is missing.
    pub fn remove_root(&self, of: Ifindex) -> io::Result<()> {
        let request = NetlinkRequest::new(number::DELETE_QDISC, 0, &header(of, 0, ROOT_PARENT)?);
        match self.socket.transact(request) {
            Err(error) if is_not_found(&error) => Ok(()),
            done => done.map(drop),
        }
    }

    /// Creates root qdisc `1:`; the interface must not have a configured one.
    ///
    /// # Errors
    /// The interface does not exist, the kernel has no such qdisc (`ENOENT`), or `CAP_NET_ADMIN` is
    /// missing.
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
                // `struct tc_htb_glob`: version, `rate2quantum`, default class, and two fields that
                // the kernel fills in.
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

    /// Creates or changes a class of the root qdisc. `mtu` is that of the interface, in bytes.
    ///
    /// # Errors
    /// The interface or its qdisc does not exist, or `CAP_NET_ADMIN` is missing.
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

    /// Deletes a class if it exists.
    ///
    /// # Errors
    /// Those of [`Self::set_class`].
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

    /// Returns the classes of the root qdisc and their counters.
    ///
    /// # Errors
    /// The interface does not exist.
    pub fn classes(&self, of: Ifindex) -> io::Result<Vec<(ClassMinor, ClassCounts)>> {
        let request = NetlinkRequest::new(number::GET_CLASS, number::DUMP, &header(of, 0, 0)?);
        let found = self.socket.transact(request)?;
        Ok(found.iter().filter_map(|body| read_class(body)).collect())
    }
}

/// True if the kernel reports that the requested object does not exist.
fn is_not_found(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINVAL))
}

/// Encodes `struct tcmsg`, the header of messages about qdiscs and classes.
fn header(of: Ifindex, handle: u32, parent: u32) -> io::Result<[u8; HEADER]> {
    let index = i32::try_from(of.0).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
    let mut header = [0; HEADER];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&handle.to_ne_bytes());
    header[12..16].copy_from_slice(&parent.to_ne_bytes());
    Ok(header)
}

/// Decodes a class of qdisc `1:`.
pub(crate) fn read_class(body: &[u8]) -> Option<(ClassMinor, ClassCounts)> {
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

/// Appends `struct tc_htb_opt`, the two tables of transmission times, and rates that exceed 32
/// bits.
fn put_htb(options: &mut NetlinkRequest, service: ClassRates, mtu: u32, clock: PschedClock) {
    let ClassRates {
        min,
        max,
        burst,
        priority,
    } = service;
    let cell = cell_bits(mtu);
    // A quantum of at least one frame; zero lets the kernel compute it from the rate.
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

/// Minimum length of an Ethernet frame, in bytes.
const FRAME_LEN_MIN: u64 = 64;

/// Shift that maps lengths up to that of the longest frame (MTU, Ethernet header, one tag) to 256
/// cells.
fn cell_bits(mtu: u32) -> u8 {
    let frame_len_max = mtu.saturating_add(14 + 4);
    u8::try_from(24_u32.saturating_sub(frame_len_max.leading_zeros())).unwrap_or(u8::MAX)
}

/// Encodes `struct tc_ratespec`.
fn rate(bytes: u64, cell: u8) -> [u8; 12] {
    let mut spec = [0; 12];
    spec[0] = cell;
    spec[6..8].copy_from_slice(&64_u16.to_ne_bytes());
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    spec[8..].copy_from_slice(&bytes.to_ne_bytes());
    spec
}

/// Appends linear curves, `struct tc_service_curve`.
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

/// Time units of the kernel's queueing disciplines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PschedClock {
    ticks_per_s: u64,
    /// Timer resolution, as a frequency.
    timer_ticks_per_s: u64,
}

impl PschedClock {
    /// Parses four hexadecimal numbers: a tick is the second divided by the first, in units of
    /// which the third makes a second; the fourth is the timer frequency.
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let mut word = || u64::from_str_radix(words.next()?, 16).ok();
        let (multiplier, divisor, units_per_s, timer_ticks_per_s) =
            (word()?, word()?, word()?, word()?);
        Some(Self {
            ticks_per_s: multiplier.checked_mul(units_per_s)?.checked_div(divisor)?,
            timer_ticks_per_s,
        })
    }

    /// Transmission time of `bytes` at `rate` bytes/s, in ticks.
    fn ticks(self, rate: u64, bytes: u64) -> u32 {
        let ticks = u128::from(self.ticks_per_s) * u128::from(bytes);
        let ticks = ticks.checked_div(rate.into()).unwrap_or_default();
        u32::try_from(ticks).unwrap_or(u32::MAX)
    }

    /// Transmission time of a burst: the requested one, but at least the MTU and the bytes that the
    /// rate yields between two timer ticks.
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
        // 1500 bytes at 1 Mbit/s take 12 ms.
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
