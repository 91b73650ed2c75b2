//! What a device spent: the figures that every experiment has, where the device is a process.

use std::borrow::Cow;

use record::ManagementRecord;
use record::Trial;
use record::{Better, Figure};

use super::{Measure, Observation};
use crate::analysis;

const fn figure(
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    better: Better,
) -> Figure {
    Figure {
        name,
        title,
        unit,
        better,
    }
}

const PROCESSOR: &str = "device_cpu_percent";

/// What is told, and of what.
type Told = (Figure, fn(&ManagementRecord) -> Option<f64>);

const TOLD: [Told; 4] = [
    (
        figure(
            PROCESSOR,
            "processor time of the device",
            "%",
            Better::Lower,
        ),
        |seen| Some(seen.cores()? * 100.0),
    ),
    (
        figure(
            "device_frame_ns",
            "processor time of the device for each frame",
            "ns",
            Better::Lower,
        ),
        ManagementRecord::ns_per_frame,
    ),
    (
        figure(
            "device_memory_mib",
            "memory of the device",
            "MiB",
            Better::Lower,
        ),
        |seen| {
            seen.cores()?;
            Some(seen.resident_bytes_max as f64 / f64::from(1 << 20))
        },
    ),
    (
        figure(
            "device_switches_s",
            "context switches of the device",
            "/s",
            Better::Neither,
        ),
        ManagementRecord::switches_a_second,
    ),
];

/// The figures.
pub(super) fn declared() -> impl Iterator<Item = Figure> {
    TOLD.into_iter().map(|(figure, _)| figure)
}

/// Puts what `trial` tells of its device into `seen`.
pub(super) fn observe(trial: &Trial, seen: &mut Observation<'_>) {
    let conditions = trial.conditions.as_ref();
    let management = conditions.and_then(|conditions| conditions.management.as_deref());
    for (figure, of) in TOLD {
        let value = match management {
            Some(management) => of(management),
            None if figure.name == PROCESSOR => before(trial),
            None => None,
        };
        if let Some(value) = value {
            seen.measures.push(Measure {
                name: Cow::Borrowed(figure.name),
                unit: figure.unit,
                better: figure.better,
                value,
                of: None,
            });
            continue;
        }
        let reason = match management {
            Some(seen) if seen.cores().is_some() => {
                "too few frames passed, or segments that stand for many"
            }
            None if conditions.is_some_and(|conditions| conditions.process.is_some()) => {
                "the device was not watched so closely"
            }
            _ => "the device is no process of its own",
        };
        seen.absent
            .insert(figure.name.to_owned(), reason.to_owned());
    }
}

/// Processor time by what old records tell of the process that forwards.
fn before(trial: &Trial) -> Option<f64> {
    let (user, system) = analysis::process_percent(trial)?;
    Some(user + system)
}
