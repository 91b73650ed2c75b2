//! Check of the path before a trial: a hundred frames are sent one by one and compared when they
//! arrive.

use std::io;
use std::time::Duration;

use testbed::{Bench, Failure, RawSocket};

use crate::generator::{self, Frames, SINK};
use crate::tools::Tools;
use crate::trial::TrialError;

/// Number of frames.
const FRAMES: u32 = 100;
/// Time after which a frame is lost.
const TIMEOUT: Duration = Duration::from_millis(100);
/// Consecutive losses that end the check.
const LOSSES_MAX: u32 = 20;

/// Result of the check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PathCheck {
    /// Frames sent.
    pub(super) sent: u32,
    /// Frames that arrived unmodified.
    pub(super) intact: u32,
    /// Frames that arrived modified.
    pub(super) modified: u32,
    /// Additional copies of frames.
    pub(super) duplicates: u32,
}

/// Checks the path. Before that, a frame from [`SINK`] shows its port to a learning device.
pub(super) fn check_path(
    bench: &Bench,
    sender: &RawSocket,
    frames: &mut Frames,
    tools: &Tools<'_>,
) -> Result<PathCheck, TrialError> {
    let failure = || Failure::to("check the path with frames");
    let server = bench.server();
    let receiver = server.namespace.raw_receiver(server.interface)?;
    let mut from_sink = frames.burst(1)[0].clone();
    from_sink[..6].copy_from_slice(&bench.client().mac);
    from_sink[6..12].copy_from_slice(&SINK);
    receiver.send(&[from_sink]).map_err(failure())?;
    let mut sent: Vec<SentFrame> = Vec::new();
    let mut losses = 0;
    for _ in 0..FRAMES {
        if tools.interrupt.is_set() {
            return Err(TrialError::Interrupted);
        }
        let frame = frames.burst(1)[0].clone();
        let taken = sender.send(&[&frame]).map_err(failure())?;
        frames.advance(taken);
        sent.push(SentFrame::new(frame));
        let arrived = await_last(&mut sent, &receiver, tools).map_err(failure())?;
        losses = if arrived { 0 } else { losses + 1 };
        if losses == LOSSES_MAX {
            break;
        }
    }
    Ok(sum(&sent))
}

/// Sent frame with its arrivals.
struct SentFrame {
    frame: Vec<u8>,
    copies: u32,
    modified: bool,
}

impl SentFrame {
    const fn new(frame: Vec<u8>) -> Self {
        Self {
            frame,
            copies: 0,
            modified: false,
        }
    }
}

/// Waits for the last frame. Returns false if it is lost. Earlier frames may arrive late, or again.
fn await_last(sent: &mut [SentFrame], receiver: &RawSocket, tools: &Tools<'_>) -> io::Result<bool> {
    let deadline = tools.clock.now() + TIMEOUT;
    let mut buffer = [0; 2048];
    loop {
        if let Some(length) = receiver.receive(&mut buffer)? {
            let received = &buffer[..length];
            let number = generator::number(received);
            let known = sent
                .iter_mut()
                .find(|one| number.is_some() && generator::number(&one.frame) == number);
            if let Some(known) = known {
                known.copies += 1;
                known.modified |= known.frame != received;
            }
        } else if sent.last().is_some_and(|last| last.copies > 0) {
            return Ok(true);
        } else if tools.clock.now() >= deadline {
            return Ok(false);
        }
    }
}

fn sum(sent: &[SentFrame]) -> PathCheck {
    let mut check = PathCheck::default();
    for one in sent {
        check.sent += 1;
        check.duplicates += one.copies.saturating_sub(1);
        match (one.copies, one.modified) {
            (0, _) => {}
            (_, true) => check.modified += 1,
            (_, false) => check.intact += 1,
        }
    }
    check
}
