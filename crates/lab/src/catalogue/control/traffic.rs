//! Numbered frames at a set rate, one flow after the other, and what becomes of each.

use std::time::Duration;

use base::Instant;

use super::flows;
use super::rig::{Caught, Rig};
use crate::frames;
use crate::trial::TrialError;

/// Frames of a test at most: what is known of them is kept until it ends.
const FRAMES_MAX: usize = 4_000_000;

/// Nothing more for so long behind the last frame, and nothing more comes.
pub(super) const QUIET: Duration = Duration::from_millis(100);

/// Frames that are taken out before one is sent again.
const BURST: usize = 32;

/// Where a frame's code point is: behind the Ethernet header and the version.
const TOS: usize = 15;

/// A frame that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    flow: u32,
    came: bool,
}

/// A frame that came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// Its number.
    pub(super) number: u32,
    /// Its flow.
    pub(super) flow: u32,
    /// When it was sent.
    pub(super) sent: Instant,
    /// When it came out.
    pub(super) came: Instant,
    /// The code point that it bears.
    pub(super) mark: u8,
}

/// Frames on their way.
#[derive(Debug)]
pub(super) struct Traffic {
    /// A frame of each flow, whose number is yet to be written.
    frames: Vec<frames::UdpFrame>,
    length: usize,
    pps: u64,
    began: Instant,
    sent: Vec<Sent>,
    received: u64,
    duplicates: u64,
    is_over: bool,
}

impl Traffic {
    /// Frames of the flows from 0 on, of 64 bytes, so many a second from now on.
    pub(super) fn new(flows: u32, pps: u64, now: Instant) -> Self {
        Self::of((0..flows).map(flows::frame).collect(), pps, now)
    }

    /// One of each of these frames in turn.
    pub(super) fn of(frames: Vec<frames::UdpFrame>, pps: u64, now: Instant) -> Self {
        let length = frames.first().map_or(0, |one| one.headers() + one.payload);
        Self {
            frames,
            length,
            pps,
            began: now,
            sent: Vec::new(),
            received: 0,
            duplicates: 0,
            is_over: false,
        }
    }

    /// Sends a frame, if one is due.
    pub(super) fn turn(&mut self, rig: &mut dyn Rig) -> Result<(), TrialError> {
        let now = rig.now();
        let due = now.since(self.began).as_nanos() * u128::from(self.pps) / 1_000_000_000;
        let count = self.sent.len();
        if self.is_over || count as u128 >= due || count >= FRAMES_MAX || self.frames.is_empty() {
            return Ok(());
        }
        let flow = count % self.frames.len();
        let number = u32::try_from(count).expect("there are few millions");
        let frame = self.frames[flow].bytes(number);
        let at = rig.now();
        if rig.send(&frame)? {
            let flow = u32::try_from(flow).expect("there are few flows");
            let came = false;
            self.sent.push(Sent { at, flow, came });
        }
        Ok(())
    }

    /// Sends no more.
    pub(super) const fn stop(&mut self) {
        self.is_over = true;
    }

    /// Takes frames out, a burst at most, and tells of each that came for the first time.
    pub(super) fn catch(
        &mut self,
        rig: &mut dyn Rig,
        mut see: impl FnMut(Seen),
    ) -> Result<(), TrialError> {
        for _ in 0..BURST {
            let Some(caught) = rig.catch()? else {
                break;
            };
            if let Some(seen) = self.take(&caught) {
                see(seen);
            }
        }
        Ok(())
    }

    fn take(&mut self, caught: &Caught) -> Option<Seen> {
        if caught.bytes.get(..6) != Some(&flows::FAR) {
            return None;
        }
        let number = frames::number(&caught.bytes, self.length)?;
        let place = usize::try_from(number).ok()?;
        // A number that nobody gave is of frames of an earlier test.
        let sent = self.sent.get_mut(place)?;
        if std::mem::replace(&mut sent.came, true) {
            self.duplicates += 1;
            return None;
        }
        self.received += 1;
        Some(Seen {
            number,
            flow: sent.flow,
            sent: sent.at,
            came: caught.at,
            mark: caught.bytes[TOS] >> 2,
        })
    }

    /// Takes out what is still on its way, and hears what the device says meanwhile.
    pub(super) fn drain(
        &mut self,
        rig: &mut dyn Rig,
        mut see: impl FnMut(Seen),
    ) -> Result<(), TrialError> {
        self.stop();
        let mut last = rig.now();
        while rig.now().since(last) < QUIET {
            let before = self.received;
            self.catch(rig, &mut see)?;
            while rig.hear()?.is_some() {}
            if self.received > before {
                last = rig.now();
            }
        }
        Ok(())
    }

    /// Bytes of a frame without its checksum.
    pub(super) const fn length(&self) -> usize {
        self.length
    }

    /// When a frame was sent, if it was, by its number.
    pub(super) fn sent_at(&self, number: u32) -> Option<Instant> {
        let sent = self.sent.get(usize::try_from(number).ok()?)?;
        Some(sent.at)
    }

    /// How many were sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent.len() as u64
    }

    /// How many came out.
    pub(super) const fn received(&self) -> u64 {
        self.received
    }

    /// How many came out more than once.
    pub(super) const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Frames that were sent from then on and before then, and did not come out.
    pub(super) fn lost_between(&self, from: Instant, until: Instant) -> u64 {
        let within = |sent: &&Sent| sent.at >= from && sent.at < until && !sent.came;
        self.sent.iter().filter(within).count() as u64
    }

    /// Frames a second that were sent.
    pub(super) fn achieved_pps(&self) -> f64 {
        let last = self.sent.last().map_or(self.began, |sent| sent.at);
        let seconds = last.since(self.began).as_secs_f64();
        self.sent.len() as f64 / seconds.max(f64::MIN_POSITIVE)
    }

    /// Why the frames cannot be believed to look for changes as often as they should, if so.
    pub(super) fn shortfall(&self) -> Option<String> {
        let achieved = self.achieved_pps();
        let wanted = self.pps as f64;
        (self.sent.len() > 100 && achieved < wanted * (1.0 - SHORTFALL)).then(|| {
            format!("the generator offered {achieved:.0} frames a second instead of {wanted:.0}")
        })
    }
}

/// How much less than intended may be offered, as a share.
const SHORTFALL: f64 = 0.05;
