//! Load that the tester offers to a device, and the figures of its results.

use std::time::Duration;

use record::{Conditions, Reading};
use stats::Histogram;
use testbed::{Bench, Failure, Host};
use trafficgen::{
    Length, MeasureError, Measurement, Mix, Pace, Refusal, Request, Stream, StreamOutcome,
    Template, TestPort, TestPortNo, Threads, measure,
};

use crate::catalogue::prelude::*;
use crate::setup::ConditionMonitor;
use crate::setup::TestSetup;
use crate::tools::Tools;
use crate::trial::{TrialError, TrialResult};

/// Time limit for late frames. RFC 2544 has two seconds, but no device here holds frames for so
/// long.
const DRAIN: Duration = Duration::from_millis(200);

/// Figures of delay and loss, common to all experiments with load.
pub(super) const FIGURES: &[Figure] = &[
    figure("offered_kpps", "Offered load", "kpps", Better::Neither),
    figure("received_kpps", "Received", "kpps", Better::Higher),
    figure("loss_percent", "Lost", "%", Better::Lower),
    figure("mean_us", "Mean", "µs", Better::Lower),
    figure("deviation_us", "Standard deviation", "µs", Better::Lower),
    figure("p50_us", "Median", "µs", Better::Lower),
    figure("p99_us", "99 %", "µs", Better::Lower),
    figure("p999_us", "99.9 %", "µs", Better::Lower),
    figure("ipdv_us", "Jitter (IPDV)", "µs", Better::Lower),
    figure("reordered", "Reordered", "frames", Better::Lower),
    figure("duplicated", "Duplicated", "frames", Better::Lower),
];

/// Returns a figure.
pub(super) const fn figure(
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    better: Better,
) -> Figure {
    Figure::new(name, title, unit, better)
}

/// Intended load.
#[derive(Clone, Debug)]
pub(super) struct Load {
    /// Frames from the client to the server.
    pub(super) frames: Mix,
    /// Schedule.
    pub(super) pace: Pace,
    /// Duration.
    pub(super) length: Duration,
    /// True if the server sends the same frames to the client at the same time.
    pub(super) bidirectional: bool,
    /// Number of pairs of hosts: the first and the second, the third and the fourth, and so on.
    pub(super) pairs: usize,
    /// Expected frames at the server, if the device modifies them.
    pub(super) rewritten: Option<Mix>,
}

impl Load {
    /// Returns a load of UDP frames of this size towards the server.
    pub(super) fn udp(frame_bytes: u64, pace: Pace, length: Duration) -> Self {
        let frame_bytes = u16::try_from(frame_bytes).expect("the experiment's bounds say so");
        Self {
            frames: Template::udp(frame_bytes).into(),
            pace,
            length,
            bidirectional: false,
            pairs: 1,
            rewritten: None,
        }
    }

    /// Returns the request for the traffic generator.
    pub(super) fn request(&self) -> Request {
        let mut request = Request::new(self.streams(), Length::of(self.length));
        request.drain = DRAIN;
        request
    }

    /// Returns the frames from which a learning device learns the stations of both hosts of a pair.
    pub(super) fn introductions(&self) -> [[u8; 60]; 2] {
        let (template, _) = &self.frames.parts()[0];
        let directions = [
            (template.source, template.destination),
            (template.destination, template.source),
        ];
        directions.map(|(source, destination)| {
            let mut frame = [0; 60];
            frame[..6].copy_from_slice(&destination.mac);
            frame[6..12].copy_from_slice(&source.mac);
            // Local experimental Ethernet type (IEEE 802, 9.2.3), to which no host replies.
            frame[12..14].copy_from_slice(&[0x88, 0xb5]);
            frame
        })
    }

    fn streams(&self) -> Vec<Stream> {
        let reverse = reversed(&self.frames);
        let of_pair = |pair: usize| {
            let [client, server] = [TestPortNo(2 * pair), TestPortNo(2 * pair + 1)];
            let mut forward = Stream::new(self.frames.clone(), self.pace, client, server);
            forward.expectation.rewritten.clone_from(&self.rewritten);
            let reverse = Stream::new(reverse.clone(), self.pace, server, client);
            [forward]
                .into_iter()
                .chain(self.bidirectional.then_some(reverse))
        };
        (0..self.pairs).flat_map(of_pair).collect()
    }

    pub(super) fn longest(&self) -> u16 {
        let sizes = self.frames.parts().iter();
        sizes
            .map(|(template, _)| template.frame_bytes)
            .max()
            .unwrap_or(1_518)
    }
}

/// Returns the same frames in the opposite direction.
fn reversed(frames: &Mix) -> Mix {
    let parts = frames.parts().iter().cloned();
    let parts = parts.map(|(mut template, count)| {
        std::mem::swap(&mut template.source, &mut template.destination);
        (template, count)
    });
    Mix::new(parts.collect()).expect("it is as valid as the other direction")
}

/// Measurement of an offered load, and the conditions of the machine.
pub(super) struct LoadResult {
    pub(super) measurement: Measurement,
    pub(super) conditions: Conditions,
}

/// Number of attempts to reach the intended load: sometimes the machine takes the tester's core
/// away for a moment.
const ATTEMPTS: usize = 3;

/// Offers `load` to the device of `setup`, whose rules are in force; repeats it if the offered load
/// fell short.
pub(super) fn offer(
    load: &Load,
    setup: &TestSetup,
    tools: &Tools<'_>,
) -> Result<LoadResult, TrialError> {
    again(|| offer_once(load, setup, tools))
}

/// Offers a load by `once`; repeats it if the offered load fell short.
pub(super) fn again(
    mut once: impl FnMut() -> Result<LoadResult, TrialError>,
) -> Result<LoadResult, TrialError> {
    let mut offered = once()?;
    for _ in 1..ATTEMPTS {
        if !offered.fell_short() {
            break;
        }
        offered = once()?;
    }
    Ok(offered)
}

/// Offers `load` to the device of `setup` once.
pub(super) fn offer_once(
    load: &Load,
    setup: &TestSetup,
    tools: &Tools<'_>,
) -> Result<LoadResult, TrialError> {
    offer_by(load, setup, tools, &|host| {
        TestPort::packet(
            &host.namespace,
            host.interface,
            load.longest(),
            *tools.clock,
        )
    })
}

/// Offers `load` once, between ends that `open` returns.
pub(super) fn offer_by(
    load: &Load,
    setup: &TestSetup,
    tools: &Tools<'_>,
    open: &dyn Fn(&Host) -> Result<TestPort, Failure>,
) -> Result<LoadResult, TrialError> {
    let bench = &setup.bench;
    introduce(bench, load)?;
    let hosts = &bench.hosts()[..2 * load.pairs];
    let ends = hosts.iter().map(open);
    let mut ends: Vec<TestPort> = ends.collect::<Result<_, _>>()?;
    let mut request = load.request();
    if let [send, receive, ..] = *tools.cores.tester.as_slice() {
        request.threads = Threads::Pair { send, receive };
    }
    let watch = ConditionMonitor::begin(bench, tools.cores, tools.clock)?;
    let measured = on_tester(tools, || {
        measure(&mut ends, &request, tools.clock, tools.interrupt)
    });
    let conditions = watch.end(bench)?;
    let measurement = match measured? {
        Ok(measurement) => measurement,
        Err(MeasureError::Interrupted) => return Err(TrialError::Interrupted),
        Err(error) => return Err(TrialError::Impossible(error.to_string())),
    };
    Ok(LoadResult {
        measurement,
        conditions,
    })
}

/// Runs `body` on a separate thread, on the tester's first core.
pub(super) fn on_tester<T: Send>(
    tools: &Tools<'_>,
    body: impl FnOnce() -> T + Send,
) -> Result<T, TrialError> {
    let cores = &tools.cores.tester;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            testbed::pin_current_thread(&cores[..cores.len().min(1)])?;
            Ok(body())
        });
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Sends a frame from each station, so that a learning device floods nothing later (RFC 2544, 23).
fn introduce(bench: &Bench, load: &Load) -> Result<(), TrialError> {
    let frames = load.introductions();
    for (host, frame) in bench.hosts().iter().zip(frames.iter().cycle()) {
        let socket = host.namespace.raw_sender(host.interface)?;
        let sent = socket.send(&[frame]);
        sent.map_err(Failure::to("introduce the tester's stations"))?;
    }
    Ok(())
}

impl LoadResult {
    /// Returns true if the offered load is less than the intended load.
    pub(super) fn fell_short(&self) -> bool {
        self.shortfall().is_some()
    }

    /// Returns the shortfall, if there is one.
    pub(super) fn shortfall(&self) -> Option<&Refusal> {
        let is_short = |refusal: &&Refusal| matches!(refusal, Refusal::Shortfall { .. });
        self.measurement.refusals.iter().find(is_short)
    }

    /// Returns the delays of all streams together, in nanoseconds.
    pub(super) fn delays(&self) -> Histogram {
        self.together(|stream| &stream.delay_from_sent)
    }

    fn together(&self, of: fn(&StreamOutcome) -> &hdrhistogram::Histogram<u64>) -> Histogram {
        let mut all = Histogram::default();
        for stream in &self.measurement.streams {
            all.merge(&Histogram::from(of(stream)));
        }
        all
    }

    /// Returns the sum over all streams.
    pub(super) fn sum(&self, of: fn(&StreamOutcome) -> u64) -> u64 {
        self.measurement.streams.iter().map(of).sum()
    }

    /// Returns the frames that the tester itself lost, at either end.
    pub(super) fn dropped(&self) -> u64 {
        self.measurement.ends.iter().map(|end| end.dropped).sum()
    }

    /// Returns the lost share of the sent frames.
    pub(super) fn loss(&self) -> f64 {
        match self.sum(|stream| stream.achieved.frames) {
            0 => 0.0,
            sent => self.sum(|stream| stream.lost) as f64 / sent as f64,
        }
    }

    /// Returns the sent frames per second.
    pub(super) fn pps(&self) -> f64 {
        let streams = self.measurement.streams.iter();
        streams.map(|stream| stream.achieved.pps()).sum()
    }

    /// Returns the figures of [`FIGURES`] for all streams together, and the histogram of delays.
    pub(super) fn reading(&self, point: &Point) -> Reading {
        let mut reading = Reading::at(point);
        reading.instrument = Some(self.measurement.means());
        let (rate, loss) = (self.pps(), self.loss());
        reading.put("offered_kpps", rate / 1e3);
        reading.put("received_kpps", rate * (1.0 - loss) / 1e3);
        reading.put("loss_percent", loss * 100.0);
        for (name, of) in COUNTS {
            reading.put(name, self.sum(of) as f64);
        }
        let delays = self.delays();
        if delays.count() == 0 {
            let names = ["mean_us", "deviation_us", "ipdv_us"].into_iter();
            let names = names.chain(QUANTILES.map(|(name, _)| name));
            reading.lack_each(names, NOTHING);
            return reading;
        }
        reading.put("mean_us", delays.mean() / 1e3);
        reading.put("deviation_us", delays.deviation() / 1e3);
        put_quantiles(&delays, &QUANTILES, &mut reading);
        let jitter = self.together(|stream| &stream.ipdv);
        reading.put("ipdv_us", jitter.mean() / 1e3);
        reading
            .histograms
            .insert("delay_ns".to_owned(), delays.encode());
        reading
    }

    /// Adds quantiles of the delays to `reading`, or the reason for their absence: after a
    /// shortfall, the delays are those of another load. Other refusals are added to `doubts`.
    pub(super) fn put_delays(
        &self,
        quantiles: &[(&str, f64)],
        reading: &mut Reading,
        doubts: &mut Doubts,
    ) {
        doubts.add(self);
        let delays = self.delays();
        let reason = match self.shortfall() {
            Some(refusal) => too_slow(refusal),
            None if delays.count() == 0 => NOTHING.to_owned(),
            None => return put_quantiles(&delays, quantiles, reading),
        };
        reading.lack_each(quantiles.iter().map(|(name, _)| *name), &reason);
    }

    /// Returns the reading with its flaws. After a shortfall, which is no fault of the device, all
    /// figures but the offered load are absent, with the reason.
    pub(super) fn measured(self, reading: Reading) -> TrialResult {
        let mut doubts = Doubts::default();
        doubts.add(&self);
        let reading = match self.shortfall() {
            Some(refusal) => without(&reading, &too_slow(refusal)),
            None => reading,
        };
        let mut measured = TrialResult::new(reading, self.conditions);
        doubts.add_flaws(&mut measured);
        measured
    }
}

type Count = (&'static str, fn(&StreamOutcome) -> u64);

const COUNTS: [Count; 2] = [
    ("reordered", |stream| stream.reordered),
    ("duplicated", |stream| stream.duplicated),
];

const QUANTILES: [(&str, f64); 3] = [("p50_us", 0.5), ("p99_us", 0.99), ("p999_us", 0.999)];

/// Reason for absent delays.
pub(super) const NOTHING: &str = "no frame arrived";

/// Returns the reason for absent figures after a shortfall.
pub(super) fn too_slow(shortfall: &Refusal) -> String {
    format!("the tester is too slow: {shortfall}")
}

fn put_quantiles(delays: &Histogram, quantiles: &[(&str, f64)], reading: &mut Reading) {
    for (name, share) in quantiles {
        reading.put(name, delays.quantile(*share) as f64 / 1e3);
    }
}

/// Reasons against the results of any number of loads.
#[derive(Clone, Debug, Default)]
pub(super) struct Doubts {
    refusals: Vec<Refusal>,
    changed: u64,
    damaged: u64,
    astray: u64,
}

/// Greatest number of reported refusals; more add no information.
const REFUSALS_MAX: usize = 4;

impl Doubts {
    /// Adds every reason against a load except a shortfall.
    pub(super) fn add(&mut self, offered: &LoadResult) {
        self.add_refusals(offered, |one| !matches!(one, Refusal::Shortfall { .. }));
        self.add_frames(offered);
    }

    /// Adds the reasons against the losses of a load, which clock errors do not affect.
    pub(super) fn add_losses(&mut self, offered: &LoadResult) {
        self.add_refusals(offered, |one| matches!(one, Refusal::Dropped { .. }));
        self.add_frames(offered);
    }

    fn add_refusals(&mut self, offered: &LoadResult, counts: impl Fn(&Refusal) -> bool) {
        let refusals = offered.measurement.refusals.iter();
        let room = REFUSALS_MAX.saturating_sub(self.refusals.len());
        let added = refusals.filter(|one| counts(one)).take(room);
        self.refusals.extend(added.cloned());
    }

    /// Removes refusals that have another cause.
    pub(super) fn forgive(&mut self, is_forgiven: impl Fn(&Refusal) -> bool) {
        self.refusals.retain(|refusal| !is_forgiven(refusal));
    }

    /// Adds the reasons against frame counts, from which the tester's own losses are already
    /// subtracted.
    pub(super) fn add_frames(&mut self, offered: &LoadResult) {
        self.changed += offered.sum(|one| one.modified);
        self.damaged += offered.sum(|one| one.corrupt);
        self.astray += offered.sum(|one| one.misdelivered);
    }

    /// Adds the reasons to the flaws of a trial.
    pub(super) fn add_flaws(self, measured: &mut TrialResult) {
        for refusal in self.refusals {
            measured.void(refusal.to_string());
        }
        let Self {
            changed,
            damaged,
            astray,
            ..
        } = self;
        if changed + damaged > 0 {
            measured.void(format!(
                "{changed} frames arrived with modified headers, {damaged} with a wrong checksum"
            ));
        }
        if astray > 0 {
            measured.note(format!("{astray} frames were misdelivered"));
        }
    }
}

/// Returns the reading with the offered load as its only figure.
pub(super) fn without(reading: &Reading, reason: &str) -> Reading {
    let mut rest = Reading::at(&reading.point);
    rest.instrument.clone_from(&reading.instrument);
    for (name, value) in &reading.figures {
        match name.as_str() {
            "offered_kpps" => rest.put(name, *value),
            _ => rest.lack(name, reason),
        }
    }
    rest
}
