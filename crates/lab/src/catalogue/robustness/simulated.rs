//! A device in memory that does with each frame what a test says: what an experiment tells of it
//! must be that.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::PortNo;
use flow::{FlowMod, Key, Registers};
use packet::{Depth, Frame, Headers};

use crate::Interrupt;
use crate::catalogue::offered::{Load, Offered};
use crate::catalogue::{Experiment, Point, Profile, Settings, Value};
use crate::instrument::memory::SimulatedTime;
use crate::instrument::{
    Arrivals, End, EndNo, Length, Receive, Request, Stamps, Stream, Transmit, Way, measure,
};
use crate::record::Conditions;

/// What becomes of a frame: it comes out so much later, in nanoseconds, or not at all.
pub(super) type Decide = Box<dyn FnMut(&[u8]) -> Option<u64> + Send>;

struct Under {
    decide: Decide,
    way: BinaryHeap<Reverse<(u64, u64, Vec<u8>)>>,
    order: u64,
}

/// One way through the device; the other has nothing on it.
#[derive(Clone)]
struct Through {
    time: Arc<SimulatedTime>,
    under: Option<Arc<Mutex<Under>>>,
}

impl Through {
    fn under(&self) -> Option<MutexGuard<'_, Under>> {
        let under = self.under.as_ref()?;
        Some(under.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Transmit for Through {
    fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        let now = self.time.look_ns();
        if let Some(mut under) = self.under() {
            for frame in frames {
                if let Some(delay) = (under.decide)(frame) {
                    under.order += 1;
                    let place = (now + delay, under.order, frame.to_vec());
                    under.way.push(Reverse(place));
                }
            }
        }
        Ok(frames.len())
    }

    fn way(&self) -> Way {
        Way::Memory
    }
}

impl Receive for Through {
    fn receive(&mut self, arrivals: &mut Arrivals) -> io::Result<()> {
        let now = self.time.look_ns();
        let Some(mut under) = self.under() else {
            return Ok(());
        };
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

/// Offers a load to a device that does with each frame what `decide` says.
pub(super) fn offer(load: &Load, decide: Decide) -> Offered {
    let time = SimulatedTime::new(200);
    let under = Under {
        decide,
        way: BinaryHeap::new(),
        order: 0,
    };
    let forth = Through {
        time: Arc::clone(&time),
        under: Some(Arc::new(Mutex::new(under))),
    };
    let back = Through {
        under: None,
        ..forth.clone()
    };
    let end = |out: &Through, into: &Through| End {
        transmit: Box::new(out.clone()),
        receive: Box::new(into.clone()),
    };
    let mut ends = [end(&forth, &back), end(&back, &forth)];
    let mut stream = Stream::new(load.frames.clone(), load.pace, EndNo(0), EndNo(1));
    stream.expectation.rewritten.clone_from(&load.rewritten);
    let mut request = Request::new(vec![stream], Length::of(load.length));
    request.drain = std::time::Duration::from_millis(60);
    let measured = measure(&mut ends, &request, &*time, &Interrupt::never());
    Offered {
        measurement: measured.unwrap(),
        conditions: Conditions::default(),
    }
}

/// The place of the rule that a frame from the client meets, if it meets one.
pub(super) fn met(rules: &[FlowMod], frame: &[u8]) -> Option<usize> {
    let packet = Frame::from_bytes(frame);
    let headers = Headers::parse(&packet, Depth::Transport).expect("frames are whole");
    let mut key = Key::new();
    key.fill(&headers, &Registers::new(PortNo(1)));
    let matching = rules.iter().enumerate();
    let matching = matching.filter(|(_, rule)| rule.matching.accepts(&key));
    let best = matching.max_by_key(|(_, rule)| rule.priority);
    best.map(|(place, _)| place)
}

/// The first point of an experiment's quick profile with these values.
pub(super) fn point(experiment: &Experiment, values: &[(&str, Value)]) -> Point {
    let settings = Settings {
        profile: Profile::Quick,
        ..Settings::default()
    };
    let points = settings.points(experiment).unwrap();
    let values = values.iter();
    values.fold(points[0].clone(), |point, (name, value)| {
        point.with(name, value.clone())
    })
}
