//! TCP connections as a router between the ends sees them, with window tracking (G. van Rooij,
//! "Real stateful TCP packet filtering in IP Filter", 2000).
//!
//! Each end has the highest sequence number that it sent, the highest one that the other end
//! permitted, and the largest window that it offered:
//!
//! ```text
//!            sent_max - window of the other end      sent_max          permitted_max
//!  ----------------|-----------------------------------|-------------------|-----------> sequence
//!                  |<--------- retransmissions ------->|<---- new data --->|
//! ```
//!
//! A segment is in window if it ends at or before `permitted_max`, begins no more than one window
//! before `sent_max`, and acknowledges data that the other end sent, within a tolerance of one
//! largest segment and window in either direction. RST must have an exact sequence number, so that a
//! third party cannot reset a connection by guessing a window.
//!
//! | state of an end | RFC 9293 | reached by |
//! |---|---|---|
//! | `Closed` | LISTEN, CLOSED | no segment yet |
//! | `SynSent` | SYN-SENT, SYN-RECEIVED | its first segment |
//! | `Established` | ESTABLISHED | an acknowledgment of it |
//! | `Closing` | FIN-WAIT-1, CLOSE-WAIT, CLOSING | its FIN |
//! | `FinWait2` | FIN-WAIT-2 | an acknowledgment of its FIN |
//! | `TimeWait` | TIME-WAIT | RST of either end |
//!
//! Window scales are known from the SYN of both ends (RFC 7323). A connection that is older than the
//! table has unknown scales, and is tracked with the largest, 14. Acknowledgments by SACK need no
//! tracking: they acknowledge nothing that the cumulative one does not permit.
//!
//! Cost: about forty instructions per segment, and 32 bytes per connection.

use packet::wire::tcp::{ACK, FIN, PSH, RST, SYN, URG};

mod words;

pub(crate) use words::TcpWords;

use super::{PacketEffect, SequenceCheck};
use crate::facts::TcpFacts;
use crate::key::TrafficDirection;
use crate::timeout::CtTimeout;

/// The largest shift of a window (RFC 7323, 2.3).
const SCALE_MAX: u8 = 14;
/// Tolerance of acknowledgments: the largest window without scaling, and one segment of Ethernet.
const ACK_TOLERANCE: i32 = 0xffff + 1500;
/// `permitted_max` of an end of which no segment has arrived.
const UNKNOWN: u32 = 1;

/// State of one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TcpEndState {
    /// No segment has arrived, or the connection is over.
    #[default]
    Closed,
    /// The end has sent its first segment.
    SynSent,
    /// The other end has acknowledged it.
    Established,
    /// The end has sent FIN.
    Closing,
    /// The other end has acknowledged that.
    FinWait2,
    /// An end has reset the connection.
    TimeWait,
}

/// Window scale of one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WindowScale {
    /// Not negotiated: windows are not scaled.
    #[default]
    Absent,
    /// The end sent this shift in its SYN.
    Shift(u8),
    /// The handshake was not seen.
    Unknown,
}

/// A window scale in one byte: zero if it is absent, else the shift and one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct StoredScale(u8);

impl StoredScale {
    const UNKNOWN: u8 = 0xff;

    const fn of(scale: WindowScale) -> Self {
        Self(match scale {
            WindowScale::Absent => 0,
            WindowScale::Shift(shift) => shift + 1,
            WindowScale::Unknown => Self::UNKNOWN,
        })
    }

    #[inline]
    const fn get(self) -> WindowScale {
        match self.0 {
            0 => WindowScale::Absent,
            Self::UNKNOWN => WindowScale::Unknown,
            more => WindowScale::Shift(more - 1),
        }
    }
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpEnd {
    /// State of the end.
    pub state: TcpEndState,
    scale: StoredScale,
    /// Largest window that the end offered, not scaled.
    window_max: u16,
    /// Sequence number after the last octet that it sent.
    sent_max: u32,
    /// Sequence number up to which the other end permits it to send.
    permitted_max: u32,
}

impl TcpEnd {
    /// Returns the shift of the end's windows, if it sent one.
    #[must_use]
    pub const fn window_scale(&self) -> Option<u8> {
        match self.scale.get() {
            WindowScale::Shift(shift) => Some(shift),
            WindowScale::Absent | WindowScale::Unknown => None,
        }
    }

    /// Returns the end that sent the first segment, and the window scale of the other end.
    fn first(segment: &TcpFacts) -> (Self, WindowScale) {
        let is_syn = segment.has(SYN);
        let (scale, other_scale) = match segment.window_scale.filter(|_| is_syn) {
            Some(shift) => (
                WindowScale::Shift(shift.min(SCALE_MAX)),
                WindowScale::Absent,
            ),
            None if is_syn => (WindowScale::Absent, WindowScale::Absent),
            None => (WindowScale::Unknown, WindowScale::Unknown),
        };
        let flags_len = u32::from(is_syn) + u32::from(segment.has(FIN));
        let len = segment.payload_len.wrapping_add(flags_len + 1);
        let end = Self {
            state: TcpEndState::SynSent,
            scale: StoredScale::of(scale),
            window_max: unscaled(segment.window.max(1), scale),
            sent_max: segment.sequence,
            permitted_max: segment.sequence.wrapping_add(len),
        };
        (end, other_scale)
    }

    /// True if the handshake was not seen, so that the window scale is unknown.
    #[must_use]
    pub const fn is_liberal(&self) -> bool {
        matches!(self.scale.get(), WindowScale::Unknown)
    }
}

/// A connection: the end that began it, and the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcpConnection {
    pub(crate) ends: [TcpEnd; 2],
}

/// A segment in the terms of the algorithm.
#[derive(Clone, Copy)]
struct SegmentSpan {
    /// Sequence number of the header.
    header: u32,
    /// Sequence number of the first octet.
    begin: u32,
    /// Sequence number after the last octet, SYN and FIN.
    end: u32,
    acknowledgment: u32,
    window: u16,
    /// Shift of the sender's window, and of the receiver's.
    scales: [u8; 2],
    /// True if the acknowledgment is compared with data that the receiver sent.
    checks_acknowledgment: bool,
}

/// Result of the window check.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WindowMatch {
    Inside,
    /// Out of window, but near, while the connection opens or closes.
    Near,
    Outside,
}

impl TcpConnection {
    /// Returns a connection after its first segment, unless that is no possible first one: flags
    /// that contradict, or an answer to a SYN. A segment without SYN is the first that the table
    /// sees of an older connection.
    pub(crate) fn begin(segment: &TcpFacts) -> Option<Self> {
        if has_invalid_flags(segment) || (segment.has(SYN) && segment.has(ACK)) {
            return None;
        }
        let (first, scale) = TcpEnd::first(segment);
        let second = TcpEnd {
            scale: StoredScale::of(scale),
            window_max: 1,
            permitted_max: UNKNOWN,
            ..TcpEnd::default()
        };
        Some(Self {
            ends: [first, second],
        })
    }

    pub(crate) fn apply(
        &mut self,
        segment: &TcpFacts,
        direction: TrafficDirection,
        check: SequenceCheck,
    ) -> PacketEffect {
        if has_invalid_flags(segment) {
            return PacketEffect::Invalid;
        }
        let [first, second] = &mut self.ends;
        let (src, dst) = match direction {
            TrafficDirection::Original => (first, second),
            TrafficDirection::Reply => (second, first),
        };
        if segment.has(SYN) && !segment.has(ACK) {
            let is_over = |end: &TcpEnd| end.state >= TcpEndState::FinWait2;
            if is_over(src) && is_over(dst) {
                return PacketEffect::Restart;
            }
            if src.state <= TcpEndState::SynSent {
                open(segment, src, dst);
                return PacketEffect::StillNew(CtTimeout::TcpSynSent);
            }
        }
        // A segment out of window changes nothing.
        let (mut new_src, mut new_dst) = (*src, *dst);
        let span = SegmentSpan::read(segment, &mut new_src, &mut new_dst);
        let effect = match span.compare(segment, &new_src, &new_dst, check) {
            WindowMatch::Outside => return PacketEffect::Invalid,
            WindowMatch::Inside => {
                span.slide(&mut new_src, &mut new_dst);
                advance(segment, &mut new_src, &mut new_dst);
                PacketEffect::Established(timeout_of(&new_src, &new_dst))
            }
            WindowMatch::Near => {
                span.slide(&mut new_src, &mut new_dst);
                close(segment, &mut new_src, &mut new_dst);
                PacketEffect::Tolerated
            }
        };
        (*src, *dst) = (new_src, new_dst);
        effect
    }

    pub(super) const fn is_embryonic(&self) -> bool {
        let [first, second] = &self.ends;
        (first.state as u8) < TcpEndState::Established as u8
            || (second.state as u8) < TcpEndState::Established as u8
    }
}

impl SegmentSpan {
    /// Reads a segment. The first one of an end initializes the end.
    fn read(segment: &TcpFacts, src: &mut TcpEnd, dst: &mut TcpEnd) -> Self {
        let flags_len = u32::from(segment.has(SYN)) + u32::from(segment.has(FIN));
        let len = segment.payload_len.wrapping_add(flags_len);
        let mut span = Self {
            header: segment.sequence,
            begin: segment.sequence,
            end: segment.sequence.wrapping_add(len),
            acknowledgment: segment.acknowledgment,
            window: segment.window,
            scales: scales_of(segment, src, dst),
            checks_acknowledgment: true,
        };
        if src.state < TcpEndState::SynSent {
            span.initialize(segment, src, dst);
        }
        let is_reset_without_number = segment.has(RST) && segment.acknowledgment == 0;
        if !segment.has(ACK) || is_reset_without_number {
            span.acknowledgment = dst.sent_max;
        }
        if span.begin == span.end {
            // Keep-alives and acknowledgments without data may repeat old numbers.
            (span.begin, span.end) = (src.sent_max, src.sent_max);
        }
        span
    }

    fn initialize(&mut self, segment: &TcpFacts, src: &mut TcpEnd, dst: &mut TcpEnd) {
        if segment.has(SYN) {
            self.negotiate_scale(segment, src, dst);
        }
        src.sent_max = self.header;
        src.state = TcpEndState::SynSent;
        let [_, dst_scale] = self.scales;
        let window = (u32::from(dst.window_max) << dst_scale).max(1);
        let permitted = self.end.wrapping_add(window);
        if src.permitted_max == UNKNOWN || !is_before(permitted, src.permitted_max) {
            src.permitted_max = permitted;
            self.checks_acknowledgment = false;
        }
        src.window_max = src.window_max.max(self.window);
    }

    /// Both ends scale their windows, or none does (RFC 7323, 2.2).
    fn negotiate_scale(&mut self, segment: &TcpFacts, src: &mut TcpEnd, dst: &mut TcpEnd) {
        let WindowScale::Shift(dst_shift) = dst.scale.get() else {
            return;
        };
        if let Some(shift) = segment.window_scale {
            let shift = shift.min(SCALE_MAX);
            let scale = WindowScale::Shift(shift);
            src.scale = StoredScale::of(scale);
            self.window = unscaled(self.window, scale);
            self.scales = [shift, dst_shift];
        } else {
            let window = u32::from(dst.window_max) << dst_shift;
            dst.window_max = u16::try_from(window).unwrap_or(u16::MAX);
            dst.scale = StoredScale::of(WindowScale::Absent);
        }
    }

    fn compare(
        &self,
        segment: &TcpFacts,
        src: &TcpEnd,
        dst: &TcpEnd,
        check: SequenceCheck,
    ) -> WindowMatch {
        if check == SequenceCheck::Off || self.is_inside(segment, src, dst) {
            return WindowMatch::Inside;
        }
        let is_opening = dst.state < TcpEndState::SynSent;
        let is_over = dst.state >= TcpEndState::FinWait2 || src.state >= TcpEndState::FinWait2;
        let tolerance = ACK_TOLERANCE.unsigned_abs();
        let is_near = !is_before(src.permitted_max.wrapping_add(tolerance), self.end)
            && !is_before(self.begin, src.sent_max.wrapping_sub(tolerance));
        if (is_opening || is_over) && is_near {
            WindowMatch::Near
        } else {
            WindowMatch::Outside
        }
    }

    fn is_inside(&self, segment: &TcpFacts, src: &TcpEnd, dst: &TcpEnd) -> bool {
        let [src_scale, dst_scale] = self.scales;
        let window = u32::from(dst.window_max) << dst_scale;
        let skew = if self.checks_acknowledgment {
            dst.sent_max.wrapping_sub(self.acknowledgment).cast_signed()
        } else {
            0
        };
        let is_reset_exact = [0, 1, u32::MAX].contains(&self.header.wrapping_sub(src.sent_max));
        !is_before(src.permitted_max, self.end)
            && !is_before(self.begin, src.sent_max.wrapping_sub(window))
            && skew >= -ACK_TOLERANCE
            && i64::from(skew) <= i64::from(ACK_TOLERANCE) << src_scale
            && (!segment.has(RST) || is_reset_exact)
    }

    /// Moves both windows.
    fn slide(&self, src: &mut TcpEnd, dst: &mut TcpEnd) {
        src.window_max = src.window_max.max(self.window);
        if is_before(src.sent_max, self.end) {
            src.sent_max = self.end;
        }
        let [src_scale, _] = self.scales;
        let window = u32::from(self.window) << src_scale;
        if !is_before(self.acknowledgment.wrapping_add(window), dst.permitted_max) {
            dst.permitted_max = self.acknowledgment.wrapping_add(window.max(1));
        }
    }
}

/// Returns the shifts of both ends' windows in this segment. Windows of SYN are never scaled.
fn scales_of(segment: &TcpFacts, src: &TcpEnd, dst: &TcpEnd) -> [u8; 2] {
    match (src.scale.get(), dst.scale.get()) {
        _ if segment.has(SYN) => [0, 0],
        (WindowScale::Shift(src), WindowScale::Shift(dst)) => [src, dst],
        (WindowScale::Unknown, WindowScale::Unknown) => [SCALE_MAX, SCALE_MAX],
        _ => [0, 0],
    }
}

/// Applies a SYN without ACK of an end that has sent nothing else. It is sent again, perhaps with
/// another sequence number, or both ends open at the same time (RFC 9293, 3.5).
fn open(segment: &TcpFacts, src: &mut TcpEnd, dst: &mut TcpEnd) {
    if dst.state == TcpEndState::Closed {
        (*src, _) = TcpEnd::first(segment);
    } else if src.state == TcpEndState::Closed {
        SegmentSpan::read(segment, src, dst);
    }
}

/// Moves the states of both ends after a segment in window.
fn advance(segment: &TcpFacts, src: &mut TcpEnd, dst: &mut TcpEnd) {
    if segment.has(FIN) && src.state < TcpEndState::Closing {
        src.state = TcpEndState::Closing;
    }
    if segment.has(ACK) {
        dst.state = match dst.state {
            TcpEndState::SynSent => TcpEndState::Established,
            TcpEndState::Closing => TcpEndState::FinWait2,
            other => other,
        };
    }
    if segment.has(RST) {
        (src.state, dst.state) = (TcpEndState::TimeWait, TcpEndState::TimeWait);
    }
}

/// Moves the states of both ends after a segment near the window: only towards the end.
fn close(segment: &TcpFacts, src: &mut TcpEnd, dst: &mut TcpEnd) {
    if segment.has(FIN) && src.state < TcpEndState::Closing {
        src.state = TcpEndState::Closing;
    }
    if segment.has(RST) {
        (src.state, dst.state) = (TcpEndState::TimeWait, TcpEndState::TimeWait);
    }
}

fn timeout_of(src: &TcpEnd, dst: &TcpEnd) -> CtTimeout {
    let (low, high) = (src.state.min(dst.state), src.state.max(dst.state));
    if low >= TcpEndState::FinWait2 {
        CtTimeout::TcpClose
    } else if low >= TcpEndState::Closing {
        CtTimeout::TcpTimeWait
    } else if low < TcpEndState::Established {
        CtTimeout::TcpSynReceived
    } else if high >= TcpEndState::Closing {
        CtTimeout::TcpFinWait
    } else {
        CtTimeout::TcpEstablished
    }
}

/// True if no segment can have these flags: SYN with RST or FIN; neither SYN, ACK nor RST; or FIN,
/// PSH or URG without ACK.
const fn has_invalid_flags(segment: &TcpFacts) -> bool {
    if segment.has(SYN) {
        if segment.has(RST | FIN) {
            return true;
        }
    } else if !segment.has(ACK | RST) {
        return true;
    }
    !segment.has(ACK) && segment.has(FIN | PSH | URG)
}

/// True if `a` is before `b` in the circle of sequence numbers (RFC 9293, 3.4).
pub(crate) const fn is_before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

/// Returns the window of a SYN in units of the scale, rounded up.
fn unscaled(window: u16, scale: WindowScale) -> u16 {
    match scale {
        WindowScale::Shift(shift) => window.div_ceil(1_u16 << shift),
        WindowScale::Absent | WindowScale::Unknown => window,
    }
}

#[cfg(test)]
mod tests;
