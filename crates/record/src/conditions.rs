//! How the machine and the device fared during a test.

use serde::{Deserialize, Serialize};

use crate::{ManagementRecord, PassageRecord};

/// How the machine and the device's process fared while load was offered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// Seconds that this covers.
    pub seconds: f64,
    /// Share of all cores' time that the hypervisor gave to others, from 0 to 1.
    pub steal: f64,
    /// Share of the time in which something that was ready to run had to wait for a
    /// core, from 0 to 1 (PSI, some); none if the kernel does not tell.
    pub pressure: Option<f64>,
    /// Share of the testers' cores that was busy, from 0 to 1.
    pub tester_busy: f64,
    /// Share of the devices' cores that was busy, from 0 to 1.
    pub device_busy: f64,
    /// What the device's process used; none if the kernel itself forwards.
    pub process: Option<ProcessUse>,
    /// What was seen of the device's processes and of each core; not told by old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub management: Option<Box<ManagementRecord>>,
    /// What was counted along the frames' way during the whole test, what came before and
    /// after the load among it; not told by old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passage: Option<Box<PassageRecord>>,
    /// By how many nanoseconds `CLOCK_REALTIME`, by which the kernel stamps frames, went ahead
    /// of the lab's clock; not told by old records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realtime_moved_ns: Option<i64>,
    /// How much of that is more than the kernel slews it by: it was set meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realtime_step_ns: Option<u64>,
}

/// What a device's process used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessUse {
    /// Seconds of one core in user code.
    pub user_seconds: f64,
    /// Seconds of one core in the kernel on its behalf.
    pub system_seconds: f64,
    /// Memory that it held at the end, in bytes.
    pub resident_bytes: u64,
}
