//! Prober of the published experiment: a client and a server that block in their sockets. Its round
//! trips include two wake-ups, which take longer than most switches.

use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use testbed::{Clock, Failure, pin_current_thread};
use trafficgen::Time;

use super::{Echoes, Ends, ProbeError, TIMEOUT, Tally};

/// Interval at which an idle server checks for the end of the trial.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

pub(super) fn run(
    ends: Ends,
    cores: &[usize],
    tally: &mut Tally<'_, Clock>,
) -> Result<Echoes, ProbeError> {
    let done = AtomicBool::new(false);
    let Ends { client, server } = ends;
    thread::scope(|scope| {
        let server = scope.spawn({
            let done = &done;
            let server = &server;
            move || serve(server, cores.get(1).or_else(|| cores.first()), done)
        });
        let client = scope.spawn(|| run_client(&client, cores.first(), tally));
        let outcome = client
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        done.store(true, Ordering::Relaxed);
        let served = server
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let mut echoes = outcome?;
        echoes.served = served.map_err(Failure::to("serve echoes"))?;
        Ok(echoes)
    })
}

fn run_client(
    socket: &UdpSocket,
    core: Option<&usize>,
    tally: &mut Tally<'_, Clock>,
) -> Result<Echoes, ProbeError> {
    let failure = || Failure::to("send echoes");
    pin_current_thread(core.map_or(&[], std::slice::from_ref))?;
    socket.set_read_timeout(Some(TIMEOUT)).map_err(failure())?;
    let mut room = [0; 2048];
    while let Some(datagram) = tally.next() {
        socket.send(datagram).map_err(failure())?;
        let returned = loop {
            match receive(socket, &mut room).map_err(failure())? {
                Some(length) if tally.is_current(&room[..length]) => {
                    break Some(tally.time.now_ns());
                }
                _ if tally.is_overdue() => break None,
                _ => {}
            }
        };
        tally.record(returned)?;
    }
    Ok(tally.finish(0))
}

fn serve(socket: &UdpSocket, core: Option<&usize>, done: &AtomicBool) -> io::Result<u64> {
    pin_current_thread(core.map_or(&[], std::slice::from_ref)).map_err(io::Error::other)?;
    socket.set_read_timeout(Some(CHECK_INTERVAL))?;
    let mut room = [0; 2048];
    let mut served = 0;
    while !done.load(Ordering::Relaxed) {
        if let Some(length) = receive(socket, &mut room)? {
            served += 1;
            socket.send(&room[..length])?;
        }
    }
    Ok(served)
}

fn receive(socket: &UdpSocket, room: &mut [u8]) -> io::Result<Option<usize>> {
    match socket.recv(room) {
        Ok(length) => Ok(Some(length)),
        // A refused datagram leaves its error on a connected socket; the datagram counts as lost.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::WouldBlock
                    | ErrorKind::TimedOut
                    | ErrorKind::ConnectionRefused
                    | ErrorKind::Interrupted
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
