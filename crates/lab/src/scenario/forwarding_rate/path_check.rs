//! A few marked frames, sent one by one before a test, each looked at when it comes
//! out: whether the path is open at all, and what it does to frames.

use std::io;
use std::time::Duration;

use record::PathCheck;
use testbed::{Bench, Failure, RawSocket};

use crate::generator::{self, Frames, NOBODY};
use crate::scenario::Tools;
use crate::trial::TrialError;

/// How many.
const FRAMES: u32 = 100;
/// How long each of them may take.
const PATIENCE: Duration = Duration::from_millis(100);
/// So many in a row that do not come out, and the path is closed.
const SILENCE: u32 = 20;

/// Sends marked frames and looks at what comes out. Teaches a learning device where
/// [`NOBODY`] is, before.
pub(super) fn check_path(
    bench: &Bench,
    sender: &RawSocket,
    frames: &mut Frames,
    tools: &Tools<'_>,
) -> Result<PathCheck, TrialError> {
    let failure = || Failure::to("check the path with marked frames");
    let server = bench.server();
    let receiver = server.namespace.raw_receiver(server.interface)?;
    let mut from_nobody = frames.burst(1)[0].clone();
    from_nobody[..6].copy_from_slice(&bench.client().mac);
    from_nobody[6..12].copy_from_slice(&NOBODY);
    receiver.send(&[from_nobody]).map_err(failure())?;
    let mut sent: Vec<Marked> = Vec::new();
    let mut silence = 0;
    for _ in 0..FRAMES {
        if tools.interrupt.is_set() {
            return Err(TrialError::Interrupted);
        }
        let frame = frames.burst(1)[0].clone();
        let taken = sender.send(&[&frame]).map_err(failure())?;
        frames.advance(taken);
        sent.push(Marked::new(frame));
        let came = await_last(&mut sent, &receiver, tools).map_err(failure())?;
        silence = if came { 0 } else { silence + 1 };
        if silence == SILENCE {
            break;
        }
    }
    Ok(sum(&sent))
}

/// A frame that was sent, and what came of it.
struct Marked {
    frame: Vec<u8>,
    copies: u32,
    changed: bool,
}

impl Marked {
    const fn new(frame: Vec<u8>) -> Self {
        Self {
            frame,
            copies: 0,
            changed: false,
        }
    }
}

/// Waits until the last frame has come out. Others may come late, or again.
fn await_last(sent: &mut [Marked], receiver: &RawSocket, tools: &Tools<'_>) -> io::Result<bool> {
    let deadline = tools.clock.now() + PATIENCE;
    let mut room = [0; 2048];
    loop {
        if let Some(length) = receiver.receive(&mut room)? {
            let came = &room[..length];
            let number = generator::number(came);
            let marked = sent
                .iter_mut()
                .find(|marked| number.is_some() && generator::number(&marked.frame) == number);
            if let Some(marked) = marked {
                marked.copies += 1;
                marked.changed |= marked.frame != came;
            }
        } else if sent.last().is_some_and(|last| last.copies > 0) {
            return Ok(true);
        } else if tools.clock.now() >= deadline {
            return Ok(false);
        }
    }
}

fn sum(sent: &[Marked]) -> PathCheck {
    let mut check = PathCheck::default();
    for marked in sent {
        check.sent += 1;
        check.duplicates += marked.copies.saturating_sub(1);
        match (marked.copies, marked.changed) {
            (0, _) => {}
            (_, true) => check.changed += 1,
            (_, false) => check.intact += 1,
        }
    }
    check
}
