//! Calibration: the tester's own limits over a cable without a device. It measures the highest rate
//! by frame size, and the delays by load. Near these limits a measurement says nothing about a
//! device.

use std::time::Duration;

use testbed::Interrupt;

use super::measure::SHORTFALL_MAX;
use super::{
    Length, MeasureError, Pace, Rate, Request, Stream, StreamOutcome, Template, TestPort,
    TestPortNo, Threads, Time, measure,
};

/// The parameters of a calibration.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The template of the frames, except for their size.
    pub template: Template,
    /// Frame sizes with FCS, each with its own search for the highest rate.
    pub sizes: Vec<u16>,
    /// Loads for the delay measurement, in per cent of the highest rate of the first size.
    pub loads: Vec<u32>,
    /// The duration of one trial.
    pub trial: Duration,
    /// The number of bisection steps. The first interval ends at the rate of an unpaced sender;
    /// seven steps leave less than 1 % of it.
    pub halves: u32,
    /// The threads that send and receive.
    pub threads: Threads,
}

/// The result of a calibration.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The limits by frame size, in the order of the request.
    pub sizes: Vec<SizeLimit>,
    /// The delays by load, in the order of the request.
    pub loads: Vec<LoadPoint>,
}

/// The tester's limit for one frame size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeLimit {
    /// The frame size with FCS.
    pub frame_bytes: u16,
    /// The highest rate that was sent with less than 0.1 % shortfall and received without loss, in
    /// frames a second; 0 if even the lowest tried rate failed.
    pub pps: u64,
    /// The rate of the unpaced sender, whether or not the frames were received.
    pub sent_pps: f64,
    /// The delays at 10 % of the limit.
    pub floor: Floor,
}

/// Delays of a bare cable in nanoseconds: the smallest delay that the tester can attribute to a
/// device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Floor {
    /// The median.
    pub p50_ns: u64,
    /// The 99.9th percentile.
    pub p999_ns: u64,
    /// The maximum.
    pub max_ns: u64,
}

/// The result at one load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadPoint {
    /// The load in per cent of the limit.
    pub percent: u32,
    /// The intended rate in frames a second.
    pub intended_pps: f64,
    /// The achieved rate in frames a second.
    pub achieved_pps: f64,
    /// The share of the sent frames that was lost.
    pub loss_ratio: f64,
    /// Delays from the send timestamp.
    pub floor: Floor,
    /// True if a measurement at this load would be refused.
    pub refused: bool,
}

/// Measures the tester between two test ports with only a cable between them. After an
/// interruption, the result contains the points measured until then.
///
/// # Errors
/// See [`MeasureError`].
pub fn calibrate(
    ends: &mut [TestPort; 2],
    sweep: &Sweep,
    time: &dyn Time,
    interrupt: &Interrupt,
) -> Result<Calibration, MeasureError> {
    let mut calibrator = CalibrationRun {
        ends,
        sweep,
        time,
        interrupt,
    };
    if sweep.sizes.is_empty() {
        return Err(MeasureError::Request(
            "a calibration needs at least one frame size",
        ));
    }
    let sizes = sweep
        .sizes
        .iter()
        .map(|&frame_bytes| calibrator.limit(frame_bytes));
    let sizes = until_interrupted(sizes)?;
    let loads = match sizes.first() {
        Some(&first) => {
            let loads = sweep
                .loads
                .iter()
                .map(|&percent| calibrator.load(first, percent));
            until_interrupted(loads)?
        }
        None => Vec::new(),
    };
    Ok(Calibration { sizes, loads })
}

/// Collects the results before an interruption, or all of them.
fn until_interrupted<T>(
    all: impl Iterator<Item = Result<T, MeasureError>>,
) -> Result<Vec<T>, MeasureError> {
    let is_complete =
        |one: &Result<T, MeasureError>| !matches!(one, Err(MeasureError::Interrupted));
    all.take_while(is_complete).collect()
}

struct CalibrationRun<'a> {
    ends: &'a mut [TestPort; 2],
    sweep: &'a Sweep,
    time: &'a dyn Time,
    interrupt: &'a Interrupt,
}

/// The wait for late frames over a cable.
const DRAIN: Duration = Duration::from_millis(100);

impl CalibrationRun<'_> {
    /// Runs one trial; the flag is true if the measurement would be refused.
    fn trial(
        &mut self,
        frame_bytes: u16,
        pace: Pace,
    ) -> Result<(StreamOutcome, bool), MeasureError> {
        let template = Template {
            frame_bytes,
            ..self.sweep.template.clone()
        };
        let stream = Stream::new(template, pace, TestPortNo(0), TestPortNo(1));
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

    /// Bisects for the highest clean rate, between 0 and the rate of the unpaced sender.
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
            // A paced sender may not reach the rate of the unpaced one, so the upper bound starts
            // above it.
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
    fn receiver_limit_is_found() {
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
        // The device forwards 200,000 a second, and in 20 ms its queue of eight absorbs up to 400 a
        // second more.
        for size in &found.sizes {
            let step = size.sent_pps / 256.0;
            let off = (size.pps as f64 - 200_000.0).abs();
            assert!(off <= step + 500.0, "{size:?}");
            assert!(size.floor.p50_ns.abs_diff(7_000) < 20, "{size:?}");
        }
        let [half, whole, more] = &found.loads[..] else {
            panic!("three loads were requested");
        };
        assert_eq!((half.loss_ratio, half.refused), (0.0, false));
        assert_eq!(whole.loss_ratio, 0.0);
        assert!((0.2..0.4).contains(&more.loss_ratio), "{more:?}");
        assert!(more.floor.p50_ns > half.floor.p50_ns);
    }

    #[test]
    fn interrupted_calibration_keeps_its_results() {
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
        interrupt.request();
        let found = calibrate(&mut ends, &sweep, &*time, &interrupt).unwrap();
        assert_eq!((found.sizes, found.loads), (Vec::new(), Vec::new()));
    }

    #[test]
    fn sender_limit_is_found() {
        let found = calibrated(Path {
            sender_gap_ns: 4_000,
            ..Path::default()
        });
        let size = &found.sizes[0];
        let off = (size.pps as f64 - 250_000.0).abs();
        // The clock advances in steps of 100 ns, so a gap is some steps longer than the minimum.
        assert!(off <= 25_000.0, "{size:?}");
        assert!(found.loads[2].refused);
    }
}
