//! How many frames a second a device carries, found by halving: of a rate that is carried,
//! nearly all frames have come out by the time the last is sent. What a device keeps in a
//! queue that grows is not carried, though it comes out later.

use std::time::Duration;

use base::Instant;
use testbed::{Failure, RawSocket};

use super::Tools;
use crate::generator::{self, Frames};
use crate::trial::TrialError;

/// The highest rate that is tried, in frames a second: more than one thread sends and
/// receives.
const RATE_MAX: u32 = 2_000_000;

/// How long each rate is tried, and how many are: the last two differ by a hundredth or so
/// of the highest.
const TRIED: Duration = Duration::from_millis(100);
const STEPS: u32 = 8;

/// What share of the frames may be under way when the last is sent, and of those that are
/// due may not have been sent, in hundredths.
const UNDER_WAY: u64 = 3;

/// Nothing more for so long behind a rate, and nothing more comes of it.
const QUIET: Duration = Duration::from_millis(20);

/// Frames that are received before one is sent again.
const BURST: usize = 32;

/// Looks for the highest rate that is carried.
#[derive(Debug)]
struct Search {
    carried: u32,
    beyond: u32,
    steps: u32,
}

impl Search {
    const fn new() -> Self {
        Self {
            carried: 0,
            beyond: RATE_MAX,
            steps: 0,
        }
    }

    /// The rate to be tried next; none if it is found.
    const fn next(&self) -> Option<u32> {
        match self.steps < STEPS {
            true => Some(self.carried.midpoint(self.beyond)),
            false => None,
        }
    }

    /// Takes note of what came of a rate.
    const fn note(&mut self, rate: u32, is_carried: bool) {
        self.steps += 1;
        match is_carried {
            true => self.carried = rate,
            false => self.beyond = rate,
        }
    }
}

/// What came of a rate by the time the last frame was sent.
#[derive(Clone, Copy, Debug)]
struct Tried {
    due: u64,
    sent: u64,
    came: u64,
}

impl Tried {
    fn is_carried(self) -> bool {
        let nearly = |part: u64, whole: u64| part * 100 >= whole * (100 - UNDER_WAY);
        nearly(self.sent, self.due) && nearly(self.came, self.sent)
    }
}

/// Finds how many of these frames a second come out as they are sent.
pub(super) fn find(
    sender: &RawSocket,
    receiver: &RawSocket,
    frames: &mut Frames,
    tools: &Tools<'_>,
) -> Result<u32, TrialError> {
    let mut search = Search::new();
    while let Some(rate) = search.next() {
        if tools.interrupt.is_set() {
            return Err(TrialError::Interrupted);
        }
        let tried = try_rate(sender, receiver, frames, rate, tools)?;
        search.note(rate, tried.is_carried());
    }
    match search.carried {
        0 => Err(TrialError::Impossible(
            "the device carries next to no frames".to_owned(),
        )),
        carried => Ok(carried),
    }
}

fn try_rate(
    sender: &RawSocket,
    receiver: &RawSocket,
    frames: &mut Frames,
    rate: u32,
    tools: &Tools<'_>,
) -> Result<Tried, Failure> {
    let clock = tools.clock;
    let began = clock.now();
    let due = |since: Duration| {
        let due = since.min(TRIED).as_nanos() * u128::from(rate) / 1_000_000_000;
        u64::try_from(due).unwrap_or(u64::MAX)
    };
    let mut tried = Tried {
        due: due(TRIED),
        sent: 0,
        came: 0,
    };
    loop {
        let since = clock.now().since(began);
        if since >= TRIED {
            break;
        }
        if tried.sent < due(since) {
            tried.sent += send(sender, frames)?;
        }
        tried.came += receive(receiver)?;
    }
    await_quiet(receiver, tools, clock.now())?;
    Ok(tried)
}

/// Sends a frame, if there is room for it.
fn send(sender: &RawSocket, frames: &mut Frames) -> Result<u64, Failure> {
    let taken = match sender.send(frames.burst(1)) {
        Err(error) if generator::is_full(&error) => 0,
        outcome => outcome.map_err(Failure::to("send a frame"))?,
    };
    frames.advance(taken);
    Ok(taken as u64)
}

/// Receives what has come, up to a burst, and tells how many were of the experiment.
fn receive(receiver: &RawSocket) -> Result<u64, Failure> {
    let mut room = [0; 256];
    let mut came = 0;
    for _ in 0..BURST {
        let length = receiver.receive(&mut room);
        let Some(length) = length.map_err(Failure::to("receive a frame"))? else {
            break;
        };
        came += u64::from(generator::number(&room[..length]).is_some());
    }
    Ok(came)
}

fn await_quiet(receiver: &RawSocket, tools: &Tools<'_>, mut last: Instant) -> Result<(), Failure> {
    while tools.clock.now().since(last) < QUIET {
        if receive(receiver)? > 0 {
            last = tools.clock.now();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(carries: u32) -> u32 {
        let mut search = Search::new();
        while let Some(rate) = search.next() {
            search.note(rate, rate <= carries);
        }
        search.carried
    }

    #[test]
    fn the_rate_that_a_device_carries_is_found_from_below() {
        for carries in [40_000, 123_456, 500_000, 1_999_999] {
            let found = found(carries);
            let step = RATE_MAX >> STEPS;
            assert!(found <= carries && carries - found <= step, "{found}");
        }
        assert_eq!(found(0), 0);
    }

    #[test]
    fn what_waits_in_a_queue_is_not_carried() {
        let tried = |sent, came| Tried {
            due: 1_000,
            sent,
            came,
        };
        assert!(tried(1_000, 990).is_carried());
        assert!(!tried(1_000, 900).is_carried());
        assert!(!tried(900, 900).is_carried());
    }
}
