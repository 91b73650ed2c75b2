//! Forwards frames between two interfaces, both ways, until it is killed: the least
//! that a switch does, to measure what the ports themselves cost.
//!
//! `forward IF_A IF_B` busily polls on one core; run it under `taskset`. An interface
//! is opened by packet sockets, `xdp:IF` by AF_XDP in the driver, `xdpgeneric:IF` in the
//! generic path.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use packet::Pool;
use ports::af_packet::AfPacket;
use ports::xdp::{HookChoice, Memories, Options, Xdp};
use ports::{Batch, InterfaceName, Port, Queue};

/// How many polls pass between two looks after the queues: some milliseconds.
const TEND_EVERY: u32 = 1 << 16;

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let [first, second] = &names[..] else {
        return fail("usage: forward IF_A IF_B");
    };
    let mut memories = Memories::default();
    let mut open = |name| open(name, &mut memories);
    match open(first).and_then(|a| Ok([a, open(second)?])) {
        Ok(queues) => fail(forward(queues)),
        Err(error) => fail(error),
    }
}

#[expect(clippy::print_stderr, reason = "a program says why it ends")]
fn fail(error: impl std::fmt::Display) -> ExitCode {
    eprintln!("{error}");
    ExitCode::FAILURE
}

fn open(name: &str, memories: &mut Memories) -> Result<Box<dyn Queue>, Failure> {
    let (kind, name) = name.split_once(':').unwrap_or(("", name));
    let name: InterfaceName = name.parse()?;
    let mut xdp = |hook| {
        let options = Options {
            hook,
            ..Options::default()
        };
        Xdp::open(&name, &[0], options, memories)
    };
    let mut port: Box<dyn Port> = match kind {
        "" => Box::new(AfPacket::open(&name, NonZeroUsize::MIN)?),
        "xdp" => Box::new(xdp(HookChoice::Native)?),
        "xdpgeneric" => Box::new(xdp(HookChoice::Generic)?),
        _ => return Err("use IF, xdp:IF or xdpgeneric:IF".into()),
    };
    let queue = port.take_queues().pop();
    Ok(queue.expect("a port has as many queues as it was asked for"))
}

/// Forwards until a device is gone.
fn forward(mut queues: [Box<dyn Queue>; 2]) -> Failure {
    let mut pool = Pool::new(4 * Batch::FRAMES_MAX);
    let mut batch = Batch::new();
    loop {
        for _ in 0..TEND_EVERY {
            let [a, b] = &mut queues;
            let moved = shift(a, b, &mut batch, &mut pool)
                .and_then(|()| shift(b, a, &mut batch, &mut pool));
            if let Err(error) = moved {
                return error.into();
            }
        }
        for queue in &mut queues {
            if let Err(error) = queue.tend() {
                return error.into();
            }
        }
    }
}

/// Moves what waits in one queue to the other. What finds no room there is dropped.
fn shift(
    from: &mut Box<dyn Queue>,
    to: &mut Box<dyn Queue>,
    batch: &mut Batch,
    pool: &mut Pool,
) -> std::io::Result<()> {
    from.receive(pool, batch)?;
    if batch.is_empty() {
        return Ok(());
    }
    to.send(batch, pool)?;
    batch.release(batch.len(), pool);
    Ok(())
}
