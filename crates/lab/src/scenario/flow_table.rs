//! A large flow table: how fast a device takes flows from one controller, what memory
//! it keeps them in, how fast it tells them and whether others must wait meanwhile,
//! and how fast it forgets them.
//!
//! The messages are made before the clock starts, so that the controller is not what
//! is measured. Frames are not sent: what a large table does to them is another
//! experiment.

mod flows;
mod peer;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use testbed::{Clock, Failure};

use super::Tools;
use crate::controller::{Ask, ControllerError, Link};
use crate::cores::Watch;
use crate::record::{FlowTableOutcome, Outcome};
use crate::station::Station;
use crate::trial::{Measured, TrialError};

/// The socket at which a device's bridge answers whoever asks, in its directory.
const SOCKET: &str = "br0.mgmt";

/// The first and the last flows whose rate is told apart; fewer if there are few in all.
const PART: u32 = 10_000;

/// How often the echo is asked for while the flows are told.
const ECHO_PAUSE: Duration = Duration::from_millis(1);

/// How long after the deletion a device is given to return its memory.
const RETURN: Duration = Duration::from_secs(2);

pub(super) fn measure(station: &Station, tools: &Tools<'_>) -> Result<Measured, TrialError> {
    // In a thread of its own, so that no other test is kept to these cores.
    thread::scope(|scope| {
        let measuring = scope.spawn(|| {
            testbed::pin_current_thread(&tools.cores.tester)?;
            control(station, tools)
        });
        measuring
            .join()
            .expect("a thread of the lab does not panic")
    })
}

fn control(station: &Station, tools: &Tools<'_>) -> Result<Measured, TrialError> {
    let flows = tools.parameters.flow_table.flows;
    let socket = station.directory.join(SOCKET);
    let mut peer = peer::call(&socket, tools.clock)?;
    let before = peer::flows(&mut peer)?.flows;
    let watch = Watch::begin(&station.bench, tools.cores, tools.clock)?;
    let empty_bytes = resident(station)?;
    let added = add(&mut peer, flows, tools)?;
    let full_bytes = resident(station)?;
    let told = tell(&mut peer, &socket, tools.clock)?;
    let delete_seconds = seconds(tools.clock, || peer.clear())?;
    let deleted = tools.clock.now();
    let left = peer::flows(&mut peer)?.flows;
    tools.clock.sleep_until(deleted + RETURN);
    let left_bytes = resident(station)?;
    let conditions = watch.end(&station.bench)?;
    let (part, first_seconds, last_seconds, add_seconds) = added;
    let outcome = FlowTableOutcome {
        flows,
        part,
        add_seconds,
        first_seconds,
        last_seconds,
        empty_bytes,
        full_bytes,
        left_bytes,
        told: told.flows,
        told_bytes: told.bytes,
        tell_seconds: told.seconds,
        echoes: told.echoes,
        echo_ns_max: told.echo_ns_max,
        delete_seconds,
    };
    let mut measured = Measured::new(Outcome::FlowTable(outcome), conditions);
    judge(flows, (before, told.flows, left), &mut measured);
    Ok(measured)
}

/// Whether the device says that it has what it was told.
fn judge(flows: u32, (before, told, left): (u64, u64, u64), measured: &mut Measured) {
    let wanted = before + u64::from(flows);
    if told != wanted {
        measured.void(format!(
            "{wanted} flows should be there, and {told} were told"
        ));
    }
    if left != 0 {
        measured.void(format!("{left} flows were left of all that were deleted"));
    }
}

/// Adds all flows. Answers how many are the first and the last, and the seconds that
/// these took, and all.
fn add(peer: &mut Link, flows: u32, tools: &Tools<'_>) -> Result<(u32, f64, f64, f64), TrialError> {
    let part = PART.min(flows / 2).max(1);
    let first = flows::messages(0..part);
    let middle = flows::messages(part..flows - part);
    let last = flows::messages(flows - part..flows);
    if tools.interrupt.is_set() {
        return Err(TrialError::Interrupted);
    }
    let mut took = [0.0; 3];
    for (messages, took) in [first, middle, last].iter().zip(&mut took) {
        *took = seconds(tools.clock, || peer.request_encoded(messages))?;
    }
    let [first_seconds, _, last_seconds] = took;
    Ok((part, first_seconds, last_seconds, took.iter().sum()))
}

/// What came of having all flows told.
struct Telling {
    flows: u64,
    bytes: u64,
    seconds: f64,
    echoes: u64,
    echo_ns_max: u64,
}

/// Has all flows told, while another connection asks for echoes.
fn tell(peer: &mut Link, socket: &Path, clock: &Clock) -> Result<Telling, TrialError> {
    let mut other = peer::call(socket, clock)?;
    other.echo(Vec::new())?;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let echoes = scope.spawn(|| echo_until(&mut other, &done, clock));
        let began = clock.now();
        let flows = peer::flows(peer);
        let seconds = clock.now().since(began).as_secs_f64();
        done.store(true, Ordering::Relaxed);
        let echoes = echoes.join().expect("a thread of the lab does not panic");
        let (flows, (echoes, echo_ns_max)) = (flows?, echoes?);
        Ok(Telling {
            flows: flows.flows,
            bytes: flows.bytes,
            seconds,
            echoes,
            echo_ns_max,
        })
    })
}

/// Asks for one echo after the other; answers how many came, and the longest that one
/// took, in nanoseconds.
fn echo_until(
    peer: &mut Link,
    done: &AtomicBool,
    clock: &Clock,
) -> Result<(u64, u64), ControllerError> {
    let (mut count, mut worst) = (0, 0);
    while !done.load(Ordering::Relaxed) {
        let took = peer.echo(Vec::new())?;
        count += 1;
        worst = worst.max(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        clock.sleep_until(clock.now() + ECHO_PAUSE);
    }
    Ok((count, worst))
}

fn seconds(
    clock: &Clock,
    work: impl FnOnce() -> Result<(), ControllerError>,
) -> Result<f64, ControllerError> {
    let began = clock.now();
    work()?;
    Ok(clock.now().since(began).as_secs_f64())
}

fn resident(station: &Station) -> Result<u64, Failure> {
    let usage = station.bench.device().usage()?;
    Ok(usage.map_or(0, |usage| usage.resident_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Conditions;

    fn flaws(counts: (u64, u64, u64)) -> Vec<String> {
        let outcome = crate::fixture::flow_table_trial("ovs", 1).outcome.unwrap();
        let mut measured = Measured::new(outcome, Conditions::default());
        judge(100, counts, &mut measured);
        measured.flaws.into_iter().map(|flaw| flaw.reason).collect()
    }

    #[test]
    fn flows_that_are_not_told_or_not_deleted_void() {
        assert!(flaws((2, 102, 0)).is_empty());
        assert_eq!(
            flaws((2, 101, 3)),
            [
                "102 flows should be there, and 101 were told",
                "3 flows were left of all that were deleted"
            ]
        );
    }
}
