//! Simulated device whose function a test defines for each frame.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::PortNo;
use flow::{FlowKey, FlowMod, PipelineFields};
use packet::{Depth, Frame, Headers};
use record::Conditions;
use record::Profile;
use testbed::Interrupt;
use trafficgen::memory::SimulatedTime;
use trafficgen::{
    Arrivals, Length, Receive, Request, SendMethod, Stamps, Stream, TestPort, TestPortNo, Transmit,
    measure,
};

use crate::catalogue::offered::{Load, Offered};
use crate::catalogue::prelude::*;
use record::{Settings, Value};

/// Function of a device: it modifies a frame, and returns its delay in nanoseconds; `None` drops
/// it.
pub(super) type Decide = Box<dyn FnMut(&mut Vec<u8>) -> Option<u64> + Send>;

struct Under {
    decide: Decide,
    way: BinaryHeap<Reverse<(u64, u64, Vec<u8>)>>,
    order: u64,
}

/// One direction through the device.
#[derive(Clone)]
struct Through {
    time: Arc<SimulatedTime>,
    under: Arc<Mutex<Under>>,
}

impl Through {
    fn under(&self) -> MutexGuard<'_, Under> {
        self.under.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transmit for Through {
    fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        let now = self.time.look_ns();
        let mut under = self.under();
        for frame in frames {
            let mut frame = frame.to_vec();
            if let Some(delay) = (under.decide)(&mut frame) {
                under.order += 1;
                let place = (now + delay, under.order, frame);
                under.way.push(Reverse(place));
            }
        }
        Ok(frames.len())
    }

    fn send_method(&self) -> SendMethod {
        SendMethod::Memory
    }
}

impl Receive for Through {
    fn receive(&mut self, arrivals: &mut Arrivals) -> io::Result<()> {
        let now = self.time.look_ns();
        let mut under = self.under();
        while arrivals.room() > 0 && under.way.peek().is_some_and(|Reverse(one)| one.0 <= now) {
            if let Some(Reverse((at, _, frame))) = under.way.pop() {
                arrivals.push(at, &[&frame]);
            }
        }
        Ok(())
    }

    fn stamps(&self) -> Stamps {
        Stamps::Simulated
    }
}

/// Offers a load to a device with the function `decide`.
pub(super) fn offer(load: &Load, decide: Decide) -> Offered {
    offer_both(load, decide, Box::new(|_| None))
}

/// Offers a load to a device with a function for each direction.
pub(super) fn offer_both(load: &Load, forth: Decide, back: Decide) -> Offered {
    let time = SimulatedTime::new(200);
    let through = |decide| {
        let under = Under {
            decide,
            way: BinaryHeap::new(),
            order: 0,
        };
        Through {
            time: Arc::clone(&time),
            under: Arc::new(Mutex::new(under)),
        }
    };
    let (forth, back) = (through(forth), through(back));
    let end = |out: &Through, into: &Through| TestPort {
        transmit: Box::new(out.clone()),
        receive: Box::new(into.clone()),
    };
    let mut ends = [end(&forth, &back), end(&back, &forth)];
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
    streams.extend(load.both_ways.then(|| stream(1, 0)));
    let mut request = Request::new(streams, Length::of(load.length));
    request.drain = std::time::Duration::from_millis(60);
    let measured = measure(&mut ends, &request, &*time, &Interrupt::never());
    Offered {
        measurement: measured.unwrap(),
        conditions: Conditions::default(),
    }
}

/// Returns the index of the rule that a frame from the client matches.
pub(super) fn met(rules: &[FlowMod], frame: &[u8]) -> Option<usize> {
    let packet = Frame::from_bytes(frame);
    let headers = Headers::parse(&packet, Depth::Transport).expect("frames are whole");
    let mut key = FlowKey::new();
    key.fill(&headers, &PipelineFields::new(PortNo(1)));
    let matching = rules.iter().enumerate();
    let matching = matching.filter(|(_, rule)| rule.matching.accepts(&key));
    let best = matching.max_by_key(|(_, rule)| rule.priority);
    best.map(|(place, _)| place)
}

/// Returns the first point of the quick profile with these values.
pub(super) fn point(experiment: &Experiment, values: &[(&str, Value)]) -> Point {
    let settings = Settings {
        profile: Profile::Quick,
        ..Settings::default()
    };
    let points = settings.points(&experiment.description).unwrap();
    let values = values.iter();
    values.fold(points[0].clone(), |point, (name, value)| {
        point.with(name, value.clone())
    })
}
