//! A far end that reflects all frames, for round-trip measurements at one test port.
//!
//! It runs either in the measuring thread ([`TestPort::reflected`]), which alternates, or in its own
//! thread ([`Reflector`]), which leaves the measuring thread alone.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use testbed::pin_current_thread;

use super::layers::outermost_ip;
use super::template::Reflection;
use super::{Arrivals, Receive, Stamps, TestPort};

impl TestPort {
    /// This test port, which at each receive call also reflects the frames that arrived at `far`.
    #[must_use]
    pub fn reflected(self, far: Self, reflection: Reflection) -> Self {
        Self {
            transmit: self.transmit,
            receive: Box::new(ReflectedReceiver {
                near: self.receive,
                mirror: Mirror::new(far, reflection),
            }),
        }
    }
}

/// The receiver of a test port with a reflector at its far end.
struct ReflectedReceiver {
    near: Box<dyn Receive>,
    mirror: Mirror,
}

impl Receive for ReflectedReceiver {
    fn receive(&mut self, arrivals: &mut Arrivals) -> io::Result<()> {
        self.mirror.reflect_pending()?;
        self.near.receive(arrivals)
    }

    fn take_drops(&mut self) -> io::Result<u64> {
        let far = self.mirror.take_drops()?;
        Ok(far + self.near.take_drops()?)
    }

    fn stamps(&self) -> Stamps {
        self.near.stamps()
    }
}

/// Reflects frames.
struct Mirror {
    far: TestPort,
    reflection: Reflection,
    arrivals: Arrivals,
    /// Frames received but not yet sent.
    frames: Vec<Vec<u8>>,
    waiting: usize,
    /// Frames dropped because the interface accepted none.
    dropped: u64,
}

/// The most frames reflected together.
const BURST: usize = 64;
/// The number of attempts before a frame is dropped.
const TRIES: u32 = 1_000;

impl Mirror {
    fn new(far: TestPort, reflection: Reflection) -> Self {
        Self {
            far,
            reflection,
            arrivals: Arrivals::new(),
            frames: vec![Vec::new(); BURST],
            waiting: 0,
            dropped: 0,
        }
    }

    /// Reflects the received frames and returns their number.
    fn reflect_pending(&mut self) -> io::Result<usize> {
        self.arrivals.clear();
        self.far.receive.receive(&mut self.arrivals)?;
        if self.arrivals.is_empty() {
            return Ok(0);
        }
        self.waiting = 0;
        for (arrival, frame) in self.arrivals.iter().zip(&mut self.frames) {
            frame.clear();
            frame.extend_from_slice(arrival.bytes);
            reflect(frame, self.reflection);
            self.waiting += 1;
        }
        let frames: [&[u8]; BURST] = std::array::from_fn(|slot| self.frames[slot].as_slice());
        let mut rest = &frames[..self.waiting];
        let mut tries = 0;
        while !rest.is_empty() {
            let taken = self.far.transmit.send(rest)?;
            rest = &rest[taken.min(rest.len())..];
            tries = if taken == 0 { tries + 1 } else { 0 };
            if tries == TRIES {
                self.dropped += rest.len() as u64;
                break;
            }
        }
        Ok(self.waiting - rest.len())
    }

    fn take_drops(&mut self) -> io::Result<u64> {
        let dropped = std::mem::take(&mut self.dropped);
        Ok(dropped + self.far.receive.take_drops()?)
    }
}

/// Swaps the addresses of a frame. Checksums stay correct, because sums are commutative.
fn reflect(frame: &mut [u8], reflection: Reflection) {
    let place = outermost_ip(frame);
    if let Some((destination, source)) = frame
        .get_mut(..12)
        .and_then(|macs| macs.split_at_mut_checked(6))
    {
        destination.swap_with_slice(source);
    }
    if let (Some(place), Reflection::Addresses) = (place, reflection) {
        let is_v4 = frame[place.start] >> 4 == 4;
        let (start, length) = if is_v4 { (12, 4) } else { (8, 16) };
        let start = place.start + start;
        let addresses = frame.get_mut(start..start + 2 * length);
        if let Some((source, destination)) =
            addresses.and_then(|both| both.split_at_mut_checked(length))
        {
            source.swap_with_slice(destination);
        }
    }
}

/// A far end that reflects all frames, in its own busy-polling thread. Dropping it stops the
/// thread.
pub struct Reflector {
    shared: Arc<ReflectorState>,
    thread: Option<JoinHandle<io::Result<TestPort>>>,
}

struct ReflectorState {
    stop: AtomicBool,
    reflected: AtomicU64,
    dropped: AtomicU64,
}

/// Rounds between two readings of the drop counters.
const TURNS: u32 = 1 << 16;

impl Reflector {
    /// Starts the reflection of frames that arrive at `far`, on this core.
    ///
    /// # Errors
    /// The thread cannot be created.
    pub fn start(far: TestPort, reflection: Reflection, core: usize) -> io::Result<Self> {
        let shared = Arc::new(ReflectorState {
            stop: AtomicBool::new(false),
            reflected: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        });
        let thread_state = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("reflector".to_owned())
            .spawn(move || {
                pin_current_thread(&[core])
                    .map_err(|failure| io::Error::other(failure.to_string()))?;
                run(Mirror::new(far, reflection), &thread_state)
            })?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// The number of reflected frames.
    #[must_use]
    pub fn reflected(&self) -> u64 {
        self.shared.reflected.load(Ordering::Relaxed)
    }

    /// Returns true if the thread has ended on its own; [`Reflector::stop`] returns the reason.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops the thread. Returns its test port, the number of reflected frames and the number of
    /// drops; any drop makes the measurement void.
    ///
    /// # Errors
    /// The test port failed.
    pub fn stop(mut self) -> io::Result<(TestPort, u64, u64)> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let ended = || io::Error::other("the reflector has ended");
        let thread = self.thread.take().ok_or_else(ended)?;
        let end = thread.join().map_err(|_| ended())??;
        let dropped = self.shared.dropped.load(Ordering::Relaxed);
        Ok((end, self.reflected(), dropped))
    }
}

impl Drop for Reflector {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // `Reflector::stop` reports the error; here it has no receiver.
            let _ = thread.join();
        }
    }
}

fn run(mut mirror: Mirror, shared: &ReflectorState) -> io::Result<TestPort> {
    mirror.take_drops()?;
    let mut reflect_pending = 0_u32;
    loop {
        reflect_pending = reflect_pending.wrapping_add(1);
        let count = mirror.reflect_pending()?;
        shared.reflected.fetch_add(count as u64, Ordering::Relaxed);
        let is_over = shared.stop.load(Ordering::Relaxed);
        if is_over || reflect_pending.is_multiple_of(TURNS) {
            let dropped = mirror.take_drops()?;
            shared.dropped.fetch_add(dropped, Ordering::Relaxed);
        }
        if is_over {
            return Ok(mirror.far);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::memory::{Path, SimulatedTime, cable};
    use crate::template::{Encapsulation, FlowField, Flows, Party, Protocol, Tunnel};
    use crate::{
        Expectation, Length, Pace, Rate, Request, Stream, StreamOutcome, Template, TestPortNo,
        measure,
    };
    use testbed::Interrupt;

    const HERE: TestPortNo = TestPortNo(0);

    fn stream(template: &Template, reflection: Reflection) -> Stream {
        let pace = Pace::Constant(Rate::Frames(100_000));
        Stream {
            expectation: Expectation {
                rewritten: Some(template.reflected(reflection).into()),
                ..Expectation::default()
            },
            ..Stream::new(template.clone(), pace, HERE, HERE)
        }
    }

    fn round_trip(template: &Template, reflection: Reflection) -> StreamOutcome {
        let time = SimulatedTime::new(200);
        let way = |delay_ns| Path {
            delay_ns,
            ..Path::default()
        };
        let ([near, far], _) = cable(&time, way(7_000), way(11_000));
        let mut ends = [near.reflected(far, reflection)];
        let streams = vec![stream(template, reflection)];
        let request = Request::new(streams, Length::Frames(2_000));
        let measured = measure(&mut ends, &request, &*time, &Interrupt::never());
        measured.unwrap().streams.remove(0)
    }

    #[test]
    fn round_trips_pass_both_directions_with_swapped_addresses() {
        let tunnel = Tunnel {
            source: Party::numbered(5),
            destination: Party::numbered(6),
            vni: 9,
        };
        let shapes = [
            (Protocol::Udp, Encapsulation::Plain),
            (Protocol::Udp6, Encapsulation::Plain),
            (Protocol::Tcp, Encapsulation::Geneve(tunnel)),
        ];
        let fields = [FlowField::SourceAddress, FlowField::DestinationMac];
        for (protocol, encapsulation) in shapes {
            for reflection in [Reflection::Macs, Reflection::Addresses] {
                let template = Template {
                    protocol,
                    encapsulation,
                    flows: Flows::random(1_000, 3, &fields),
                    ..Template::udp(256)
                };
                let stream = round_trip(&template, reflection);
                let counts = (
                    stream.received,
                    stream.lost,
                    stream.modified,
                    stream.corrupt,
                );
                assert_eq!(counts, (2_000, 0, 0, 0), "{template:?} {reflection:?}");
                // The single thread serves the far end once a round.
                let delay = stream.delay_from_sent.value_at_quantile(0.5);
                assert!((18_000..19_000).contains(&delay), "{delay}");
            }
        }
    }

    #[test]
    fn reflector_thread_reflects_like_the_measuring_thread() {
        let time = SimulatedTime::new(100);
        let ([near, far], [forth, back]) = cable(&time, Path::default(), Path::default());
        let reflector = Reflector::start(far, Reflection::Macs, 0).unwrap();
        let streams = vec![stream(&Template::udp(64), Reflection::Macs)];
        let request = Request {
            drain: Duration::from_secs(20),
            ..Request::new(streams, Length::Frames(500))
        };
        let measured = measure(&mut [near], &request, &*time, &Interrupt::never()).unwrap();
        assert_eq!(measured.streams[0].received, 500);
        assert_eq!(reflector.reflected(), 500);
        assert!(!reflector.has_ended());
        let (_end, reflected, dropped) = reflector.stop().unwrap();
        assert_eq!((reflected, dropped), (500, 0));
        assert_eq!((forth.done().sent, back.done().sent), (500, 500));
    }

    #[test]
    fn reflector_accepts_any_frame() {
        let mut short = [1, 2, 3];
        reflect(&mut short, Reflection::Addresses);
        assert_eq!(short, [1, 2, 3]);
    }
}
