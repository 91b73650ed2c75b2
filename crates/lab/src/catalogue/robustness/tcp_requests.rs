//! Request rate of one TCP connection: requests of one byte and replies of one byte, one at a time.
//! This is TCP_RR of `netperf`, with a client and a server of our own, since `netperf` is not free
//! software.
//!
//! One thread has both ends and never sleeps, as with echoes: the rate is that of the path and of
//! the kernel's TCP, without the wake-up times of processes.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use testbed::{Bench, Failure};

use crate::catalogue::prelude::*;
use crate::setup::{ConditionMonitor, TestSetup};
use crate::tools::Tools;

/// The experiment.
pub(crate) const TCP_REQUESTS: Experiment = Experiment {
    description: Description {
        name: "tcp-requests",
        title: "TCP request rate",
        family: Family::Robustness,
        question: "How many requests and replies per second does one TCP connection through the device carry?",
        source: "netperf, test TCP_RR",
        steps: &[
            "The client sends a request of one byte, the server replies with one byte; the next request follows the reply.",
            "One busy-polling thread has both sockets, so that the wake-up times of processes are excluded; TCP_NODELAY is set.",
            "After a warm-up of 100 requests the rate is the number of requests divided by their time.",
        ],
        parameters: &[Parameter::constant(
            "packets",
            "requests in a trial, after the warm-up",
            Values::numbers(&[2_000], &[10_000], &[10_000], [1, 1_000_000]),
        )],
        figures: &[Figure::new(
            "requests_s",
            "Requests",
            "requests/s",
            Better::Higher,
        )],
        views: &[
            View::Table {
                title: "All figures",
                figures: &["requests_s"],
            },
            View::Runs {
                title: "Requests per second, run by run",
                figure: "requests_s",
                across: "packets",
            },
        ],
        ..Description::EMPTY
    },
    measures_tcp: true,
    seconds: |point| 0.3 + point.number("packets") as f64 * 60e-6,
    measure,
    ..Experiment::BASE
};

/// TCP port of the server.
const PORT: u16 = 7_778;

/// Time limit of a connection, or of a byte: TCP retransmits after 200 ms, then 400, then 800.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Requests of the warm-up.
const WARM_UP: u32 = 100;

/// Requests between two checks for an interruption.
const CHECK_INTERVAL: u32 = 64;

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let requests = point.small("packets");
    let sockets = connect(&setup.bench)?;
    let watch = ConditionMonitor::begin(&setup.bench, tools.cores, tools.clock)?;
    let seconds = thread::scope(|scope| {
        let client = scope.spawn(|| {
            let cores = &tools.cores.tester;
            testbed::pin_current_thread(&cores[..cores.len().min(1)])?;
            exchange(requests, sockets, tools)
        });
        client.join().expect("a thread of the lab does not panic")
    })?;
    let conditions = watch.end(&setup.bench)?;
    let mut reading = Reading::at(point);
    reading.put("requests_s", f64::from(requests) / seconds);
    let mut measured = TrialResult::new(reading, conditions);
    measured.note_pressure();
    Ok(measured)
}

/// Returns the non-blocking sockets of a connection, the client's first.
fn connect(bench: &Bench) -> Result<[TcpStream; 2], Failure> {
    let address = SocketAddrV4::new(bench.server().address, PORT);
    let failure = || Failure::to("connect by TCP");
    let listener = bench
        .server()
        .namespace
        .run(|| TcpListener::bind(address))?
        .map_err(failure())?;
    let connected = || TcpStream::connect_timeout(&address.into(), TIMEOUT);
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

/// Exchanges requests and replies, and returns the time of those after the warm-up, in seconds.
fn exchange(
    requests: u32,
    [client, server]: [TcpStream; 2],
    tools: &Tools<'_>,
) -> Result<f64, TrialError> {
    let clock = tools.clock;
    let failure = || Failure::to("exchange requests by TCP");
    let cross = |from: &TcpStream, to: &TcpStream| -> io::Result<()> {
        let deadline = clock.now() + TIMEOUT;
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
    let mut began = clock.now();
    for number in 0..WARM_UP + requests {
        if number % CHECK_INTERVAL == 0 && tools.interrupt.is_set() {
            return Err(TrialError::Interrupted);
        }
        if number == WARM_UP {
            began = clock.now();
        }
        cross(&client, &server).map_err(failure())?;
        cross(&server, &client).map_err(failure())?;
    }
    Ok(clock.now().since(began).as_secs_f64())
}
