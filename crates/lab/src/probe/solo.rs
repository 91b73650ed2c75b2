//! One thread that owns both ends, on a core of its own, and never sleeps: what it
//! measures is the path, not how soon a sleeping process is woken. It also leaves
//! a machine with two cores one for the device.

use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::thread;

use testbed::{Failure, pin_current_thread};

use super::{Echoes, Ends, ProbeError, Tally};

pub(super) fn run(
    ends: Ends,
    cores: &[usize],
    tally: &mut Tally<'_>,
) -> Result<Echoes, ProbeError> {
    // A thread of its own, so that the caller's is not left on one core.
    thread::scope(|scope| {
        let prober = scope.spawn(|| {
            pin_current_thread(&cores[..cores.len().min(1)])?;
            probe(&ends, tally)
        });
        prober
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn probe(ends: &Ends, tally: &mut Tally<'_>) -> Result<Echoes, ProbeError> {
    let failure = || Failure::to("send echoes");
    ends.client.set_nonblocking(true).map_err(failure())?;
    ends.server.set_nonblocking(true).map_err(failure())?;
    let mut served = 0;
    while let Some(datagram) = tally.next() {
        ends.client.send(datagram).map_err(failure())?;
        let returned = exchange(ends, tally, &mut served).map_err(failure())?;
        tally.book(returned)?;
    }
    Ok(tally.finish(served))
}

/// Carries the echo under way to its server and back; none if it is overdue.
fn exchange(ends: &Ends, tally: &Tally<'_>, served: &mut u64) -> io::Result<Option<base::Instant>> {
    let mut room = [0; 2048];
    // First only the server is looked at: the reply cannot come before the request.
    loop {
        if let Some(length) = receive(&ends.server, &mut room)? {
            *served += 1;
            ends.server.send(&room[..length])?;
            if tally.is_current(&room[..length]) {
                break;
            }
        } else if tally.is_overdue() {
            return Ok(None);
        }
    }
    loop {
        if let Some(length) = receive(&ends.client, &mut room)? {
            let now = tally.clock.now();
            if tally.is_current(&room[..length]) {
                return Ok(Some(now));
            }
        } else if tally.is_overdue() {
            return Ok(None);
        }
    }
}

fn receive(socket: &UdpSocket, room: &mut [u8]) -> io::Result<Option<usize>> {
    match socket.recv(room) {
        Ok(length) => Ok(Some(length)),
        // A refused datagram leaves its error on a connected socket; it is a lost one.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::WouldBlock | ErrorKind::ConnectionRefused
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
