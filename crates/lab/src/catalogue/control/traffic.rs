//! Numbered frames at a set rate, one flow after the other, and what becomes of each.

use std::time::Duration;

use base::Instant;

use super::rig::{Caught, PATIENCE, Rig, pass_over};
use super::{Found, flows};
use crate::frames;
use crate::trial::TrialError;

/// Frames of a test at most: what is known of them is kept until it ends.
pub(super) const FRAMES_MAX: usize = 20_000_000;

/// Nothing more for so long behind the last frame, and nothing more comes.
pub(super) const QUIET: Duration = Duration::from_millis(100);

/// For so long, at least, everything must come out as it should before something is changed,
/// frames of the last moments aside.
const SETTLED: Duration = Duration::from_millis(20);
const ON_THE_WAY: Duration = Duration::from_millis(5);

/// A device that is not settled by then never will be.
const UNSETTLED_MAX: Duration = Duration::from_secs(2);

/// Frames that are taken out before one is sent again.
pub(super) const BURST: usize = 32;

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

/// What was wrong two seconds after the last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unsettled {
    /// Frames that came out by other rules.
    wrong: u64,
    /// Frames that did not come out.
    lost: u64,
}

impl Unsettled {
    /// Says so in what is found: it is void if rules are in force that should not be, and a
    /// device that loses frames anyhow is noted.
    pub(super) fn tell(self, found: &mut Found) {
        let Self { wrong, lost } = self;
        if wrong > 0 {
            found.void.push(format!(
                "two seconds after the last change {wrong} frames still came out by rules of before it"
            ));
        } else {
            found.notes.push(format!(
                "{lost} frames were lost before anything was changed"
            ));
        }
    }
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

    /// Has frames come out as long as `frame`, where rules change how long they are.
    pub(super) const fn come_out_with(&mut self, frame: &frames::UdpFrame) {
        self.length = frame.headers() + frame.payload;
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
        let number = u32::try_from(count).expect("there are fewer than 2^32");
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
        let began = rig.now();
        let mut last = began;
        // Who never stops sending is not waited for.
        while rig.now().since(last) < QUIET && rig.now().since(began) < PATIENCE {
            let before = self.received;
            self.catch(rig, &mut see)?;
            let mut came = self.received > before;
            came |= pass_over(rig)?;
            if came {
                last = rig.now();
            }
        }
        Ok(())
    }

    /// Bytes of a frame without its checksum.
    pub(super) const fn length(&self) -> usize {
        self.length
    }

    /// Has frames go on until each comes out as it should for two rounds of all flows: with
    /// this code point, or, without one, not at all. What was changed before may still be on
    /// its way into the device, whatever its barriers have said. Tells what was wrong if that
    /// does not come to pass within two seconds.
    pub(super) fn settle(
        &mut self,
        rig: &mut dyn Rig,
        wanted: Option<u8>,
    ) -> Result<Option<Unsettled>, TrialError> {
        let start = rig.now();
        let period = SETTLED.max(self.round() * 2);
        loop {
            let from = rig.now();
            let mut wrong = 0_u64;
            while rig.now().since(from) < period {
                self.turn(rig)?;
                pass_over(rig)?;
                self.catch(rig, |seen| wrong += u64::from(wanted != Some(seen.mark)))?;
            }
            // The last may still be on their way.
            let until = from + (period - ON_THE_WAY);
            let lost = match wanted {
                Some(_) => self.lost_between(from, until),
                None => 0,
            };
            if wrong + lost == 0 {
                return Ok(None);
            }
            if rig.now().since(start) > UNSETTLED_MAX {
                return Ok(Some(Unsettled { wrong, lost }));
            }
        }
    }

    /// As [`Self::settle`] where no frame is to come out, and with a pause
    /// in which those come up that go to the controller.
    pub(super) fn settle_few(
        &mut self,
        rig: &mut dyn Rig,
    ) -> Result<Option<Unsettled>, TrialError> {
        let unsettled = self.settle(rig, None)?;
        self.drain(rig, |_| {})?;
        Ok(unsettled)
    }

    /// The time in which a frame of each flow is sent.
    pub(super) fn round(&self) -> Duration {
        let flows = self.frames.len() as u64;
        Duration::from_nanos(flows * 1_000_000_000 / self.pps.max(1))
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
