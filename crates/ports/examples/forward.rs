//! Forwards frames between two interfaces in both directions until it is killed: the minimum of a
//! switch, to measure the cost of the ports.
//!
//! `forward IF_A IF_B` polls on one core without sleeping; run it under `taskset`. `IF` is opened
//! through packet sockets, `xdp:IF` through AF_XDP in native mode, `xdpgeneric:IF` in generic mode.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use packet::Pool;
use ports::af_packet::AfPacket;
use ports::xdp::{UmemPools, Xdp, XdpModeChoice, XdpOptions};
use ports::{Batch, InterfaceName, Port, Queue};

/// Polls between two calls of [`Queue::maintain`]: some milliseconds.
const POLLS_PER_MAINTENANCE: u32 = 1 << 16;

type ForwardError = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let [first, second] = &names[..] else {
        return exit_with("usage: forward IF_A IF_B");
    };
    let mut pools = UmemPools::default();
    let mut open = |name| open(name, &mut pools);
    match open(first).and_then(|a| Ok([a, open(second)?])) {
        Ok(queues) => exit_with(forward(queues)),
        Err(error) => exit_with(error),
    }
}

#[expect(clippy::print_stderr, reason = "a program prints why it ends")]
fn exit_with(error: impl std::fmt::Display) -> ExitCode {
    eprintln!("{error}");
    ExitCode::FAILURE
}

fn open(name: &str, pools: &mut UmemPools) -> Result<Box<dyn Queue>, ForwardError> {
    let (kind, name) = name.split_once(':').unwrap_or(("", name));
    let name: InterfaceName = name.parse()?;
    let mut xdp = |mode| {
        let options = XdpOptions {
            mode,
            ..XdpOptions::default()
        };
        Xdp::open(&name, &[0], options, pools)
    };
    let mut port: Box<dyn Port> = match kind {
        "" => Box::new(AfPacket::open(&name, NonZeroUsize::MIN)?),
        "xdp" => Box::new(xdp(XdpModeChoice::Native)?),
        "xdpgeneric" => Box::new(xdp(XdpModeChoice::Generic)?),
        _ => return Err("use IF, xdp:IF or xdpgeneric:IF".into()),
    };
    let queue = port.take_queues().pop();
    Ok(queue.expect("the port was opened with one queue"))
}

/// Forwards until a device is removed.
fn forward(mut queues: [Box<dyn Queue>; 2]) -> ForwardError {
    let mut pool = Pool::new(4 * Batch::FRAMES_MAX);
    let mut batch = Batch::new();
    loop {
        for _ in 0..POLLS_PER_MAINTENANCE {
            let [a, b] = &mut queues;
            let moved = forward_batch(a, b, &mut batch, &mut pool)
                .and_then(|()| forward_batch(b, a, &mut batch, &mut pool));
            if let Err(error) = moved {
                return error.into();
            }
        }
        for queue in &mut queues {
            if let Err(error) = queue.maintain() {
                return error.into();
            }
        }
    }
}

/// Forwards the available frames of one queue to the other. Frames that do not fit are dropped.
fn forward_batch(
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
