//! Numbered frames at a fixed rate, of all flows in turn, and the fate of each frame.

use std::time::Duration;

use base::Instant;

use super::rig::{ControlRig, ServerFrame, TIMEOUT, discard_messages};
use super::{TrialReport, flows};
use crate::frames;
use crate::trial::TrialError;

/// Greatest number of frames in a trial: each needs a record until the end.
pub(super) const FRAMES_MAX: usize = 20_000_000;

/// Time without a frame after which no more frames are expected.
pub(super) const QUIET: Duration = Duration::from_millis(100);

/// Least time for which all frames must arrive as expected before a change, except for frames that
/// were sent in the last moments (`IN_FLIGHT`).
const SETTLING_TIME: Duration = Duration::from_millis(20);
const IN_FLIGHT: Duration = Duration::from_millis(5);

/// Time limit for a device to forward by its current rules.
const SETTLING_MAX: Duration = Duration::from_secs(2);

/// Greatest number of frames received before the next is sent.
pub(super) const BURST: usize = 32;

/// Offset of the DSCP: after the Ethernet header and the first byte of the IPv4 header.
const TOS: usize = 15;

/// A frame that was sent.
#[derive(Clone, Copy, Debug)]
struct FrameRecord {
    at: Instant,
    flow: u32,
    received: bool,
}

/// A frame that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameArrival {
    pub(super) number: u32,
    pub(super) flow: u32,
    /// Time of transmission.
    pub(super) sent: Instant,
    /// Time of arrival.
    pub(super) received: Instant,
    /// The DSCP of the frame.
    pub(super) mark: u8,
}

/// Unexpected frames two seconds after the last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StaleForwarding {
    /// Frames forwarded by earlier rules.
    wrong: u64,
    /// Frames that did not arrive.
    lost: u64,
}

impl StaleForwarding {
    /// Voids the trial if earlier rules are still in force. Loss by itself is only a note.
    pub(super) fn add_to(self, report: &mut TrialReport) {
        let Self { wrong, lost } = self;
        if wrong > 0 {
            report.void.push(format!(
                "{wrong} frames were still forwarded by earlier rules two seconds after the last change"
            ));
        } else {
            report
                .notes
                .push(format!("{lost} frames were lost before the first change"));
        }
    }
}

/// Frames of a trial.
#[derive(Debug)]
pub(super) struct Traffic {
    /// A frame of each flow; the number of the frame is written at transmission.
    frames: Vec<frames::UdpFrame>,
    length: usize,
    pps: u64,
    began: Instant,
    sent: Vec<FrameRecord>,
    received: u64,
    duplicates: u64,
    is_over: bool,
}

impl Traffic {
    /// Returns traffic of the flows from 0 on, with frames of 64 bytes at this rate from now on.
    pub(super) fn new(flows: u32, pps: u64, now: Instant) -> Self {
        Self::of((0..flows).map(flows::frame).collect(), pps, now)
    }

    /// Returns traffic of these frames in turn.
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

    /// Expects frames of the length of `frame`, for rules that change the length.
    pub(super) const fn expect_length_of(&mut self, frame: &frames::UdpFrame) {
        self.length = frame.headers() + frame.payload;
    }

    /// Sends a frame if one is due.
    pub(super) fn turn(&mut self, rig: &mut dyn ControlRig) -> Result<(), TrialError> {
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
            let received = false;
            self.sent.push(FrameRecord { at, flow, received });
        }
        Ok(())
    }

    /// Sends no more frames.
    pub(super) const fn stop(&mut self) {
        self.is_over = true;
    }

    /// Receives up to a burst of frames, and calls `record` for each that arrived for the first time.
    pub(super) fn receive_frames(
        &mut self,
        rig: &mut dyn ControlRig,
        mut record: impl FnMut(FrameArrival),
    ) -> Result<(), TrialError> {
        for _ in 0..BURST {
            let Some(frame) = rig.receive_frame()? else {
                break;
            };
            if let Some(arrival) = self.take(&frame) {
                record(arrival);
            }
        }
        Ok(())
    }

    fn take(&mut self, frame: &ServerFrame) -> Option<FrameArrival> {
        if frame.bytes.get(..6) != Some(&flows::FAR) {
            return None;
        }
        let number = frames::number(&frame.bytes, self.length)?;
        let index = usize::try_from(number).ok()?;
        // A frame with an unused number belongs to an earlier test.
        let sent = self.sent.get_mut(index)?;
        if std::mem::replace(&mut sent.received, true) {
            self.duplicates += 1;
            return None;
        }
        self.received += 1;
        Some(FrameArrival {
            number,
            flow: sent.flow,
            sent: sent.at,
            received: frame.at,
            mark: frame.bytes[TOS] >> 2,
        })
    }

    /// Stops sending, receives the frames that are still in flight, and discards messages
    /// meanwhile.
    pub(super) fn drain(
        &mut self,
        rig: &mut dyn ControlRig,
        mut record: impl FnMut(FrameArrival),
    ) -> Result<(), TrialError> {
        self.stop();
        let began = rig.now();
        let mut last = began;
        // The second condition ends the loop if frames or messages arrive without end.
        while rig.now().since(last) < QUIET && rig.now().since(began) < TIMEOUT {
            let before = self.received;
            self.receive_frames(rig, &mut record)?;
            let mut received = self.received > before;
            received |= discard_messages(rig)?;
            if received {
                last = rig.now();
            }
        }
        Ok(())
    }

    /// Returns the length of a frame in bytes, without its checksum.
    pub(super) const fn length(&self) -> usize {
        self.length
    }

    /// Sends frames until two rounds of all flows arrive as expected: with this DSCP or, if it is
    /// none, not at all. The device may still process earlier changes in spite of its barrier
    /// replies. Returns the unexpected frames if there still are some after two seconds.
    pub(super) fn settle(
        &mut self,
        rig: &mut dyn ControlRig,
        wanted: Option<u8>,
    ) -> Result<Option<StaleForwarding>, TrialError> {
        let start = rig.now();
        let period = SETTLING_TIME.max(self.round() * 2);
        loop {
            let from = rig.now();
            let mut wrong = 0_u64;
            while rig.now().since(from) < period {
                self.turn(rig)?;
                discard_messages(rig)?;
                self.receive_frames(rig, |arrival| {
                    wrong += u64::from(wanted != Some(arrival.mark))
                })?;
            }
            // The last frames may still be in flight.
            let until = from + (period - IN_FLIGHT);
            let lost = match wanted {
                Some(_) => self.lost_between(from, until),
                None => 0,
            };
            if wrong + lost == 0 {
                return Ok(None);
            }
            if rig.now().since(start) > SETTLING_MAX {
                return Ok(Some(StaleForwarding { wrong, lost }));
            }
        }
    }

    /// Waits as [`Self::settle`] does until no frame arrives, and then for the last packet-ins.
    pub(super) fn settle_without_output(
        &mut self,
        rig: &mut dyn ControlRig,
    ) -> Result<Option<StaleForwarding>, TrialError> {
        let stale = self.settle(rig, None)?;
        self.drain(rig, |_| {})?;
        Ok(stale)
    }

    /// Returns the time in which one frame of each flow is sent.
    pub(super) fn round(&self) -> Duration {
        let flows = self.frames.len() as u64;
        Duration::from_nanos(flows * 1_000_000_000 / self.pps.max(1))
    }

    /// Returns the transmission time of a frame by its number.
    pub(super) fn sent_at(&self, number: u32) -> Option<Instant> {
        let sent = self.sent.get(usize::try_from(number).ok()?)?;
        Some(sent.at)
    }

    /// Returns the number of frames sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent.len() as u64
    }

    /// Returns the number of frames received, without duplicates.
    pub(super) const fn received(&self) -> u64 {
        self.received
    }

    /// Returns the number of duplicates.
    pub(super) const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Returns the number of lost frames that were sent in this interval; its end is excluded.
    pub(super) fn lost_between(&self, from: Instant, until: Instant) -> u64 {
        let within = |sent: &&FrameRecord| sent.at >= from && sent.at < until && !sent.received;
        self.sent.iter().filter(within).count() as u64
    }

    /// Returns the achieved rate in frames per second.
    pub(super) fn achieved_pps(&self) -> f64 {
        let last = self.sent.last().map_or(self.began, |sent| sent.at);
        let seconds = last.since(self.began).as_secs_f64();
        self.sent.len() as f64 / seconds.max(f64::MIN_POSITIVE)
    }

    /// Returns a note if the generator was too slow to sample the changes at the intended interval.
    pub(super) fn shortfall(&self) -> Option<String> {
        let achieved = self.achieved_pps();
        let wanted = self.pps as f64;
        (self.sent.len() > 100 && achieved < wanted * (1.0 - SHORTFALL)).then(|| {
            format!("the generator offered {achieved:.0} frames per second instead of {wanted:.0}")
        })
    }
}

/// Tolerated difference between the intended and the achieved rate, as a share.
const SHORTFALL: f64 = 0.05;
