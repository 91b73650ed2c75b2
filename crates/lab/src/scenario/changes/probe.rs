//! Numbered frames at a set rate, and when each came out.

use std::time::Duration;

use base::Instant;
use record::ChangeOutcome;
use record::ChangeParameters;

use super::link::Device;
use super::loads::Load;
use crate::Interrupt;
use crate::generator::{self, Frames};
use crate::trial::TrialError;

/// Nothing more for so long behind the last frame, and nothing more comes.
const QUIET: Duration = Duration::from_millis(200);

/// Frames that are received before one is sent again.
const BURST: usize = 32;

/// Where a frame's code point is: behind the Ethernet header and the version.
const TOS: usize = 15;

/// The frames of one test.
pub(super) struct Probe {
    frames: Frames,
    /// When each frame was sent, by its number, and whether it has come out.
    sent: Vec<Instant>,
    came: Vec<bool>,
    delay_ns: Vec<u32>,
    duplicates: u64,
    pps: u32,
    carried: Option<u32>,
    duration: Duration,
    began: Instant,
    ended: Instant,
}

impl Probe {
    /// These frames, at the rate of `parameters`, to a device that was found to carry so many a
    /// second, if it was asked.
    pub(super) fn new(frames: Frames, parameters: &ChangeParameters, carried: Option<u32>) -> Self {
        let pps = parameters.rate(carried);
        let duration = Duration::from_millis(parameters.milliseconds.into());
        let many = u64::from(pps) * u64::from(parameters.milliseconds) / 1000;
        let many = usize::try_from(many).unwrap_or(0) + BURST;
        Self {
            frames,
            sent: Vec::with_capacity(many),
            came: Vec::with_capacity(many),
            delay_ns: Vec::with_capacity(many),
            duplicates: 0,
            pps,
            carried,
            duration,
            began: Instant::START,
            ended: Instant::START,
        }
    }

    /// Sends and receives until the time is over, and has `load` say its part.
    pub(super) fn run(
        &mut self,
        load: &mut Load,
        device: &mut impl Device,
        interrupt: &Interrupt,
    ) -> Result<(), TrialError> {
        self.began = device.now();
        loop {
            let now = device.now();
            let since = now.since(self.began);
            if since >= self.duration {
                self.ended = now;
                break;
            }
            if interrupt.is_set() {
                return Err(TrialError::Interrupted);
            }
            self.send(now, since, device)?;
            load.turn(now, since, device)?;
            self.receive(load, device)?;
        }
        let mut last = device.now();
        while device.now().since(last) < QUIET {
            if self.receive(load, device)? {
                last = device.now();
            }
            device.listen()?;
        }
        Ok(())
    }

    /// Sends a frame, if one is due.
    fn send(
        &mut self,
        now: Instant,
        since: Duration,
        device: &mut impl Device,
    ) -> Result<(), TrialError> {
        let due = since.as_nanos() * u128::from(self.pps) / 1_000_000_000;
        if self.sent.len() as u128 >= due {
            return Ok(());
        }
        if device.send(self.frames.burst(1))? {
            self.frames.advance(1);
            self.sent.push(now);
            self.came.push(false);
        }
        Ok(())
    }

    /// Receives what has come, up to a burst. Whether there was anything.
    fn receive(&mut self, load: &mut Load, device: &mut impl Device) -> Result<bool, TrialError> {
        let mut room = [0; 256];
        for count in 0..BURST {
            let Some(length) = device.receive(&mut room)? else {
                return Ok(count > 0);
            };
            let now = device.now();
            let number = generator::number(&room[..length]);
            let place = number.and_then(|number| usize::try_from(number).ok());
            let Some((place, sent)) = place.and_then(|n| Some((n, *self.sent.get(n)?))) else {
                continue;
            };
            if std::mem::replace(&mut self.came[place], true) {
                self.duplicates += 1;
                continue;
            }
            let delay = now.since(sent).as_nanos();
            self.delay_ns.push(u32::try_from(delay).unwrap_or(u32::MAX));
            load.hear(now, sent, room[TOS]);
        }
        Ok(true)
    }

    /// What came of the frames.
    pub(super) fn finish(mut self) -> ChangeOutcome {
        self.delay_ns.sort_unstable();
        // In thousandths: the median, and those that few exceed.
        let quantile = |thousandths: usize| {
            let place = (self.delay_ns.len() * thousandths).div_ceil(1000).max(1) - 1;
            self.delay_ns.get(place).copied().unwrap_or(0)
        };
        ChangeOutcome {
            pps: self.pps,
            carried_pps: self.carried,
            seconds: self.ended.since(self.began).as_secs_f64(),
            sent: self.sent.len() as u64,
            received: self.delay_ns.len() as u64,
            duplicates: self.duplicates,
            delay_ns_p50: quantile(500),
            delay_ns_p99: quantile(990),
            delay_ns_p999: quantile(999),
            delay_ns_max: quantile(1000),
            ..ChangeOutcome::default()
        }
    }
}

/// The smallest frames that there are, with their checksum (FCS).
pub(super) const FRAME_BYTES: u16 = 64;
