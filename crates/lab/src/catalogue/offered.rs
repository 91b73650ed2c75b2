//! Load that the instrument offers to a device at its station, and the figures that come of it.

use std::time::Duration;

use testbed::{Bench, Host};

use crate::catalogue::{Better, Figure, Point};
use crate::cores::Watch;
use crate::instrument::{
    End, EndNo, Length, MeasureError, Measurement, Mix, Pace, Refusal, Request, Stream,
    StreamOutcome, Template, Threads, measure,
};
use crate::record::{Conditions, Outcome, Reading};
use crate::scenario::Tools;
use crate::station::Station;
use crate::statistics::Histogram;
use crate::trial::{Measured, TrialError};

/// How long stragglers are waited for: less than the two seconds of RFC 2544, since nothing here
/// holds frames for so long.
const DRAIN: Duration = Duration::from_millis(200);

/// Delay and loss, as every experiment with load tells them.
pub(super) const FIGURES: &[Figure] = &[
    figure("offered_kpps", "Offered", "kpps", Better::Neither),
    figure("received_kpps", "Received", "kpps", Better::Higher),
    figure("loss_percent", "Lost", "%", Better::Lower),
    figure("mean_us", "Mean", "µs", Better::Lower),
    figure("deviation_us", "Deviation", "µs", Better::Lower),
    figure("p50_us", "Median", "µs", Better::Lower),
    figure("p99_us", "99 %", "µs", Better::Lower),
    figure("p999_us", "99.9 %", "µs", Better::Lower),
    figure("ipdv_us", "Jitter (IPDV)", "µs", Better::Lower),
    figure("reordered", "Reordered", "frames", Better::Lower),
    figure("duplicated", "Duplicated", "frames", Better::Lower),
];

/// A figure.
pub(super) const fn figure(
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    better: Better,
) -> Figure {
    Figure {
        name,
        title,
        unit,
        better,
    }
}

/// What is offered.
#[derive(Clone, Debug)]
pub(super) struct Load {
    /// From the client to the server.
    pub(super) frames: Mix,
    /// When.
    pub(super) pace: Pace,
    /// For how long.
    pub(super) length: Duration,
    /// Whether the server sends the same to the client meanwhile.
    pub(super) both_ways: bool,
    /// Between how many pairs of hosts: the first and the second, the third and the fourth,
    /// and so on.
    pub(super) pairs: usize,
    /// What frames towards the server become on their way; none if they stay as they are.
    pub(super) rewritten: Option<Mix>,
}

impl Load {
    /// Frames of UDP of this size towards the server.
    pub(super) fn udp(frame_bytes: u64, pace: Pace, length: Duration) -> Self {
        let frame_bytes = u16::try_from(frame_bytes).expect("the experiment's bounds say so");
        Self {
            frames: Template::udp(frame_bytes).into(),
            pace,
            length,
            both_ways: false,
            pairs: 1,
            rewritten: None,
        }
    }

    fn streams(&self) -> Vec<Stream> {
        let back = reversed(&self.frames);
        let of_pair = |pair: usize| {
            let [client, server] = [EndNo(2 * pair), EndNo(2 * pair + 1)];
            let mut forth = Stream::new(self.frames.clone(), self.pace, client, server);
            forth.expectation.rewritten.clone_from(&self.rewritten);
            let back = Stream::new(back.clone(), self.pace, server, client);
            [forth].into_iter().chain(self.both_ways.then_some(back))
        };
        (0..self.pairs).flat_map(of_pair).collect()
    }

    fn longest(&self) -> u16 {
        let sizes = self.frames.parts().iter();
        sizes
            .map(|(template, _)| template.frame_bytes)
            .max()
            .unwrap_or(1_518)
    }
}

/// The same frames the other way.
fn reversed(frames: &Mix) -> Mix {
    let parts = frames.parts().iter().cloned();
    let parts = parts.map(|(mut template, count)| {
        std::mem::swap(&mut template.source, &mut template.destination);
        (template, count)
    });
    Mix::new(parts.collect()).expect("it is as good as the other way")
}

/// What came of it, and how the machine fared.
pub(super) struct Offered {
    pub(super) measurement: Measurement,
    pub(super) conditions: Conditions,
}

/// How often a load is offered that the tester did not quite reach: now and then the machine takes
/// its core away for a moment.
const ATTEMPTS: usize = 3;

/// Offers `load` to the device of `station`, whose rules are in force, again if the tester fell
/// short.
pub(super) fn offer(
    load: &Load,
    station: &Station,
    tools: &Tools<'_>,
) -> Result<Offered, TrialError> {
    let mut offered = offer_once(load, station, tools)?;
    for _ in 1..ATTEMPTS {
        if !offered.fell_short() {
            break;
        }
        offered = offer_once(load, station, tools)?;
    }
    Ok(offered)
}

/// The same, once.
pub(super) fn offer_once(
    load: &Load,
    station: &Station,
    tools: &Tools<'_>,
) -> Result<Offered, TrialError> {
    let bench = &station.bench;
    introduce(bench, load)?;
    let open = |host: &Host| {
        End::packet(
            &host.namespace,
            host.interface,
            load.longest(),
            *tools.clock,
        )
    };
    let hosts = &bench.hosts()[..2 * load.pairs];
    let mut ends: Vec<End> = hosts.iter().map(open).collect::<Result<_, _>>()?;
    let mut request = Request::new(load.streams(), Length::of(load.length));
    request.drain = DRAIN;
    if let [send, receive, ..] = *tools.cores.tester.as_slice() {
        request.threads = Threads::Pair { send, receive };
    }
    let watch = Watch::begin(bench, tools.cores, tools.clock)?;
    let measured = on_tester(tools, || {
        measure(&mut ends, &request, tools.clock, tools.interrupt)
    });
    let conditions = watch.end(bench)?;
    let measurement = match measured? {
        Ok(measurement) => measurement,
        Err(MeasureError::Interrupted) => return Err(TrialError::Interrupted),
        Err(error) => return Err(TrialError::Impossible(error.to_string())),
    };
    Ok(Offered {
        measurement,
        conditions,
    })
}

/// Runs `body` on the tester's first core, on a thread of its own.
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

/// Lets a learning device see both stations (RFC 2544, 23): nothing is flooded later.
fn introduce(bench: &Bench, load: &Load) -> Result<(), TrialError> {
    let (template, _) = &load.frames.parts()[0];
    let ways = [
        (template.source, template.destination),
        (template.destination, template.source),
    ];
    for (host, (source, destination)) in bench.hosts().iter().zip(ways.iter().cycle()) {
        let socket = host.namespace.raw_sender(host.interface)?;
        let mut frame = [0; 60];
        frame[..6].copy_from_slice(&destination.mac);
        frame[6..12].copy_from_slice(&source.mac);
        // A type for experiments (IEEE 802, 9.2.3), which nobody answers.
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        let sent = socket.send(&[frame]);
        sent.map_err(testbed::Failure::to("introduce the tester's stations"))?;
    }
    Ok(())
}

impl Offered {
    /// Whether less was offered than was to be.
    pub(super) fn fell_short(&self) -> bool {
        let short = |refusal: &Refusal| matches!(refusal, Refusal::Shortfall { .. });
        self.measurement.refusals.iter().any(short)
    }

    /// Delays of all streams together, in nanoseconds.
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

    /// The sum over all streams.
    pub(super) fn sum(&self, of: fn(&StreamOutcome) -> u64) -> u64 {
        self.measurement.streams.iter().map(of).sum()
    }

    /// The figures of [`FIGURES`], of all streams together, and the histogram of delays.
    pub(super) fn reading(&self, point: &Point) -> Reading {
        let mut reading = Reading::at(point);
        let sum = |of| self.sum(of) as f64;
        let streams = self.measurement.streams.iter();
        let rate: f64 = streams.map(|stream| stream.achieved.pps()).sum();
        let sent = sum(|stream| stream.achieved.frames);
        let loss = if sent > 0.0 {
            sum(|stream| stream.lost) / sent
        } else {
            0.0
        };
        reading.put("offered_kpps", rate / 1e3);
        reading.put("received_kpps", rate * (1.0 - loss) / 1e3);
        reading.put("loss_percent", loss * 100.0);
        reading.put("reordered", sum(|stream| stream.reordered));
        reading.put("duplicated", sum(|stream| stream.duplicated));
        let delays = self.delays();
        if delays.count() == 0 {
            for name in [
                "mean_us",
                "deviation_us",
                "p50_us",
                "p99_us",
                "p999_us",
                "ipdv_us",
            ] {
                reading.lack(name, "nothing came out");
            }
            return reading;
        }
        reading.put("mean_us", delays.mean() / 1e3);
        reading.put("deviation_us", delays.deviation() / 1e3);
        for (name, share) in [("p50_us", 0.5), ("p99_us", 0.99), ("p999_us", 0.999)] {
            reading.put(name, delays.quantile(share) as f64 / 1e3);
        }
        let jitter = self.together(|stream| &stream.ipdv);
        reading.put("ipdv_us", jitter.mean() / 1e3);
        reading
            .histograms
            .insert("delay_ns".to_owned(), delays.encode());
        reading
    }

    /// The reading as an outcome, with what speaks against it. A rate that the tester cannot send
    /// is no fault of the device's: its figures are absent, and say so.
    pub(super) fn measured(self, reading: Reading) -> Measured {
        let refusals = self.measurement.refusals.clone();
        let short = refusals
            .iter()
            .find(|one| matches!(one, Refusal::Shortfall { .. }));
        let reading = match short {
            Some(refusal) => without(&reading, &format!("the tester is too slow: {refusal}")),
            None => reading,
        };
        let mut measured = Measured::new(Outcome::Reading(reading), self.conditions);
        for refusal in refusals
            .iter()
            .filter(|one| !matches!(one, Refusal::Shortfall { .. }))
        {
            measured.void(refusal.to_string());
        }
        let (changed, damaged) = (self.sum(|one| one.changed), self.sum(|one| one.damaged));
        if changed + damaged > 0 {
            measured.void(format!(
                "{changed} frames came out with other headers than they should, {damaged} with a wrong checksum"
            ));
        }
        let astray = self.sum(|one| one.misdirected);
        if astray > 0 {
            measured.note(format!("{astray} frames came out where they should not"));
        }
        measured
    }
}

/// The same point without any figure but what was offered.
pub(super) fn without(reading: &Reading, reason: &str) -> Reading {
    let mut rest = Reading::at(&reading.point);
    for (name, value) in &reading.figures {
        match name.as_str() {
            "offered_kpps" => rest.put(name, *value),
            _ => rest.lack(name, reason),
        }
    }
    rest
}
