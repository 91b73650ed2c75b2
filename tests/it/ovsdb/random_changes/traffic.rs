//! Numbered frames to and fro between two hosts, for as long as somebody wants: each must
//! come, once, and none before another. No more are under way than any queue has room for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use testbed::{Clock, Failure, RawSocket};

use crate::support::context::WAIT_LIMIT;
use crate::support::host::TestHost;

/// Frames that are under way together.
const TOGETHER: u64 = 16;

/// A pause between looks for frames: short beside what a change takes.
const PAUSE: Duration = Duration::from_micros(200);

/// An EtherType for experiments (IEEE 802, 9.2.3).
const EXPERIMENT: [u8; 2] = [0x88, 0xb5];

/// Addresses, EtherType, number.
const HEADER_LEN: usize = 14;
const FRAME_LEN: usize = 60;

/// One host's side.
struct End {
    socket: RawSocket,
    mac: [u8; 6],
}

/// Frames that go to and fro.
pub(super) struct Traffic {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64, String>>,
}

impl Traffic {
    /// Begins to send frames between two hosts.
    pub(super) fn start(hosts: [&TestHost<'_>; 2]) -> Result<Self, Failure> {
        let end = |host: &TestHost<'_>| {
            let socket = host.namespace.raw_receiver(host.interface)?;
            Ok::<_, Failure>(End {
                socket,
                mac: host.mac,
            })
        };
        let ends = [end(hosts[0])?, end(hosts[1])?];
        let stop = Arc::new(AtomicBool::new(false));
        let heard = Arc::clone(&stop);
        let thread = thread::spawn(move || to_and_fro(&ends, &heard));
        Ok(Self { stop, thread })
    }

    /// Ends it, and says how many frames have come, all of them; or what became of one.
    pub(super) fn stop(self) -> Result<u64, String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "traffic died".to_owned())?
    }

    /// Whether all has gone well so far.
    pub(super) fn goes_on(&self) -> bool {
        !self.thread.is_finished()
    }
}

fn to_and_fro(ends: &[End; 2], stop: &AtomicBool) -> Result<u64, String> {
    let clock = Clock::start();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        for (from, to) in [(&ends[0], &ends[1]), (&ends[1], &ends[0])] {
            send(from, to, number, &clock)?;
            for next in number..number + TOGETHER {
                expect(from, to, next, &clock)?;
            }
            number += TOGETHER;
        }
    }
    // What came twice would come now.
    for end in ends {
        if let Some(number) = receive(end)? {
            return Err(format!("frame {number} came once more"));
        }
    }
    Ok(number)
}

fn send(from: &End, to: &End, first: u64, clock: &Clock) -> Result<(), String> {
    let frame = |number: u64| {
        let mut frame = [0; FRAME_LEN];
        frame[..6].copy_from_slice(&to.mac);
        frame[6..12].copy_from_slice(&from.mac);
        frame[12..14].copy_from_slice(&EXPERIMENT);
        frame[HEADER_LEN..HEADER_LEN + 8].copy_from_slice(&number.to_be_bytes());
        frame
    };
    let frames: Vec<_> = (first..first + TOGETHER).map(frame).collect();
    let mut rest = &frames[..];
    while !rest.is_empty() {
        match from.socket.send(rest) {
            Ok(count) => rest = &rest[count..],
            // There was no room for a moment.
            Err(_) => clock.sleep_until(clock.now() + PAUSE),
        }
    }
    Ok(())
}

fn expect(from: &End, to: &End, number: u64, clock: &Clock) -> Result<(), String> {
    let deadline = clock.now() + WAIT_LIMIT;
    loop {
        match receive(to)? {
            Some(came) if came == number => return Ok(()),
            Some(came) => return Err(format!("frame {came} came in the place of {number}")),
            None if clock.now() > deadline => {
                return Err(format!("frame {number} from {:?} was lost", from.mac));
            }
            None => clock.sleep_until(clock.now() + PAUSE),
        }
    }
}

/// The number of a frame that has come, if one has.
fn receive(end: &End) -> Result<Option<u64>, String> {
    let mut room = [0; 256];
    loop {
        let received = end.socket.receive(&mut room);
        let Some(length) = received.map_err(|error| format!("receiving: {error}"))? else {
            return Ok(None);
        };
        if length >= FRAME_LEN && room[12..14] == EXPERIMENT {
            let number = room[HEADER_LEN..HEADER_LEN + 8].try_into();
            return Ok(Some(u64::from_be_bytes(number.expect("eight bytes"))));
        }
    }
}
