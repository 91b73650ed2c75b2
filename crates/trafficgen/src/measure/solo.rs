//! One thread that serves all test ports and busy-polls.

use super::{ActiveMeasurement, MeasureError, QUIET_NS, at, nanos};
use crate::emitter::Emitter;
use crate::{Arrivals, TestPort, TestPortNo};

/// Rounds between two checks for an interruption.
pub(super) const ROUNDS: u32 = 64;

/// Runs the measurement and returns the start time of the streams.
pub(super) fn run(
    session: &mut ActiveMeasurement<'_>,
    ends: &mut [TestPort],
) -> Result<u64, MeasureError> {
    let mut arrivals = Arrivals::new();
    let start = session.time.now_ns();
    let mut drain = Drain::new(nanos(session.request.drain));
    let mut round = 0_u32;
    loop {
        send(session, ends, start)?;
        for (number, end) in ends.iter_mut().enumerate() {
            arrivals.clear();
            end.receive.receive(&mut arrivals).map_err(at(number))?;
            session
                .receiver
                .handle_arrivals(TestPortNo(number), &arrivals);
        }
        if session.emitters.iter().all(|emitter| emitter.is_done()) {
            let now = session.time.now_ns();
            let sent = session.emitters.iter().map(|emitter| emitter.sent());
            let has_all = session.receiver.has_all(sent);
            if drain.is_over(now, session.receiver.seen(), has_all) {
                break;
            }
        }
        if round.is_multiple_of(ROUNDS) {
            if session.interrupt.is_set() {
                return Err(MeasureError::Interrupted);
            }
            poll_live(session, start);
        }
        round = round.wrapping_add(1);
    }
    show(session);
    Ok(start)
}

/// Publishes the totals, and ends the streams on request.
fn poll_live(session: &mut ActiveMeasurement<'_>, start: u64) {
    show(session);
    if session.live.should_end() {
        let elapsed = session.time.now_ns().saturating_sub(start);
        for emitter in &mut session.emitters {
            emitter.end(elapsed);
        }
    }
}

fn show(session: &ActiveMeasurement<'_>) {
    session.live.publish_sent(sent_so_far(&session.emitters));
    session.live.publish_received(session.receiver.so_far());
}

/// The frames that all streams have sent, and their bytes.
pub(super) fn sent_so_far(emitters: &[Emitter<'_>]) -> (u64, u64) {
    let each = emitters.iter().map(Emitter::so_far);
    each.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
}

/// Sends the due frames of all streams.
fn send(
    session: &mut ActiveMeasurement<'_>,
    ends: &mut [TestPort],
    start: u64,
) -> Result<(), MeasureError> {
    let streams = session.request.streams.iter();
    for (emitter, stream) in session.emitters.iter_mut().zip(streams) {
        if !emitter.is_done() {
            let transmit = ends[stream.from.0].transmit.as_mut();
            let sent = emitter.pump(start, session.time, transmit);
            sent.map_err(at(stream.from.0))?;
        }
    }
    Ok(())
}

/// The wait after the last frame was sent.
pub(super) struct Drain {
    limit_ns: u64,
    since_ns: Option<u64>,
    /// The number of frames received, and the time of the last change.
    seen: u64,
    moved_ns: u64,
}

impl Drain {
    pub(super) const fn new(limit_ns: u64) -> Self {
        Self {
            limit_ns,
            since_ns: None,
            seen: 0,
            moved_ns: 0,
        }
    }

    /// Returns true if the wait is over, after everything has been sent.
    pub(super) fn is_over(&mut self, now: u64, seen: u64, has_all: bool) -> bool {
        let since = *self.since_ns.get_or_insert(now);
        if seen != self.seen || self.moved_ns == 0 {
            (self.seen, self.moved_ns) = (seen, now);
        }
        let quiet = now.saturating_sub(self.moved_ns);
        now.saturating_sub(since) >= self.limit_ns || (has_all && quiet >= QUIET_NS)
    }
}
