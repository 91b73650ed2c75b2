//! Numbered frames in both directions between two hosts: each must arrive once and in order. The
//! number of frames in flight fits into each queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use testbed::{Clock, Failure, RawSocket};

use crate::support::context::WAIT_LIMIT;
use crate::support::host::TestHost;

/// Number of frames in flight.
const FRAMES_IN_FLIGHT: u64 = 16;

/// Interval between polls of the socket, short compared with a change.
const POLL_INTERVAL: Duration = Duration::from_micros(200);

/// EtherType for experiments (IEEE 802, 9.2.3).
const TEST_ETHER_TYPE: [u8; 2] = [0x88, 0xb5];

/// Length of the addresses and the EtherType, before the number; and of the frame.
const HEADER_LEN: usize = 14;
const FRAME_LEN: usize = 60;

/// Socket and address of a host.
struct TrafficEndpoint {
    socket: RawSocket,
    mac: [u8; 6],
}

/// A running exchange of frames.
pub(crate) struct NumberedTraffic {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64, String>>,
}

impl NumberedTraffic {
    /// Starts an exchange between two hosts.
    pub(crate) fn start(hosts: [&TestHost<'_>; 2]) -> Result<Self, Failure> {
        let endpoint = |host: &TestHost<'_>| {
            let socket = host.namespace.raw_receiver(host.interface)?;
            Ok::<_, Failure>(TrafficEndpoint {
                socket,
                mac: host.mac,
            })
        };
        let endpoints = [endpoint(hosts[0])?, endpoint(hosts[1])?];
        let stop = Arc::new(AtomicBool::new(false));
        let stop_signal = Arc::clone(&stop);
        let thread = thread::spawn(move || exchange(&endpoints, &stop_signal));
        Ok(Self { stop, thread })
    }

    /// Stops the exchange, and returns the number of frames that arrived, or the error of a frame.
    pub(crate) fn stop(self) -> Result<u64, String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .map_err(|_| "the thread of the traffic panicked".to_owned())?
    }

    /// True while no frame failed.
    pub(crate) fn is_running(&self) -> bool {
        !self.thread.is_finished()
    }
}

fn exchange(endpoints: &[TrafficEndpoint; 2], stop: &AtomicBool) -> Result<u64, String> {
    let clock = Clock::start();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        for (from, to) in [
            (&endpoints[0], &endpoints[1]),
            (&endpoints[1], &endpoints[0]),
        ] {
            send(from, to, number, &clock)?;
            for next_number in number..number + FRAMES_IN_FLIGHT {
                expect_frame(from, to, next_number, &clock)?;
            }
            number += FRAMES_IN_FLIGHT;
        }
    }
    // A duplicate would arrive now.
    for endpoint in endpoints {
        if let Some(number) = receive(endpoint)? {
            return Err(format!("frame {number} was duplicated"));
        }
    }
    Ok(number)
}

fn send(
    from: &TrafficEndpoint,
    to: &TrafficEndpoint,
    first: u64,
    clock: &Clock,
) -> Result<(), String> {
    let frame = |number: u64| {
        let mut frame = [0; FRAME_LEN];
        frame[..6].copy_from_slice(&to.mac);
        frame[6..12].copy_from_slice(&from.mac);
        frame[12..14].copy_from_slice(&TEST_ETHER_TYPE);
        frame[HEADER_LEN..HEADER_LEN + 8].copy_from_slice(&number.to_be_bytes());
        frame
    };
    let frames: Vec<_> = (first..first + FRAMES_IN_FLIGHT).map(frame).collect();
    let mut unsent = &frames[..];
    while !unsent.is_empty() {
        match from.socket.send(unsent) {
            Ok(count) => unsent = &unsent[count..],
            // The send queue is full.
            Err(_) => clock.sleep_until(clock.now() + POLL_INTERVAL),
        }
    }
    Ok(())
}

fn expect_frame(
    from: &TrafficEndpoint,
    to: &TrafficEndpoint,
    number: u64,
    clock: &Clock,
) -> Result<(), String> {
    let deadline = clock.now() + WAIT_LIMIT;
    loop {
        match receive(to)? {
            Some(received) if received == number => return Ok(()),
            Some(received) => return Err(format!("frame {received} arrived instead of {number}")),
            None if clock.now() > deadline => {
                return Err(format!("frame {number} from {:?} was lost", from.mac));
            }
            None => clock.sleep_until(clock.now() + POLL_INTERVAL),
        }
    }
}

/// Returns the number of a received frame, or `None` if there is none.
fn receive(endpoint: &TrafficEndpoint) -> Result<Option<u64>, String> {
    let mut buffer = [0; 256];
    loop {
        let received = endpoint.socket.receive(&mut buffer);
        let Some(length) = received.map_err(|error| format!("cannot receive: {error}"))? else {
            return Ok(None);
        };
        if length >= FRAME_LEN && buffer[12..14] == TEST_ETHER_TYPE {
            let number = buffer[HEADER_LEN..HEADER_LEN + 8].try_into();
            return Ok(Some(u64::from_be_bytes(
                number.expect("the slice has eight bytes"),
            )));
        }
    }
}
