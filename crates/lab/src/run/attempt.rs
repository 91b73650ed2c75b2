//! One trial: preparation of the setup, measurement with its monitors, and its record.

use record::{Family, Flaw, Trial};

use super::device_slot::DeviceSlot;
use crate::calendar::rfc3339;
use crate::plan::PlannedTrial;
use crate::rules::MatchSet;
use crate::setup::TestSetup;
use crate::setup::monitors::Monitors;
use crate::tools::Tools;
use crate::trial::{TrialError, TrialResult};

/// Runs a planned trial, and returns its record; `None` if the user interrupts it. Failures are
/// part of the record.
pub(super) fn run_trial(
    order: usize,
    planned: &PlannedTrial,
    slot: &mut DeviceSlot,
    tools: &Tools<'_>,
) -> Option<Trial> {
    if tools.interrupt.is_set() {
        return None;
    }
    let started = rfc3339(tools.clock.calendar());
    let began = tools.clock.now();
    let mut interrupted = false;
    let (measured, remark) = slot.run_trial(planned.experiment, tools, |setup| {
        measure(planned, setup, tools).map_err(|error| {
            interrupted |= matches!(error, TrialError::Interrupted);
            error.to_string()
        })
    });
    if interrupted {
        return None;
    }
    let seconds = tools.clock.now().since(began).as_secs_f64();
    let (mut flaws, conditions, reading) = match measured {
        Ok(measured) => (
            measured.flaws,
            Some(measured.conditions),
            Some(measured.reading),
        ),
        Err(reason) => (vec![Flaw { void: true, reason }], None, None),
    };
    flaws.extend(remark.map(|reason| Flaw {
        void: false,
        reason,
    }));
    Some(Trial {
        id: planned.id(),
        experiment: planned.experiment.name().into(),
        device: planned.device.name().to_owned(),
        run: planned.run,
        order,
        started,
        seconds,
        flaws,
        conditions,
        reading,
    })
}

/// Measures a trial on the shared setup, or on a dedicated one.
fn measure(
    planned: &PlannedTrial,
    shared: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    shared.bench.device_mut().check()?;
    shared.prepare(MatchSet::Port)?;
    let Some(request) = &planned.setup else {
        return monitored(planned, shared, tools);
    };
    let is_silent = request.application.is_silent();
    let built = TestSetup::build(request.clone(), tools);
    let mut setup = built.map_err(|error| TrialError::Impossible(error.to_string()))?;
    if is_silent {
        setup.prepare(MatchSet::Port)?;
    }
    monitored(planned, &mut setup, tools)
}

/// Measures a trial with its monitors.
fn monitored(
    planned: &PlannedTrial,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let monitors = Monitors::start(setup, tools)?;
    let experiment = planned.experiment.experiment();
    let measured = (experiment.measure)(&planned.point, setup, tools).and_then(|measured| {
        setup.bench.device_mut().check()?;
        Ok(measured)
    });
    match measured {
        Ok(mut measured) => {
            monitors.stop(setup, &mut measured);
            note_packet_ins(planned.experiment.family(), &mut measured);
            Ok(measured)
        }
        Err(TrialError::Interrupted) => Err(TrialError::Interrupted),
        Err(TrialError::Impossible(reason)) => {
            let explained = monitors.explain(setup, &reason);
            Err(TrialError::Impossible(explained))
        }
    }
}

/// Notes packet-ins of experiments whose rules forward all packets.
fn note_packet_ins(family: Family, measured: &mut TrialResult) {
    let forwards_all = match family {
        Family::DataPlanes | Family::LatencyAndLoss | Family::Whitebox | Family::Benchmarking => {
            true
        }
        Family::Calibration
        | Family::UserspaceSwitch
        | Family::Oflops
        | Family::Robustness
        | Family::Stateful => false,
    };
    let counters = measured.conditions.path_counters.as_ref();
    let sent = counters.and_then(|counters| counters.packet_ins);
    let sent = sent.unwrap_or(0);
    // A void trial has its reason already.
    if forwards_all && sent > 0 && !measured.flaws.iter().any(|flaw| flaw.void) {
        measured.note(format!(
            "the device sent {sent} frames to its controller during the trial"
        ));
    }
}
