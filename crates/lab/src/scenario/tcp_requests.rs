//! Requests of one byte and replies of one byte over one TCP connection, one under way at
//! a time: what `netperf` calls TCP_RR, by a client and a server of our own, since that
//! is not free software.
//!
//! One thread owns both ends and never sleeps, as with echoes: what is measured is the
//! path and the kernel's TCP, not how soon a sleeping process is woken.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use record::{Outcome, RequestsOutcome};
use testbed::{Bench, Failure};

use super::Tools;
use crate::cores::Watch;
use crate::station::Station;
use crate::trial::{Measured, TrialError};

/// The server's port.
const PORT: u16 = 7_778;

/// How long a connection, or a byte, may take: a lost segment is sent again after 200 ms,
/// then 400, then 800.
const PATIENCE: Duration = Duration::from_secs(5);

/// Requests before those that count.
const WARM_UP: u32 = 100;

/// Requests between two looks for the user's wish.
const LOOK: u32 = 64;

pub(super) fn measure(station: &Station, tools: &Tools<'_>) -> Result<Measured, TrialError> {
    let ends = connect(&station.bench)?;
    let watch = Watch::begin(&station.bench, tools.cores, tools.clock)?;
    let outcome = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let cores = &tools.cores.tester;
            testbed::pin_current_thread(&cores[..cores.len().min(1)])?;
            ask(ends, tools)
        });
        asking.join().expect("a thread of the lab does not panic")
    })?;
    let conditions = watch.end(&station.bench)?;
    let mut measured = Measured::new(Outcome::Requests(outcome), conditions);
    measured.note_pressure();
    Ok(measured)
}

/// Both ends of a connection, the client's first, that do not block.
fn connect(bench: &Bench) -> Result<[TcpStream; 2], Failure> {
    let address = SocketAddrV4::new(bench.server().address, PORT);
    let failure = || Failure::to("connect by TCP");
    let listener = bench
        .server()
        .namespace
        .run(|| TcpListener::bind(address))?
        .map_err(failure())?;
    let connected = || TcpStream::connect_timeout(&address.into(), PATIENCE);
    let client = bench
        .client()
        .namespace
        .run(connected)?
        .map_err(failure())?;
    let (server, _) = listener.accept().map_err(failure())?;
    for end in [&client, &server] {
        end.set_nodelay(true).map_err(failure())?;
        end.set_nonblocking(true).map_err(failure())?;
    }
    Ok([client, server])
}

fn ask([client, server]: [TcpStream; 2], tools: &Tools<'_>) -> Result<RequestsOutcome, TrialError> {
    let clock = tools.clock;
    let failure = || Failure::to("ask and answer by TCP");
    let cross = |from: &TcpStream, to: &TcpStream| -> io::Result<()> {
        let deadline = clock.now() + PATIENCE;
        (&mut &*from).write_all(&[1])?;
        loop {
            match (&mut &*to).read(&mut [0; 64]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => return Ok(()),
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                Err(_) if clock.now() >= deadline => return Err(ErrorKind::TimedOut.into()),
                Err(_) => {}
            }
        }
    };
    let asked = tools.parameters.echo.packets;
    let mut began = clock.now();
    for number in 0..WARM_UP + asked {
        if number % LOOK == 0 && tools.interrupt.is_set() {
            return Err(TrialError::Interrupted);
        }
        if number == WARM_UP {
            began = clock.now();
        }
        cross(&client, &server).map_err(failure())?;
        cross(&server, &client).map_err(failure())?;
    }
    Ok(RequestsOutcome {
        answered: asked.into(),
        seconds: clock.now().since(began).as_secs_f64(),
    })
}
