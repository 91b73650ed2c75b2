//! Record of the management channel: processes and cores during a test, and a switch's SNMP agent.

use serde::{Deserialize, Serialize};

/// Frames from which on it is told what each costs.
const FRAMES_MIN: u64 = 1_000;

/// What was seen while a test was under way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ManagementRecord {
    /// Seconds from the first look to the last.
    pub seconds: f64,
    /// Looks.
    pub samples: usize,
    /// Looks that were not taken in time.
    pub missed: u64,
    /// Things that could not be read.
    pub unreadable: u64,
    /// Seconds of one core that the device's processes spent in user code.
    pub user_seconds: f64,
    /// Seconds of one core that the kernel spent on their behalf.
    pub system_seconds: f64,
    /// Seconds that their threads ran, as the scheduler counts, in nanoseconds; none if it does
    /// not, or if threads ended meanwhile.
    #[serde(default)]
    pub run_seconds: Option<f64>,
    /// Seconds that they were ready to run and waited for a core, all of them together.
    #[serde(default)]
    pub wait_seconds: Option<f64>,
    /// Frames that all hosts sent meanwhile, as their interfaces counted; none if those were
    /// segments larger than a frame of theirs may be, or could not be read.
    #[serde(default)]
    pub host_frames: Option<u64>,
    /// The most memory that they held at a look, in bytes.
    pub resident_bytes_max: u64,
    /// How often their threads gave up a core since they had nothing to do.
    pub voluntary_switches: u64,
    /// How often they were made to.
    pub involuntary_switches: u64,
    /// Of each core's time, the share in soft interrupts, from 0 to 1.
    pub softirq: Vec<f64>,
    /// Of each core's time, the share that the hypervisor gave to others, from 0 to 1.
    pub steal: Vec<f64>,
    /// Share of the time in which something that was ready had to wait for a core, from 0 to
    /// 1 (PSI, some); none if the kernel does not tell.
    pub pressure: Option<f64>,
    /// From look to look: seconds since the first, and cores that the device's processes used.
    pub cores_used: Vec<(f64, f64)>,
    /// What the switch told by SNMP; none if it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentRecord>,
}

/// What a switch told by SNMP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// What it says that it is; none if it never answered.
    pub description: Option<String>,
    /// Answers.
    pub answers: usize,
    /// Questions that were not answered.
    pub unanswered: u64,
    /// Answers that made no sense.
    pub senseless: u64,
    /// The last reason why something could not be had.
    pub reason: Option<String>,
    /// What each interface counted from the first answer to the last; none if there are no
    /// two, or if the switch has started again in between.
    pub interfaces: Option<Vec<InterfaceRecord>>,
    /// The highest load that each of its processors told, in per cent.
    pub load_max: Vec<u8>,
}

/// What an interface counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceRecord {
    /// Frames in.
    pub in_frames: u64,
    /// Bytes in.
    pub in_octets: u64,
    /// Frames out.
    pub out_frames: u64,
    /// Bytes out.
    pub out_octets: u64,
}

impl ManagementRecord {
    /// Cores that the device's processes used, on average; none if it has none, or if nothing
    /// was seen.
    #[must_use]
    pub fn cores(&self) -> Option<f64> {
        let spent = self.processor_seconds()?;
        (self.seconds > 0.0).then(|| spent / self.seconds)
    }

    /// Nanoseconds of a core for each frame that hosts sent; none if there were too few to tell.
    #[must_use]
    pub fn ns_per_frame(&self) -> Option<f64> {
        let frames = self.host_frames.filter(|frames| *frames >= FRAMES_MIN)?;
        Some(self.processor_seconds()? * 1e9 / frames as f64)
    }

    /// How often a second its threads gave up a core; none if it has no processes.
    #[must_use]
    pub fn switches_a_second(&self) -> Option<f64> {
        self.processor_seconds()?;
        let all = self.voluntary_switches + self.involuntary_switches;
        (self.seconds > 0.0).then(|| all as f64 / self.seconds)
    }

    /// By the scheduler, or in ticks where it does not count.
    fn processor_seconds(&self) -> Option<f64> {
        if self.resident_bytes_max == 0 {
            // There was no process, or it is gone.
            return None;
        }
        let ticks = self.user_seconds + self.system_seconds;
        Some(self.run_seconds.unwrap_or(ticks))
    }
}
