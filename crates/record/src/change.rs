//! What came of rules that changed while frames moved.

use serde::{Deserialize, Serialize};

/// Frames, and what was asked of the device meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangeOutcome {
    /// What was asked, by its name.
    #[serde(default)]
    pub test: String,
    /// Frames a second that were to be offered.
    pub pps: u32,
    /// Frames a second that the device was found to carry before that, if it was asked.
    #[serde(default)]
    pub carried_pps: Option<u32>,
    /// Seconds over which they were.
    pub seconds: f64,
    /// Frames that the kernel took from the generator.
    pub sent: u64,
    /// Frames that came out, each counted once.
    pub received: u64,
    /// Frames that came out again.
    pub duplicates: u64,
    /// The time from sending to coming out that half of the frames took at most, in
    /// nanoseconds; 99 in a hundred, 999 in a thousand, and all.
    pub delay_ns_p50: u32,
    /// See there.
    pub delay_ns_p99: u32,
    /// See there.
    pub delay_ns_p999: u32,
    /// See there.
    pub delay_ns_max: u32,
    /// Flow-mods that were sent meanwhile.
    pub changes: u64,
    /// Dumps of the whole table that were told to their ends meanwhile.
    pub dumps: u32,
    /// For each change of the frames' rule, nanoseconds from sending it until the first frame
    /// came out by the new one.
    pub effect_ns: Vec<u32>,
    /// For each, nanoseconds from sending it until the reply to the barrier behind it was read.
    pub barrier_ns: Vec<u32>,
    /// Frames that were sent after such a reply and came out by the rule from before.
    pub late: u64,
}

impl ChangeOutcome {
    /// Frames that did not come out.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    /// Flow-mods a second.
    #[must_use]
    pub fn changes_a_second(&self) -> f64 {
        self.changes as f64 / self.seconds
    }
}

/// What is asked of a device while frames move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeTest {
    /// Nothing: what the others are held against.
    Quiet,
    /// That the frames' own rule change, now and then.
    Effect,
    /// That other flows come and go, many a second.
    FlowMods,
    /// That it tell of a large table.
    Dump,
}

impl ChangeTest {
    /// All.
    pub const ALL: [Self; 4] = [Self::Quiet, Self::Effect, Self::FlowMods, Self::Dump];

    /// Its name, as in an id.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Effect => "effect",
            Self::FlowMods => "flow-mods",
            Self::Dump => "dump",
        }
    }

    /// What it is, in a few words.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Quiet => "Nothing else",
            Self::Effect => "Their rule changes",
            Self::FlowMods => "Others come and go",
            Self::Dump => "A table is told",
        }
    }
}
