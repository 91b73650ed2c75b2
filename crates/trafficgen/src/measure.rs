//! One measurement, from the first frame to the results.

mod pair;
mod solo;
#[cfg(test)]
mod tests;

use std::io;
use std::time::Duration;

use testbed::Interrupt;

use super::delays::Delays;
use super::emitter::Emitter;
use super::outcome::{Measurement, Refusal, StreamOutcome, TestPortOutcome};
use super::receiver::{Receiver, StreamStats};
use super::sequence::Sequence;
use super::stream_state::StreamState;
use super::{BadTemplate, Live, Pace, Source, Stamps, Stream, TestPort, TestPortNo, Time};

/// The parameters of a measurement.
#[derive(Clone, Debug)]
pub struct Request {
    /// The offered streams, all at the same time.
    pub streams: Vec<Stream>,
    /// The length after the warm-up.
    pub length: Length,
    /// The time for which streams are offered before frames count.
    pub warm_up: Duration,
    /// The wait for late frames after the last frame was sent, 2 s in RFC 2544, 24. Once all frames
    /// have arrived, the wait ends after 50 ms without a duplicate.
    pub drain: Duration,
    /// The threads that send and receive.
    pub threads: Threads,
    /// The frames to record one by one, with their timestamps; `None` records none.
    pub keep: Option<Keep>,
}

/// The frames of each stream to record one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// The lowest recorded number.
    pub from: u64,
    /// The most recorded frames, in order of arrival. Their memory is allocated at the start.
    pub most: usize,
}

impl Request {
    /// The wait for late frames (RFC 2544, 24).
    pub const DRAIN: Duration = Duration::from_secs(2);

    /// A request for these streams, without a warm-up, by one thread.
    #[must_use]
    pub fn new(streams: Vec<Stream>, length: Length) -> Self {
        Self {
            streams,
            length,
            warm_up: Duration::ZERO,
            drain: Self::DRAIN,
            threads: Threads::Solo,
            keep: None,
        }
    }
}

/// The length of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// All frames that are due within this many nanoseconds.
    Nanoseconds(u64),
    /// This many frames of each stream.
    Frames(u64),
}

impl Length {
    /// All frames that are due within this time.
    #[must_use]
    pub fn of(duration: Duration) -> Self {
        Self::Nanoseconds(nanos(duration))
    }
}

/// The threads that send and receive. They busy-poll and never sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// The calling thread alternates between sending and receiving. This leaves other cores to the
    /// device, and measures the shortest delays.
    Solo,
    /// Two threads on these cores: a higher rate, on testers with spare cores.
    Pair {
        /// The sender's core.
        send: usize,
        /// The receiver's core.
        receive: usize,
    },
}

/// The reason why a measurement did not complete.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
    /// A template describes an impossible frame.
    #[error(transparent)]
    Template(#[from] BadTemplate),
    /// The request is invalid: a stream names a test port that does not exist, or there are too
    /// many streams.
    #[error("{0}")]
    Request(&'static str),
    /// A test port failed.
    #[error("test port {}: {cause}", .end.0)]
    TestPort {
        /// The test port.
        end: TestPortNo,
        /// The error.
        cause: io::Error,
    },
    /// A thread could not be started or pinned.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// The largest shortfall of a valid measurement, as a share of the intended frames.
pub(super) const SHORTFALL_MAX: f64 = 0.001;
/// The wait for duplicates after all frames have arrived.
const QUIET_NS: u64 = 50_000_000;
/// The most streams: the signature has eight bits for the stream.
const STREAMS_MAX: usize = 256;

/// Offers the requested streams to `ends` and returns the results.
///
/// # Errors
/// See [`MeasureError`]. Reasons that make a measurement void are not errors: see
/// [`Measurement::refusals`].
pub fn measure(
    ends: &mut [TestPort],
    request: &Request,
    time: &dyn Time,
    interrupt: &Interrupt,
) -> Result<Measurement, MeasureError> {
    measure_live(ends, request, time, interrupt, &Live::default())
}

/// Like [`measure()`], with totals published in `live`, which can also end the measurement. Results
/// up to that moment are valid, in contrast to an interruption.
///
/// # Errors
/// See [`MeasureError`].
pub fn measure_live(
    ends: &mut [TestPort],
    request: &Request,
    time: &dyn Time,
    interrupt: &Interrupt,
    live: &Live,
) -> Result<Measurement, MeasureError> {
    check(ends, request)?;
    let shared: Vec<StreamState> = request.streams.iter().map(|_| StreamState::new()).collect();
    let numbered = (0..=u8::MAX).zip(&request.streams).zip(&shared);
    let warm_up = nanos(request.warm_up);
    let emitter =
        |((number, stream), shared)| Emitter::new(number, stream, request.length, warm_up, shared);
    let emitters: Result<Vec<Emitter<'_>>, _> = numbered.map(emitter).collect();
    let mut session = ActiveMeasurement {
        request,
        emitters: emitters?,
        receiver: Receiver::new(&request.streams, &shared, ends.len(), request.keep)?,
        time,
        interrupt,
        live,
    };
    for (number, end) in ends.iter_mut().enumerate() {
        // Earlier drops do not belong to this measurement.
        end.receive.take_drops().map_err(at(number))?;
        end.transmit.take_drops();
    }
    let began_ns = match request.threads {
        Threads::Solo => solo::run(&mut session, ends)?,
        Threads::Pair { send, receive } => pair::run(&mut session, ends, [send, receive])?,
    };
    session.finish(ends, began_ns)
}

/// A running measurement.
struct ActiveMeasurement<'a> {
    request: &'a Request,
    emitters: Vec<Emitter<'a>>,
    receiver: Receiver<'a>,
    time: &'a dyn Time,
    interrupt: &'a Interrupt,
    live: &'a Live,
}

fn check(ends: &[TestPort], request: &Request) -> Result<(), MeasureError> {
    let is_there = |end: TestPortNo| end.0 < ends.len();
    let streams = &request.streams;
    if !streams
        .iter()
        .all(|one| is_there(one.from) && is_there(one.to))
    {
        return Err(MeasureError::Request(
            "a stream names a test port that does not exist",
        ));
    }
    if streams.is_empty() || streams.len() > STREAMS_MAX {
        return Err(MeasureError::Request(
            "the number of streams must be 1 to 256",
        ));
    }
    let same = |stream: &Stream| {
        let rewritten = stream.expectation.rewritten.as_ref();
        rewritten.is_none_or(|mix| {
            let counts = |mix: &super::Mix| -> Vec<u32> {
                mix.parts().iter().map(|(_, count)| *count).collect()
            };
            matches!(&stream.source, Source::Mix(sent) if counts(mix) == counts(sent))
        })
    };
    let is_paced = |stream: &Stream| {
        let is_recorded = matches!(stream.pace, Pace::Recorded { .. });
        !is_recorded || matches!(stream.source, Source::Recording(_))
    };
    if !streams.iter().all(is_paced) {
        return Err(MeasureError::Request(
            "a recorded pace requires a recording",
        ));
    }
    match streams.iter().all(same) {
        true => Ok(()),
        false => Err(MeasureError::Request(
            "the expected mix must have the same parts as the sent mix",
        )),
    }
}

impl ActiveMeasurement<'_> {
    /// Computes the results.
    fn finish(self, ends: &mut [TestPort], began_ns: u64) -> Result<Measurement, MeasureError> {
        let (stats, mut outcomes) = self.receiver.finish();
        let mut refusals = Vec::new();
        for (number, (end, outcome)) in ends.iter_mut().zip(&mut outcomes).enumerate() {
            let receive = &mut end.receive;
            outcome.dropped = receive.take_drops().map_err(at(number))?;
            outcome.dropped += end.transmit.take_drops();
            outcome.send_method = end.transmit.send_method();
            outcome.stamps = receive.stamps();
            refusals.extend(of_end(TestPortNo(number), outcome));
        }
        let streams = self
            .emitters
            .into_iter()
            .zip(stats)
            .zip(&self.request.streams);
        let streams: Vec<StreamOutcome> = streams
            .map(|((emitter, stats), stream)| outcome(emitter, stats, stream))
            .collect();
        for (number, stream) in streams.iter().enumerate() {
            if stream.shortfall() > SHORTFALL_MAX {
                refusals.push(Refusal::Shortfall {
                    stream: number,
                    intended: stream.intended.pps(),
                    achieved: stream.achieved.pps(),
                });
            }
        }
        Ok(Measurement {
            began_ns,
            streams,
            ends: outcomes,
            refusals,
        })
    }
}

fn of_end(end: TestPortNo, outcome: &TestPortOutcome) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    if outcome.dropped > 0 {
        let frames = outcome.dropped;
        refusals.push(Refusal::Dropped { end, frames });
    }
    if let Stamps::Kernel { step_ns_max } = outcome.stamps
        && step_ns_max > testbed::MOVED_NS_MAX
    {
        let step = Duration::from_nanos(step_ns_max);
        refusals.push(Refusal::ClockStepped { end, step });
    }
    refusals
}

/// Computes the results of one stream.
fn outcome(emitter: Emitter<'_>, stats: StreamStats<'_>, stream: &Stream) -> StreamOutcome {
    let sent = emitter.sent();
    let first = sent.saturating_sub(emitter.counted());
    let mut sequence = stats.sequence.unwrap_or_else(|| Sequence::new(first));
    let lost = sequence.finish(sent);
    let unsigned = emitter.unsigned();
    let (intended, achieved, lateness) = emitter.finish(stream.source.mean_bytes());
    let Delays {
        from_sent,
        from_intended,
        ipdv,
        jitter_ns,
        negative,
        received_ns,
        ..
    } = stats.delays;
    StreamOutcome {
        intended,
        achieved,
        unsigned,
        received: sequence.received,
        received_over_ns: received_ns.map_or(0, |(first, last)| last - first),
        lost,
        last_lost: sequence.last_lost,
        duplicated: sequence.duplicates,
        reordered: sequence.reordered,
        extent: sequence.extent,
        loss_runs: sequence.runs,
        too_late: sequence.too_late,
        misdelivered: stats.misdelivered,
        modified: stats.modified,
        corrupt: stats.corrupt,
        delay_from_sent: from_sent,
        delay_from_intended: from_intended,
        ipdv,
        jitter_ns,
        negative_delays: negative,
        lateness,
        records: stats.records,
    }
}

/// Attributes an I/O error to the test port of this number.
fn at(number: usize) -> impl Fn(io::Error) -> MeasureError {
    move |cause| MeasureError::TestPort {
        end: TestPortNo(number),
        cause,
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4)
}
