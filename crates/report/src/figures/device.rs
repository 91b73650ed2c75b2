//! Figures of the device's processes, which every experiment has.

use std::borrow::Cow;

use record::{Better, Figure, ManagementRecord, Trial};

use super::{Measure, Observation};
use crate::analysis;

const CPU_PERCENT: &str = "device_cpu_percent";

/// Figure, and its value in a management record.
type ManagementFigure = (Figure, fn(&ManagementRecord) -> Option<f64>);

const SOURCES: [ManagementFigure; 4] = [
    (
        Figure::new(
            CPU_PERCENT,
            "processor time of the device",
            "%",
            Better::Lower,
        ),
        |record| Some(record.cores()? * 100.0),
    ),
    (
        Figure::new(
            "device_frame_ns",
            "processor time of the device per frame",
            "ns",
            Better::Lower,
        ),
        ManagementRecord::ns_per_frame,
    ),
    (
        Figure::new(
            "device_memory_mib",
            "memory of the device",
            "MiB",
            Better::Lower,
        ),
        |record| {
            record.cores()?;
            Some(record.resident_bytes_max as f64 / f64::from(1 << 20))
        },
    ),
    (
        Figure::new(
            "device_switches_s",
            "context switches of the device",
            "/s",
            Better::Neither,
        ),
        ManagementRecord::switches_per_second,
    ),
];

/// Returns the figures.
pub(super) fn declared() -> impl Iterator<Item = Figure> {
    SOURCES.into_iter().map(|(figure, _)| figure)
}

/// Adds the figures of the device's processes in `trial`.
pub(super) fn observe(trial: &Trial, observation: &mut Observation<'_>) {
    let conditions = trial.conditions.as_ref();
    let management = conditions.and_then(|conditions| conditions.management.as_deref());
    for (figure, value_in) in SOURCES {
        let value = match management {
            Some(management) => value_in(management),
            // Old records have the processor time alone.
            None if figure.name == CPU_PERCENT => analysis::process_percent(trial),
            None => None,
        };
        if let Some(value) = value {
            observation.measures.push(Measure {
                name: Cow::Borrowed(figure.name),
                unit: figure.unit,
                better: figure.better,
                value,
                of: None,
            });
            continue;
        }
        let reason = match management {
            Some(record) if record.cores().is_some() => {
                "too few frames, or segments that the kernel counts as one frame"
            }
            None if conditions.is_some_and(|conditions| conditions.process.is_some()) => {
                "the monitors did not record it"
            }
            _ => "the device has no process",
        };
        observation
            .absent
            .insert(figure.name.to_owned(), reason.to_owned());
    }
}
