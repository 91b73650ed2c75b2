//! Simulated device whose function a test defines for each frame.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::PortNo;
use flow::{FlowKey, FlowMod};
use record::Conditions;
use testbed::Interrupt;
use trafficgen::memory::SimulatedTime;
use trafficgen::{
    Arrivals, Length, Receive, Request, SendMethod, Stamps, Stream, TestPort, TestPortNo, Transmit,
    measure,
};

use crate::catalogue::offered::{Load, LoadResult};
use crate::catalogue::simulated::{best_match, fill_key};

/// Function of a device: it modifies a frame, and returns its delay in nanoseconds; `None` drops
/// it.
pub(super) type DeviceFunction = Box<dyn FnMut(&mut Vec<u8>) -> Option<u64> + Send>;

struct DirectionState {
    function: DeviceFunction,
    in_flight: BinaryHeap<Reverse<(u64, u64, Vec<u8>)>>,
    order: u64,
}

/// One direction through the device.
#[derive(Clone)]
struct SimulatedDirection {
    time: Arc<SimulatedTime>,
    state: Arc<Mutex<DirectionState>>,
}

impl SimulatedDirection {
    fn state(&self) -> MutexGuard<'_, DirectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transmit for SimulatedDirection {
    fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        let now = self.time.look_ns();
        let mut state = self.state();
        for frame in frames {
            let mut frame = frame.to_vec();
            if let Some(delay) = (state.function)(&mut frame) {
                state.order += 1;
                let place = (now + delay, state.order, frame);
                state.in_flight.push(Reverse(place));
            }
        }
        Ok(frames.len())
    }

    fn send_method(&self) -> SendMethod {
        SendMethod::Memory
    }
}

impl Receive for SimulatedDirection {
    fn receive(&mut self, arrivals: &mut Arrivals) -> io::Result<()> {
        let now = self.time.look_ns();
        let mut state = self.state();
        while arrivals.room() > 0
            && state
                .in_flight
                .peek()
                .is_some_and(|Reverse(one)| one.0 <= now)
        {
            if let Some(Reverse((at, _, frame))) = state.in_flight.pop() {
                arrivals.push(at, &[&frame]);
            }
        }
        Ok(())
    }

    fn stamps(&self) -> Stamps {
        Stamps::Simulated
    }
}

/// Offers a load to a device with the function `function`.
pub(super) fn offer(load: &Load, function: DeviceFunction) -> LoadResult {
    offer_both(load, function, Box::new(|_| None))
}

/// Offers a load to a device with a function for each direction.
pub(super) fn offer_both(
    load: &Load,
    forward: DeviceFunction,
    reverse: DeviceFunction,
) -> LoadResult {
    let time = SimulatedTime::new(200);
    let through = |function| {
        let state = DirectionState {
            function,
            in_flight: BinaryHeap::new(),
            order: 0,
        };
        SimulatedDirection {
            time: Arc::clone(&time),
            state: Arc::new(Mutex::new(state)),
        }
    };
    let (forward, reverse) = (through(forward), through(reverse));
    let end = |out: &SimulatedDirection, into: &SimulatedDirection| TestPort {
        transmit: Box::new(out.clone()),
        receive: Box::new(into.clone()),
    };
    let mut ends = [end(&forward, &reverse), end(&reverse, &forward)];
    let stream = |from, to| {
        Stream::new(
            load.frames.clone(),
            load.pace,
            TestPortNo(from),
            TestPortNo(to),
        )
    };
    let mut streams = vec![stream(0, 1)];
    let rewritten = &mut streams[0].expectation.rewritten;
    rewritten.clone_from(&load.rewritten);
    streams.extend(load.bidirectional.then(|| stream(1, 0)));
    let mut request = Request::new(streams, Length::of(load.length));
    request.drain = std::time::Duration::from_millis(60);
    let measured = measure(&mut ends, &request, &*time, &Interrupt::never());
    LoadResult {
        measurement: measured.unwrap(),
        conditions: Conditions::default(),
    }
}

/// Returns the index of the rule that a frame from the client matches.
pub(super) fn matched_rule(rules: &[FlowMod], frame: &[u8]) -> Option<usize> {
    let mut key = FlowKey::new();
    fill_key(&mut key, frame, PortNo(1));
    let best = best_match(rules.iter().enumerate(), |(_, rule)| rule, &key);
    best.map(|(place, _)| place)
}
