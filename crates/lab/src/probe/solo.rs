//! Prober with one thread, which owns both ends and never sleeps: it measures the path without the
//! wake-up time of a process. On a machine with two cores, it leaves one to the device.

use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::thread;

use testbed::{Clock, Failure, pin_current_thread};
use trafficgen::Time;

use super::{Datagrams, Echoes, Ends, ProbeError, Tally};

pub(super) fn run(
    ends: Ends,
    cores: &[usize],
    tally: &mut Tally<'_, Clock>,
) -> Result<Echoes, ProbeError> {
    // The affinity of the caller's thread must not change, so the prober has its own thread.
    thread::scope(|scope| {
        let prober = scope.spawn(|| {
            pin_current_thread(&cores[..cores.len().min(1)])?;
            let Ends { client, server } = ends;
            for socket in [&client, &server] {
                let set = socket.set_nonblocking(true);
                set.map_err(Failure::to("send echoes"))?;
            }
            between(&[client, server], tally)
        });
        prober
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Measures echoes between a client's end and a server's.
pub(super) fn between<D: Datagrams, T: Time>(
    ends: &[D; 2],
    tally: &mut Tally<'_, T>,
) -> Result<Echoes, ProbeError> {
    let failure = || Failure::to("send echoes");
    let mut served = 0;
    while let Some(datagram) = tally.next() {
        ends[0].send(datagram).map_err(failure())?;
        let returned = exchange(ends, tally, &mut served).map_err(failure())?;
        tally.record(returned)?;
    }
    Ok(tally.finish(served))
}

/// Carries the outstanding echo to the server and back; `None` if it is overdue.
fn exchange<D: Datagrams, T: Time>(
    [client, server]: &[D; 2],
    tally: &Tally<'_, T>,
    served: &mut u64,
) -> io::Result<Option<u64>> {
    let mut room = [0; 2048];
    // At first only the server is polled: the reply cannot precede the request.
    loop {
        if let Some(length) = server.receive(&mut room)? {
            *served += 1;
            server.send(&room[..length])?;
            if tally.is_current(&room[..length]) {
                break;
            }
        } else if tally.is_overdue() {
            return Ok(None);
        }
    }
    loop {
        if let Some(length) = client.receive(&mut room)? {
            let now = tally.time.now_ns();
            if tally.is_current(&room[..length]) {
                return Ok(Some(now));
            }
        } else if tally.is_overdue() {
            return Ok(None);
        }
    }
}

impl Datagrams for UdpSocket {
    fn send(&self, datagram: &[u8]) -> io::Result<()> {
        Self::send(self, datagram).map(drop)
    }

    fn receive(&self, room: &mut [u8]) -> io::Result<Option<usize>> {
        match self.recv(room) {
            Ok(length) => Ok(Some(length)),
            // A refused datagram leaves its error on a connected socket; the datagram counts as
            // lost.
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
}
