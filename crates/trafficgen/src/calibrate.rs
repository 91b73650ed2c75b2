//! What the instrument itself can do, on a cable without a device: the highest rate by size of frames, and what
//! delays look like there by load. What a device does near these limits is not known.

use std::time::Duration;

use testbed::Interrupt;

use super::measure::SHORTFALL_MAX;
use super::{
    End, EndNo, Length, MeasureError, Pace, Rate, Request, Stream, StreamOutcome, Template,
    Threads, Time, measure,
};

/// What is to be found out.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// What frames look like, but for their sizes.
    pub template: Template,
    /// Sizes of which the highest rate is searched.
    pub sizes: Vec<u16>,
    /// Shares of the highest rate of the first size, in per cent, at which delays are looked at.
    pub loads: Vec<u32>,
    /// How long one trial is.
    pub trial: Duration,
    /// How often the search halves what it does not know, from what can be sent at all: seven halves
    /// leave less than a hundredth.
    pub halves: u32,
    /// Who sends and who receives.
    pub threads: Threads,
}

/// What was found out.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// By size, in the order asked for.
    pub sizes: Vec<SizeLimit>,
    /// By load, in the order asked for.
    pub loads: Vec<LoadPoint>,
}

/// The limit for frames of a size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeLimit {
    /// With their checksums.
    pub frame_bytes: u16,
    /// The most frames a second that were sent with less than a thousandth of shortfall and all came;
    /// none if not even the least that was tried did.
    pub pps: u64,
    /// The most that were sent as fast as could be, whatever came of them.
    pub sent_pps: f64,
    /// Delays at a tenth of the limit.
    pub floor: Floor,
}

/// Delays of a cable in nanoseconds: less than that nobody sees of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Floor {
    /// Half of all frames take no longer.
    pub p50_ns: u64,
    /// 999 of a thousand.
    pub p999_ns: u64,
    /// All.
    pub max_ns: u64,
}

/// What came at one load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadPoint {
    /// Per cent of the limit.
    pub percent: u32,
    /// Frames a second that were to be sent.
    pub intended_pps: f64,
    /// Frames a second that were.
    pub achieved_pps: f64,
    /// The share of these that did not come.
    pub loss_ratio: f64,
    /// Delays from when a frame was sent.
    pub floor: Floor,
    /// Whether a measurement at this load would be refused.
    pub refused: bool,
}

/// Measures between two ends with nothing but a cable between them. Who is interrupted gets what was found
/// until then.
///
/// # Errors
/// See [`MeasureError`].
pub fn calibrate(
    ends: &mut [End; 2],
    sweep: &Sweep,
    time: &dyn Time,
    interrupt: &Interrupt,
) -> Result<Calibration, MeasureError> {
    let mut bed = Bed {
        ends,
        sweep,
        time,
        interrupt,
    };
    if sweep.sizes.is_empty() {
        return Err(MeasureError::Request("a sweep has one size at least"));
    }
    let sizes = sweep
        .sizes
        .iter()
        .map(|&frame_bytes| bed.limit(frame_bytes));
    let sizes = until_interrupted(sizes)?;
    let loads = match sizes.first() {
        Some(&first) => {
            let loads = sweep.loads.iter().map(|&percent| bed.load(first, percent));
            until_interrupted(loads)?
        }
        None => Vec::new(),
    };
    Ok(Calibration { sizes, loads })
}

/// What comes before the interruption, if there is one.
fn until_interrupted<T>(
    all: impl Iterator<Item = Result<T, MeasureError>>,
) -> Result<Vec<T>, MeasureError> {
    let is_meant = |one: &Result<T, MeasureError>| !matches!(one, Err(MeasureError::Interrupted));
    all.take_while(is_meant).collect()
}

struct Bed<'a> {
    ends: &'a mut [End; 2],
    sweep: &'a Sweep,
    time: &'a dyn Time,
    interrupt: &'a Interrupt,
}

/// How long stragglers are waited for on a cable.
const DRAIN: Duration = Duration::from_millis(100);

impl Bed<'_> {
    /// One trial; says too whether it would be refused.
    fn trial(
        &mut self,
        frame_bytes: u16,
        pace: Pace,
    ) -> Result<(StreamOutcome, bool), MeasureError> {
        let template = Template {
            frame_bytes,
            ..self.sweep.template.clone()
        };
        let stream = Stream::new(template, pace, EndNo(0), EndNo(1));
        let request = Request {
            drain: DRAIN,
            threads: self.sweep.threads,
            ..Request::new(vec![stream], Length::of(self.sweep.trial))
        };
        let mut measured = measure(
            self.ends.as_mut_slice(),
            &request,
            self.time,
            self.interrupt,
        )?;
        let refused = !measured.refusals.is_empty();
        Ok((measured.streams.remove(0), refused))
    }

    /// Searches the highest good rate between nothing and what can be sent at all.
    fn limit(&mut self, frame_bytes: u16) -> Result<SizeLimit, MeasureError> {
        let (flat_out, refused) = self.trial(frame_bytes, Pace::FlatOut)?;
        let sent_pps = flat_out.achieved.pps();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate is positive, and fewer than 2^64 frames a second"
        )]
        let most = sent_pps as u64;
        let (mut good, mut bad) = (0, most);
        if !refused && flat_out.lost == 0 {
            // What was sent flat out may still be too much to be paced.
            bad = most + most / 16;
        }
        for _ in 0..self.sweep.halves {
            let rate = u64::midpoint(good, bad);
            if rate == good {
                break;
            }
            match self.is_good(frame_bytes, rate)? {
                true => good = rate,
                false => bad = rate,
            }
        }
        let floor = match good / 10 {
            0 => Floor::default(),
            rate => {
                let pace = Pace::Constant(Rate::Frames(rate));
                Floor::of(&self.trial(frame_bytes, pace)?.0)
            }
        };
        Ok(SizeLimit {
            frame_bytes,
            pps: good,
            sent_pps,
            floor,
        })
    }

    fn is_good(&mut self, frame_bytes: u16, pps: u64) -> Result<bool, MeasureError> {
        let pace = Pace::Constant(Rate::Frames(pps));
        let (stream, refused) = self.trial(frame_bytes, pace)?;
        let is_clean = stream.lost == 0 && stream.duplicated == 0;
        Ok(!refused && is_clean && stream.shortfall() <= SHORTFALL_MAX)
    }

    fn load(&mut self, limit: SizeLimit, percent: u32) -> Result<LoadPoint, MeasureError> {
        let pps = (limit.pps * u64::from(percent) / 100).max(1);
        let pace = Pace::Constant(Rate::Frames(pps));
        let (stream, refused) = self.trial(limit.frame_bytes, pace)?;
        Ok(LoadPoint {
            percent,
            intended_pps: stream.intended.pps(),
            achieved_pps: stream.achieved.pps(),
            loss_ratio: stream.loss_ratio(),
            floor: Floor::of(&stream),
            refused,
        })
    }
}

impl Floor {
    fn of(stream: &StreamOutcome) -> Self {
        let delays = &stream.delay_from_sent;
        Self {
            p50_ns: delays.value_at_quantile(0.5),
            p999_ns: delays.value_at_quantile(0.999),
            max_ns: delays.max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Path, Service, SimulatedTime, cable};

    fn calibrated(path: Path) -> Calibration {
        let time = SimulatedTime::new(100);
        let (mut ends, _) = cable(&time, path, Path::default());
        let sweep = Sweep {
            template: Template::udp(64),
            sizes: vec![64, 1518],
            loads: vec![50, 100, 150],
            trial: Duration::from_millis(20),
            halves: 8,
            threads: Threads::Solo,
        };
        calibrate(&mut ends, &sweep, &*time, &Interrupt::never()).unwrap()
    }

    #[test]
    fn the_limit_of_a_receiver_is_found() {
        let service = Service {
            frame_ns: 5_000,
            queue: 8,
        };
        let found = calibrated(Path {
            service: Some(service),
            delay_ns: 2_000,
            sender_gap_ns: 900,
            ..Path::default()
        });
        // 200,000 a second pass, and in 20 ms the queue of eight hides as much as 400 a second more.
        for size in &found.sizes {
            let step = size.sent_pps / 256.0;
            let off = (size.pps as f64 - 200_000.0).abs();
            assert!(off <= step + 500.0, "{size:?}");
            assert!(size.floor.p50_ns.abs_diff(7_000) < 20, "{size:?}");
        }
        let [half, whole, more] = &found.loads[..] else {
            panic!("three loads were asked for");
        };
        assert_eq!((half.loss_ratio, half.refused), (0.0, false));
        assert_eq!(whole.loss_ratio, 0.0);
        assert!((0.2..0.4).contains(&more.loss_ratio), "{more:?}");
        assert!(more.floor.p50_ns > half.floor.p50_ns);
    }

    #[test]
    fn who_is_interrupted_keeps_what_was_found() {
        let time = SimulatedTime::new(100);
        let (mut ends, _) = cable(&time, Path::default(), Path::default());
        let sweep = Sweep {
            template: Template::udp(64),
            sizes: vec![64],
            loads: vec![50],
            trial: Duration::from_millis(20),
            halves: 8,
            threads: Threads::Solo,
        };
        let interrupt = Interrupt::never();
        interrupt.ask();
        let found = calibrate(&mut ends, &sweep, &*time, &interrupt).unwrap();
        assert_eq!((found.sizes, found.loads), (Vec::new(), Vec::new()));
    }

    #[test]
    fn the_limit_of_a_sender_is_found() {
        let found = calibrated(Path {
            sender_gap_ns: 4_000,
            ..Path::default()
        });
        let size = &found.sizes[0];
        let off = (size.pps as f64 - 250_000.0).abs();
        // The clock goes on by steps of 100 ns, so a gap is some steps longer than the least.
        assert!(off <= 25_000.0, "{size:?}");
        assert!(found.loads[2].refused);
    }
}
