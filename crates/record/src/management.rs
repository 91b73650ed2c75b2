//! Monitoring data of a trial: processes, cores, and the SNMP agent of a switch.

use serde::{Deserialize, Serialize};

/// Least number of frames for a cost per frame.
const FRAMES_MIN: u64 = 1_000;

/// Samples of a device's processes and of the cores during a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ManagementRecord {
    /// Time from the first sample to the last, in seconds.
    pub seconds: f64,
    /// Number of samples.
    pub samples: usize,
    /// Samples that were not taken in time.
    pub missed: u64,
    /// Number of values that could not be read.
    pub unreadable: u64,
    /// Processor time of the device's processes in user code, in seconds of one core.
    pub user_seconds: f64,
    /// Processor time of the device's processes in the kernel, in seconds of one core.
    pub system_seconds: f64,
    /// Run time of their threads by the scheduler's statistics, which have a resolution of a
    /// nanosecond, in seconds; `None` without statistics, or if threads ended during the trial.
    #[serde(default)]
    pub run_seconds: Option<f64>,
    /// Wait time of all their threads together on the run queue, in seconds.
    #[serde(default)]
    pub wait_seconds: Option<f64>,
    /// Frames that all hosts sent, by the counters of their interfaces; `None` if these are
    /// segments larger than the MTU, or cannot be read.
    #[serde(default)]
    pub host_frames: Option<u64>,
    /// Greatest resident memory of a sample, in bytes.
    pub resident_bytes_max: u64,
    /// Voluntary context switches of their threads.
    pub voluntary_switches: u64,
    /// Involuntary context switches of their threads.
    pub involuntary_switches: u64,
    /// Share of each core's time in soft interrupts, from 0 to 1.
    pub softirq: Vec<f64>,
    /// Steal time of each core, from 0 to 1.
    pub steal: Vec<f64>,
    /// CPU pressure, from 0 to 1 (PSI, `some`); `None` if the kernel does not report it.
    pub pressure: Option<f64>,
    /// For each sample: the seconds since the first, and the cores used since the previous one.
    pub cores_used: Vec<(f64, f64)>,
    /// Data of the SNMP agent; `None` if it was not polled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentRecord>,
}

/// Data of a switch's SNMP agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// System description; `None` if the agent never replied.
    pub description: Option<String>,
    /// Number of replies.
    pub answers: usize,
    /// Requests without a reply.
    pub unanswered: u64,
    /// Malformed replies.
    #[serde(rename = "senseless")]
    pub malformed: u64,
    /// Reason of the last failure.
    pub reason: Option<String>,
    /// Counts of each interface between the first reply and the last; `None` with fewer than two
    /// replies, or if the switch restarted in between.
    pub interfaces: Option<Vec<InterfaceRecord>>,
    /// Highest load of each processor, in per cent.
    pub load_max: Vec<u8>,
}

/// Counts of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceRecord {
    /// Received frames.
    pub in_frames: u64,
    /// Received bytes.
    pub in_octets: u64,
    /// Sent frames.
    pub out_frames: u64,
    /// Sent bytes.
    pub out_octets: u64,
}

impl ManagementRecord {
    /// Returns the average number of cores that the device's processes use; `None` without
    /// processes or samples.
    #[must_use]
    pub fn cores(&self) -> Option<f64> {
        let spent = self.processor_seconds()?;
        (self.seconds > 0.0).then(|| spent / self.seconds)
    }

    /// Returns the processor time per frame that hosts sent, in nanoseconds; `None` for too few
    /// frames.
    #[must_use]
    pub fn ns_per_frame(&self) -> Option<f64> {
        let frames = self.host_frames.filter(|frames| *frames >= FRAMES_MIN)?;
        Some(self.processor_seconds()? * 1e9 / frames as f64)
    }

    /// Returns the context switches per second; `None` without processes.
    #[must_use]
    pub fn switches_per_second(&self) -> Option<f64> {
        self.processor_seconds()?;
        let all = self.voluntary_switches + self.involuntary_switches;
        (self.seconds > 0.0).then(|| all as f64 / self.seconds)
    }

    /// Returns the processor time by the scheduler's statistics, or in ticks without them.
    fn processor_seconds(&self) -> Option<f64> {
        if self.resident_bytes_max == 0 {
            // There is no process, or it has ended.
            return None;
        }
        let ticks = self.user_seconds + self.system_seconds;
        Some(self.run_seconds.unwrap_or(ticks))
    }
}
