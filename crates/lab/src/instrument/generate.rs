//! Generation of frames and replay of capture files, with results where a receiver is configured.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use testbed::Interrupt;
use testbed::{Clock, pin_current_thread};
use trafficgen::template::Reflection;
use trafficgen::{
    Expectation, Length, Live, LiveTotals, MeasureError, Measurement, Mix, Pace, Recording,
    Request, Source, Stream, TestPort, Threads, measure_live,
};

use super::ends::Ends;
use super::tally::{StreamTally, Tally, TrialTally};
use super::{
    HeaderOptions, InstrumentError, IoMethod, Listener, Pattern, PortName, ProgressReport, Size,
    Speed,
};

/// Expected egress of the frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// No receiver.
    Nobody,
    /// These interfaces: one for each sender, or one for all.
    Interfaces(Vec<PortName>),
    /// The sending interfaces themselves: a reflector at the other end swaps addresses.
    Back(Reflection),
}

/// End of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// After this time.
    Time(Duration),
    /// After this number of frames from each interface.
    Frames(u64),
    /// At an interruption.
    None,
}

/// Unlimited duration that does not overflow in sums: 292 years.
const FOR_EVER: u64 = u64::MAX / 2;

impl Bound {
    fn length(self) -> Length {
        match self {
            Self::Time(time) => Length::of(time),
            Self::Frames(frames) => Length::Frames(frames),
            Self::None => Length::Nanoseconds(FOR_EVER),
        }
    }
}

/// Generation of frames: one trial for each size at each rate.
#[derive(Clone, Debug)]
pub struct Generation {
    /// Sending interfaces.
    pub from: Vec<PortName>,
    /// Receiving interfaces.
    pub target: Target,
    /// Headers of the frames.
    pub headers: HeaderOptions,
    /// Frame sizes.
    pub sizes: Vec<Size>,
    /// Rates of each interface.
    pub speeds: Vec<Speed>,
    /// Spacing of frames.
    pub pattern: Pattern,
    /// End of each trial.
    pub bound: Bound,
    /// Transmit and receive method.
    pub by: IoMethod,
    /// Empty: one thread, not pinned; one core: one thread on it; two: a sending and a receiving
    /// thread.
    pub cores: Vec<usize>,
}

/// Replay of a capture file.
#[derive(Clone, Debug)]
pub struct Replay {
    /// File.
    pub file: PathBuf,
    /// Sending interface.
    pub from: PortName,
    /// Receiving interfaces. With a receiver, a signature replaces the end of each payload.
    pub target: Target,
    /// Rate; that of the recording if `None`.
    pub speed: Option<Speed>,
    /// Share of the recording's rate, in per cent.
    pub percent: u32,
    /// Number of repetitions; without end if `None`.
    pub loops: Option<u32>,
    /// Transmit and receive method.
    pub by: IoMethod,
    /// Cores, as in [`Generation::cores`].
    pub cores: Vec<usize>,
}

impl Generation {
    /// Runs all trials.
    ///
    /// # Errors
    /// See [`InstrumentError`].
    pub fn run(
        &self,
        clock: &Clock,
        interrupt: &Interrupt,
        report: &mut Listener<'_>,
    ) -> Result<Tally, InstrumentError> {
        let template = self.headers.template();
        let longest = self.sizes.iter().map(|size| size.longest()).max();
        let bench = Bench::new(&self.from, &self.target, self.by, &self.cores)?;
        let sizes: Vec<(Size, Mix)> = self
            .sizes
            .iter()
            .map(|&size| Ok((size, size.of(&template)?)))
            .collect::<Result<_, InstrumentError>>()?;
        let mut ends = bench.open(longest.unwrap_or(1_518), clock)?;
        let mut tally = Tally::default();
        for (size, mix) in &sizes {
            for &speed in &self.speeds {
                if interrupt.is_set() {
                    break;
                }
                let load = Load {
                    description: format!("{}, {size}", self.headers.kind),
                    intended_load: speed.to_string(),
                    source: Source::Mix(mix.clone()),
                    pace: self.pattern.at(speed, self.headers.seed),
                    length: self.bound.length(),
                };
                tally
                    .trials
                    .push(bench.offer(&load, &mut ends, clock, interrupt, report)?);
            }
        }
        tally.is_interrupted = interrupt.is_set();
        Ok(tally)
    }
}

impl Replay {
    /// Replays the file.
    ///
    /// # Errors
    /// See [`InstrumentError`].
    pub fn run(
        &self,
        clock: &Clock,
        interrupt: &Interrupt,
        report: &mut Listener<'_>,
    ) -> Result<Tally, InstrumentError> {
        let file = self.file.display().to_string();
        let bad = |cause: std::io::Error| InstrumentError::File {
            file: file.clone(),
            cause: cause.to_string(),
        };
        let mut recording = Recording::read(&self.file).map_err(bad)?;
        if self.target == Target::Nobody {
            recording = recording.untouched();
        }
        let from = [self.from.clone()];
        let bench = Bench::new(&from, &self.target, self.by, &self.cores)?;
        let mut ends = bench.open(recording.longest(), clock)?;
        let frames = recording.frame_count();
        let (pace, intended_load) = match self.speed {
            Some(speed) => (Pattern::Constant.at(speed, 0), speed.to_string()),
            None => {
                let percent = self.percent;
                let intended_load = format!("{percent} % of the recording's speed");
                (Pace::Recorded { percent }, intended_load)
            }
        };
        let load = Load {
            description: format!("{file}, {frames} frames"),
            intended_load,
            source: Source::Recording(recording),
            pace,
            length: match self.loops {
                Some(loops) => Length::Frames(frames.saturating_mul(loops.into())),
                None => Bound::None.length(),
            },
        };
        let trial = bench.offer(&load, &mut ends, clock, interrupt, report)?;
        Ok(Tally {
            trials: vec![trial],
            is_interrupted: interrupt.is_set(),
        })
    }
}

/// Load of each interface in one trial.
struct Load {
    description: String,
    intended_load: String,
    source: Source,
    pace: Pace,
    length: Length,
}

/// Sending and receiving interfaces.
struct Bench<'a> {
    /// Pairs of a sending interface and the receiver of its frames.
    paths: Vec<(&'a PortName, Option<&'a PortName>)>,
    reflection: Option<Reflection>,
    ends: Ends,
    by: IoMethod,
    threads: Threads,
    core: Option<usize>,
}

impl<'a> Bench<'a> {
    fn new(
        from: &'a [PortName],
        target: &'a Target,
        by: IoMethod,
        cores: &[usize],
    ) -> Result<Self, InstrumentError> {
        let invalid = |reason: &str| Err(InstrumentError::Invalid(reason.to_owned()));
        if Ends::new(from).names().len() != from.len() {
            return invalid("an interface can be given only once");
        }
        let paths: Vec<_> = match target {
            Target::Nobody => from.iter().map(|one| (one, None)).collect(),
            Target::Back(_) => from.iter().map(|one| (one, Some(one))).collect(),
            Target::Interfaces(to) => match to.as_slice() {
                [all] => from.iter().map(|one| (one, Some(all))).collect(),
                to if to.len() == from.len() => from.iter().zip(to.iter().map(Some)).collect(),
                _ => return invalid("--to requires one interface, or as many as --from"),
            },
        };
        let threads = match *cores {
            [] | [_] => Threads::Solo,
            [send, receive] => Threads::Pair { send, receive },
            _ => return invalid("at most two cores are possible: --cores SEND,RECEIVE"),
        };
        let names = paths.iter().flat_map(|(from, to)| [Some(*from), *to]);
        Ok(Self {
            ends: Ends::new(names.flatten()),
            reflection: match target {
                Target::Back(reflection) => Some(*reflection),
                Target::Nobody | Target::Interfaces(_) => None,
            },
            paths,
            by,
            threads,
            core: cores.first().copied(),
        })
    }

    fn open(&self, longest: u16, clock: &Clock) -> Result<Vec<TestPort>, InstrumentError> {
        let receivers: Vec<PortName> = self
            .paths
            .iter()
            .filter_map(|(_, to)| to.cloned())
            .collect();
        self.ends.open(self.by, longest, &receivers, clock)
    }

    /// Returns true if there is a receiver.
    fn has_receivers(&self) -> bool {
        self.paths.iter().any(|(_, to)| to.is_some())
    }

    fn streams(&self, load: &Load) -> Vec<Stream> {
        let rewritten = match (&load.source, self.reflection) {
            (Source::Mix(mix), Some(reflection)) => {
                let parts = mix.parts().iter();
                let parts = parts.map(|(one, count)| (one.reflected(reflection), *count));
                Some(Mix::new(parts.collect()).expect("it is as valid as the sent mix"))
            }
            _ => None,
        };
        let stream = |&(from, to): &(&PortName, Option<&PortName>)| {
            let (from, to) = (self.ends.number(from), self.ends.number(to.unwrap_or(from)));
            Stream {
                expectation: Expectation {
                    rewritten: rewritten.clone(),
                    ..Expectation::default()
                },
                ..Stream::new(load.source.clone(), load.pace, from, to)
            }
        };
        self.paths.iter().map(stream).collect()
    }

    /// Runs one trial.
    fn offer(
        &self,
        load: &Load,
        ends: &mut [TestPort],
        clock: &Clock,
        interrupt: &Interrupt,
        report: &mut Listener<'_>,
    ) -> Result<TrialTally, InstrumentError> {
        let mut request = Request::new(self.streams(load), load.length);
        request.threads = self.threads;
        if !self.has_receivers() {
            request.drain = Duration::ZERO;
        }
        let watch = Supervisor {
            clock,
            interrupt,
            has_receivers: self.has_receivers(),
            core: self.core.filter(|_| self.threads == Threads::Solo),
        };
        let measured = watch.measure(ends, &request, report)?;
        let streams = self.paths.iter().zip(measured.streams);
        let streams = streams.map(|((from, to), outcome)| StreamTally {
            from: from.to_string(),
            to: to.map(ToString::to_string),
            outcome,
        });
        Ok(TrialTally {
            description: load.description.clone(),
            intended_load: load.intended_load.clone(),
            streams: streams.collect(),
            ends: self
                .ends
                .names()
                .iter()
                .cloned()
                .zip(measured.ends)
                .collect(),
            refusals: measured.refusals,
        })
    }
}

/// Interval of checks for an interruption.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Interval of progress reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Supervision of a measurement.
pub(super) struct Supervisor<'a> {
    pub(super) clock: &'a Clock,
    pub(super) interrupt: &'a Interrupt,
    pub(super) has_receivers: bool,
    /// Core of the measuring thread, if there is only one.
    pub(super) core: Option<usize>,
}

impl Supervisor<'_> {
    /// Measures on a separate thread, and reports progress meanwhile.
    fn measure(
        &self,
        ends: &mut [TestPort],
        request: &Request,
        report: &mut Listener<'_>,
    ) -> Result<Measurement, InstrumentError> {
        let (live, never) = (Live::default(), Interrupt::never());
        let body = || {
            if let Some(core) = self.core {
                pin_current_thread(&[core]).map_err(|failure| {
                    MeasureError::Thread(std::io::Error::other(failure.to_string()))
                })?;
            }
            measure_live(ends, request, self.clock, &never, &live)
        };
        let measured = thread::scope(|scope| {
            let thread = scope.spawn(body);
            self.supervise(&live, || thread.is_finished(), report);
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        Ok(measured?)
    }

    fn supervise(&self, live: &Live, is_over: impl Fn() -> bool, report: &mut Listener<'_>) {
        let began = self.clock.now();
        let (mut last, mut before) = (began, LiveTotals::default());
        while !is_over() {
            if self.interrupt.is_set() {
                live.end();
            }
            let now = self.clock.now();
            if now.since(last) >= REPORT_INTERVAL {
                let after = live.totals();
                let times = [now.since(began), now.since(last)].map(|time| time.as_secs_f64());
                let [at, length] = times;
                report(&ProgressReport::between(
                    (&before, &after),
                    at,
                    length,
                    self.has_receivers,
                ));
                (last, before) = (now, after);
            }
            self.clock.sleep_until(now + CHECK_INTERVAL);
        }
    }
}
