//! Commands that stop and warp the clock, for tests (ovs-vswitchd(8), `--enable-dummy`).
//!
//! A warp advances the clock in steps. After each step, the switch runs for some milliseconds, so
//! that frames between dummies arrive and expired timers of all threads have their effects.

use std::time::Duration;

use base::Instant;
use tokio::sync::oneshot;

use super::Answer::{Immediate, Pending};
use super::{Command, CommandState};
use crate::control::Control;
use crate::inbox::{CommandReply, CommandRequest};

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 2] = [
    Command { name: "time/stop", usage: "", least: 0, most: 0, answer: Immediate(stop) },
    Command { name: "time/warp", usage: "[large_msecs] msecs", least: 1, most: 2, answer: Pending(warp) },
];

/// The limit of steps of a warp.
const STEPS_MAX: u64 = 100_000;

/// The real time after each step, as in Open vSwitch.
const STEP_TIME: Duration = Duration::from_millis(10);

/// A warp in progress.
pub(super) struct ClockWarp {
    /// The rest of the warp, and of each step, in milliseconds.
    left: u64,
    step: u64,
    /// The real time of the next step.
    next_at: Instant,
    answer: oneshot::Sender<Result<CommandReply, String>>,
}

impl CommandState {
    /// Returns the real time of the next step of a warp.
    pub(in crate::control) fn next_warp_step(&self) -> Option<Instant> {
        self.warp.as_ref().map(|warp| warp.next_at)
    }
}

fn stop(control: &mut Control, _: &[String]) -> Result<String, String> {
    control.tools.clock.stop();
    Ok(String::new())
}

fn warp(control: &mut Control, request: CommandRequest) {
    let parsed = parse_steps(&request.arguments);
    let begun = match &control.commands.warp {
        Some(_) => Err("a warp is in progress".to_owned()),
        None => parsed,
    };
    match begun {
        Ok((left, step)) => {
            control.commands.warp = Some(ClockWarp {
                left,
                step,
                next_at: control.tools.clock.unwarped(),
                answer: request.answer,
            });
        }
        // The client may have disconnected.
        Err(problem) => drop(request.answer.send(Err(problem))),
    }
}

/// Returns the milliseconds of the warp, and of each step.
fn parse_steps(arguments: &[String]) -> Result<(u64, u64), String> {
    let read = |text: &String| text.parse::<u64>().ok().filter(|msecs| *msecs > 0);
    let numbers: Option<Vec<_>> = arguments.iter().map(read).collect();
    let (all, step) = match numbers.as_deref() {
        Some([all]) => (*all, *all),
        Some([all, step]) => (*all, *step),
        _ => return Err("invalid MSECS".to_owned()),
    };
    if all.div_ceil(step) > STEPS_MAX {
        return Err(format!("invalid MSECS: more than {STEPS_MAX} steps"));
    }
    Ok((all, step))
}

impl Control {
    /// Advances the clock by a step of the warp in progress, if it is due, and runs the expired
    /// timers; answers after the last step.
    pub(in crate::control) fn step_warp(&mut self) {
        let now = self.tools.clock.unwarped();
        let Some(warp) = self.commands.warp.take_if(|warp| warp.next_at <= now) else {
            return;
        };
        if warp.left == 0 {
            // Tests read the database next.
            let written = self.tools.flushes.request();
            let answer = move || {
                written.wait();
                // The client may have disconnected.
                let warped = CommandReply::Text("warped".to_owned());
                drop(warp.answer.send(Ok(warped)));
            };
            drop(self.tools.runtime.spawn_blocking(answer));
            return;
        }
        let step = warp.left.min(warp.step);
        self.tools.clock.warp(Duration::from_millis(step));
        self.commands.warp = Some(ClockWarp {
            left: warp.left - step,
            next_at: now + STEP_TIME,
            ..warp
        });
        self.handle_timeouts();
        // Timers of other tasks depend on the clock.
        self.tools.facts_changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warp_has_steps_within_limits() {
        let parse = |words: &str| {
            let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
            parse_steps(&words)
        };
        assert_eq!(parse("100"), Ok((100, 100)));
        assert_eq!(parse("11000 1000"), Ok((11000, 1000)));
        for words in ["0", "x", "10 0", "-1", "1000000 1"] {
            parse(words).expect_err(words);
        }
    }
}
