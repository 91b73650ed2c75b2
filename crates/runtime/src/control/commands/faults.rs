//! Commands that panic or stall a thread, or make a system call that a switch never makes, for tests
//! of the reaction to it; they exist only if dummies are enabled. A panic ends the process, so the
//! client gets no answer.

use std::time::Duration;

use super::Answer::Immediate;
use super::Command;
use crate::control::Control;
use crate::parallel;
use crate::test_fault::{FaultyGarbage, STALL_MAX, TestFault};
use dataplane::messages::WorkerCommand;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 3] = [
    Command { name: "comporta/panic", usage: "thread", least: 1, most: 1, answer: Immediate(panic_thread) },
    Command { name: "comporta/chroot", usage: "", least: 0, most: 0, answer: Immediate(change_root) },
    Command { name: "comporta/stall", usage: "thread msecs", least: 2, most: 2, answer: Immediate(stall_thread) },
];

/// The threads and tasks beside the workers.
const NAMES: &str = "control, worker-CORE, tasks, peers, blocking, parallel, database or reaper";

fn panic_thread(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    control.inject(&arguments[0], TestFault::Panic)
}

fn stall_thread(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let time = parse_time(&arguments[1])?;
    control.inject(&arguments[0], TestFault::Stall(time))
}

/// Changes the root directory to the present one, which the filter of system calls does not allow.
fn change_root(_: &mut Control, _: &[String]) -> Result<String, String> {
    match rustix::process::chroot("/") {
        Ok(()) => Ok("done\n".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn parse_time(text: &str) -> Result<Duration, String> {
    let time = text.parse().map(Duration::from_millis);
    let time = time.ok().filter(|time| *time <= STALL_MAX);
    time.ok_or_else(|| format!("{text}: not a number of milliseconds up to 60000"))
}

impl Control {
    /// Injects a fault into the thread or task with this name.
    fn inject(&mut self, name: &str, fault: TestFault) -> Result<String, String> {
        match name {
            "control" => fault.occur(),
            "tasks" => drop(self.tools.runtime.spawn(async move { fault.occur() })),
            "peers" => drop(self.tools.peers_runtime.spawn(async move { fault.occur() })),
            "blocking" => drop(self.tools.runtime.spawn_blocking(move || fault.occur())),
            "parallel" => {
                let work = move || drop(parallel::map(vec![fault; 2], TestFault::occur));
                drop(self.tools.runtime.spawn_blocking(work));
            }
            "reaper" => self.tools.reaper.free(Box::new(FaultyGarbage(fault))),
            "database" => {
                if !self.tools.flushes.inject(fault) {
                    return Err("the database is not connected".to_owned());
                }
            }
            worker => return self.inject_into_worker(worker, fault),
        }
        Ok(String::new())
    }

    fn inject_into_worker(&mut self, name: &str, fault: TestFault) -> Result<String, String> {
        let core = name.strip_prefix("worker-");
        let core = core.and_then(|core| core.parse::<usize>().ok());
        let mut workers = self.tools.workers.iter_mut();
        let worker = workers.find(|worker| Some(worker.core) == core);
        let worker = worker.ok_or_else(|| format!("{name}: no such thread; use {NAMES}"))?;
        let command = WorkerCommand::Run(Box::new(move || fault.occur()));
        let sent = worker.handle.send(command);
        sent.map_err(|_| "the worker's command ring is full".to_owned())?;
        Ok(String::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stall_has_a_limit() {
        assert_eq!(parse_time("100"), Ok(Duration::from_millis(100)));
        assert_eq!(parse_time("60000"), Ok(STALL_MAX));
        for text in ["60001", "-1", "x", "", "99999999999999999999"] {
            parse_time(text).expect_err(text);
        }
    }
}
