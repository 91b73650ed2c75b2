//! Rules that change while frames move: how soon a change is met by a frame, and what
//! becomes of frames while many rules come and go, or while a large table is told.
//!
//! One thread, which never sleeps, sends the frames, the messages and receives both, so
//! that all times are of one clock and no process has to be woken. Times of arrival have
//! the way through the device in them; the same without any change stands beside.

mod link;
mod loads;
mod probe;
mod rate;

use std::thread;
use std::time::Duration;

use controller::{Ask, Link};
use openflow::{Version, VersionSet};
use record::ChangeTest;
use record::{ChangeOutcome, Outcome};
use testbed::Bench;
use testbed::Interrupt;

use super::Tools;
use crate::cores::Watch;
use crate::generator::Frames;
use crate::station::Station;
use crate::trial::{Measured, TrialError};
use link::{Device, Live};
use loads::Load;
use probe::{FRAME_BYTES, Probe};

/// How long a device may be silent while nothing but its answer is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// The socket at which a device's bridge answers whoever asks, in its directory.
const SOCKET: &str = "br0.mgmt";

pub(super) fn measure(
    test: ChangeTest,
    station: &Station,
    tools: &Tools<'_>,
) -> Result<Measured, TrialError> {
    let socket = station.directory.join(SOCKET);
    let link = Link::call(&socket, VersionSet::only(Version::V10), tools.clock)?;
    let mut link = link.with_patience(PATIENCE);
    let bench = &station.bench;
    let watch = Watch::begin(bench, tools.cores, tools.clock)?;
    // In a thread of its own, so that no other test is kept to this core.
    let outcome = thread::scope(|scope| {
        let measuring = scope.spawn(|| {
            let cores = &tools.cores.tester;
            testbed::pin_current_thread(&cores[..cores.len().min(1)])?;
            probe(test, &mut link, bench, tools)
        });
        measuring
            .join()
            .expect("a thread of the lab does not panic")
    });
    // What the test has added goes with it, whatever came of it.
    let cleared = link.clear();
    let conditions = watch.end(bench)?;
    let outcome = outcome?;
    cleared?;
    let mut measured = Measured::new(Outcome::Change(outcome.clone()), conditions);
    judge(&outcome, &mut measured);
    Ok(measured)
}

fn probe(
    test: ChangeTest,
    link: &mut Link,
    bench: &Bench,
    tools: &Tools<'_>,
) -> Result<ChangeOutcome, TrialError> {
    let parameters = &tools.parameters.changes;
    let (client, server) = (bench.client(), bench.server());
    let mut device = Live {
        sender: client.namespace.raw_sender(client.interface)?,
        receiver: server.namespace.raw_receiver(server.interface)?,
        link,
        clock: *tools.clock,
    };
    let load = Load::prepare(test, &mut device, parameters)?;
    let frames = || Frames::new(client, server, FRAME_BYTES);
    let carried = match parameters.pps {
        Some(_) => None,
        None => {
            let Live {
                sender, receiver, ..
            } = &device;
            Some(rate::find(sender, receiver, &mut frames(), tools)?)
        }
    };
    let probe = Probe::new(frames(), parameters, carried);
    outcome(load, probe, &mut device, tools.interrupt)
}

/// What comes of the frames while the load says its part.
fn outcome(
    mut load: Load,
    mut probe: Probe,
    device: &mut impl Device,
    interrupt: &Interrupt,
) -> Result<ChangeOutcome, TrialError> {
    probe.run(&mut load, device, interrupt)?;
    let mut outcome = probe.finish();
    load.finish(&mut outcome);
    Ok(outcome)
}

/// How much less than intended may be offered, as a share.
const SHORTFALL: f64 = 0.05;

fn judge(outcome: &ChangeOutcome, measured: &mut Measured) {
    measured.note_pressure();
    let offered = outcome.sent as f64 / outcome.seconds;
    let wanted = f64::from(outcome.pps) * (1.0 - SHORTFALL);
    if offered < wanted {
        measured.note(format!(
            "the generator offered {offered:.0} frames a second instead of {}",
            outcome.pps
        ));
    }
    if outcome.received == 0 || outcome.received > outcome.sent {
        measured.void(format!(
            "{} frames came out of {}",
            outcome.received, outcome.sent
        ));
    }
    if outcome.late > 0 {
        measured.note(format!(
            "{} frames that were sent after a barrier's reply met the rule from before it",
            outcome.late
        ));
    }
}

#[cfg(test)]
mod tests;
