//! Device whose function a test defines for each frame.

use std::time::Duration;

use base::PortNo;
use flow::{FlowKey, FlowMod};
use record::Conditions;
use testbed::Interrupt;
use trafficgen::memory::{Path, PortFrame, SimulatedPort, SimulatedTime, device};
use trafficgen::{Length, Request, Stream, TestPortNo, measure};

use super::rules::{best_match, fill_key};
use crate::catalogue::offered::{Load, LoadResult};

/// Function of a device: it modifies a frame, and returns its delay in nanoseconds; `None` drops
/// it.
pub(in crate::catalogue) type DeviceFunction = Box<dyn FnMut(&mut Vec<u8>) -> Option<u64> + Send>;

/// Offers a load to a device with the function `function`.
pub(in crate::catalogue) fn offer(load: &Load, function: DeviceFunction) -> LoadResult {
    offer_both(load, function, Box::new(|_| None))
}

/// Offers a load to a device with a function for each direction.
pub(in crate::catalogue) fn offer_both(
    load: &Load,
    forward: DeviceFunction,
    reverse: DeviceFunction,
) -> LoadResult {
    let time = SimulatedTime::new(200);
    let mut functions = [forward, reverse];
    let through = move |at: PortFrame| {
        let mut frame = at.frame;
        let delay = functions[at.port](&mut frame);
        let sent = delay.map(|delay| PortFrame {
            port: 1 - at.port,
            ns: at.ns + delay,
            frame,
        });
        sent.into_iter().collect()
    };
    let ports = device(&time, vec![Path::default(); 2], Box::new(through));
    let mut ends: Vec<_> = ports.iter().map(SimulatedPort::end).collect();
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
    request.drain = Duration::from_millis(60);
    let measured = measure(&mut ends, &request, &*time, &Interrupt::never());
    LoadResult {
        measurement: measured.unwrap(),
        conditions: Conditions::default(),
    }
}

/// Returns the index of the rule that a frame from the client matches.
pub(in crate::catalogue) fn matched_rule(rules: &[FlowMod], frame: &[u8]) -> Option<usize> {
    let mut key = FlowKey::new();
    fill_key(&mut key, frame, PortNo(1));
    let best = best_match(rules.iter().enumerate(), |(_, rule)| rule, &key);
    best.map(|(place, _)| place)
}
