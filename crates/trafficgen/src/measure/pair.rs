//! Two threads, one that sends and one that receives. Both busy-poll.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use testbed::Interrupt;
use testbed::pin_current_thread;

use super::solo::{Drain, ROUNDS, sent_so_far};
use super::{ActiveMeasurement, MeasureError, at, nanos};
use crate::emitter::Emitter;
use crate::receiver::Receiver;
use crate::{Arrivals, Live, Receive, Stream, TestPort, TestPortNo, Time, Transmit};

/// The state shared by both threads.
struct PairState {
    /// The number after the last one of each stream, once all are sent.
    sent: Vec<AtomicU64>,
    is_sent: AtomicBool,
    /// True if one thread has failed.
    is_over: AtomicBool,
}

/// Runs the measurement and returns the start time of the streams.
pub(super) fn run(
    session: &mut ActiveMeasurement<'_>,
    ends: &mut [TestPort],
    [send_on, receive_on]: [usize; 2],
) -> Result<u64, MeasureError> {
    let mut transmits = Vec::new();
    let mut receives = Vec::new();
    for end in ends {
        transmits.push(&mut end.transmit);
        receives.push(&mut end.receive);
    }
    let state = PairState {
        sent: session.emitters.iter().map(|_| AtomicU64::new(0)).collect(),
        is_sent: AtomicBool::new(false),
        is_over: AtomicBool::new(false),
    };
    let ActiveMeasurement {
        request,
        emitters,
        receiver,
        time,
        interrupt,
        live,
    } = session;
    let (time, interrupt, live, state) = (*time, *interrupt, *live, &state);
    let sending = || {
        let sent = pinned(send_on, || {
            let mut sender = Sender {
                emitters,
                transmits,
                streams: &request.streams,
                time,
                state,
                live,
            };
            sender.run()
        });
        state.signal_failure(sent)
    };
    let receiving = || {
        let drain = Drain::new(nanos(request.drain));
        let received = pinned(receive_on, || {
            receive(receiver, receives, drain, time, state, interrupt, live)
        });
        state.signal_failure(received)
    };
    let panicked = || MeasureError::Thread(io::Error::other("it ended early"));
    thread::scope(|scope| {
        let sender = scope.spawn(sending);
        let receiver = scope.spawn(receiving);
        let sent = sender.join().map_err(|_| panicked())?;
        let received = receiver.join().map_err(|_| panicked())?;
        let began = sent?;
        received.map(|()| began)
    })
}

/// Runs a function on a core.
fn pinned<T>(
    core: usize,
    body: impl FnOnce() -> Result<T, MeasureError>,
) -> Result<T, MeasureError> {
    pin_current_thread(&[core])
        .map_err(|failure| MeasureError::Thread(io::Error::other(failure.to_string())))?;
    body()
}

impl PairState {
    /// Signals a failure to the other thread.
    fn signal_failure<T>(&self, outcome: Result<T, MeasureError>) -> Result<T, MeasureError> {
        if outcome.is_err() {
            self.is_over.store(true, Ordering::Relaxed);
        }
        outcome
    }
}

/// The sending thread.
struct Sender<'t, 'a, 'w> {
    emitters: &'t mut [Emitter<'a>],
    transmits: Vec<&'w mut Box<dyn Transmit>>,
    streams: &'t [Stream],
    time: &'t dyn Time,
    state: &'t PairState,
    live: &'t Live,
}

impl Sender<'_, '_, '_> {
    fn run(&mut self) -> Result<u64, MeasureError> {
        let start = self.time.now_ns();
        let mut round = 0_u32;
        while !self.emitters.iter().all(|emitter| emitter.is_done()) {
            for (emitter, stream) in self.emitters.iter_mut().zip(self.streams) {
                if !emitter.is_done() {
                    let transmit = self.transmits[stream.from.0].as_mut();
                    let sent = emitter.pump(start, self.time, transmit);
                    sent.map_err(at(stream.from.0))?;
                }
            }
            if self.state.is_over.load(Ordering::Relaxed) {
                return Ok(start);
            }
            round = round.wrapping_add(1);
            if round.is_multiple_of(ROUNDS) {
                self.poll_live(start);
            }
        }
        self.live.publish_sent(sent_so_far(self.emitters));
        for (emitter, sent) in self.emitters.iter().zip(&self.state.sent) {
            sent.store(emitter.sent(), Ordering::Relaxed);
        }
        self.state.is_sent.store(true, Ordering::Release);
        Ok(start)
    }

    /// Publishes the totals, and ends the streams on request.
    fn poll_live(&mut self, start: u64) {
        self.live.publish_sent(sent_so_far(self.emitters));
        if self.live.should_end() {
            let elapsed = self.time.now_ns().saturating_sub(start);
            for emitter in self.emitters.iter_mut() {
                emitter.end(elapsed);
            }
        }
    }
}

/// The receiving thread.
fn receive(
    receiver: &mut Receiver<'_>,
    mut receives: Vec<&mut Box<dyn Receive>>,
    mut drain: Drain,
    time: &dyn Time,
    state: &PairState,
    interrupt: &Interrupt,
    live: &Live,
) -> Result<(), MeasureError> {
    let mut arrivals = Arrivals::new();
    let mut round = 0_u32;
    while !state.is_over.load(Ordering::Relaxed) {
        for (number, receive) in receives.iter_mut().enumerate() {
            arrivals.clear();
            receive.receive(&mut arrivals).map_err(at(number))?;
            receiver.handle_arrivals(TestPortNo(number), &arrivals);
        }
        if interrupt.is_set() {
            return Err(MeasureError::Interrupted);
        }
        round = round.wrapping_add(1);
        if round.is_multiple_of(ROUNDS) {
            live.publish_received(receiver.so_far());
        }
        if state.is_sent.load(Ordering::Acquire) {
            let sent = state.sent.iter().map(|sent| sent.load(Ordering::Relaxed));
            let has_all = receiver.has_all(sent);
            if drain.is_over(time.now_ns(), receiver.seen(), has_all) {
                break;
            }
        }
    }
    live.publish_received(receiver.so_far());
    Ok(())
}
