//! Conditions of the machine and of the device during a trial.

use serde::{Deserialize, Serialize};

use crate::{ManagementRecord, PathCounters};

/// Conditions of the machine and of the device's process while load is offered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// Covered time, in seconds.
    pub seconds: f64,
    /// Steal time: share of the time of all cores that the hypervisor gave to others, from 0 to 1.
    pub steal: f64,
    /// CPU pressure: share of the time in which a runnable task waited for a core, from 0 to 1
    /// (PSI, `some`); `None` if the kernel does not report it.
    pub pressure: Option<f64>,
    /// Utilization of the tester's cores, from 0 to 1.
    pub tester_busy: f64,
    /// Utilization of the devices' cores, from 0 to 1.
    pub device_busy: f64,
    /// Resource use of the device's process; `None` if the kernel forwards.
    pub process: Option<ProcessUse>,
    /// Samples of the device's processes and of each core; absent from old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub management: Option<Box<ManagementRecord>>,
    /// Counters along the path of the frames during the whole trial, which includes the time
    /// before and after the load; absent from old records.
    #[serde(default, rename = "passage", skip_serializing_if = "Option::is_none")]
    pub path_counters: Option<Box<PathCounters>>,
    /// Drift of `CLOCK_REALTIME`, the clock of the kernel's timestamps, relative to the lab's
    /// clock, in nanoseconds; absent from old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realtime_moved_ns: Option<i64>,
    /// Part of the drift that exceeds the kernel's slew rate: the clock was set during the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realtime_step_ns: Option<u64>,
}

/// Resource use of a device's process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessUse {
    /// Processor time in user code, in seconds of one core.
    pub user_seconds: f64,
    /// Processor time in the kernel, in seconds of one core.
    pub system_seconds: f64,
    /// Resident memory at the end, in bytes.
    pub resident_bytes: u64,
}
